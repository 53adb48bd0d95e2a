/* SPDX-License-Identifier: Apache-2.0
 * Marks in the graph: recompute regions, and what a part of it reads from outside. */
#include "graph/op.h"
#include "mtf/gradient.h"

void mtf_recompute_begin(mtf_graph *g)
{
    if (g->open++) return;
    mem_grow((void **)&g->region, g->nregions, &g->regions_cap, sizeof *g->region);
    g->region[g->nregions++] = (region){.begin = g->nnodes, .end = -1};
}

void mtf_recompute_end(mtf_graph *g)
{
    if (g->open == 0)
        graph_fail(g, "mtf_recompute_end without a matching mtf_recompute_begin");
    else if (--g->open == 0)
        g->region[g->nregions - 1].end = g->nnodes;
}

int64_t mtf_graph_mark(const mtf_graph *g)
{
    return g->nnodes;
}

static bool marks_usable(mtf_graph *g, int64_t begin, int64_t end)
{
    if (begin < 0 || begin > end || end > g->nnodes) {
        graph_fail(g,
                   "external inputs: from mark %lld to mark %lld of a graph of %lld; give two "
                   "results of mtf_graph_mark in order",
                   (long long)begin, (long long)end, (long long)g->nnodes);
        return false;
    }
    for (int64_t i = begin; i < end; i++)
        if (g->node[i]->op->traits & TRAIT_STATE) {
            graph_fail(g,
                       "external inputs: variable '%s' was made between the marks, where nothing "
                       "outside can take its gradient; make it before",
                       g->node[i]->name);
            return false;
        }
    return true;
}

/* Enters t unless it is there; stores it where there is room. */
static void enter(mtf_tensor *t, int64_t begin, mtf_tensor **found, int *n)
{
    if (t->node->id >= begin || !mtf_dtype_is_float(t->dtype)) return;
    for (int i = 0; i < *n; i++)
        if (found[i] == t) return;
    found[(*n)++] = t;
}

int mtf_external_inputs(mtf_graph *g, int64_t begin, int64_t end, int room, mtf_tensor **inputs)
{
    if (g->err.status != MTF_OK || !marks_usable(g, begin, end)) return 0;
    int64_t operands = 0;
    for (int64_t i = begin; i < end; i++)
        operands += g->node[i]->nin;
    mtf_tensor **found = mem_alloc(sizeof(mtf_tensor *) * (size_t)(operands + 1));
    int n = 0;
    for (int64_t i = begin; i < end; i++)
        for (int k = 0; k < g->node[i]->nin; k++)
            enter(g->node[i]->in[k], begin, found, &n);
    for (int i = 0; i < n && i < room; i++)
        inputs[i] = found[i];
    mem_free(found);
    return n;
}
