/* SPDX-License-Identifier: Apache-2.0
 * Dropout with shared or changing choices, jitter, and a limit on the gradient of activations. */
#include "mtf/noise.h"

#include <math.h>

#include "graph/graph.h"
#include "mtf/gradient.h"

static mtf_tensor *number(mtf_tensor *like, double value)
{
    return mtf_constant(mtf_tensor_graph(like), value, MTF_SCALAR, mtf_tensor_dtype(like));
}

/* Puts the dims of the noise into x's order; fails where it has others. */
static bool order_noise(mtf_tensor *x, const char *name, mtf_shape *noise)
{
    const mtf_shape *s = &x->shape;
    mtf_shape ordered = MTF_SCALAR;
    for (int i = 0; i < s->rank; i++) {
        const int at = mtf_shape_find(noise, s->dim[i].name);
        if (at >= 0 && noise->dim[at].size == s->dim[i].size)
            ordered = mtf_shape_with(ordered, s->dim[i]);
    }
    if (ordered.rank != noise->rank)
        graph_fail(mtf_tensor_graph(x), "dropout '%s': the noise has the shape %s and '%s' is %s",
                   name ? name : "", shape_text(noise), mtf_tensor_name(x), shape_text(s));
    const bool usable = ordered.rank == noise->rank;
    *noise = ordered;
    return usable;
}

/* Selected, not multiplied: an infinite x that is dropped gives 0. */
static mtf_tensor *selected(mtf_tensor *stays, mtf_tensor *x)
{
    return mtf_where(stays, x, number(x, 0));
}

mtf_tensor *mtf_dropout_shared(mtf_tensor *x, const char *name, double rate, mtf_shape noise)
{
    if (!x || !order_noise(x, name, &noise)) return NULL;
    if (noise.rank == x->shape.rank || rate == 0) return mtf_dropout(x, name, rate);
    mtf_tensor *ones = mtf_constant(mtf_tensor_graph(x), 1.0, noise, mtf_tensor_dtype(x));
    mtf_tensor *mask = mtf_dropout(ones, name, rate);
    if (!mask) return NULL;
    return selected(mtf_greater(mask, number(x, 0)), mtf_mul(x, mask));
}

mtf_tensor *mtf_dropout_keep(mtf_tensor *x, const char *name, mtf_tensor *keep, mtf_shape noise)
{
    if (!x || !keep || !order_noise(x, name, &noise)) return NULL;
    mtf_graph *g = mtf_tensor_graph(x);
    if (mtf_tensor_shape(keep).rank > 0 || mtf_tensor_dtype(keep) != mtf_tensor_dtype(x))
        return graph_fail(g,
                          "dropout '%s': the probability of staying, '%s', is %s%s; it must be a "
                          "scalar of type %s",
                          name ? name : "", mtf_tensor_name(keep),
                          mtf_dtype_name(mtf_tensor_dtype(keep)), shape_text(&keep->shape),
                          mtf_dtype_name(mtf_tensor_dtype(x)));
    mtf_tensor *most = mtf_minimum(keep, number(x, 1));
    mtf_tensor *uniform = mtf_random_uniform(g, name, noise, mtf_tensor_dtype(x), 0.0, 1.0);
    return selected(mtf_less(uniform, most), mtf_div(x, most));
}

double mtf_annealed_keep(double rate, int64_t begin, int64_t end, int64_t step)
{
    const double way = (double)(step - begin) / (double)(end - begin);
    return 1 - rate * (1 - fmin(1, fmax(0, way)));
}

mtf_tensor *mtf_multiplicative_jitter(mtf_tensor *x, const char *name, double epsilon)
{
    if (!x || epsilon == 0) return x;
    mtf_graph *g = mtf_tensor_graph(x);
    if (!(epsilon > 0 && isfinite(epsilon)))
        return graph_fail(g, "jitter '%s': epsilon is %g; it must be a number of at least 0",
                          name ? name : "", epsilon);
    return mtf_mul(x, mtf_random_uniform(g, name, mtf_tensor_shape(x), mtf_tensor_dtype(x),
                                         1 - epsilon, 1 + epsilon));
}

static void clipped_gradient(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                             mtf_tensor *const *dys, mtf_tensor **dxs)
{
    (void)ins, (void)outs;
    const double limit = *(const double *)context;
    mtf_tensor *rms = mtf_sqrt(mtf_reduce_mean(mtf_square(dys[0]), MTF_SCALAR));
    dxs[0] = mtf_div(dys[0], mtf_maximum(mtf_scale(rms, 1 / limit), number(dys[0], 1)));
}

mtf_tensor *mtf_clip_activation_gradient(mtf_tensor *x, double limit)
{
    if (!x) return NULL;
    if (!(limit > 0))
        return graph_fail(mtf_tensor_graph(x),
                          "clip_activation_gradient '%s': the limit is %g; it must be above 0",
                          mtf_tensor_name(x), limit);
    return mtf_custom_gradient(1, &x, 1, &x, clipped_gradient, &limit, sizeof limit, NULL);
}
