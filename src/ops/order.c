/* SPDX-License-Identifier: Apache-2.0
 * What is made of top_k: argmax, single elements in order of size, sorting. */
#include "graph/graph.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

/* A name for the dim of the result that the operand does not use. */
static const char *order_name(const mtf_tensor *x)
{
    return shape_fresh_name(x->node->graph, &x->shape, "order");
}

/* The first of the two results of top_k, or the second. */
static mtf_tensor *ordered(mtf_tensor *x, const char *dim, mtf_dim k, bool smallest, bool indices)
{
    mtf_tensor *values, *at;
    mtf_top_k(x, dim, k, smallest, &values, &at);
    return indices ? at : values;
}

static mtf_tensor *first(mtf_tensor *x, const char *dim, bool smallest)
{
    if (!x) return NULL;
    const mtf_dim k = {order_name(x), 1};
    mtf_tensor *at = ordered(x, dim, k, smallest, true);
    return at ? mtf_reshape(at, mtf_shape_without(at->shape, k.name)) : NULL;
}

mtf_tensor *mtf_argmax(mtf_tensor *x, const char *dim)
{
    return first(x, dim, false);
}

mtf_tensor *mtf_argmin(mtf_tensor *x, const char *dim)
{
    return first(x, dim, true);
}

static mtf_tensor *nth(mtf_tensor *x, const char *dim, int64_t n, bool smallest)
{
    if (!x) return NULL;
    const int64_t size = mtf_tensor_dim(x, dim).size;
    if (n < 0 || n >= size)
        return graph_fail(x->node->graph,
                          "nth element of '%s' along %s: there is no element %lld of %lld, counted "
                          "from 0",
                          x->node->name, dim ? dim : "NULL", (long long)n, (long long)size);
    const mtf_dim k = {order_name(x), n + 1};
    mtf_tensor *values = ordered(x, dim, k, smallest, false);
    if (!values) return NULL;
    mtf_tensor *last = mtf_slice(values, k.name, n, 1);
    return mtf_reshape(last, mtf_shape_without(last->shape, k.name));
}

mtf_tensor *mtf_nth_largest(mtf_tensor *x, const char *dim, int64_t n)
{
    return nth(x, dim, n, false);
}

mtf_tensor *mtf_nth_smallest(mtf_tensor *x, const char *dim, int64_t n)
{
    return nth(x, dim, n, true);
}

mtf_tensor *mtf_sort(mtf_tensor *x, const char *dim, bool descending, mtf_tensor **indices)
{
    if (indices) *indices = NULL;
    if (!x) return NULL;
    const mtf_dim k = {order_name(x), mtf_tensor_dim(x, dim).size};
    mtf_tensor *values, *at;
    mtf_top_k(x, dim, k, !descending, &values, &at);
    if (indices) *indices = mtf_transpose(mtf_rename(at, k.name, dim), x->shape);
    return mtf_transpose(mtf_rename(values, k.name, dim), x->shape);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    mtf_tensor *x = NULL, *at = NULL;
    if (k < 9) x = sample_ties(g, MTF_SHAPE({"a", 4}, {"b", 9}));
    if (k > 8 && k < 14) x = sample_ties(g, sample_edge(1));
    switch (k) {
    case 0:
        return mtf_argmax(x, "b");
    case 1:
        return mtf_argmin(x, "a");
    case 2:
        return mtf_nth_largest(x, "b", 0);
    case 3:
        return mtf_nth_largest(x, "b", 5);
    case 4:
        return mtf_nth_smallest(x, "a", 3);
    case 5:
        return mtf_sort(x, "b", false, NULL);
    case 6:
        return mtf_sort(x, "a", true, NULL);
    case 7:
        mtf_sort(x, "b", true, &at);
        return at;
    case 8:
        return mtf_argmax(sample_integers(g, MTF_SHAPE({"b", 18}, {"c", 1})), "b");
    case 9: /* dims of which some processors have nothing */
        return mtf_argmin(x, "b");
    case 10:
        return mtf_argmax(x, "a");
    case 11:
        return mtf_nth_smallest(x, "b", 2);
    case 12:
        return mtf_nth_largest(x, "a", 0);
    case 13:
        return mtf_sort(x, "b", true, NULL);
    case 14:
        return mtf_sort(sample_integers(g, MTF_SHAPE({"b", 1})), "b", false, NULL);
    }
    return NULL;
}

const op op_order = {
    .name = "order",
    .doc = "argmax, argmin, the n-th largest or smallest element, sorting: from top_k",
    .example = "mtf_sort(x, \"b\", true, &indices)",
    .traits = TRAIT_COMPOSED,
    .sample = sample,
};
