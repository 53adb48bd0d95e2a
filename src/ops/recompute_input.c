/* SPDX-License-Identifier: Apache-2.0
 * Where a recomputation reads a tensor of the forward pass. It is a value of its own, so what is
 * computed from it (by the copies, and by gradients that read it) is never found to be the same as
 * what the forward pass has: that would keep the forward pass' values. Copies of it on other
 * placements are made anew as well. */
#include "ops/rows.h"
#include "ops/tile.h"

static bool infer(mtf_graph *g, mtf_node *n)
{
    return tile_infer_unary(g, n, TYPES_ANY);
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    (void)n;
    dx[0] = dy[0];
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    const mtf_shape ab = {.rank = 2, .dim = {{"a", 4}, {"b", 6}}};
    if (k > SAMPLE_EDGES) return NULL;
    return graph_recompute_input("again", sample_normal(g, k ? sample_edge(k - 1) : ab));
}

const op op_recompute_input = {
    .name = "recompute_input",
    .doc = "out = x, for work that is not shared with other work on x",
    .example = "",
    .nin = 1,
    .traits = TRAIT_VIEW,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .sample = sample,
};

mtf_tensor *graph_recompute_input(const char *name, mtf_tensor *t)
{
    return t ? graph_add(t->node->graph, &op_recompute_input, name, 1, &t, NULL) : NULL;
}
