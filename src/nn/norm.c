/* SPDX-License-Identifier: Apache-2.0
 * Norms as compositions of means and elementwise work, so they partition for any layout. Those of
 * bf16 are worked out in f32, with variables as they are stored, and rounded at the end. */
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

/* x as norms are worked out. */
static mtf_tensor *wide(mtf_tensor *x)
{
    return mtf_cast(x, mtf_dtype_of_sums(x->dtype));
}

/* A norm's variable, for what is of type `given`: not by way of bf16 where more is stored. */
static mtf_tensor *read_for(mtf_dtype given, mtf_tensor *variable)
{
    return given == MTF_BF16 ? mtf_cast(variable, MTF_F32) : mtf_variable_read(variable);
}

/* x / sqrt(variance + epsilon) * scale + bias, of which the latter two may be NULL; `given` is the
 * type of the result. */
static mtf_tensor *normalize(mtf_dtype given, mtf_tensor *x, mtf_tensor *variance, double epsilon,
                             mtf_tensor *scale, mtf_tensor *bias)
{
    mtf_tensor *y = mtf_mul(x, mtf_rsqrt(mtf_offset(variance, epsilon)));
    if (scale) y = mtf_mul(y, read_for(given, scale));
    if (bias) y = mtf_add(y, read_for(given, bias));
    return mtf_cast(y, given);
}

static mtf_tensor *variable(mtf_graph *g, const char *name, double value, mtf_shape shape,
                            mtf_variable_types types, bool trainable)
{
    mtf_tensor *initial = mtf_constant(g, value, shape, types.stored);
    return mtf_variable_typed(g, name, initial, trainable, types);
}

/* ---- layer norm and RMS norm ---- */

mtf_norm mtf_norm_variables_typed(mtf_graph *g, const char *name, mtf_shape along, unsigned parts,
                                  mtf_variable_types types)
{
    mtf_norm n = {.along = along};
    graph_check_shape(g, &n.along, name ? name : "norm");
    if (parts & ~(unsigned)(MTF_NORM_SCALE | MTF_NORM_BIAS))
        graph_fail(g, "norm '%s': the parts %u are not made of MTF_NORM_SCALE and MTF_NORM_BIAS",
                   name ? name : "", parts);
    mtf_scope_push(g, name);
    if (parts & MTF_NORM_SCALE) n.scale = variable(g, "scale", 1.0, along, types, true);
    if (parts & MTF_NORM_BIAS) n.bias = variable(g, "bias", 0.0, along, types, true);
    mtf_scope_pop(g);
    return n;
}

mtf_norm mtf_norm_variables(mtf_graph *g, const char *name, mtf_shape along, unsigned parts,
                            mtf_dtype type)
{
    return mtf_norm_variables_typed(g, name, along, parts, mtf_variable_types_for(type));
}

mtf_tensor *mtf_layer_norm(mtf_tensor *x, mtf_norm n, double epsilon)
{
    if (!x || !usable("layer norm", x, &n.along, epsilon)) return NULL;
    const mtf_shape rest = others(x, &n.along);
    mtf_tensor *w = wide(x), *centred = mtf_sub(w, mtf_reduce_mean(w, rest));
    return normalize(x->dtype, centred, mean_square(centred, rest), epsilon, n.scale, n.bias);
}

mtf_tensor *mtf_rms_norm(mtf_tensor *x, mtf_norm n, double epsilon)
{
    if (!x || !usable("RMS norm", x, &n.along, epsilon)) return NULL;
    mtf_tensor *w = wide(x), *square = mean_square(w, others(x, &n.along));
    return normalize(x->dtype, w, square, epsilon, n.scale, n.bias);
}

/* ---- batch norm ---- */

mtf_batch_stats mtf_batch_norm_variables(mtf_graph *g, const char *name, mtf_shape channels,
                                         bool zero_scale, mtf_dtype type)
{
    const mtf_variable_types types = mtf_variable_types_for(type);
    mtf_batch_stats s = {.channels = channels};
    graph_check_shape(g, &s.channels, name ? name : "batch norm");
    mtf_scope_push(g, name);
    s.scale = variable(g, "scale", zero_scale ? 0.0 : 1.0, channels, types, true);
    s.bias = variable(g, "bias", 0.0, channels, types, true);
    s.mean = variable(g, "mean", 0.0, channels, types, false);
    s.variance = variable(g, "variance", 1.0, channels, types, false);
    mtf_scope_pop(g);
    return s;
}

/* The assignment of a moving average. */
static mtf_tensor *move(mtf_tensor *average, mtf_tensor *now, double momentum)
{
    mtf_tensor *kept = mtf_scale(mtf_cast(average, mtf_tensor_dtype(now)), momentum);
    mtf_tensor *next = mtf_add(kept, mtf_scale(mtf_stop_gradient(now), 1.0 - momentum));
    return mtf_assign(average, mtf_cast(next, mtf_tensor_dtype(average)));
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
    mtf_tensor *w = wide(x), *mean = mtf_reduce_mean(w, s.channels), *centred = mtf_sub(w, mean);
    mtf_tensor *variance = mean_square(centred, s.channels);
    updates[0] = move(s.mean, mean, momentum);
    updates[1] = move(s.variance, variance, momentum);
    return normalize(x->dtype, centred, variance, epsilon, s.scale, s.bias);
}

mtf_tensor *mtf_batch_norm_inference(mtf_tensor *x, mtf_batch_stats s, double epsilon)
{
    if (!x || !usable("batch norm", x, &s.channels, epsilon)) return NULL;
    mtf_tensor *w = wide(x), *centred = mtf_sub(w, read_for(x->dtype, s.mean));
    mtf_tensor *variance = read_for(x->dtype, s.variance);
    return normalize(x->dtype, centred, variance, epsilon, s.scale, s.bias);
}
