/* SPDX-License-Identifier: Apache-2.0
 * Activations by name. */
#include "nn/activation.h"

#include "base/options.h"
#include "graph/graph.h"

static mtf_tensor *linear(mtf_tensor *x)
{
    return x;
}

static const struct {
    const char *name;
    mtf_tensor *(*build)(mtf_tensor *x);
} rows[] = {
    {"linear", linear},       {"relu", mtf_relu}, {"gelu", mtf_gelu},         {"swish", mtf_swish},
    {"sigmoid", mtf_sigmoid}, {"tanh", mtf_tanh}, {"softplus", mtf_softplus}, {"elu", mtf_elu},
    {"selu", mtf_selu},       {"exp", mtf_exp},   {"square", mtf_square},     {"sin", mtf_sin},
    {"cos", mtf_cos},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The row of a name, or -1 after an error. */
static int find(mtf_graph *g, const char *name)
{
    int best = 0, distance = 1 << 20;
    for (int k = 0; k < ROWS; k++) {
        const int d = options_distance(name, rows[k].name);
        if (d < distance) best = k;
        if (d < distance) distance = d;
    }
    if (distance == 0) return best;
    graph_fail(g, "there is no activation '%s'; did you mean '%s'?", name, rows[best].name);
    return -1;
}

bool activation_known(mtf_graph *g, const char *name)
{
    return !name || find(g, name) >= 0;
}

mtf_tensor *mtf_activate(mtf_tensor *x, const char *name)
{
    if (!x || !name) return x;
    const int k = find(mtf_tensor_graph(x), name);
    return k < 0 ? NULL : rows[k].build(x);
}
