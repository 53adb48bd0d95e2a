/* SPDX-License-Identifier: Apache-2.0
 * Whatever sums numbers of bf16 sums them in f32 and rounds the whole sum once, on every layout.
 * The numbers are whole and small, so that their sums are exact in f32 and the result is known to
 * the bit: that of f64, rounded. */
#include "check.h"

#include <stdio.h>

#include "base/bfloat.h"
#include "base/random.h"
#include "mtf/mtf.h"
#include "support/eval.h"

static const mtf_dim a = {"a", 23}, b = {"b", 19}, c = {"c", 5}, v = {"v", 11};
enum { MOST = 23 * 19 * 11 };

/* Numbers and indices that are equal for every type. */
typedef struct operands {
    eval *e;
    mtf_dtype type;
} operands;

static double whole(int input, int i, int n)
{
    return (double)(random_u32(3, 1, (uint64_t)input, (uint64_t)i) % (uint32_t)n);
}

static mtf_tensor *numbers(operands *o, int most, mtf_shape s)
{
    double x[MOST];
    for (int i = 0; i < mtf_shape_size(&s); i++)
        x[i] = whole(o->e->nfeeds, i, most + 41) - 40;
    return eval_input(o->e, s, o->type, x);
}

static mtf_tensor *indices(operands *o, mtf_shape s)
{
    double x[MOST];
    for (int i = 0; i < mtf_shape_size(&s); i++)
        x[i] = whole(o->e->nfeeds, i, (int)v.size);
    return eval_input(o->e, s, MTF_I32, x);
}

#define N(...)     numbers(o, 160, MTF_SHAPE(__VA_ARGS__))
#define SMALL(...) numbers(o, 30, MTF_SHAPE(__VA_ARGS__))

static mtf_tensor *reduce(operands *o)
{
    return mtf_reduce_sum(N(a, b), MTF_SHAPE(b));
}

static mtf_tensor *product(operands *o)
{
    mtf_tensor *x = N(a, b);
    return mtf_matmul(x, N(b, c), MTF_SHAPE(a, c));
}

/* b is a dim of the first operand alone. */
static mtf_tensor *product_and_sum(operands *o)
{
    mtf_tensor *x = N(a, b);
    return mtf_matmul(x, N(a, c), MTF_SHAPE(c));
}

static mtf_tensor *product_of_three(operands *o)
{
    mtf_tensor *x = SMALL(a, c), *y = SMALL(c, v);
    return mtf_einsum(3, (mtf_tensor *[]){x, y, SMALL(v)}, MTF_SHAPE(a));
}

static mtf_tensor *scatter(operands *o)
{
    mtf_tensor *x = N(a, b);
    return mtf_scatter_add(x, indices(o, MTF_SHAPE(a)), "v", MTF_SHAPE(v, b));
}

static mtf_tensor *running(operands *o)
{
    return mtf_cumsum(N(a, b), "a", false, false);
}

static mtf_tensor *running_back(operands *o)
{
    return mtf_cumsum(N(a, b), "b", true, true);
}

/* Where v is cut a lookup is a partial sum of bf16, which one would like to move to where there is
 * less of it. */
static mtf_tensor *running_of_lookup(operands *o)
{
    mtf_tensor *x = N(v, b);
    mtf_tensor *sums = mtf_cumsum(mtf_gather(x, indices(o, MTF_SHAPE(a)), "v"), "a", false, false);
    return mtf_slice(sums, "a", 21, 2);
}

static mtf_tensor *sum_of_lookup(operands *o)
{
    mtf_tensor *x = N(v, b);
    return mtf_reduce_sum(mtf_gather(x, indices(o, MTF_SHAPE(a)), "v"), MTF_SHAPE(b));
}

static mtf_tensor *product_of_lookup(operands *o)
{
    mtf_tensor *x = mtf_gather(N(v, b), indices(o, MTF_SHAPE(a)), "v");
    return mtf_matmul(x, N(b, c), MTF_SHAPE(a, c));
}

static mtf_tensor *gradient_of_bias(operands *o)
{
    mtf_tensor *x = N(a, b), *bias = N(b);
    return eval_gradient(mtf_mul(mtf_add(x, bias), N(a, b)), bias);
}

static mtf_tensor *gradient_of_table(operands *o)
{
    mtf_tensor *table = N(v, b), *y = mtf_gather(table, indices(o, MTF_SHAPE(a)), "v");
    return eval_gradient(mtf_mul(y, N(a, b)), table);
}

static mtf_tensor *gradient_of_running(operands *o)
{
    mtf_tensor *x = N(a, b);
    return eval_gradient(mtf_mul(mtf_cumsum(x, "a", false, false), N(a, b)), x);
}

static const struct {
    const char *name;
    mtf_tensor *(*build)(operands *o);
} sums[] = {
    {"reduce_sum", reduce},
    {"einsum", product},
    {"einsum with a sum of one operand", product_and_sum},
    {"einsum of three", product_of_three},
    {"scatter_add", scatter},
    {"cumsum", running},
    {"cumsum, exclusive and reverse", running_back},
    {"cumsum of gather", running_of_lookup},
    {"reduce_sum of gather", sum_of_lookup},
    {"einsum of gather", product_of_lookup},
    {"gradient of a bias", gradient_of_bias},
    {"gradient of a table", gradient_of_table},
    {"gradient of cumsum", gradient_of_running},
};
enum { SUMS = sizeof sums / sizeof *sums };

static const char *const layouts[][2] = {
    {"", ""},
    {"x:2", "a:x"},
    {"x:3", "b:x"},
    {"x:3", "v:x"},
    {"x:7", "c:x"},
    {"x:13", "v:x"},
    {"x:2;y:3", "a:x;b:y"},
    {"x:2;y:2", "v:x;a:y"},
    {"x:3;y:2", "a:x+y"},
    {"x:3;y:2", "v:y+x"},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static int evaluate(int sum, mtf_dtype type, int layout, double *out)
{
    eval e = eval_open();
    operands o = {.e = &e, .type = type};
    mtf_tensor *y = sums[sum].build(&o);
    assert_non_null(y);
    assert_true(mtf_tensor_dtype(y) == type);
    const mtf_shape s = mtf_tensor_shape(y);
    eval_run(&e, layouts[layout][0], layouts[layout][1], y, out);
    eval_close(&e);
    return (int)mtf_shape_size(&s);
}

static void sums_are_rounded_once(void **state)
{
    (void)state;
    for (int i = 0; i < SUMS; i++) {
        double want[MOST], got[MOST];
        const int n = evaluate(i, MTF_F64, 0, want);
        int rounded = 0;
        for (int l = 0; l < LAYOUTS; l++) {
            evaluate(i, MTF_BF16, l, got);
            for (int k = 0; k < n; k++) {
                const double once = (double)bf16_to_f32(bf16_from_f64(want[k]));
                rounded += once != want[k];
                if (got[k] != once)
                    fail_msg("%s, mesh '%s', layout '%s': element %d is %g instead of %g",
                             sums[i].name, layouts[l][0], layouts[l][1], k, got[k], once);
            }
        }
        if (!rounded) fail_msg("%s: every sum is a bf16, so that nothing is shown", sums[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_rounded_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
