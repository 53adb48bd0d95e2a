/* SPDX-License-Identifier: Apache-2.0
 * Separable convolution along one dim: shifts, so a split dim exchanges its borders. */
#include "graph/graph.h"
#include "mtf/dense.h"

mtf_separable_weights mtf_separable_variables(mtf_graph *g, const char *name, mtf_dim in,
                                              mtf_dim out, int64_t first, int64_t last, bool bias,
                                              mtf_dtype type)
{
    mtf_separable_weights w = {.first = first};
    if (first < INT32_MIN || last > INT32_MAX || last < first || last - first >= 1000) {
        graph_fail(
            g,
            "separable_conv1d '%s': relative positions from %lld to %lld; there must be 1 to "
            "1000 that an i32 holds",
            name, (long long)first, (long long)last);
        return w;
    }
    w.npositions = (int)(last - first + 1);
    w.depthwise = arena_alloc(g->mem, sizeof *w.depthwise * (size_t)w.npositions);
    mtf_scope_push(g, name);
    for (int i = 0; i < w.npositions; i++)
        w.depthwise[i] =
            mtf_dense_variables(g, arena_printf(g->mem, "depthwise_%d", i),
                                &(mtf_dense_options){.expert = MTF_SHAPE(in),
                                                     .bias = bias && i == 0,
                                                     .kernel = {.scale = 1.0 / w.npositions}},
                                type);
    w.pointwise = mtf_dense_variables(
        g, "pointwise",
        &(mtf_dense_options){.reduced = MTF_SHAPE(in), .out = MTF_SHAPE(out), .bias = bias}, type);
    mtf_scope_pop(g);
    return w;
}

mtf_tensor *mtf_separable_conv1d(mtf_tensor *x, const mtf_separable_weights *w, const char *length)
{
    mtf_tensor *sum = NULL;
    for (int i = 0; w && i < w->npositions; i++) {
        mtf_tensor *one =
            mtf_dense_layer(mtf_shift(x, length, -(w->first + i), false), &w->depthwise[i]);
        if (!one) return NULL;
        sum = sum ? mtf_add(sum, one) : one;
    }
    return sum ? mtf_dense_layer(sum, &w->pointwise) : NULL;
}
