/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a memory plan, checked after it was made: no instruction writes where a value
 * lies that is still read, but for an elementwise result in the place of an operand that is read in
 * step with it, and a sum in place. So live values that overlap begin at one offset. */
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "spmd/program.h"

/* Live values in the order of their offsets. */
typedef struct live_set {
    const value **v;
    int64_t n;
} live_set;

typedef struct checker {
    const mtf_program *p;
    int *last;        /* per value: the last instruction that reads it */
    live_set live[2]; /* in the slab, in the state block */
} checker;

static void find_last_uses(checker *c)
{
    const mtf_program *p = c->p;
    for (int64_t v = 0; v < p->nvalues; v++)
        c->last[v] = -1;
    for (const instr *i = p->first; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            c->last[i->in[k]->id] = i->id;
    for (int k = 0; k < p->nfetches; k++)
        c->last[p->fetch[k]->id] = p->ninstrs;
    for (int k = 0; k < p->nstates; k++) /* the next run reads it */
        if (!p->state[k].assigned) c->last[p->state[k].value->id] = p->ninstrs;
}

/* The first live value that begins at `offset` or behind it. */
static int64_t find(const live_set *l, int64_t offset)
{
    int64_t lo = 0, hi = l->n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (l->v[mid]->offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The first that may overlap what begins at `offset`: those in front of it that do share a place.
 */
static int64_t find_overlap(const live_set *l, int64_t offset)
{
    const int64_t at = find(l, offset);
    return at > 0 ? find(l, l->v[at - 1]->offset) : at;
}

static void begin_life(checker *c, const value *v)
{
    const int64_t room = v->in_state ? c->p->state_bytes : c->p->slab_bytes;
    if (c->last[v->id] < 0 || v->bytes == 0) return;
    MTF_CHECK(v->offset >= 0 && v->offset + v->bytes <= room, "%%%d lies outside of the memory",
              v->id);
    live_set *l = &c->live[v->in_state];
    const int64_t at = find(l, v->offset);
    memmove(l->v + at + 1, l->v + at, sizeof *l->v * (size_t)(l->n++ - at));
    l->v[at] = v;
}

static void end_life(checker *c, const value *v)
{
    live_set *l = &c->live[v->in_state];
    int64_t at = find(l, v->offset);
    while (at < l->n && l->v[at] != v && l->v[at]->offset == v->offset)
        at++;
    if (at < l->n && l->v[at] == v)
        memmove(l->v + at, l->v + at + 1, sizeof *l->v * (size_t)(--l->n - at));
}

/* May result k of `i` lie where `old` lies, which `i` is the last to read? */
static bool in_place(const instr *i, int k, const value *old)
{
    const value *out = i->out[k];
    if (old->offset != out->offset) return false;
    if (i->kind == INSTR_ALL_REDUCE) return i->in[k] == old;
    return i->kind == INSTR_COMPUTE && (i->op->traits & TRAIT_INPLACE) &&
           value_same_block(old, out);
}

static void check_result(const checker *c, const instr *i, int k)
{
    const value *out = i->out[k];
    const live_set *l = &c->live[out->in_state];
    const int64_t end = out->offset + out->bytes;
    for (int64_t n = find_overlap(l, out->offset); n < l->n && l->v[n]->offset < end; n++) {
        const value *v = l->v[n];
        if (out->offset >= v->offset + v->bytes) continue;
        MTF_CHECK(c->last[v->id] == i->id && in_place(i, k, v),
                  "%s '%s' writes %%%d over %%%d ('%s'), which is still read", instr_name(i),
                  i->node->name, out->id, v->id, v->tensor->node->name);
    }
}

/* An assignment copies to the variable's place, unless the value was formed there. */
static void check_assign(const checker *c, const instr *i)
{
    const int64_t begin = c->p->state[i->state].offset,
                  end = begin + c->p->state[i->state].value->bytes;
    const live_set *l = &c->live[1];
    for (int64_t n = find_overlap(l, begin); n < l->n && l->v[n]->offset < end; n++) {
        const value *v = l->v[n];
        if (begin >= v->offset + v->bytes) continue;
        MTF_CHECK(v == i->in[0] || c->last[v->id] <= i->id,
                  "the assignment to '%s' overwrites %%%d, which is still read",
                  c->p->state[i->state].node->name, v->id);
    }
}

static void check_instr(const checker *c, const instr *i)
{
    if (i->kind == INSTR_VIEW) {
        MTF_CHECK(i->in[0]->offset == i->out[0]->offset &&
                      i->in[0]->in_state == i->out[0]->in_state,
                  "the view '%s' lies elsewhere than its operand", i->node->name);
        return;
    }
    for (int k = 0; k < i->nout; k++)
        check_result(c, i, k);
    for (int k = 1; k < i->nin && i->kind == INSTR_ALL_REDUCE; k++)
        MTF_CHECK(i->in[k]->offset == i->in[k - 1]->offset + i->in[k - 1]->bytes,
                  "the members of the bucket of '%s' do not lie side by side", i->node->name);
    if (i->kind == INSTR_ASSIGN) check_assign(c, i);
}

void program_verify_memory(mtf_program *p)
{
    if (FAULT(FAULT_INPLACE_EARLY)) return; /* tests must see it, by its numbers */
    program_count(p);
    const size_t n = (size_t)p->nvalues + 1;
    checker c = {.p = p, .last = mem_alloc(n * sizeof *c.last)};
    for (int m = 0; m < 2; m++)
        c.live[m].v = mem_alloc(n * sizeof *c.live[m].v);
    find_last_uses(&c);
    for (int k = 0; k < p->nstates; k++)
        begin_life(&c, p->state[k].value);
    for (int k = 0; k < p->nfeeds; k++)
        begin_life(&c, p->feed[k]);
    for (const instr *i = p->first; i; i = i->next) {
        check_instr(&c, i);
        for (int k = 0; k < i->nout; k++)
            begin_life(&c, i->out[k]);
        for (int k = 0; k < i->nin; k++)
            if (c.last[i->in[k]->id] == i->id) end_life(&c, i->in[k]);
    }
    mem_free(c.last);
    mem_free(c.live[0].v);
    mem_free(c.live[1].v);
}
