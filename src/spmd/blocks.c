/* SPDX-License-Identifier: Apache-2.0
 * Summaries of blocks: what a row needs to know of the blocks of a cut dim besides its own. Each
 * processor makes that of its block; the row that reads them gathers them, as they are small. */
#include <string.h>

#include "spmd/lowering.h"

int64_t lower_parts(lowering *l, const mtf_dim *d)
{
    return split_parts(l->p->mesh, layout_split(l->p->layout, d->name));
}

static bool has_dim(const mtf_node *n, const char *interned)
{
    mtf_dim dims[KERNEL_MAX_SPACE];
    const int count = op_space(n, dims);
    for (int d = 0; d < count; d++)
        if (dims[d].name == interned) return true;
    return false;
}

const char *lower_blocks_name(lowering *l, const mtf_node *n)
{
    const char *name = graph_intern(l->p->graph, "@blocks");
    for (int k = 1; has_dim(n, name) || layout_split(l->p->layout, name).n; k++)
        name = graph_intern(l->p->graph, arena_printf(l->p->mem, "@blocks_%d", k));
    return name;
}

static placement results_placement(const placement *x, const mtf_shape *from, const mtf_shape *to,
                                   int at, const char *blocks)
{
    placement p = {0};
    for (int d = 0; d < to->rank; d++) {
        const int in_x = to->dim[d].name == blocks ? at : shape_find(from, to->dim[d].name);
        p.split[d] = x->split[in_x];
    }
    return p;
}

mtf_tensor *lower_blocks(lowering *l, const mtf_node *n, const op *row, mtf_tensor *x,
                         const void *attr, const char *dim, const char *blocks)
{
    value *from = emit_home(l, n, holding_of(l, x));
    if (!from) return NULL;
    const int at = shape_find(&x->shape, dim);
    const placement cuts = placement_of(from);
    mtf_node *d = graph_detached(l->p->graph, l->p->mem, row, n, 1, &x, attr);
    instr *i = program_instr(l->p, NULL, INSTR_COMPUTE, d, 1, d->nout);
    mtf_dim dims[KERNEL_MAX_SPACE];
    i->op = row;
    i->attr = d->attr;
    i->nspace = op_space(d, dims);
    i->space = arena_alloc(l->p->mem, sizeof *i->space * (size_t)i->nspace);
    for (int s = 0; s < i->nspace; s++) {
        const int in_x = dims[s].name == blocks ? at : shape_find(&x->shape, dims[s].name);
        i->space[s] = (space_dim){dims[s], cuts.split[in_x]};
    }
    i->in[0] = from;
    for (int o = 0; o < d->nout; o++) {
        const mtf_tensor *out = &d->out[o];
        const placement to = results_placement(&cuts, &x->shape, &out->shape, at, blocks);
        i->out[o] = value_at(l, out, &out->shape, &to, COMBINE_SUM);
        holding_add(holding_new(l, out), i->out[o]);
    }
    return &d->out[0];
}
