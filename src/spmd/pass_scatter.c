/* SPDX-License-Identifier: Apache-2.0
 * all_reduce over an axis, followed by nothing but a slice over the same axis, is reduce_scatter;
 * both leave the axis behind those that the dim is cut over already. */
#include "base/fault.h"
#include "spmd/program.h"

static instr *slice_of(const value *v)
{
    if (v->uses != 1) return NULL;
    for (instr *i = v->def->next; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            if (i->in[k] == v) return i->kind == INSTR_SLICE ? i : NULL;
    return NULL;
}

/* ---- linear work on parts of sums becomes work on sums ---- */

/* Are all operands the results of reduce_scatters that nobody else reads, of one dim over the same
 * axes, and of the result's shape? */
static bool joins_parts(const instr *i)
{
    if (i->kind != INSTR_COMPUTE || !(i->op->traits & TRAIT_TILE) || i->nin < 2 || i->nout != 1)
        return false;
    const instr *first = i->in[0]->def;
    for (int k = 0; k < i->nin; k++) {
        const instr *d = i->in[k]->def;
        if (!d || d->kind != INSTR_REDUCE_SCATTER || i->in[k]->uses != 1 || d->dim != first->dim ||
            d->combine != COMBINE_SUM || !split_equal(d->axes, first->axes) ||
            !shape_equal(&i->in[k]->shape, &i->out[0]->shape))
            return false;
    }
    return op_linear(i->node, (1u << i->nin) - 1);
}

/* f(scatter x, scatter y) becomes scatter f(x, y): one call instead of two. The work is then done
 * on whole values, which is local and cheap beside a call. */
static void join_parts(mtf_program *p, instr *i)
{
    const instr model = *i->in[0]->def;
    value *result = i->out[0], *whole = program_value(p, result->tensor, &result->shape);
    const char *name = result->shape.dim[model.dim].name;
    for (int d = 0; d < result->shape.rank; d++)
        whole->split[d] = result->split[d];
    whole->split[model.dim] = model.in[0]->split[model.dim];
    whole->pending = result->pending | split_mask(model.axes);
    whole->combine = COMBINE_SUM;
    for (int k = 0; k < i->nin; k++) {
        instr *scatter = i->in[k]->def;
        i->in[k] = scatter->in[0];
        program_remove(p, scatter);
    }
    for (int d = 0; d < i->nspace; d++)
        if (i->space[d].dim.name == name) i->space[d].split = whole->split[model.dim];
    i->out[0] = whole;
    instr *scatter = program_instr(p, i, INSTR_REDUCE_SCATTER, i->node, 1, 1);
    scatter->in[0] = whole;
    scatter->out[0] = result;
    scatter->axes = model.axes;
    scatter->dim = model.dim;
    scatter->combine = COMBINE_SUM;
}

void pass_scatter(mtf_program *p)
{
    program_count(p);
    for (instr *i = p->first; i; i = i->next) {
        if (i->kind != INSTR_ALL_REDUCE || i->nin != 1) continue;
        instr *slice = slice_of(i->out[0]);
        if (!slice || (!split_equal(slice->axes, i->axes) && !FAULT(FAULT_SCATTER_AXES))) continue;
        i->kind = INSTR_REDUCE_SCATTER;
        i->dim = slice->dim;
        i->out[0] = slice->out[0];
        program_remove(p, slice);
    }
    program_count(p);
    for (instr *i = p->first; i; i = i->next)
        if (joins_parts(i)) join_parts(p, i);
    program_count(p);
}
