/* SPDX-License-Identifier: Apache-2.0
 * Norms as compositions of means and elementwise work, so they partition for any layout. */
#include "mtf/norm.h"

#include <math.h>

#include "graph/graph.h"

/* ---- arguments ---- */

/* Has x all `dims`, and is epsilon usable? */
static bool usable(const char *what, const mtf_tensor *x, const mtf_shape *dims, double epsilon)
{
    mtf_graph *g = x->node->graph;
    if (!(epsilon >= 0 && isfinite(epsilon))) {
        graph_fail(g, "%s of '%s': epsilon is %g; it must be a number of at least 0", what,
                   x->node->name, epsilon);
        return false;
    }
    for (int i = 0; i < dims->rank; i++) {
        const int at = mtf_shape_find(&x->shape, dims->dim[i].name);
        if (at >= 0 && x->shape.dim[at].size == dims->dim[i].size) continue;
        graph_fail(g, "%s of '%s': its variables have the dim %s=%lld and it has %s", what,
                   x->node->name, dims->dim[i].name, (long long)dims->dim[i].size,
                   shape_text(&x->shape));
        return false;
    }
    return true;
}

/* The dims of x that are not among `dims`. */
static mtf_shape others(const mtf_tensor *x, const mtf_shape *dims)
{
    mtf_shape s = x->shape;
    for (int i = 0; i < dims->rank; i++)
        s = mtf_shape_without(s, dims->dim[i].name);
    return s;
}

/* ---- what norms are made of ---- */

static mtf_tensor *mean_square(mtf_tensor *x, mtf_shape output)
{
    return mtf_reduce_mean(mtf_square(x), output);
}

/* x / sqrt(variance + epsilon) * scale + bias, of which the latter two may be NULL. */
static mtf_tensor *normalize(mtf_tensor *x, mtf_tensor *variance, double epsilon, mtf_tensor *scale,
                             mtf_tensor *bias)
{
    mtf_tensor *y = mtf_mul(x, mtf_rsqrt(mtf_offset(variance, epsilon)));
    if (scale) y = mtf_mul(y, scale);
    return bias ? mtf_add(y, bias) : y;
}

static mtf_tensor *variable(mtf_graph *g, const char *name, double value, mtf_shape shape,
                            mtf_dtype type, bool trainable)
{
    return mtf_variable(g, name, mtf_constant(g, value, shape, type), trainable);
}

/* ---- layer norm and RMS norm ---- */

mtf_norm mtf_norm_variables(mtf_graph *g, const char *name, mtf_shape along, unsigned parts,
                            mtf_dtype type)
{
    mtf_norm n = {.along = along};
    graph_check_shape(g, &n.along, name ? name : "norm");
    if (parts & ~(unsigned)(MTF_NORM_SCALE | MTF_NORM_BIAS))
        graph_fail(g, "norm '%s': the parts %u are not made of MTF_NORM_SCALE and MTF_NORM_BIAS",
                   name ? name : "", parts);
    mtf_scope_push(g, name);
    if (parts & MTF_NORM_SCALE) n.scale = variable(g, "scale", 1.0, along, type, true);
    if (parts & MTF_NORM_BIAS) n.bias = variable(g, "bias", 0.0, along, type, true);
    mtf_scope_pop(g);
    return n;
}

mtf_tensor *mtf_layer_norm(mtf_tensor *x, mtf_norm n, double epsilon)
{
    if (!x || !usable("layer norm", x, &n.along, epsilon)) return NULL;
    const mtf_shape rest = others(x, &n.along);
    mtf_tensor *centred = mtf_sub(x, mtf_reduce_mean(x, rest));
    return normalize(centred, mean_square(centred, rest), epsilon, n.scale, n.bias);
}

mtf_tensor *mtf_rms_norm(mtf_tensor *x, mtf_norm n, double epsilon)
{
    if (!x || !usable("RMS norm", x, &n.along, epsilon)) return NULL;
    return normalize(x, mean_square(x, others(x, &n.along)), epsilon, n.scale, n.bias);
}

/* ---- batch norm ---- */

mtf_batch_stats mtf_batch_norm_variables(mtf_graph *g, const char *name, mtf_shape channels,
                                         bool zero_scale, mtf_dtype type)
{
    mtf_batch_stats s = {.channels = channels};
    graph_check_shape(g, &s.channels, name ? name : "batch norm");
    mtf_scope_push(g, name);
    s.scale = variable(g, "scale", zero_scale ? 0.0 : 1.0, channels, type, true);
    s.bias = variable(g, "bias", 0.0, channels, type, true);
    s.mean = variable(g, "mean", 0.0, channels, type, false);
    s.variance = variable(g, "variance", 1.0, channels, type, false);
    mtf_scope_pop(g);
    return s;
}

/* The assignment of a moving average. */
static mtf_tensor *move(mtf_tensor *average, mtf_tensor *now, double momentum)
{
    mtf_tensor *kept = mtf_scale(average, momentum);
    return mtf_assign(average, mtf_add(kept, mtf_scale(mtf_stop_gradient(now), 1.0 - momentum)));
}

mtf_tensor *mtf_batch_norm(mtf_tensor *x, mtf_batch_stats s, double momentum, double epsilon,
                           mtf_tensor *updates[2])
{
    if (!updates)
        return x ? graph_fail(x->node->graph, "batch norm of '%s': there is no room for updates",
                              x->node->name)
                 : NULL;
    updates[0] = updates[1] = NULL;
    if (!x || !usable("batch norm", x, &s.channels, epsilon)) return NULL;
    if (!(momentum >= 0 && momentum <= 1))
        return graph_fail(x->node->graph,
                          "batch norm of '%s': the momentum is %g; it must be in [0, 1]",
                          x->node->name, momentum);
    mtf_tensor *mean = mtf_reduce_mean(x, s.channels), *centred = mtf_sub(x, mean);
    mtf_tensor *variance = mean_square(centred, s.channels);
    updates[0] = move(s.mean, mean, momentum);
    updates[1] = move(s.variance, variance, momentum);
    return normalize(centred, variance, epsilon, s.scale, s.bias);
}

mtf_tensor *mtf_batch_norm_inference(mtf_tensor *x, mtf_batch_stats s, double epsilon)
{
    if (!x || !usable("batch norm", x, &s.channels, epsilon)) return NULL;
    return normalize(mtf_sub(x, s.mean), s.variance, epsilon, s.scale, s.bias);
}
