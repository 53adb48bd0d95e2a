/* SPDX-License-Identifier: Apache-2.0
 * Gradients against finite differences, of whole functions: first and second ones, through values
 * that are used several times, and where there is no path. */
#include "check.h"

#include <math.h>

#include "support/eval.h"

enum { A = 3, B = 4, N = A * B };
static const mtf_shape ab = {.rank = 2, .dim = {{"a", A}, {"b", B}}};

typedef mtf_tensor *function(mtf_tensor *x);

static mtf_tensor *polynomial(mtf_tensor *x)
{
    return mtf_add(mtf_mul(mtf_square(x), x), mtf_scale(x, 2));
}
static mtf_tensor *tanh_of_exp(mtf_tensor *x)
{
    return mtf_tanh(mtf_exp(x));
}
static mtf_tensor *power(mtf_tensor *x)
{
    return mtf_pow(mtf_offset(mtf_square(x), 1), mtf_sin(x));
}
static mtf_tensor *quotient(mtf_tensor *x)
{
    return mtf_div(x, mtf_offset(mtf_square(x), 1));
}
static mtf_tensor *gram(mtf_tensor *x)
{
    mtf_tensor *y = mtf_rename(x, "a", "c");
    return mtf_square(mtf_matmul(x, y, MTF_SHAPE({"a", A}, {"c", A})));
}
static mtf_tensor *same_operand_twice(mtf_tensor *x)
{
    return mtf_matmul(x, x, MTF_SHAPE({"a", A}));
}
static mtf_tensor *entropy(mtf_tensor *x)
{
    return mtf_mul(mtf_softmax(x, "b"), mtf_log_softmax(x, "b"));
}
static mtf_tensor *logsumexp(mtf_tensor *x)
{
    return mtf_square(mtf_reduce_logsumexp(x, MTF_SHAPE({"a", A})));
}
static mtf_tensor *norm(mtf_tensor *x)
{
    mtf_tensor *m = mtf_reduce_mean(x, MTF_SHAPE({"a", A})), *c = mtf_sub(x, m);
    mtf_tensor *v = mtf_offset(mtf_reduce_mean(mtf_square(c), MTF_SHAPE({"a", A})), 0.1);
    return mtf_square(mtf_mul(c, mtf_rsqrt(v)));
}
static mtf_tensor *smooth_units(mtf_tensor *x)
{
    return mtf_add(mtf_mul(mtf_sigmoid(x), mtf_softplus(x)), mtf_mul(mtf_swish(x), mtf_cos(x)));
}
static mtf_tensor *gelu(mtf_tensor *x)
{
    return mtf_gelu(x);
}
static mtf_tensor *moved(mtf_tensor *x)
{
    mtf_tensor *y = mtf_shift(x, "b", 1, true), *z = mtf_shift(x, "a", -1, false);
    mtf_tensor *r = mtf_reshape(mtf_transpose(x, MTF_SHAPE({"b", B}, {"a", A})), ab);
    return mtf_mul(mtf_mul(y, z), mtf_sqrt(mtf_offset(mtf_square(r), 1)));
}
static mtf_tensor *looked_up(mtf_tensor *x)
{
    mtf_graph *g = mtf_tensor_graph(x);
    mtf_tensor *i = mtf_floordiv(mtf_range(g, (mtf_dim){"c", 5}, MTF_I32),
                                 mtf_constant(g, 2, MTF_SCALAR, MTF_I32));
    mtf_tensor *rows = mtf_square(mtf_gather(x, i, "a"));
    return mtf_square(mtf_scatter_add(rows, i, "d", MTF_SHAPE({"d", 4}, {"b", B})));
}
static mtf_tensor *extremes(mtf_tensor *x)
{
    mtf_tensor *top = mtf_reduce_max(x, MTF_SHAPE({"a", A}));
    return mtf_mul(mtf_maximum(x, mtf_scale(x, 0.5)), mtf_square(top));
}

static function *const functions[] = {
    polynomial, tanh_of_exp, power,        quotient, gram,  same_operand_twice, entropy,
    logsumexp,  norm,        smooth_units, gelu,     moved, looked_up,          extremes,
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static double total(eval *e, mtf_tensor *t)
{
    double value;
    eval_run(e, "", "", t, &value);
    return value;
}

/* Compares dx with the slopes of y, which is a scalar. */
static void check_slopes(eval *e, int k, const char *what, mtf_tensor *y, mtf_tensor *dx,
                         double *data)
{
    const double h = 1e-5;
    double want[N];
    for (int i = 0; i < N; i++) {
        const double at = data[i];
        data[i] = at + h;
        const double up = total(e, y);
        data[i] = at - h;
        const double down = total(e, y);
        data[i] = at;
        want[i] = (up - down) / (2 * h);
    }
    double got[N];
    eval_run(e, "", "", dx, got);
    for (int i = 0; i < N; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-7 * (1 + fabs(want[i]))))
            fail_msg("function %d, %s, element %d: %.12g instead of %.12g", k, what, i, got[i],
                     want[i]);
}

static void gradients_and_their_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < FUNCTIONS; k++) {
        eval e = eval_open();
        double values[N], weights[N];
        for (int i = 0; i < N; i++) {
            values[i] = 1.3 * sin(2.3 * i + 0.4);
            weights[i] = cos(1.9 * i);
        }
        mtf_tensor *x = eval_input(&e, ab, MTF_F64, values);
        mtf_tensor *w = eval_input(&e, ab, MTF_F64, weights);
        double *data = (double *)(uintptr_t)e.feed[0].data;
        mtf_tensor *y = mtf_reduce_sum(functions[k](x), MTF_SCALAR);
        mtf_tensor *dx = eval_gradient(y, x);
        check_slopes(&e, k, "gradient", y, dx, data);
        mtf_tensor *dy = mtf_reduce_sum(mtf_mul(dx, w), MTF_SCALAR);
        check_slopes(&e, k, "second gradient", dy, eval_gradient(dy, x), data);
        eval_close(&e);
    }
}

static void no_path_is_no_gradient(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 1, 2);
    mtf_tensor *z = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 5, 6);
    mtf_tensor *y = mtf_reduce_sum(mtf_mul(x, mtf_stop_gradient(mtf_square(z))), MTF_SCALAR);
    mtf_tensor *of[] = {z, x, y, z}, *d[4];
    assert_int_equal(mtf_gradients(y, 4, of, d), MTF_OK);
    assert_null(d[0]);
    assert_null(d[3]);
    EXPECT(&e, d[1], 0, 25, 36);
    EXPECT(&e, d[2], 0, 1); /* of itself */
    mtf_tensor *sign = mtf_reduce_sum(mtf_sign(x), MTF_SCALAR);
    assert_int_equal(mtf_gradients(sign, 1, &x, d), MTF_OK);
    assert_null(d[0]);
    /* A value in the middle: the gradient of what is computed from it. */
    mtf_tensor *half = mtf_scale(x, 0.5), *q = mtf_reduce_sum(mtf_square(half), MTF_SCALAR);
    assert_int_equal(mtf_gradients(q, 2, (mtf_tensor *[]){half, x}, d), MTF_OK);
    EXPECT(&e, d[0], 0, 1, 2);
    EXPECT(&e, d[1], 0, 0.5, 1);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_and_their_gradients),
        cmocka_unit_test(no_path_is_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
