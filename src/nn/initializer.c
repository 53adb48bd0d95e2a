/* SPDX-License-Identifier: Apache-2.0
 * Initial values of weights. */
#include <math.h>

#include "graph/graph.h"
#include "mtf/dense.h"
#include "mtf/nn.h"

/* A normal distribution that is cut at two deviations has this deviation. */
static const double truncated_deviation = 0.87962566103423978;

static mtf_tensor *random_values(mtf_graph *g, mtf_shape shape, mtf_distribution d, double stddev,
                                 mtf_dtype type)
{
    switch (d) {
    case MTF_DISTRIBUTION_NORMAL:
        return mtf_random_normal(g, "initial", shape, type, 0.0, stddev);
    case MTF_DISTRIBUTION_UNIFORM:
        return mtf_random_uniform(g, "initial", shape, type, -sqrt(3.0) * stddev,
                                  sqrt(3.0) * stddev);
    case MTF_DISTRIBUTION_TRUNCATED_NORMAL:
        return mtf_random_truncated_normal(g, "initial", shape, type, 0.0,
                                           stddev / truncated_deviation);
    }
    return graph_fail(g, "initializer: there is no distribution %d", (int)d);
}

static double fan_of(mtf_graph *g, const char *name, const mtf_initializer *i, const mtf_shape *in,
                     const mtf_shape *out)
{
    const double fan_in = (double)mtf_shape_size(in), fan_out = (double)mtf_shape_size(out);
    if (i->unit && i->fan != MTF_FAN_IN)
        graph_fail(g,
                   "initializer of '%s': with unit scaling the product divides by the fan-in, so "
                   "another fan is not possible",
                   name);
    if (i->unit) return 1;
    return i->fan == MTF_FAN_IN ? fan_in : i->fan == MTF_FAN_OUT ? fan_out : (fan_in + fan_out) / 2;
}

mtf_tensor *mtf_initialized(mtf_graph *g, const char *name, mtf_shape shape, mtf_shape in,
                            mtf_shape out, const mtf_initializer *i, mtf_dtype type)
{
    if (!i) return graph_fail(g, "initializer of '%s': it is NULL", name ? name : "");
    const double fan = fan_of(g, name, i, &in, &out), scale = i->scale == 0 ? 1 : i->scale;
    if (!(scale > 0))
        graph_fail(g, "initializer of '%s': the scale is %g; it must be above 0", name, scale);
    if (mtf_graph_status(g, NULL) != MTF_OK) return NULL;
    const mtf_variable_types types = mtf_variable_types_for(type);
    const mtf_dtype stored = types.stored;
    mtf_scope_push(g, name);
    mtf_tensor *initial = i->kind == MTF_CONSTANT_VALUE
                              ? mtf_constant(g, i->value, shape, stored)
                              : random_values(g, shape, i->distribution, sqrt(scale / fan), stored);
    mtf_scope_pop(g);
    return mtf_variable_typed(g, name, initial, true, types);
}

mtf_tensor *mtf_weight(mtf_graph *g, const char *name, mtf_shape shape, double stddev,
                       mtf_dtype type)
{
    return mtf_weight_typed(g, name, shape, stddev, mtf_variable_types_for(type));
}

mtf_tensor *mtf_weight_typed(mtf_graph *g, const char *name, mtf_shape shape, double stddev,
                             mtf_variable_types types)
{
    const mtf_dtype type = types.stored;
    if (!(stddev >= 0 && isfinite(stddev)))
        return graph_fail(g, "weight '%s': the deviation is %g; it must be at least 0 and finite",
                          name ? name : "NULL", stddev);
    mtf_scope_push(g, name);
    mtf_tensor *initial =
        stddev > 0 ? random_values(g, shape, MTF_DISTRIBUTION_TRUNCATED_NORMAL, stddev, type)
                   : mtf_constant(g, 0.0, shape, type);
    mtf_scope_pop(g);
    return mtf_variable_typed(g, name, initial, true, types);
}

mtf_tensor *mtf_unit_einsum(int n, mtf_tensor *const *xs, mtf_shape output)
{
    mtf_shape summed = MTF_SCALAR;
    for (int k = 0; k < n && xs; k++) {
        const mtf_shape s = mtf_tensor_shape(xs[k]);
        for (int d = 0; d < s.rank; d++)
            if (mtf_shape_find(&output, s.dim[d].name) < 0 &&
                mtf_shape_find(&summed, s.dim[d].name) < 0)
                summed = mtf_shape_with(summed, s.dim[d]);
    }
    return mtf_scale(mtf_einsum(n, xs, output), 1 / sqrt((double)mtf_shape_size(&summed)));
}
