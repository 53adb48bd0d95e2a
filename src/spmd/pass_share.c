/* SPDX-License-Identifier: Apache-2.0
 * Equal local work on equal operands is done once, and so are equal moves and reductions of one
 * value; work that nobody uses is dropped. Random rows of one stream and one place in the batch are
 * equal work too. Recomputed work is never shared with the work that it repeats. */
#include <string.h>

#include "base/fault.h"
#include "spmd/program.h"

typedef struct table {
    instr **slot;
    int64_t cap;
} table;

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u; /* neighbours go far from each other */
    return h ^ h >> 32;
}

static bool is_work(const instr *i)
{
    return i->kind == INSTR_COMPUTE || i->kind == INSTR_VIEW;
}

static uint64_t hash_of(const instr *i)
{
    uint64_t h = mix(is_work(i) ? (uint64_t)(uintptr_t)i->op : 0, (uint64_t)i->kind);
    for (int k = 0; k < i->nin; k++)
        h = mix(h, (uint64_t)i->in[k]->id);
    if (!is_work(i))
        return mix(mix(h, (uint64_t)i->start), FAULT(FAULT_SHARE_WINDOW) ? 0 : (uint64_t)i->dim);
    return FAULT(FAULT_SHARE_ATTRIBUTES) ? h : mix(h, op_hash_attr(i->op, i->attr));
}

/* Do random rows draw for the same place in the full batch? */
static bool same_origin(const op *row, const void *a, const void *b)
{
    if (!(row->traits & TRAIT_INDEX)) return true;
    const tile_origin *x = a, *y = b;
    return x->batch_dim == y->batch_dim && x->batch_full == y->batch_full;
}

/* Equal operands and equally cut results. That is all there is to a move but a window: its axes
 * follow from the cuts, and what it reduces from what is pending. */
static bool same_work(const instr *a, const instr *b)
{
    if (a->kind != b->kind || (is_work(a) && a->op != b->op) || a->nin != b->nin ||
        a->nspace != b->nspace)
        return false;
    for (int k = 0; k < a->nin; k++)
        if (a->in[k] != b->in[k]) return false;
    for (int k = 0; k < a->nout; k++)
        if (a->out[k]->dtype != b->out[k]->dtype ||
            !shape_equal(&a->out[k]->shape, &b->out[k]->shape) ||
            a->out[k]->pending != b->out[k]->pending ||
            (memcmp(a->out[k]->split, b->out[k]->split, sizeof a->out[k]->split) != 0 &&
             !FAULT(FAULT_SHARE_LAYOUT)))
            return false;
    if (a->kind == INSTR_WINDOW)
        return a->start == b->start && a->period == b->period &&
               (a->dim == b->dim || FAULT(FAULT_SHARE_WINDOW));
    if (!is_work(a)) return true;
    if (a->node->copy != b->node->copy && !FAULT(FAULT_SHARE_RECOMPUTED)) return false;
    if (FAULT(FAULT_SHARE_ATTRIBUTES)) return true;
    return op_equal_attr(a->op, a->attr, b->attr) && same_origin(a->op, a->attr, b->attr);
}

/* The earlier equal instruction, or NULL after `i` was entered. */
static instr *find_or_add(table *t, instr *i)
{
    int64_t at = (int64_t)(hash_of(i) & (uint64_t)(t->cap - 1));
    for (; t->slot[at]; at = (at + 1) & (t->cap - 1))
        if (same_work(t->slot[at], i)) return t->slot[at];
    t->slot[at] = i;
    return NULL;
}

static void share(mtf_program *p)
{
    table t = {.cap = 64};
    while (t.cap < 2 * p->ninstrs)
        t.cap *= 2;
    t.slot = mem_zalloc(sizeof *t.slot * (size_t)t.cap);
    value **now = mem_alloc(sizeof *now * (size_t)(p->nvalues + 1));
    for (int64_t v = 0; v < p->nvalues; v++)
        now[v] = p->value[v];
    for (instr *i = p->first, *next; i; i = next) {
        next = i->next;
        for (int k = 0; k < i->nin; k++)
            i->in[k] = now[i->in[k]->id];
        if (i->kind == INSTR_ASSIGN) continue;
        const instr *same = find_or_add(&t, i);
        if (!same) continue;
        for (int k = 0; k < i->nout; k++)
            now[i->out[k]->id] = same->out[k];
        program_remove(p, i);
    }
    for (int k = 0; k < p->nfetches; k++)
        p->fetch[k] = now[p->fetch[k]->id];
    mem_free(t.slot);
    mem_free(now);
}

static bool unused(const instr *i)
{
    for (int k = 0; k < i->nout; k++)
        if (i->out[k]->uses > 0) return false;
    return i->kind != INSTR_ASSIGN;
}

static void drop_unused(mtf_program *p)
{
    program_count(p);
    for (instr *i = p->last, *prev; i; i = prev) {
        prev = i->prev;
        if (!unused(i)) continue;
        for (int k = 0; k < i->nin; k++)
            i->in[k]->uses--;
        program_remove(p, i);
    }
}

void pass_share(mtf_program *p)
{
    for (int before = -1; before != p->ninstrs;) {
        before = p->ninstrs;
        share(p);
        drop_unused(p);
    }
    program_count(p);
}
