/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a graph, checked before it is compiled. */
#include "base/check.h"
#include "graph/op.h"

static void check_node(const mtf_graph *g, const mtf_node *n)
{
    MTF_CHECK(n->graph == g && n->op->name, "node %d belongs elsewhere", n->id);
    MTF_CHECK(n->op->nin < 0 ? n->nin > 0 : n->nin == n->op->nin, "'%s' has %d operands", n->name,
              n->nin);
    for (int k = 0; k < n->nin; k++) {
        const mtf_tensor *t = n->in[k];
        MTF_CHECK(t && t->node->graph == g && t->node->id < n->id,
                  "operand %d of '%s' does not come before it", k, n->name);
        MTF_CHECK(t->index < t->node->nout, "operand %d of '%s' is no output", k, n->name);
    }
    for (int o = 0; o < n->nout; o++) {
        const mtf_tensor *t = &n->out[o];
        MTF_CHECK(t->node == n && t->index == o, "output %d of '%s' is not its own", o, n->name);
        MTF_CHECK(t->dtype >= 0 && t->dtype < MTF_NUM_DTYPES, "'%s' has no type", n->name);
        for (int i = 0; i < t->shape.rank; i++) {
            MTF_CHECK(t->shape.dim[i].size > 0, "'%s' has an empty dim", n->name);
            for (int j = 0; j < i; j++)
                MTF_CHECK(t->shape.dim[i].name != t->shape.dim[j].name, "'%s' has the dim %s twice",
                          n->name, t->shape.dim[i].name);
        }
    }
}

void graph_verify(const mtf_graph *g)
{
    for (int64_t i = 0; i < g->nnodes; i++) {
        MTF_CHECK(g->node[i]->id == i, "node %lld has the id %d", (long long)i, g->node[i]->id);
        check_node(g, g->node[i]);
    }
}
