/* SPDX-License-Identifier: Apache-2.0
 * Elementwise arithmetic of two operands with broadcasting by name. */
#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

static mtf_tensor *build(const op *row, mtf_tensor *x, mtf_tensor *y)
{
    mtf_tensor *const in[] = {x, y};
    mtf_graph *g = graph_of(2, in);
    return g ? graph_add(g, row, NULL, 2, in, NULL) : NULL;
}

/* Equal shapes; trailing and crossing broadcasts; scalars at either side and at both; another order
 * of dims; dims of size 1 and 3; integers, 0 and -1 among them, where the row takes any. */
static mtf_tensor *sample_with(mtf_graph *g, int k, const op *row,
                               mtf_tensor *(*operand)(mtf_graph *, mtf_shape))
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6}), b = MTF_SHAPE({"b", 6}),
                    bc = MTF_SHAPE({"b", 6}, {"c", 9}), ba = MTF_SHAPE({"b", 6}, {"a", 4}),
                    a1b3 = MTF_SHAPE({"a", 1}, {"b", 3}), b3c1 = MTF_SHAPE({"b", 3}, {"c", 1});
    switch (k) {
    case 0:
        return build(row, operand(g, ab), operand(g, ab));
    case 1:
        return build(row, operand(g, b), operand(g, ab));
    case 2:
        return build(row, operand(g, ab), operand(g, bc));
    case 3:
        return build(row, operand(g, ab), operand(g, MTF_SCALAR));
    case 4:
        return build(row, operand(g, ab), operand(g, ba));
    case 5:
        return build(row, operand(g, MTF_SCALAR), operand(g, ab));
    case 6:
        return build(row, operand(g, MTF_SCALAR), operand(g, MTF_SCALAR));
    case 7:
        return build(row, operand(g, a1b3), operand(g, b3c1));
    case 8:
        if (row->infer != tile_infer_number2) return NULL;
        return build(row, sample_integers(g, ab), sample_integers(g, b));
    }
    return NULL;
}

#define ROW(fn, documentation, infer_fn, operand, linear_fn)                                       \
    static mtf_tensor *fn##_sample(mtf_graph *g, int k)                                            \
    {                                                                                              \
        return sample_with(g, k, &op_##fn, operand);                                               \
    }                                                                                              \
    const op op_##fn = {                                                                           \
        .name = #fn,                                                                               \
        .doc = documentation,                                                                      \
        .nin = 2,                                                                                  \
        .traits = TRAIT_TILE | TRAIT_INPLACE,                                                      \
        .infer = infer_fn,                                                                         \
        .linear = linear_fn,                                                                       \
        .grad = fn##_grad,                                                                         \
        .tile = fn##_tile,                                                                         \
        .sample = fn##_sample,                                                                     \
    };                                                                                             \
    mtf_tensor *mtf_##fn(mtf_tensor *x, mtf_tensor *y)                                             \
    {                                                                                              \
        return build(&op_##fn, x, y);                                                              \
    }

#define GRADIENT(fn) static void fn##_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)

static bool linear_jointly(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 3 || FAULT(FAULT_SINK_REPLICATED);
}

static bool linear_in_one(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1 || mask == 2;
}

static bool linear_in_first(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

/* i32 wraps around, as numpy does; signed overflow would be undefined in C. */
TILE_NUMBER_2(add_tile, x + y, (int32_t)((uint32_t)x + (uint32_t)y))
GRADIENT(add)
{
    for (int k = 0; k < 2; k++)
        dx[k] = tile_reduce_to(dy[0], n->in[k]);
}

/* Sums that were rounded to bf16 are added as they were before, and rounded once: more is kept, and
 * partial sums of processors can be added before they travel. */
mtf_tensor *graph_add_gradients(mtf_tensor *a, mtf_tensor *b)
{
    mtf_tensor *x = op_unrounded(a), *y = op_unrounded(b);
    return x && y ? mtf_cast(mtf_add(x, y), MTF_BF16) : mtf_add(a, b);
}

ROW(add, "out = x + y", tile_infer_number2, sample_normal, linear_jointly)

TILE_NUMBER_2(sub_tile, x - y, (int32_t)((uint32_t)x - (uint32_t)y))
GRADIENT(sub)
{
    dx[0] = tile_reduce_to(dy[0], n->in[0]);
    dx[1] = mtf_negative(tile_reduce_to(dy[0], n->in[1]));
}
ROW(sub, "out = x - y", tile_infer_number2, sample_normal, linear_jointly)

TILE_NUMBER_2(mul_tile, x *y, (int32_t)((uint32_t)x *(uint32_t)y))
GRADIENT(mul)
{
    for (int k = 0; k < 2; k++)
        dx[k] = tile_reduce_to(mtf_mul(dy[0], n->in[1 - k]), n->in[k]);
}
ROW(mul, "out = x * y", tile_infer_number2, sample_normal, linear_in_one)

TILE_FLOAT_2(div_tile, x / y, x / y)
GRADIENT(div)
{
    mtf_tensor *q = mtf_div(dy[0], n->in[1]);
    dx[0] = tile_reduce_to(q, n->in[0]);
    dx[1] = mtf_negative(tile_reduce_to(mtf_mul(q, &n->out[0]), n->in[1]));
}
ROW(div, "out = x / y", tile_infer_float2, sample_positive, linear_in_first)

/* x^y = e^(y log |x|) in double, so that an f32 keeps its precision; signs, zeros and infinities as
 * in C's pow. Whole and odd are asked with floor: a conversion to an integer is undefined for large
 * exponents. */
static inline __attribute__((always_inline)) double power(double x, double y)
{
    const double a = __builtin_fabs(x), half = 0.5 * y;
    const bool whole = y == __builtin_floor(y), odd = whole && half != __builtin_floor(half);
    const double magnitude = a == 1.0 ? 1.0 : vexp(y * vlog(a));
    const bool undefined = x < 0 && a < __builtin_inf() && !whole;
    double r = odd ? __builtin_copysign(magnitude, x) : magnitude;
    r = undefined ? __builtin_nan("") : r;
    return y == 0 ? 1.0 : r;
}

TILE_FLOAT_2(pow_tile, (float)power((double)x, (double)y), power(x, y))
GRADIENT(pow)
{
    mtf_graph *g = n->graph;
    mtf_tensor *x = n->in[0], *y = n->in[1], *out = &n->out[0];
    mtf_tensor *zero = mtf_constant(g, 0.0, MTF_SCALAR, x->dtype);
    /* x^0 is 1 everywhere, also at 0, where 0 * 0^-1 would be NaN. */
    mtf_tensor *slope = mtf_mul(y, mtf_pow(x, mtf_offset(y, -1.0)));
    slope = mtf_where(mtf_equal(y, zero), zero, slope);
    dx[0] = tile_reduce_to(mtf_mul(dy[0], slope), x);
    mtf_tensor *safe = mtf_where(mtf_greater(x, zero), x, mtf_offset(zero, 1.0));
    dx[1] = tile_reduce_to(mtf_mul(dy[0], mtf_mul(out, mtf_log(safe))), y);
}
ROW(pow, "out = x^y", tile_infer_float2, sample_positive, NULL)

/* A share of dy for each operand: all of it where it is chosen, half at ties. */
static void choice_grad(mtf_node *n, mtf_tensor *dy, mtf_tensor **dx,
                        mtf_tensor *(*better)(mtf_tensor *, mtf_tensor *))
{
    mtf_tensor *zero = mtf_constant(n->graph, 0.0, MTF_SCALAR, dy->dtype);
    mtf_tensor *half = mtf_where(mtf_equal(n->in[0], n->in[1]), mtf_scale(dy, 0.5), zero);
    for (int k = 0; k < 2; k++) {
        mtf_tensor *share = mtf_where(better(n->in[k], n->in[1 - k]), dy, half);
        dx[k] = tile_reduce_to(share, n->in[k]);
    }
}

TILE_NUMBER_2(maximum_tile, x > y || x != x ? x : y, x > y ? x : y)
GRADIENT(maximum)
{
    choice_grad(n, dy[0], dx, mtf_greater);
}
ROW(maximum, "out = the larger of x and y", tile_infer_number2, sample_ties, NULL)

TILE_NUMBER_2(minimum_tile, x < y || x != x ? x : y, x < y ? x : y)
GRADIENT(minimum)
{
    choice_grad(n, dy[0], dx, mtf_less);
}
ROW(minimum, "out = the smaller of x and y", tile_infer_number2, sample_ties, NULL)

#undef ROW
#define ROW(fn, documentation, operand)                                                            \
    static mtf_tensor *fn##_sample(mtf_graph *g, int k)                                            \
    {                                                                                              \
        return sample_with(g, k, &op_##fn, operand);                                               \
    }                                                                                              \
    const op op_##fn = {                                                                           \
        .name = #fn,                                                                               \
        .doc = documentation,                                                                      \
        .nin = 2,                                                                                  \
        .traits = TRAIT_TILE | TRAIT_INPLACE,                                                      \
        .infer = tile_infer_number2,                                                               \
        .tile = fn##_tile,                                                                         \
        .sample = fn##_sample,                                                                     \
    };                                                                                             \
    mtf_tensor *mtf_##fn(mtf_tensor *x, mtf_tensor *y)                                             \
    {                                                                                              \
        return build(&op_##fn, x, y);                                                              \
    }

/* Rounded down as Python does. For i32, x / 0 is 0 and the most negative number / -1 wraps. */
static inline __attribute__((always_inline)) int32_t floordiv_i32(int32_t x, int32_t y)
{
    if (y == 0) return 0;
    if (y == -1) return (int32_t)(0u - (uint32_t)x);
    return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}

static inline __attribute__((always_inline)) int32_t mod_i32(int32_t x, int32_t y)
{
    if (y == 0 || y == -1) return 0;
    return x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);
}

static double floor_mod(double x, double y)
{
    const double r = __builtin_fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

TILE_NUMBER_2(floordiv_tile, __builtin_floor((double)x / (double)y), floordiv_i32(x, y))
ROW(floordiv, "out = floor(x / y)", sample_normal)

TILE_NUMBER_2(mod_tile, floor_mod((double)x, (double)y), mod_i32(x, y))
ROW(mod, "out = x - y floor(x / y)", sample_normal)

mtf_tensor *mtf_add_n(int n, mtf_tensor *const *xs)
{
    mtf_tensor *sum = n > 0 ? xs[0] : NULL;
    for (int i = 1; i < n; i++)
        sum = mtf_add(sum, xs[i]);
    return sum;
}
