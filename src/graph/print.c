/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op.h"

static void print_ref(const mtf_tensor *t, FILE *f)
{
    fprintf(f, "%%%d", t->node->id);
    if (t->node->nout > 1) fprintf(f, ".%d", t->index);
}

void node_print(const mtf_node *n, FILE *f)
{
    fprintf(f, "%%%d = %s '%s'(", n->id, n->op->name, n->name);
    for (int i = 0; i < n->nin; i++) {
        if (i) fputs(", ", f);
        print_ref(n->in[i], f);
    }
    fputs(")", f);
    op_print_attr(n->op, n->attr, f);
    fputs(" ->", f);
    for (int i = 0; i < n->nout; i++)
        fprintf(f, " %s%s", mtf_dtype_name(n->out[i].dtype), shape_text(&n->out[i].shape));
    fputc('\n', f);
}

void mtf_graph_print(const mtf_graph *g, FILE *f)
{
    for (int64_t i = 0; i < g->nnodes; i++)
        node_print(g->node[i], f);
}
