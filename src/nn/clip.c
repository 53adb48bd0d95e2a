/* SPDX-License-Identifier: Apache-2.0
 * Norms and clipping of gradients. */
#include <math.h>

#include "graph/graph.h"
#include "mtf/optimize.h"

mtf_tensor *mtf_global_norm(int n, mtf_tensor *const *tensors)
{
    mtf_tensor *sum = NULL;
    mtf_tensor **part = mem_alloc(sizeof(mtf_tensor *) * (size_t)(n > 0 ? n : 1));
    int parts = 0;
    for (int i = 0; i < n && tensors; i++)
        if (tensors[i]) {
            mtf_tensor *x = mtf_cast(tensors[i], mtf_dtype_of_sums(mtf_tensor_dtype(tensors[i])));
            part[parts++] = mtf_reduce_sum(mtf_square(x), MTF_SCALAR);
        }
    for (int i = 0; i < parts; i++)
        sum = sum ? mtf_add(sum, part[i]) : part[i];
    mem_free(part);
    return mtf_sqrt(sum);
}

/* A norm of 0 gives infinity, then 1. */
mtf_tensor *mtf_clip_factor(mtf_tensor *norm, double limit)
{
    mtf_graph *g = mtf_tensor_graph(norm);
    if (!g) return NULL;
    if (!(limit > 0))
        return graph_fail(g, "clipping by '%s': the limit is %g; it must be above 0",
                          mtf_tensor_name(norm), limit);
    const mtf_dtype type = mtf_tensor_dtype(norm);
    mtf_tensor *ratio = mtf_div(mtf_constant(g, limit, MTF_SCALAR, type), norm);
    return mtf_minimum(mtf_constant(g, 1.0, MTF_SCALAR, type), ratio);
}

static mtf_tensor *clip_value(mtf_tensor *x, double limit)
{
    mtf_graph *g = mtf_tensor_graph(x);
    if (!g) return NULL;
    const mtf_dtype type = mtf_tensor_dtype(x);
    mtf_tensor *low = mtf_constant(g, -limit, MTF_SCALAR, type),
               *high = mtf_constant(g, limit, MTF_SCALAR, type);
    return mtf_minimum(mtf_maximum(x, low), high);
}

static mtf_tensor *clip_one(mtf_tensor *x, const mtf_clip *c)
{
    if (c->value > 0) x = clip_value(x, c->value);
    if (c->variable_norm > 0)
        x = mtf_mul(x, mtf_clip_factor(mtf_global_norm(1, &x), c->variable_norm));
    return x;
}

static void multiply(int n, mtf_tensor *const *x, mtf_tensor *factor, mtf_tensor **out)
{
    for (int i = 0; i < n; i++)
        out[i] = x[i] && factor ? mtf_mul(x[i], factor) : x[i];
}

/* Where only the norm of all is limited, scale and clipping are one factor. */
mtf_tensor *mtf_clip_gradients(int n, mtf_tensor *const *gradients, mtf_tensor *scale,
                               const mtf_clip *c, mtf_tensor **clipped)
{
    mtf_graph *g = graph_of(n, gradients);
    for (int i = 0; i < n && clipped && !g; i++)
        clipped[i] = NULL;
    if (!g) return NULL;
    if (!c || !clipped || !(c->value >= 0 && c->variable_norm >= 0 && c->norm >= 0))
        return graph_fail(
            g,
            "clipping: the limits are %g of values, %g of each norm and %g of the norm "
            "of all; they must be at least 0, and there must be room for the results",
            c ? c->value : NAN, c ? c->variable_norm : NAN, c ? c->norm : NAN);
    mtf_tensor *norm = mtf_global_norm(n, gradients), *now = norm, *factor = scale;
    if (scale) now = norm = mtf_mul(norm, scale);
    mtf_tensor *const *from = gradients;
    if (c->value > 0 || c->variable_norm > 0) {
        multiply(n, gradients, scale, clipped);
        for (int i = 0; i < n; i++)
            if (clipped[i]) clipped[i] = clip_one(clipped[i], c);
        factor = NULL;
        from = clipped;
        if (c->norm > 0) now = mtf_global_norm(n, clipped);
    }
    if (c->norm > 0) {
        mtf_tensor *limit = mtf_clip_factor(now, c->norm);
        factor = factor ? mtf_mul(factor, limit) : limit;
    }
    multiply(n, from, factor, clipped);
    return norm;
}
