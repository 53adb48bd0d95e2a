/* SPDX-License-Identifier: Apache-2.0
 * Values that are known from elsewhere: those of Mesh-TensorFlow's own operations (reference 2.2 to
 * 2.9), of C's pow, and the edges: ties, NaN, division by zero, overflow, empty blocks. */
#include "check.h"

#include <math.h>
#include <stdint.h>

#include "support/eval.h"

static const mtf_dtype floats[] = {MTF_F32, MTF_F64};

#define VECTOR(n)    MTF_SHAPE({"a", n})
#define MATRIX(m, n) MTF_SHAPE({"a", m}, {"b", n})

/* reference 2.2 */
static void unary_functions(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        eval e = eval_open();
        mtf_tensor *x = INPUT(&e, VECTOR(5), floats[f], -2, -0.5, 0, 0.5, 2);
        mtf_tensor *gelu = mtf_gelu(x), *swish = mtf_swish(x), *relu = mtf_relu(x);
        EXPECT(&e, gelu, 1e-6, -0.045402, -0.154286, 0, 0.345714, 1.954598);
        EXPECT(&e, eval_gradient(gelu, x), 1e-6, -0.086099, 0.132630, 0.5, 0.867370, 1.086100);
        EXPECT(&e, swish, 1e-6, -0.238406, -0.188770, 0, 0.311230, 1.761594);
        EXPECT(&e, eval_gradient(swish, x), 1e-6, -0.090784, 0.260039, 0.5, 0.739961, 1.090784);
        EXPECT(&e, relu, 0, 0, 0, 0, 0.5, 2);
        EXPECT(&e, eval_gradient(relu, x), 0, 0, 0, 0, 1, 1);
        mtf_tensor *leaky = mtf_leaky_relu(x, 0.2);
        EXPECT(&e, leaky, 1e-7, -0.4, -0.1, 0, 0.5, 2);
        EXPECT(&e, eval_gradient(leaky, x), 1e-7, 0.2, 0.2, 0.2, 1, 1);
        EXPECT(&e, mtf_sign(x), 0, -1, -1, 0, 1, 1);
        EXPECT(&e, mtf_abs(x), 0, 2, 0.5, 0, 0.5, 2);
        EXPECT(&e, eval_gradient(mtf_abs(x), x), 0, -1, -1, 0, 1, 1);
        EXPECT(&e, mtf_elu(x), 1e-7, expm1(-2), expm1(-0.5), 0, 0.5, 2);
        EXPECT(&e, mtf_softplus(x), 1e-7, log1p(exp(-2)), log1p(exp(-0.5)), log(2), log1p(exp(0.5)),
               log1p(exp(2)));
        EXPECT(&e, mtf_sin(x), 1e-7, sin(-2), sin(-0.5), 0, sin(0.5), sin(2));
        EXPECT(&e, mtf_cast(x, MTF_I32), 0, -2, 0, 0, 0, 2);
        EXPECT(&e, mtf_cast(x, MTF_BOOL), 0, 1, 1, 0, 1, 1);
        assert_null(eval_gradient(mtf_cast(mtf_cast(x, MTF_I32), floats[f]), x));
        assert_null(eval_gradient(mtf_stop_gradient(x), x));
        eval_close(&e);
    }
}

/* reference 2.2: each against C's mathematics, at positive numbers that f32 holds. */
static void unary_functions_by_definition(void **state)
{
    (void)state;
    enum { N = 6, FUNCTIONS = 13 };
    static mtf_tensor *(*const function[FUNCTIONS])(mtf_tensor *) = {
        mtf_identity, mtf_negative, mtf_square, mtf_reciprocal, mtf_sqrt,     mtf_rsqrt, mtf_exp,
        mtf_log,      mtf_cos,      mtf_tanh,   mtf_sigmoid,    mtf_softplus, mtf_selu,
    };
    static const double at[N] = {0.0625, 0.25, 0.5, 1, 2.5, 7};
    for (int f = 0; f < 2; f++) {
        eval e = eval_open();
        mtf_tensor *x = eval_input(&e, VECTOR(N), floats[f], at);
        const double tolerance = f ? 1e-14 : 1e-6;
        double want[FUNCTIONS][N];
        for (int i = 0; i < N; i++) {
            const double v = at[i];
            const double values[] = {v,
                                     -v,
                                     v * v,
                                     1 / v,
                                     sqrt(v),
                                     1 / sqrt(v),
                                     exp(v),
                                     log(v),
                                     cos(v),
                                     tanh(v),
                                     1 / (1 + exp(-v)),
                                     log1p(exp(v)),
                                     1.0507009873554805 * v};
            for (int k = 0; k < FUNCTIONS; k++)
                want[k][i] = values[k];
        }
        for (int k = 0; k < FUNCTIONS; k++)
            eval_expect(&e, function[k](x), N, want[k], tolerance);
        const double below = 1.0507009873554805 * 1.6732632423543772;
        EXPECT(&e, mtf_selu(mtf_negative(mtf_slice(x, "a", 3, 2))), tolerance, below * expm1(-1),
               below * expm1(-2.5));
        EXPECT(&e, mtf_scale(mtf_slice(x, "a", 3, 2), -3), 0, -3, -7.5);
        EXPECT(&e, mtf_offset(mtf_slice(x, "a", 3, 2), -3), 0, -2, -0.5);
        eval_close(&e);
    }
}

/* reference 2.3 */
static void comparisons_and_flags(void **state)
{
    (void)state;
    static const mtf_dtype types[] = {MTF_F32, MTF_F64, MTF_I32};
    for (int t = 0; t < 3; t++) {
        eval e = eval_open();
        mtf_tensor *x = INPUT(&e, VECTOR(3), types[t], 1, 2, 3);
        mtf_tensor *y = INPUT(&e, VECTOR(3), types[t], 2, 2, 2);
        EXPECT(&e, mtf_less(x, y), 0, 1, 0, 0);
        EXPECT(&e, mtf_less_equal(x, y), 0, 1, 1, 0);
        EXPECT(&e, mtf_greater(x, y), 0, 0, 0, 1);
        EXPECT(&e, mtf_greater_equal(x, y), 0, 0, 1, 1);
        EXPECT(&e, mtf_equal(x, y), 0, 0, 1, 0);
        EXPECT(&e, mtf_not_equal(x, y), 0, 1, 0, 1);
        EXPECT(&e, mtf_add_n(3, (mtf_tensor *[]){x, y, x}), 0, 4, 6, 8);
        EXPECT(&e, mtf_sub(x, y), 0, -1, 0, 1);
        EXPECT(&e, mtf_mul(x, y), 0, 2, 4, 6);
        assert_null(eval_gradient(mtf_where(mtf_less(x, y), y, y), x));
        eval_close(&e);
    }
    eval e = eval_open();
    mtf_tensor *n = INPUT(&e, VECTOR(2), MTF_F64, NAN, NAN),
               *one = INPUT(&e, VECTOR(2), MTF_F64, 1, NAN);
    mtf_tensor *a = INPUT(&e, VECTOR(4), MTF_BOOL, 0, 0, 1, 1);
    mtf_tensor *b = INPUT(&e, VECTOR(4), MTF_BOOL, 0, 1, 0, 1);
    EXPECT(&e, mtf_less_equal(n, one), 0, 0, 0);
    EXPECT(&e, mtf_greater_equal(n, one), 0, 0, 0);
    EXPECT(&e, mtf_not_equal(n, one), 0, 1, 1);
    EXPECT(&e, mtf_logical_and(a, b), 0, 0, 0, 0, 1);
    EXPECT(&e, mtf_logical_or(a, b), 0, 0, 1, 1, 1);
    EXPECT(&e, mtf_logical_not(a), 0, 1, 1, 0, 0);
    eval_close(&e);
}

/* Mean and mean square of what is drawn are those of the distribution, and its ends are kept. */
static void expect_moments(eval *e, mtf_tensor *t, double mean, double square, double low,
                           double high)
{
    static double drawn[10000];
    double sum = 0, squares = 0;
    eval_run(e, "", "", t, drawn);
    for (int i = 0; i < 10000; i++) {
        assert_true(drawn[i] >= low && drawn[i] <= high);
        sum += drawn[i] / 10000;
        squares += drawn[i] * drawn[i] / 10000;
    }
    assert_true(fabs(sum - mean) < 0.05 * sqrt(square) && fabs(squares - square) < 0.07 * square);
}

/* reference 2.8 */
static void random_moments(void **state)
{
    (void)state;
    const mtf_shape s = MTF_SHAPE({"a", 100}, {"b", 100});
    for (int f = 0; f < 2; f++) {
        eval e = eval_open();
        expect_moments(&e, mtf_random_uniform(e.g, "u", s, floats[f], -1, 3), 1, 4.0 / 3 + 1, -1,
                       3);
        expect_moments(&e, mtf_random_normal(e.g, "n", s, floats[f], 2, 3), 2, 13, -16, 20);
        /* The variance of a normal distribution cut at two deviations is 0.7737. */
        expect_moments(&e, mtf_random_truncated_normal(e.g, "t", s, floats[f], 2, 3), 2,
                       4 + 9 * 0.7737, -4, 8);
        mtf_tensor *ones = mtf_constant(e.g, 1, s, floats[f]);
        expect_moments(&e, mtf_dropout(ones, "d", 0.2), 1, 1.25, 0, 1.25001);
        eval_close(&e);
    }
}

static void slopes_far_out(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 4}), MTF_F32, -3e38, -1e20, 1e20, 3e38);
    mtf_tensor *y = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, -1e200, 1e200);
    EXPECT(&e, eval_gradient(mtf_gelu(x), x), 0, 0, 0, 1, 1);
    EXPECT(&e, eval_gradient(mtf_gelu(y), y), 0, 0, 1);
    eval_close(&e);
}

/* reference 2.1 and 2.3 */
static void broadcasting(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *ab = INPUT(&e, MATRIX(2, 3), MTF_F64, 1, 2, 3, 4, 5, 6);
    mtf_tensor *b = INPUT(&e, MTF_SHAPE({"b", 3}), MTF_F64, 10, 20, 30);
    mtf_tensor *bc = INPUT(&e, MTF_SHAPE({"b", 3}, {"c", 2}), MTF_F64, 1, 2, 3, 4, 5, 6);
    const mtf_shape both = mtf_tensor_shape(mtf_add(b, ab)),
                    all = mtf_tensor_shape(mtf_add(ab, bc));
    assert_true(both.rank == 2 && mtf_shape_find(&both, "b") == 1);
    assert_true(all.rank == 3 && mtf_shape_find(&all, "c") == 2);
    EXPECT(&e, mtf_add(ab, b), 0, 11, 22, 33, 14, 25, 36);
    EXPECT(&e, mtf_add(b, ab), 0, 11, 22, 33, 14, 25, 36); /* [b] + [a b] is [a b] */
    EXPECT(&e, mtf_mul(ab, bc), 0, 1, 2, 6, 8, 15, 18, 4, 8, 15, 20, 30, 36);
    EXPECT(&e, eval_gradient(mtf_mul(ab, bc), bc), 0, 5, 5, 7, 7, 9, 9);
    /* The gradient of a broadcast operand of max has the operand's own shape. */
    mtf_tensor *y = INPUT(&e, MTF_SHAPE({"b", 3}), MTF_F64, 2, 2, 6);
    EXPECT(&e, eval_gradient(mtf_maximum(ab, y), y), 0, 1, 0.5, 1.5);
    EXPECT(&e, eval_gradient(mtf_maximum(ab, y), ab), 0, 0, 0.5, 0, 1, 1, 0.5);
    EXPECT(&e, eval_gradient(mtf_minimum(ab, y), y), 0, 1, 1.5, 0.5);
    eval_close(&e);
}

/* reference 2.4 */
static void einsum_and_layouts(void **state)
{
    (void)state;
    eval e = eval_open();
    double x[24], y[12];
    for (int i = 0; i < 24; i++)
        x[i] = i;
    for (int i = 0; i < 12; i++)
        y[i] = i;
    for (int f = 0; f < 2; f++) {
        mtf_tensor *p = mtf_matmul(eval_input(&e, MATRIX(4, 6), floats[f], x),
                                   eval_input(&e, MTF_SHAPE({"b", 6}, {"c", 2}), floats[f], y),
                                   MTF_SHAPE({"a", 4}, {"c", 2}));
        static const char *const layouts[][2] = {
            {"", ""},       {"p:2", "b:p"},       {"p:4", "b:p"},
            {"p:3", "a:p"}, {"p:2", "c:p"},       {"p:2;q:3", "a:p;b:q"},
            {"p:8", "b:p"}, {"p:2;q:2", "b:q+p"}, {"p:7", "a:p"},
        };
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            EXPECT_ON(&e, layouts[i][0], layouts[i][1], p, 0, 110, 125, 290, 341, 470, 557, 650,
                      773);
    }
    eval_close(&e);
}

static void reductions(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(3), MTF_F64, 1, 3, 3);
    mtf_tensor *n = INPUT(&e, VECTOR(3), MTF_F64, 1, NAN, 3);
    EXPECT(&e, mtf_reduce_max(x, MTF_SCALAR), 0, 3);
    EXPECT(&e, eval_gradient(mtf_reduce_max(x, MTF_SCALAR), x), 0, 0, 0.5, 0.5); /* shared */
    EXPECT(&e, eval_gradient(mtf_reduce_min(mtf_negative(x), MTF_SCALAR), x), 0, 0, -0.5, -0.5);
    EXPECT_ON(&e, "p:3", "a:p", eval_gradient(mtf_reduce_max(x, MTF_SCALAR), x), 0, 0, 0.5, 0.5);
    EXPECT(&e, mtf_reduce_max(n, MTF_SCALAR), 0, NAN);
    EXPECT(&e, mtf_reduce_min(n, MTF_SCALAR), 0, NAN);
    EXPECT_ON(&e, "p:2", "a:p", mtf_reduce_max(n, MTF_SCALAR), 0, NAN);
    EXPECT_ON(&e, "p:3", "a:p", mtf_reduce_min(n, MTF_SCALAR), 0, NAN);
    EXPECT_ON(&e, "p:5", "a:p", mtf_reduce_max(x, MTF_SCALAR), 0, 3); /* with empty blocks */
    EXPECT_ON(&e, "p:5", "a:p", mtf_reduce_min(x, MTF_SCALAR), 0, 1);
    EXPECT_ON(&e, "p:5", "a:p", mtf_reduce_mean(x, MTF_SCALAR), 1e-15, 7.0 / 3);
    EXPECT_ON(&e, "p:2", "a:p", mtf_reduce_mean(x, MTF_SCALAR), 1e-15, 7.0 / 3);
    mtf_tensor *s = INPUT(&e, VECTOR(4), MTF_F64, 1, 2, 3, 4);
    EXPECT(&e, mtf_softmax(s, "a"), 1e-5, .032059, .087144, .236883, .643914);
    EXPECT_ON(&e, "p:3", "a:p", mtf_softmax(s, "a"), 1e-5, .032059, .087144, .236883, .643914);
    EXPECT_ON(&e, "p:3", "a:p", mtf_log_softmax(s, "a"), 1e-5, -3.440190, -2.440190, -1.440190,
              -0.440190);
    /* reference 2.4: an extra logit of 0 is one more element, which nobody looks at. */
    mtf_tensor *extra = mtf_constant(e.g, 0, VECTOR(1), MTF_F64);
    mtf_tensor *five = mtf_softmax(mtf_concat(2, (mtf_tensor *[]){s, extra}, "a"), "a");
    mtf_tensor *four = mtf_slice(five, "a", 0, 4);
    EXPECT(&e, four, 1e-5, .031685, .086129, .234122, .636409);
    EXPECT_ON(&e, "p:3", "a:p", four, 1e-5, .031685, .086129, .234122, .636409);
    mtf_tensor *big = INPUT(&e, VECTOR(2), MTF_F64, 1000, 1000);
    EXPECT(&e, mtf_reduce_logsumexp(big, MTF_SCALAR), 1e-15, 1000 + log(2));
    mtf_tensor *masked = INPUT(&e, VECTOR(3), MTF_F64, 0, -INFINITY, 0);
    EXPECT(&e, mtf_softmax(masked, "a"), 1e-15, 0.5, 0, 0.5);
    eval_close(&e);
}

/* reference 2.6 and 2.8 */
static void indexing(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *table = INPUT(&e, MTF_SHAPE({"v", 4}, {"d", 2}), MTF_F64, 1, 2, 3, 4, 5, 6, 7, 8);
    mtf_tensor *ids = INPUT(&e, VECTOR(4), MTF_I32, 0, 3, 5, -1);
    mtf_tensor *rows = mtf_gather(table, ids, "v");
    mtf_tensor *hot = mtf_one_hot(ids, (mtf_dim){"v", 4}, 2, -1, MTF_F64);
    mtf_tensor *back = mtf_scatter_add(rows, ids, "v", MTF_SHAPE({"v", 4}, {"d", 2}));
    mtf_tensor *range = mtf_range(e.g, (mtf_dim){"a", 4}, MTF_I32);
    static const char *const layouts[][2] = {
        {"", ""},       {"p:2", "v:p"}, {"p:3", "v:p"}, {"p:2;q:2", "a:p;v:q"},
        {"p:8", "v:p"}, {"p:3", "d:p"}, {"p:8", "a:p"},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const char *m = layouts[i][0], *l = layouts[i][1];
        EXPECT_ON(&e, m, l, rows, 0, 1, 2, 7, 8, 0, 0, 0, 0);
        EXPECT_ON(&e, m, l, hot, 0, 2, -1, -1, -1, -1, -1, -1, 2, -1, -1, -1, -1, -1, -1, -1, -1);
        EXPECT_ON(&e, m, l, back, 0, 1, 2, 0, 0, 0, 0, 7, 8);
        EXPECT_ON(&e, m, l, eval_gradient(rows, table), 0, 1, 1, 0, 0, 0, 0, 1, 1);
        EXPECT_ON(&e, m, l, range, 0, 0, 1, 2, 3);
    }
    eval_close(&e);
}

/* reference 2.9 */
static void shifting(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(8), MTF_F32, 1, 2, 3, 4, 5, 6, 7, 8);
    static const char *const meshes[] = {"", "p:2", "p:3", "p:4", "p:11"};
    for (int i = 0; i < 5; i++) {
        const char *l = i ? "a:p" : "";
        EXPECT_ON(&e, meshes[i], l, mtf_shift(x, "a", 1, false), 0, 0, 1, 2, 3, 4, 5, 6, 7);
        EXPECT_ON(&e, meshes[i], l, mtf_shift(x, "a", 1, true), 0, 8, 1, 2, 3, 4, 5, 6, 7);
        EXPECT_ON(&e, meshes[i], l, mtf_shift(x, "a", -3, false), 0, 4, 5, 6, 7, 8, 0, 0, 0);
        EXPECT_ON(&e, meshes[i], l, mtf_shift(x, "a", 9, true), 0, 8, 1, 2, 3, 4, 5, 6, 7);
        EXPECT_ON(&e, meshes[i], l, mtf_shift(x, "a", 9, false), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
    EXPECT(&e, mtf_shift(x, "a", INT64_MIN, true), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    EXPECT(&e, mtf_shift(x, "a", INT64_MIN, false), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    EXPECT(&e, mtf_shift(x, "a", INT64_MAX, false), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    eval_close(&e);
}

static void sources_and_shapes(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MATRIX(2, 3), MTF_I32, 0, 1, 2, 3, 4, 5);
    EXPECT(&e, mtf_constant(e.g, 1e300, VECTOR(2), MTF_I32), 0, INT32_MAX, INT32_MAX);
    EXPECT(&e, mtf_constant(e.g, NAN, VECTOR(1), MTF_I32), 0, 0);
    EXPECT(&e, mtf_broadcast(x, MTF_SHAPE({"b", 3}, {"c", 2}, {"a", 2})), 0, 0, 3, 0, 3, 1, 4, 1, 4,
           2, 5, 2, 5);
    EXPECT(&e, mtf_transpose(x, MTF_SHAPE({"b", 3}, {"a", 2})), 0, 0, 3, 1, 4, 2, 5);
    EXPECT(&e, mtf_reshape(x, MTF_SHAPE({"c", 3}, {"d", 2})), 0, 0, 1, 2, 3, 4, 5);
    /* Elements stay in order however both sides are split. */
    mtf_tensor *r = mtf_reshape(x, MTF_SHAPE({"c", 3}, {"d", 2}));
    EXPECT_ON(&e, "p:2;q:2", "a:p;c:q", r, 0, 0, 1, 2, 3, 4, 5);
    EXPECT_ON(&e, "p:2;q:2", "a:p;d:p+q", r, 0, 0, 1, 2, 3, 4, 5);
    EXPECT_ON(&e, "p:4", "a:p;c:p", mtf_rename(x, "a", "c"), 0, 0, 1, 2, 3, 4, 5);
    mtf_tensor *d = mtf_cast(x, MTF_F64);
    EXPECT(&e, eval_gradient(mtf_broadcast(d, MTF_SHAPE({"a", 2}, {"b", 3}, {"c", 5})), d), 0, 5, 5,
           5, 5, 5, 5);
    eval_close(&e);
}

static void nan_is_kept_where_it_belongs(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        eval e = eval_open();
        mtf_tensor *x = INPUT(&e, VECTOR(4), floats[f], NAN, 1, NAN, 2);
        mtf_tensor *y = INPUT(&e, VECTOR(4), floats[f], 1, NAN, NAN, 3);
        EXPECT(&e, mtf_maximum(x, y), 0, NAN, NAN, NAN, 3);
        EXPECT(&e, mtf_minimum(x, y), 0, NAN, NAN, NAN, 2);
        EXPECT(&e, mtf_relu(x), 0, NAN, 1, NAN, 2);
        /* where hides the other branch, in the value and in the gradient. */
        mtf_tensor *good = mtf_equal(x, x), *zero = mtf_constant(e.g, 0, MTF_SCALAR, floats[f]);
        mtf_tensor *hidden = mtf_where(good, x, zero);
        EXPECT(&e, hidden, 0, 0, 1, 0, 2);
        EXPECT(&e, eval_gradient(hidden, x), 0, 0, 1, 0, 1);
        mtf_tensor *bits = INPUT(&e, VECTOR(4), MTF_BOOL, 1, 0, 1, 0);
        EXPECT(&e, mtf_where(bits, y, x), 0, 1, 1, NAN, 2);
        EXPECT(&e,
               mtf_where(bits, INPUT(&e, VECTOR(4), MTF_I32, 1, 2, 3, 4),
                         INPUT(&e, MTF_SCALAR, MTF_I32, 9)),
               0, 1, 9, 3, 9);
        eval_close(&e);
    }
}

static void integers(void **state)
{
    (void)state;
    eval e = eval_open();
    const double least = INT32_MIN, most = INT32_MAX;
    mtf_tensor *x = INPUT(&e, VECTOR(7), MTF_I32, 7, -7, 7, -7, 5, least, most);
    mtf_tensor *y = INPUT(&e, VECTOR(7), MTF_I32, 2, 2, -2, -2, 0, -1, 0);
    EXPECT(&e, mtf_floordiv(x, y), 0, 3, -4, -4, 3, 0, least, 0);
    EXPECT(&e, mtf_mod(x, y), 0, 1, 1, -1, -1, 0, 0, 0);
    mtf_tensor *ends = INPUT(&e, VECTOR(2), MTF_I32, least, most);
    mtf_tensor *one = mtf_constant(e.g, 1, MTF_SCALAR, MTF_I32);
    EXPECT(&e, mtf_sub(ends, one), 0, most, most - 1); /* wraps around */
    EXPECT(&e, mtf_add(ends, one), 0, least + 1, least);
    EXPECT(&e, mtf_negative(ends), 0, least, -most);
    EXPECT(&e, mtf_abs(ends), 0, least, most);
    EXPECT(&e, mtf_square(ends), 0, 0, 1);
    EXPECT(&e, mtf_mul(ends, ends), 0, 0, 1);
    EXPECT(&e, mtf_reduce_sum(ends, MTF_SCALAR), 0, -1);
    EXPECT(&e, mtf_matmul(ends, ends, MTF_SCALAR), 0, 1);
    EXPECT(&e, mtf_scale(ends, 10), 0, least, most); /* saturates, as a cast does */
    EXPECT(&e, mtf_scale(INPUT(&e, VECTOR(2), MTF_I32, 3, -3), 0.5), 0, 1, -1);
    EXPECT(&e, mtf_cast(INPUT(&e, VECTOR(5), MTF_F64, 1e99, -1e99, NAN, 2.9, -2.9), MTF_I32), 0,
           most, least, 0, 2, -2);
    eval_close(&e);
}

static void real_division(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        eval e = eval_open();
        mtf_tensor *x = INPUT(&e, VECTOR(6), floats[f], 7, -7, 7, -7, 1, 0);
        mtf_tensor *y = INPUT(&e, VECTOR(6), floats[f], 2, 2, -2, -2, 0, 0);
        EXPECT(&e, mtf_div(x, y), 0, 3.5, -3.5, -3.5, 3.5, INFINITY, NAN);
        EXPECT(&e, mtf_floordiv(x, y), 0, 3, -4, -4, 3, INFINITY, NAN);
        EXPECT(&e, mtf_mod(x, y), 0, 1, 1, -1, -1, NAN, NAN);
        eval_close(&e);
    }
}

/* pow agrees with C's at every pair of edges. */
static void powers(void **state)
{
    (void)state;
    static const double edges[] = {0.0,      -0.0,      1,    -1,    2,
                                   -2,       3,         -3,   0.5,   -0.5,
                                   1e300,    -1e300,    1e19, -1e19, 9007199254740993.0,
                                   INFINITY, -INFINITY, NAN,  2.5};
    enum { N = sizeof edges / sizeof *edges };
    double want[N * N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            want[i * N + j] = pow(edges[i], edges[j]);
    want[2 * N + 17] = 1; /* 1 to the NaN */
    eval e = eval_open();
    mtf_tensor *x = eval_input(&e, MTF_SHAPE({"x", N}), MTF_F64, edges),
               *y = eval_input(&e, MTF_SHAPE({"y", N}), MTF_F64, edges);
    eval_expect(&e, mtf_pow(x, y), N * N, want, 1e-12);
    mtf_tensor *b = INPUT(&e, VECTOR(4), MTF_F64, 0, 0, -2, 3);
    mtf_tensor *p = INPUT(&e, VECTOR(4), MTF_F64, 0, 1, 3, 2);
    EXPECT(&e, mtf_pow(b, p), 1e-14, 1, 0, -8, 9);
    EXPECT(&e, eval_gradient(mtf_pow(b, p), b), 1e-14, 0, 1, 12, 6);
    mtf_tensor *b32 = INPUT(&e, VECTOR(4), MTF_F32, -2, -2, 1e30, -0.5);
    mtf_tensor *p32 = INPUT(&e, VECTOR(4), MTF_F32, 3, 0.5, 2, -3);
    EXPECT(&e, mtf_pow(b32, p32), 1e-7, -8, NAN, INFINITY, -8);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_functions),
        cmocka_unit_test(unary_functions_by_definition),
        cmocka_unit_test(comparisons_and_flags),
        cmocka_unit_test(random_moments),
        cmocka_unit_test(slopes_far_out),
        cmocka_unit_test(broadcasting),
        cmocka_unit_test(einsum_and_layouts),
        cmocka_unit_test(reductions),
        cmocka_unit_test(indexing),
        cmocka_unit_test(shifting),
        cmocka_unit_test(sources_and_shapes),
        cmocka_unit_test(nan_is_kept_where_it_belongs),
        cmocka_unit_test(integers),
        cmocka_unit_test(real_division),
        cmocka_unit_test(powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
