/* SPDX-License-Identifier: Apache-2.0
 * all_reduce over an axis, followed by nothing but a slice over the same axis, is reduce_scatter.
 */
#include "spmd/program.h"

static instr *slice_of(const value *v)
{
    if (v->uses != 1) return NULL;
    for (instr *i = v->def->next; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            if (i->in[k] == v) return i->kind == INSTR_SLICE ? i : NULL;
    return NULL;
}

void pass_scatter(mtf_program *p)
{
    program_count(p);
    for (instr *i = p->first; i; i = i->next) {
        if (i->kind != INSTR_ALL_REDUCE || i->nin != 1) continue;
        instr *slice = slice_of(i->out[0]);
        if (!slice || !split_equal(slice->axes, i->axes)) continue;
        i->kind = INSTR_REDUCE_SCATTER;
        i->dim = slice->dim;
        slice->out[0]->pending = i->out[0]->pending;
        slice->out[0]->combine = i->out[0]->combine;
        i->out[0] = slice->out[0];
        program_remove(p, slice);
    }
    program_count(p);
}
