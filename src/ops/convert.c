/* SPDX-License-Identifier: Apache-2.0
 * Elementwise rows with an attribute, and those that pass their operand on: scale, offset,
 * leaky_relu, cast, identity, stop_gradient. */
#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct number_attr {
    double value;
} number_attr;

static const op_field number_fields[] = {OP_FIELD(number_attr, value, FIELD_F64), {0}};

static mtf_tensor *build(const op *row, mtf_tensor *x, const void *attr)
{
    return x ? graph_add(x->node->graph, row, NULL, 1, &x, attr) : NULL;
}

static double value_of(const mtf_node *n)
{
    return ((const number_attr *)n->attr)->value;
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

#define NUMBER_TILE(name, expr)                                                                    \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        const double v = ((const number_attr *)t->attr)->value;                                    \
        if (t->dtype == MTF_F64) {                                                                 \
            const double c = v;                                                                    \
            TILE_1(double, double, expr);                                                          \
        } else if (t->dtype == MTF_F32) {                                                          \
            const float c = (float)v;                                                              \
            TILE_1(float, float, expr);                                                            \
        } else if (t->dtype == MTF_BF16) {                                                         \
            const float c = (float)v;                                                              \
            TILE_1(bf16, bf16, expr);                                                              \
        } else {                                                                                   \
            const double c = v;                                                                    \
            TILE_1(int32_t, int32_t, element_to_i32(expr));                                        \
        }                                                                                          \
    }                                                                                              \
    TILE_VARIANTS(name)

static const mtf_shape ab = {.rank = 2, .dim = {{"a", 4}, {"b", 6}}};

/* ---- scale ---- */

NUMBER_TILE(scale_tile, x *c)

/* A scaled integer is truncated, so that a sum of them is not the scaled sum. */
static bool scale_linear(const mtf_node *n, unsigned mask)
{
    return mask == 1 && n->out[0].dtype != MTF_I32;
}

static void scale_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[0] = mtf_scale(dy[0], value_of(n));
}

static mtf_tensor *edge_sample(mtf_graph *g, int k, mtf_tensor *(*build_row)(mtf_tensor *, double),
                               double value)
{
    return k < SAMPLE_EDGES ? build_row(sample_normal(g, sample_edge(k)), value) : NULL;
}

static mtf_tensor *scale_sample(mtf_graph *g, int k)
{
    if (k == 1) return mtf_scale(mtf_reduce_sum(sample_integers(g, ab), MTF_SCALAR), 0.5);
    if (k == 2) return mtf_scale(sample_normal(g, ab), 0);
    if (k == 3) return mtf_scale(sample_integers(g, ab), -3);
    return k ? edge_sample(g, k - 4, mtf_scale, 1e3) : mtf_scale(sample_normal(g, ab), -1.5);
}

const op op_scale = {
    .name = "scale",
    .doc = "out = x * value",
    .example = "mtf_scale(x, 0.5)",
    .nin = 1,
    .traits = TRAIT_TILE | TRAIT_INPLACE,
    .attr_size = sizeof(number_attr),
    .fields = number_fields,
    .infer = tile_infer_number1,
    .linear = scale_linear,
    .grad = scale_grad,
    .tile = scale_tile,
    .sample = scale_sample,
};

mtf_tensor *mtf_scale(mtf_tensor *x, double factor)
{
    return build(&op_scale, x, &(number_attr){factor});
}

/* ---- offset ---- */

NUMBER_TILE(offset_tile, x + c)

static void pass_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    (void)n;
    dx[0] = dy[0];
}

static mtf_tensor *offset_sample(mtf_graph *g, int k)
{
    if (k == 1) return mtf_offset(sample_normal(g, ab), 0);
    if (k == 2) return mtf_offset(sample_integers(g, ab), -7);
    return k ? edge_sample(g, k - 3, mtf_offset, -1e3) : mtf_offset(sample_normal(g, ab), 0.75);
}

const op op_offset = {
    .name = "offset",
    .doc = "out = x + value",
    .example = "mtf_offset(x, 1.0)",
    .nin = 1,
    .traits = TRAIT_TILE | TRAIT_INPLACE,
    .attr_size = sizeof(number_attr),
    .fields = number_fields,
    .infer = tile_infer_number1,
    .grad = pass_grad,
    .tile = offset_tile,
    .sample = offset_sample,
};

mtf_tensor *mtf_offset(mtf_tensor *x, double term)
{
    return build(&op_offset, x, &(number_attr){term});
}

/* ---- leaky_relu ---- */

NUMBER_TILE(leaky_relu_tile, x > 0 ? x : x * c)

static void leaky_relu_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    mtf_tensor *zero = mtf_constant(n->graph, 0.0, MTF_SCALAR, dy[0]->dtype);
    dx[0] = mtf_where(mtf_greater(n->in[0], zero), dy[0], mtf_scale(dy[0], value_of(n)));
}

static mtf_tensor *leaky_relu_sample(mtf_graph *g, int k)
{
    static const double slope[] = {0.2, 0, -0.5, 1, 2};
    if (k < 5) return mtf_leaky_relu(sample_normal(g, ab), slope[k]);
    return edge_sample(g, k - 5, mtf_leaky_relu, 0.2);
}

const op op_leaky_relu = {
    .name = "leaky_relu",
    .doc = "out = x above 0, else x * value",
    .example = "mtf_leaky_relu(x, 0.2)",
    .nin = 1,
    .traits = TRAIT_TILE | TRAIT_INPLACE,
    .attr_size = sizeof(number_attr),
    .fields = number_fields,
    .infer = tile_infer_float1,
    .grad = leaky_relu_grad,
    .tile = leaky_relu_tile,
    .sample = leaky_relu_sample,
};

mtf_tensor *mtf_leaky_relu(mtf_tensor *x, double alpha)
{
    return build(&op_leaky_relu, x, &(number_attr){alpha});
}

/* ---- cast ---- */

static const op_field cast_fields[] = {OP_FIELD(cast_attr, type, FIELD_DTYPE), {0}};

#define CAST_FROM(T)                                                                               \
    do {                                                                                           \
        switch (t->dtype) {                                                                        \
        case MTF_F32:                                                                              \
            TILE_1(T, float, x);                                                                   \
            break;                                                                                 \
        case MTF_F64:                                                                              \
            TILE_1(T, double, x);                                                                  \
            break;                                                                                 \
        case MTF_I32:                                                                              \
            TILE_1(T, int32_t, element_to_i32((double)x));                                         \
            break;                                                                                 \
        case MTF_BF16:                                                                             \
            TILE_1(T, bf16, x);                                                                    \
            break;                                                                                 \
        default:                                                                                   \
            TILE_1(T, uint8_t, x != 0);                                                            \
            break;                                                                                 \
        }                                                                                          \
    } while (0)

TILE_BODY(cast_tile)
{
    switch (t->in_dtype) {
    case MTF_F32:
        CAST_FROM(float);
        break;
    case MTF_F64:
        CAST_FROM(double);
        break;
    case MTF_I32:
        CAST_FROM(int32_t);
        break;
    case MTF_BF16:
        CAST_FROM(bf16);
        break;
    default:
        CAST_FROM(uint8_t);
        break;
    }
}
TILE_VARIANTS(cast_tile)

static bool cast_infer(mtf_graph *g, mtf_node *n)
{
    (void)g;
    n->out[0].shape = n->in[0]->shape;
    n->out[0].dtype = ((const cast_attr *)n->attr)->type;
    return true;
}

/* Does every value of `from` have its own in `to`? */
static bool widens(mtf_dtype from, mtf_dtype to)
{
    return (from == MTF_BF16 && (to == MTF_F32 || to == MTF_F64)) ||
           (from == MTF_F32 && to == MTF_F64);
}

/* Widening commutes with sums up to rounding of the wider type; narrowing does not. */
static bool cast_linear(const mtf_node *n, unsigned mask)
{
    const bool widening = widens(n->in[0]->dtype, n->out[0].dtype);
    return mask == 1 && (widening || FAULT(FAULT_ROUND_PARTIAL));
}

static bool is_rounded(const mtf_tensor *t)
{
    if (t->node->op == &op_reshape || t->node->op == &op_rename) return is_rounded(t->node->in[0]);
    return t->node->op == &op_cast && t->dtype == MTF_BF16 && t->node->in[0]->dtype == MTF_F32;
}

mtf_tensor *op_unrounded(mtf_tensor *t)
{
    if (!t || !is_rounded(t)) return NULL;
    mtf_tensor *x = t->node->in[0];
    return t->node->op == &op_cast ? x : mtf_reshape(op_unrounded(x), t->shape);
}

/* A gradient that was rounded on its way to an f32 has no need to be. */
static void cast_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const mtf_dtype type = n->in[0]->dtype;
    if (!mtf_dtype_is_float(type)) return;
    mtf_tensor *wide = type == MTF_F32 ? op_unrounded(dy[0]) : NULL;
    dx[0] = wide ? wide : mtf_cast(dy[0], type);
}

static mtf_tensor *cast_sample(mtf_graph *g, int k)
{
    switch (k) {
    case 0:
        return mtf_cast(mtf_scale(mtf_cast(sample_normal(g, ab), MTF_F32), 2.0), sample_float());
    case 1:
        return mtf_cast(sample_integers(g, ab), sample_float());
    case 2:
        return mtf_cast(sample_normal(g, ab), MTF_I32);
    case 3:
        return mtf_cast(sample_flags(g, ab), sample_float());
    case 4:
        return mtf_cast(sample_integers(g, ab), MTF_BOOL);
    }
    if (k < 5 + SAMPLE_EDGES)
        return mtf_cast(mtf_cast(sample_normal(g, sample_edge(k - 5)), MTF_F32), sample_float());
    k -= 5 + SAMPLE_EDGES;
    if (k >= MTF_NUM_DTYPES * MTF_NUM_DTYPES) return NULL;
    /* From every type to every type, of numbers that are not whole. */
    mtf_tensor *x = mtf_scale(mtf_cast(sample_integers(g, ab), MTF_F64), 0.37);
    return mtf_cast(mtf_cast(x, k / MTF_NUM_DTYPES), k % MTF_NUM_DTYPES);
}

const op op_cast = {
    .name = "cast",
    .doc = "out = x as another type",
    .example = "mtf_cast(x, MTF_F64)",
    .nin = 1,
    .traits = TRAIT_TILE,
    .attr_size = sizeof(cast_attr),
    .fields = cast_fields,
    .infer = cast_infer,
    .linear = cast_linear,
    .grad = cast_grad,
    .tile = cast_tile,
    .sample = cast_sample,
};

/* A value that was widened and comes back is what it was. */
mtf_tensor *mtf_cast(mtf_tensor *x, mtf_dtype type)
{
    if (x && x->dtype == type) return x;
    if (x && x->node->op == &op_cast && x->node->in[0]->dtype == type && widens(type, x->dtype))
        return x->node->in[0];
    return build(&op_cast, x, &(cast_attr){type});
}

/* ---- identity and stop_gradient ---- */

static bool copy_infer(mtf_graph *g, mtf_node *n)
{
    (void)g;
    n->out[0].shape = n->in[0]->shape;
    n->out[0].dtype = n->in[0]->dtype;
    return true;
}

static mtf_tensor *identity_sample(mtf_graph *g, int k)
{
    if (k) return k > SAMPLE_EDGES ? NULL : mtf_identity(sample_normal(g, sample_edge(k - 1)));
    return mtf_identity(sample_normal(g, ab));
}

const op op_identity = {
    .name = "identity",
    .doc = "out = x",
    .nin = 1,
    .traits = TRAIT_VIEW,
    .infer = copy_infer,
    .linear = linear,
    .grad = pass_grad,
    .sample = identity_sample,
};

mtf_tensor *mtf_identity(mtf_tensor *x)
{
    return build(&op_identity, x, NULL);
}

static mtf_tensor *stop_sample(mtf_graph *g, int k)
{
    if (k) return k > SAMPLE_EDGES ? NULL : mtf_stop_gradient(sample_normal(g, sample_edge(k - 1)));
    return mtf_stop_gradient(sample_normal(g, ab));
}

const op op_stop_gradient = {
    .name = "stop_gradient",
    .doc = "out = x; gradients stop here",
    .nin = 1,
    .traits = TRAIT_VIEW | TRAIT_NO_GRAD,
    .infer = copy_infer,
    .linear = linear,
    .sample = stop_sample,
};

mtf_tensor *mtf_stop_gradient(mtf_tensor *x)
{
    return build(&op_stop_gradient, x, NULL);
}
