/* SPDX-License-Identifier: Apache-2.0
 * Where every value lives: one slab whose offsets serve all processors, and one block for state. */
#include <string.h>

#include "base/fault.h"
#include "spmd/memory.h"

/* ---- values that must not share memory with a variable ---- */

static const value *source_of(const value *v)
{
    while (v->def && v->def->kind == INSTR_VIEW)
        v = v->def->in[0];
    return v;
}

static value *copy_of(mtf_program *p, value *v, instr *before)
{
    value *c = program_value(p, v->tensor, &v->shape);
    memcpy(c->split, v->split, sizeof c->split);
    instr *i = program_instr(p, before ? before->prev : NULL, INSTR_COPY, v->tensor->node, 1, 1);
    if (before && !before->prev) { /* program_instr appends for NULL: move to the front */
        program_remove(p, i);
        p->ninstrs++;
        i->prev = NULL;
        i->next = p->first;
        p->first->prev = i;
        p->first = i;
    }
    i->in[0] = v;
    i->out[0] = c;
    return c;
}

/* An assignment from another variable, and a fetch of a variable that is assigned, need the old
 * value in memory of its own. */
static void protect_old_state(mtf_program *p)
{
    program_count(p);
    instr *first = p->first;
    while (first && first->kind != INSTR_ASSIGN)
        first = first->next;
    if (!first || FAULT(FAULT_STATE_SWAP)) return;
    for (instr *i = first; i; i = i->next)
        if (i->kind == INSTR_ASSIGN && source_of(i->in[0])->kind != VALUE_LOCAL)
            i->in[0] = copy_of(p, i->in[0], first);
    for (int k = 0; k < p->nfetches; k++) {
        const value *s = source_of(p->fetch[k]);
        if (s->kind == VALUE_STATE && p->state[s->state].assigned)
            p->fetch[k] = copy_of(p, p->fetch[k], first);
    }
}

/* ---- places ---- */

static int64_t place_state(mtf_program *p)
{
    int64_t bytes = 0;
    for (int s = 0; s < p->nstates; s++) {
        p->state[s].offset = bytes;
        bytes += p->state[s].value->bytes;
    }
    return bytes;
}

static void store_offsets(const memory *m)
{
    for (int64_t k = 0; k < m->p->nvalues; k++) {
        value *v = m->p->value[k];
        const group *g = memory_group(m, v);
        v->in_state = g->state >= 0;
        v->offset = v->in_state ? m->p->state[g->state].offset : g->offset;
    }
}

/* The largest groups that are live at the peak, the largest first. A group is shown by its first
 * value. */
static void list_peak(mtf_program *p, const pack_block *b, const int *of, int64_t n, int peak)
{
    p->npeak = 0;
    for (int64_t k = 0; k < n; k++) {
        if (b[k].begin > peak || b[k].end < peak) continue;
        int at = p->npeak < PROGRAM_PEAK ? p->npeak++ : PROGRAM_PEAK;
        for (; at > 0 && p->peak[at - 1].bytes < b[k].bytes; at--)
            if (at < PROGRAM_PEAK) p->peak[at] = p->peak[at - 1];
        if (at < PROGRAM_PEAK)
            p->peak[at] = (peak_value){.value = p->value[of[k]], .bytes = b[k].bytes};
    }
}

void plan_memory(mtf_program *p)
{
    protect_old_state(p);
    memory m = memory_form(p);
    pack_block *b;
    int *of, peak;
    const int64_t n = memory_blocks(&m, &b, &of);
    p->slab_bytes = pack_blocks(b, n, NULL);
    for (int64_t k = 0; k < n; k++)
        m.g[of[k]].offset = b[k].offset;
    p->live_bytes = pack_bound(b, n, &peak);
    list_peak(p, b, of, n, peak);
    p->state_bytes = place_state(p);
    store_offsets(&m);
    memory_free(&m);
    mem_free(b);
    mem_free(of);
}
