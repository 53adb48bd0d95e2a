/* SPDX-License-Identifier: Apache-2.0
 * Reductions of flags, and pooling along one dim: compositions. */
#include "graph/graph.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

static mtf_tensor *reduce_flags(mtf_tensor *x, mtf_shape output, const char *what,
                                mtf_tensor *(*reduce)(mtf_tensor *, mtf_shape))
{
    if (!x) return NULL;
    if (x->dtype != MTF_BOOL)
        return graph_fail(x->node->graph,
                          "%s of '%s': the operand is %s; it must be bool, as comparisons give",
                          what, x->node->name, mtf_dtype_name(x->dtype));
    return mtf_cast(reduce(mtf_cast(x, MTF_I32), output), MTF_BOOL);
}

mtf_tensor *mtf_reduce_all(mtf_tensor *x, mtf_shape output)
{
    return reduce_flags(x, output, "reduce_all", mtf_reduce_min);
}

mtf_tensor *mtf_reduce_any(mtf_tensor *x, mtf_shape output)
{
    return reduce_flags(x, output, "reduce_any", mtf_reduce_max);
}

static mtf_tensor *flags_sample(mtf_graph *g, int k)
{
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 3});
    const mtf_shape to[] = {MTF_SCALAR, MTF_SHAPE({"a", 4}), MTF_SHAPE({"b", 3})};
    if (k > 11) return NULL;
    if (k > 5) { /* over nothing, over dims of size 1, of a scalar */
        const mtf_shape of = sample_edge(k < 10 ? 1 : 0),
                        none[] = {of, MTF_SHAPE({"b", 3}), MTF_SCALAR};
        mtf_tensor *y = sample_flags(g, of);
        return k % 2 ? mtf_reduce_any(y, none[k / 2 - 3]) : mtf_reduce_all(y, none[k / 2 - 3]);
    }
    mtf_tensor *x = sample_flags(g, s);
    return k % 2 ? mtf_reduce_any(x, to[k / 2]) : mtf_reduce_all(x, to[k / 2]);
}

const op op_reduce_flags = {
    .name = "reduce_flags",
    .doc = "reduce_all, reduce_any: are all, is any of the flags set",
    .example = "mtf_reduce_all(k, MTF_SHAPE(a))",
    .traits = TRAIT_COMPOSED,
    .sample = flags_sample,
};

/* ---- pooling along one dim ---- */

mtf_tensor *mtf_reduce_first(mtf_tensor *x, const char *dim)
{
    if (!x) return NULL;
    mtf_tensor *first = mtf_slice(x, dim, 0, 1);
    return first ? mtf_reshape(first, mtf_shape_without(x->shape, dim)) : NULL;
}

static const char *group_name(const mtf_tensor *x)
{
    return shape_fresh_name(x->node->graph, &x->shape, "group");
}

/* x with `dim` as groups of `size` along a new dim behind it. */
static mtf_tensor *grouped(mtf_tensor *x, const char *dim, int64_t size, const char *group)
{
    mtf_graph *g = x->node->graph;
    const int at = mtf_shape_find(&x->shape, dim);
    if (at < 0 || size < 1 || x->shape.dim[at].size % size)
        return graph_fail(g,
                          "pooling of '%s' %s: groups of %lld along %s are asked for; their size "
                          "must divide that of the dim",
                          x->node->name, shape_text(&x->shape), (long long)size,
                          dim ? dim : "NULL");
    mtf_shape s = {.rank = 0};
    for (int d = 0; d < x->shape.rank; d++) {
        mtf_dim e = x->shape.dim[d];
        if (d == at) e.size /= size;
        s = mtf_shape_with(s, e);
        if (d == at) s = mtf_shape_with(s, (mtf_dim){group, size});
    }
    return mtf_reshape(x, s);
}

mtf_tensor *mtf_pool_1d(mtf_tensor *x, const char *dim, int64_t size, mtf_pool_fn *reduce)
{
    if (!x) return NULL;
    const char *group = group_name(x);
    mtf_tensor *g = grouped(x, dim, size, group);
    if (!reduce)
        return graph_fail(x->node->graph, "pooling of '%s': the reduction is NULL", x->node->name);
    return g ? reduce(g, mtf_shape_without(g->shape, group)) : NULL;
}

mtf_tensor *mtf_stride_1d(mtf_tensor *x, const char *dim, int64_t size)
{
    if (!x) return NULL;
    const char *group = group_name(x);
    return mtf_reduce_first(grouped(x, dim, size, group), group);
}

static mtf_tensor *pool_sample(mtf_graph *g, int k)
{
    mtf_tensor *x = k > 7 ? NULL : sample_normal(g, MTF_SHAPE({"b", 3}, {"a", 12}, {"c", 2}));
    switch (k) {
    case 0:
        return mtf_pool_1d(x, "a", 3, mtf_reduce_mean);
    case 1:
        return mtf_pool_1d(x, "a", 12, mtf_reduce_max);
    case 2:
        return mtf_stride_1d(x, "a", 4);
    case 3:
        return mtf_stride_1d(x, "c", 1);
    case 4:
        return mtf_reduce_first(x, "b");
    case 5:
        return mtf_pool_1d(x, "c", 1, mtf_reduce_sum);
    case 6:
        return mtf_stride_1d(x, "b", 3);
    case 7:
        return mtf_reduce_first(mtf_stride_1d(x, "a", 12), "a");
    }
    return NULL;
}

const op op_pool_1d = {
    .name = "pool_1d",
    .doc =
        "out[.., i, ..] = a reduction of x[.., size i + j, ..] over j < size, or the first of them",
    .example = "mtf_pool_1d(x, \"b\", 2, mtf_reduce_mean)",
    .traits = TRAIT_COMPOSED,
    .sample = pool_sample,
};
