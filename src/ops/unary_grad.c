/* SPDX-License-Identifier: Apache-2.0
 * Gradients of activations as one function each: composed, they would pass over memory six times
 * in the middle of every Transformer block. */
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 2;
}

static mtf_tensor *sample_with(mtf_graph *g, int k, const op *row)
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6});
    if (k > SAMPLE_EDGES) return NULL;
    const mtf_shape s = k ? sample_edge(k - 1) : ab;
    mtf_tensor *x = sample_normal(g, s), *y = sample_normal(g, s);
    return graph_add(g, row, NULL, 2, (mtf_tensor *[]){x, y}, NULL);
}

/* relu_grad(y, dy): y is the result of relu, which is above 0 exactly where its operand is. */
TILE_FLOAT_2(relu_grad_tile, x > 0 ? y : 0.0f, x > 0 ? y : 0.0)

static void relu_grad_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[1] = op_build_relu_grad(n->in[0], dy[0]);
}

static mtf_tensor *relu_grad_sample(mtf_graph *g, int k)
{
    return sample_with(g, k, &op_relu_grad);
}

const op op_relu_grad = {
    .name = "relu_grad",
    .doc = "out = y where x > 0, else 0",
    .example = "",
    .nin = 2,
    .traits = TRAIT_TILE | TRAIT_INPLACE,
    .infer = tile_infer_float2,
    .linear = linear,
    .grad = relu_grad_grad,
    .tile = relu_grad_tile,
    .sample = relu_grad_sample,
};

mtf_tensor *op_build_relu_grad(mtf_tensor *y, mtf_tensor *dy)
{
    return y && dy
               ? graph_add(y->node->graph, &op_relu_grad, NULL, 2, (mtf_tensor *[]){y, dy}, NULL)
               : NULL;
}

#define GELU_C 0.79788456080286535587989211986876

/* With u = c (x + 0.044715 x^3) and t = tanh(u): gelu' = (1 + t) / 2 + x (1 - t^2) u' / 2. Beyond
 * 20 that is 0 or 1, and x^2 may overflow. */
#define GELU_FLAT 20

static inline __attribute__((always_inline)) float slope32(float far)
{
    const float x = far > GELU_FLAT ? GELU_FLAT : far < -GELU_FLAT ? -GELU_FLAT : far;
    const float c = (float)GELU_C, t = vtanhf(c * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * c * (1.0f + 3 * 0.044715f * x * x);
}

static inline __attribute__((always_inline)) double slope64(double far)
{
    const double x = far > GELU_FLAT ? GELU_FLAT : far < -GELU_FLAT ? -GELU_FLAT : far;
    const double c = GELU_C, t = vtanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3 * 0.044715 * x * x);
}

TILE_FLOAT_2(gelu_grad_tile, slope32(x) * y, slope64(x) * y)

/* gelu'' = (1 - t^2) (u' + x u'' / 2 - x t u'^2), u' = c (1 + 3a x^2), u'' = 6 a c x. */
static mtf_tensor *second_derivative(mtf_tensor *x)
{
    mtf_tensor *x2 = mtf_square(x);
    mtf_tensor *u = mtf_scale(mtf_mul(x, mtf_offset(mtf_scale(x2, 0.044715), 1.0)), GELU_C);
    mtf_tensor *u1 = mtf_scale(mtf_offset(mtf_scale(x2, 3 * 0.044715), 1.0), GELU_C);
    mtf_tensor *t = mtf_tanh(u);
    mtf_tensor *sum = mtf_add(u1, mtf_scale(x2, 3 * 0.044715 * GELU_C));
    sum = mtf_sub(sum, mtf_mul(mtf_mul(x, t), mtf_square(u1)));
    return mtf_mul(mtf_offset(mtf_negative(mtf_square(t)), 1.0), sum);
}

static void gelu_grad_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[0] = mtf_mul(mtf_mul(dy[0], n->in[1]), second_derivative(n->in[0]));
    dx[1] = op_build_gelu_grad(n->in[0], dy[0]);
}

static mtf_tensor *gelu_grad_sample(mtf_graph *g, int k)
{
    return sample_with(g, k, &op_gelu_grad);
}

const op op_gelu_grad = {
    .name = "gelu_grad",
    .doc = "out = gelu'(x) y",
    .example = "",
    .nin = 2,
    .traits = TRAIT_TILE | TRAIT_INPLACE,
    .infer = tile_infer_float2,
    .linear = linear,
    .grad = gelu_grad_grad,
    .tile = gelu_grad_tile,
    .sample = gelu_grad_sample,
};

mtf_tensor *op_build_gelu_grad(mtf_tensor *x, mtf_tensor *dy)
{
    return x && dy
               ? graph_add(x->node->graph, &op_gelu_grad, NULL, 2, (mtf_tensor *[]){x, dy}, NULL)
               : NULL;
}
