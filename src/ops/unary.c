/* SPDX-License-Identifier: Apache-2.0
 * Elementwise functions of one operand. Sources of the formulas: the gradients of Mesh-TensorFlow's
 * unary operations; gelu in its tanh form (Hendrycks and Gimpel, 2016). */
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

static mtf_tensor *build(const op *row, mtf_tensor *x)
{
    return x ? graph_add(x->node->graph, row, NULL, 1, &x, NULL) : NULL;
}

enum { SHAPES = 2 + SAMPLE_EDGES };

static mtf_shape sample_shape(int k)
{
    const mtf_shape s[2] = {MTF_SHAPE({"a", 4}, {"b", 6}), MTF_SHAPE({"a", 3}, {"b", 1}, {"c", 9})};
    return k < 2 ? s[k] : sample_edge(k - 2);
}

static mtf_tensor *sample_of(mtf_graph *g, int k, const op *row)
{
    return k < SHAPES ? build(row, sample_normal(g, sample_shape(k))) : NULL;
}

static mtf_tensor *positive_of(mtf_graph *g, int k, const op *row)
{
    return k < SHAPES ? build(row, sample_positive(g, sample_shape(k))) : NULL;
}

/* Of integers too. */
static mtf_tensor *numbers_of(mtf_graph *g, int k, const op *row)
{
    return k == SHAPES ? build(row, sample_integers(g, sample_shape(0))) : sample_of(g, k, row);
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

/* A row of this file: the tile, the samples and the builder; `gradient` sets *dx from x, y, dy. */
#define ROW(fn, documentation, infer_fn, sampler, linear_fn)                                       \
    static void fn##_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)                     \
    {                                                                                              \
        dx[0] = fn##_gradient(n->in[0], &n->out[0], dy[0]);                                        \
    }                                                                                              \
    static mtf_tensor *fn##_sample(mtf_graph *g, int k)                                            \
    {                                                                                              \
        return sampler(g, k, &op_##fn);                                                            \
    }                                                                                              \
    const op op_##fn = {                                                                           \
        .name = #fn,                                                                               \
        .doc = documentation,                                                                      \
        .nin = 1,                                                                                  \
        .traits = TRAIT_TILE | TRAIT_INPLACE,                                                      \
        .infer = infer_fn,                                                                         \
        .linear = linear_fn,                                                                       \
        .grad = fn##_grad,                                                                         \
        .tile = fn##_tile,                                                                         \
        .sample = fn##_sample,                                                                     \
    };                                                                                             \
    mtf_tensor *mtf_##fn(mtf_tensor *x)                                                            \
    {                                                                                              \
        return build(&op_##fn, x);                                                                 \
    }

#define GRADIENT(fn) static mtf_tensor *fn##_gradient(mtf_tensor *x, mtf_tensor *y, mtf_tensor *dy)
#define UNUSED(a)    (void)(a)

TILE_NUMBER_1(negative_tile, -x, (int32_t)(0u - (uint32_t)x))
GRADIENT(negative)
{
    UNUSED(x), UNUSED(y);
    return mtf_negative(dy);
}
ROW(negative, "out = -x", tile_infer_number1, numbers_of, linear)

TILE_NUMBER_1(abs_tile, x < 0 ? -x : x, x < 0 ? (int32_t)(0u - (uint32_t)x) : x)
GRADIENT(abs)
{
    UNUSED(y);
    return mtf_mul(dy, mtf_sign(x));
}
ROW(abs, "out = |x|", tile_infer_number1, numbers_of, NULL)

TILE_NUMBER_1(sign_tile, x > 0 ? 1 : (x < 0 ? -1 : x), x > 0 ? 1 : (x < 0 ? -1 : 0))
GRADIENT(sign)
{
    UNUSED(x), UNUSED(y), UNUSED(dy);
    return NULL;
}
ROW(sign, "out = -1, 0 or 1 as x is below, at or above 0", tile_infer_number1, numbers_of, NULL)

TILE_NUMBER_1(square_tile, x *x, (int32_t)((uint32_t)x *(uint32_t)x))
GRADIENT(square)
{
    UNUSED(y);
    return mtf_scale(mtf_mul(dy, x), 2.0);
}
ROW(square, "out = x * x", tile_infer_number1, numbers_of, NULL)

TILE_FLOAT_1(reciprocal_tile, 1.0f / x, 1.0 / x)
GRADIENT(reciprocal)
{
    UNUSED(x);
    return mtf_negative(mtf_mul(dy, mtf_square(y)));
}
ROW(reciprocal, "out = 1 / x", tile_infer_float1, positive_of, NULL)

TILE_FLOAT_1(sqrt_tile, __builtin_sqrtf(x), __builtin_sqrt(x))
GRADIENT(sqrt)
{
    UNUSED(x);
    return mtf_scale(mtf_div(dy, y), 0.5);
}
ROW(sqrt, "out = sqrt(x)", tile_infer_float1, positive_of, NULL)

TILE_FLOAT_1(rsqrt_tile, 1.0f / __builtin_sqrtf(x), 1.0 / __builtin_sqrt(x))
GRADIENT(rsqrt)
{
    UNUSED(x);
    return mtf_scale(mtf_mul(dy, mtf_mul(mtf_square(y), y)), -0.5);
}
ROW(rsqrt, "out = 1 / sqrt(x)", tile_infer_float1, positive_of, NULL)

TILE_FLOAT_1(exp_tile, vexpf(x), vexp(x))
GRADIENT(exp)
{
    UNUSED(x);
    return mtf_mul(dy, y);
}
ROW(exp, "out = e^x", tile_infer_float1, sample_of, NULL)

TILE_FLOAT_1(log_tile, vlogf(x), vlog(x))
GRADIENT(log)
{
    UNUSED(y);
    return mtf_div(dy, x);
}
ROW(log, "out = natural logarithm of x", tile_infer_float1, positive_of, NULL)

TILE_FLOAT_1(sin_tile, vsinf(x), vsin(x))
GRADIENT(sin)
{
    UNUSED(y);
    return mtf_mul(dy, mtf_cos(x));
}
ROW(sin, "out = sin(x)", tile_infer_float1, sample_of, NULL)

TILE_FLOAT_1(cos_tile, vcosf(x), vcos(x))
GRADIENT(cos)
{
    UNUSED(y);
    return mtf_negative(mtf_mul(dy, mtf_sin(x)));
}
ROW(cos, "out = cos(x)", tile_infer_float1, sample_of, NULL)

TILE_FLOAT_1(tanh_tile, vtanhf(x), vtanh(x))
GRADIENT(tanh)
{
    UNUSED(x);
    return mtf_mul(dy, mtf_offset(mtf_negative(mtf_square(y)), 1.0));
}
ROW(tanh, "out = tanh(x)", tile_infer_float1, sample_of, NULL)

TILE_FLOAT_1(sigmoid_tile, vsigmoidf(x), vsigmoid(x))
GRADIENT(sigmoid)
{
    UNUSED(x);
    return mtf_mul(dy, mtf_mul(y, mtf_offset(mtf_negative(y), 1.0)));
}
ROW(sigmoid, "out = 1 / (1 + e^-x)", tile_infer_float1, sample_of, NULL)

/* A maximum with 0 is as fast; a row, because the gradient is found from the result alone.
 * NaN > 0 is false: x + x keeps a NaN visible instead of turning it into 0. */
TILE_FLOAT_1(relu_tile, x > 0 ? x : (x != x ? x : 0.0f), x > 0 ? x : (x != x ? x : 0.0))
GRADIENT(relu)
{
    UNUSED(x);
    return op_build_relu_grad(y, dy);
}
ROW(relu, "out = max(x, 0)", tile_infer_float1, sample_of, NULL)

TILE_FLOAT_1(elu_tile, x > 0 ? x : vexpm1f(x), x > 0 ? x : vexpm1(x))
GRADIENT(elu)
{
    mtf_graph *g = x->node->graph;
    mtf_tensor *zero = mtf_constant(g, 0.0, MTF_SCALAR, x->dtype);
    return mtf_where(mtf_greater(x, zero), dy, mtf_mul(dy, mtf_offset(y, 1.0)));
}
ROW(elu, "out = x above 0, else e^x - 1", tile_infer_float1, sample_of, NULL)

/* Klambauer et al., 2017, "Self-normalizing neural networks". */
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717
TILE_FLOAT_1(selu_tile, (float)SELU_SCALE *(x > 0 ? x : (float)SELU_ALPHA * vexpm1f(x)),
             SELU_SCALE *(x > 0 ? x : SELU_ALPHA * vexpm1(x)))
GRADIENT(selu)
{
    mtf_graph *g = x->node->graph;
    mtf_tensor *zero = mtf_constant(g, 0.0, MTF_SCALAR, x->dtype);
    return mtf_where(mtf_greater(x, zero), mtf_scale(dy, SELU_SCALE),
                     mtf_mul(dy, mtf_offset(y, SELU_SCALE * SELU_ALPHA)));
}
ROW(selu, "out = 1.0507 (x above 0, else 1.6733 (e^x - 1))", tile_infer_float1, sample_of, NULL)

TILE_FLOAT_1(softplus_tile, (x > 0 ? x : 0.0f) + vlog1pf(vexpf(x > 0 ? -x : x)),
             (x > 0 ? x : 0.0) + vlog1p(vexp(x > 0 ? -x : x)))
GRADIENT(softplus)
{
    UNUSED(y);
    return mtf_mul(dy, mtf_sigmoid(x));
}
ROW(softplus, "out = log(1 + e^x)", tile_infer_float1, sample_of, NULL)

#define GELU_C 0.79788456080286535587989211986876
TILE_FLOAT_1(gelu_tile, 0.5f * x * (1.0f + vtanhf((float)GELU_C * (x + 0.044715f * x * x * x))),
             0.5 * x * (1.0 + vtanh(GELU_C * (x + 0.044715 * x * x * x))))
GRADIENT(gelu)
{
    UNUSED(y);
    return op_build_gelu_grad(x, dy);
}
ROW(gelu, "out = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))", tile_infer_float1, sample_of,
    NULL)

TILE_FLOAT_1(swish_tile, x *vsigmoidf(x), x *vsigmoid(x))
GRADIENT(swish)
{
    mtf_tensor *s = mtf_sigmoid(x);
    return mtf_mul(dy, mtf_add(s, mtf_mul(y, mtf_offset(mtf_negative(s), 1.0))));
}
ROW(swish, "out = x / (1 + e^-x)", tile_infer_float1, sample_of, NULL)

/* ---- rows that need more than the pattern above ---- */

TILE_BODY(not_tile)
{
    TILE_1(uint8_t, uint8_t, !x);
}
TILE_VARIANTS(not_tile)

static bool not_infer(mtf_graph *g, mtf_node *n)
{
    return tile_infer_unary(g, n, TYPES_BOOL);
}

static mtf_tensor *not_sample(mtf_graph *g, int k)
{
    return k < SHAPES ? mtf_logical_not(sample_flags(g, sample_shape(k))) : NULL;
}

const op op_logical_not = {
    .name = "logical_not",
    .doc = "out = not x",
    .example = "mtf_logical_not(k)",
    .nin = 1,
    .traits = TRAIT_TILE | TRAIT_INPLACE,
    .infer = not_infer,
    .tile = not_tile,
    .sample = not_sample,
};

mtf_tensor *mtf_logical_not(mtf_tensor *x)
{
    return build(&op_logical_not, x);
}
