/* SPDX-License-Identifier: Apache-2.0
 * Comparisons, logic and selection. */
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

static mtf_tensor *build(const op *row, mtf_tensor *x, mtf_tensor *y)
{
    mtf_tensor *const in[] = {x, y};
    mtf_graph *g = graph_of(2, in);
    return g ? graph_add(g, row, NULL, 2, in, NULL) : NULL;
}

static bool infer_compare(mtf_graph *g, mtf_node *n)
{
    if (!tile_infer_number2(g, n)) return false;
    n->out[0].dtype = MTF_BOOL;
    return true;
}

static bool infer_logic(mtf_graph *g, mtf_node *n)
{
    return tile_infer_nary(g, n, 0, TYPES_BOOL);
}

static mtf_tensor *sample_with(mtf_graph *g, int k, const op *row,
                               mtf_tensor *(*operand)(mtf_graph *, mtf_shape))
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6}), bc = MTF_SHAPE({"b", 6}, {"c", 3});
    switch (k) {
    case 0:
        return build(row, operand(g, ab), operand(g, ab));
    case 1:
        return build(row, operand(g, ab), operand(g, bc));
    case 2:
        return build(row, operand(g, MTF_SCALAR), operand(g, ab));
    case 3:
        return build(row, operand(g, ab), operand(g, MTF_SCALAR));
    case 4:
        return build(row, operand(g, sample_edge(1)), operand(g, MTF_SHAPE({"b", 3}, {"c", 1})));
    case 5:
        return build(row, operand(g, MTF_SCALAR), operand(g, MTF_SCALAR));
    case 6: /* equal values among them */
        if (row->infer != infer_compare) return NULL;
        return build(row, sample_integers(g, ab), sample_integers(g, ab));
    }
    return NULL;
}

#define ROW(fn, documentation, infer_fn, operand, operands)                                        \
    static mtf_tensor *fn##_sample(mtf_graph *g, int k)                                            \
    {                                                                                              \
        return sample_with(g, k, &op_##fn, operand);                                               \
    }                                                                                              \
    const op op_##fn = {                                                                           \
        .name = #fn,                                                                               \
        .doc = documentation,                                                                      \
        .example = "mtf_" #fn "(" operands ")",                                                    \
        .nin = 2,                                                                                  \
        .traits = TRAIT_TILE,                                                                      \
        .infer = infer_fn,                                                                         \
        .tile = fn##_tile,                                                                         \
        .sample = fn##_sample,                                                                     \
    };                                                                                             \
    mtf_tensor *mtf_##fn(mtf_tensor *x, mtf_tensor *y)                                             \
    {                                                                                              \
        return build(&op_##fn, x, y);                                                              \
    }

#define COMPARE_TILE(name, expr)                                                                   \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        if (t->in_dtype == MTF_F64)                                                                \
            TILE_2(double, uint8_t, expr);                                                         \
        else if (t->in_dtype == MTF_F32)                                                           \
            TILE_2(float, uint8_t, expr);                                                          \
        else if (t->in_dtype == MTF_BF16)                                                          \
            TILE_2(bf16, uint8_t, expr);                                                           \
        else                                                                                       \
            TILE_2(int32_t, uint8_t, expr);                                                        \
    }                                                                                              \
    TILE_VARIANTS(name)

#define LOGIC_TILE(name, expr)                                                                     \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        TILE_2(uint8_t, uint8_t, expr);                                                            \
    }                                                                                              \
    TILE_VARIANTS(name)

COMPARE_TILE(less_tile, x < y)
ROW(less, "out = x < y", infer_compare, sample_ties, "x, y")
COMPARE_TILE(less_equal_tile, x <= y)
ROW(less_equal, "out = x <= y", infer_compare, sample_ties, "x, y")
COMPARE_TILE(greater_tile, x > y)
ROW(greater, "out = x > y", infer_compare, sample_ties, "x, y")
COMPARE_TILE(greater_equal_tile, x >= y)
ROW(greater_equal, "out = x >= y", infer_compare, sample_ties, "x, y")
COMPARE_TILE(equal_tile, x == y)
ROW(equal, "out = x is y", infer_compare, sample_ties, "x, y")
COMPARE_TILE(not_equal_tile, x != y)
ROW(not_equal, "out = x is not y", infer_compare, sample_ties, "x, y")
LOGIC_TILE(logical_and_tile, x &y)
ROW(logical_and, "out = x and y", infer_logic, sample_flags, "k, k")
LOGIC_TILE(logical_or_tile, x | y)
ROW(logical_or, "out = x or y", infer_logic, sample_flags, "k, k")

/* ---- where ---- */

#define WHERE_LOOP(T, sa, sb, sc)                                                                  \
    TILE_LOOP for (int64_t i = 0; i < t->n; i++) o[i] = c[i * (sc)] ? a[i * (sa)] : b[i * (sb)];

#define WHERE(T)                                                                                   \
    do {                                                                                           \
        const uint8_t *c = t->in[0];                                                               \
        const T *a = t->in[1], *b = t->in[2];                                                      \
        T *o = t->out;                                                                             \
        const int64_t sc = t->stride[0], sa = t->stride[1], sb = t->stride[2];                     \
        if (sc == 1 && sa == 1 && sb == 1) {                                                       \
            WHERE_LOOP(T, 1, 1, 1)                                                                 \
        } else if (sc == 1 && sa == 1 && sb == 0) {                                                \
            WHERE_LOOP(T, 1, 0, 1)                                                                 \
        } else {                                                                                   \
            WHERE_LOOP(T, sa, sb, sc)                                                              \
        }                                                                                          \
    } while (0)

TILE_BODY(where_tile)
{
    switch (mtf_dtype_size(t->dtype)) { /* bits are copied, so the size is all that matters */
    case 8:
        WHERE(uint64_t);
        break;
    case 4:
        WHERE(uint32_t);
        break;
    case 2:
        WHERE(uint16_t);
        break;
    default:
        WHERE(uint8_t);
        break;
    }
}
TILE_VARIANTS(where_tile)

static bool where_infer(mtf_graph *g, mtf_node *n)
{
    if (n->in[0]->dtype != MTF_BOOL) {
        graph_fail(g, "where '%s': the condition has the type %s; it must be bool", n->name,
                   mtf_dtype_name(n->in[0]->dtype));
        return false;
    }
    return tile_infer_nary(g, n, 1, TYPES_ANY);
}

static bool where_linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 6;
}

static void where_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    mtf_tensor *zero = mtf_constant(n->graph, 0.0, MTF_SCALAR, dy[0]->dtype);
    mtf_tensor *chosen = mtf_where(n->in[0], dy[0], zero),
               *other = mtf_where(n->in[0], zero, dy[0]);
    dx[1] = tile_reduce_to(chosen, n->in[1]);
    dx[2] = tile_reduce_to(other, n->in[2]);
}

static mtf_tensor *where_sample(mtf_graph *g, int k)
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6}), b = MTF_SHAPE({"b", 6}),
                    a = MTF_SHAPE({"a", 4});
    switch (k) {
    case 0:
        return mtf_where(sample_flags(g, ab), sample_normal(g, ab), sample_normal(g, ab));
    case 1:
        return mtf_where(sample_flags(g, b), sample_normal(g, ab), sample_normal(g, MTF_SCALAR));
    case 2:
        return mtf_where(sample_flags(g, a), sample_normal(g, b), sample_normal(g, ab));
    case 3:
        return mtf_where(sample_flags(g, MTF_SCALAR), sample_normal(g, ab), sample_normal(g, b));
    case 4:
        return mtf_where(sample_flags(g, MTF_SCALAR), sample_normal(g, MTF_SCALAR),
                         sample_normal(g, MTF_SCALAR));
    case 5:
        return mtf_where(sample_flags(g, MTF_SHAPE({"c", 1})), sample_normal(g, sample_edge(1)),
                         sample_normal(g, MTF_SHAPE({"b", 3}, {"c", 1})));
    case 6:
        return mtf_where(sample_flags(g, ab), sample_integers(g, a), sample_integers(g, b));
    case 7:
        return mtf_where(sample_flags(g, b), sample_flags(g, a), sample_flags(g, MTF_SCALAR));
    }
    return NULL;
}

const op op_where = {
    .name = "where",
    .doc = "out = a where condition, else b",
    .example = "mtf_where(k, x, y)",
    .nin = 3,
    .traits = TRAIT_TILE,
    .infer = where_infer,
    .linear = where_linear,
    .grad = where_grad,
    .tile = where_tile,
    .sample = where_sample,
};

mtf_tensor *mtf_where(mtf_tensor *condition, mtf_tensor *a, mtf_tensor *b)
{
    mtf_tensor *const in[] = {condition, a, b};
    mtf_graph *g = graph_of(3, in);
    return g ? graph_add(g, &op_where, NULL, 3, in, NULL) : NULL;
}
