/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a memory plan, checked after it was made: no instruction writes where a value
 * lies that is still read, but for an elementwise result in the place of an operand that is read in
 * step with it, and a sum in place. */
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "spmd/program.h"

typedef struct checker {
    const mtf_program *p;
    int *last;             /* per value: the last instruction that reads it */
    const value **live[2]; /* in the slab, in the state block */
    int64_t nlive[2];
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

static void begin_life(checker *c, const value *v)
{
    const int64_t room = v->in_state ? c->p->state_bytes : c->p->slab_bytes;
    if (c->last[v->id] < 0) return;
    MTF_CHECK(v->offset >= 0 && v->offset + v->bytes <= room, "%%%d lies outside of the memory",
              v->id);
    c->live[v->in_state][c->nlive[v->in_state]++] = v;
}

static void end_lives(checker *c, int now)
{
    for (int m = 0; m < 2; m++) {
        int64_t kept = 0;
        for (int64_t k = 0; k < c->nlive[m]; k++)
            if (c->last[c->live[m][k]->id] > now) c->live[m][kept++] = c->live[m][k];
        c->nlive[m] = kept;
    }
}

static bool same_block(const value *a, const value *b)
{
    return mtf_dtype_size(a->dtype) == mtf_dtype_size(b->dtype) &&
           shape_equal(&a->shape, &b->shape) && memcmp(a->split, b->split, sizeof a->split) == 0;
}

/* May result k of `i` lie where `old` lies, which `i` is the last to read? */
static bool in_place(const instr *i, int k, const value *old)
{
    const value *out = i->out[k];
    if (old->offset != out->offset) return false;
    if (i->kind == INSTR_ALL_REDUCE) return i->in[k] == old;
    return i->kind == INSTR_COMPUTE && (i->op->traits & TRAIT_INPLACE) && same_block(old, out);
}

static void check_result(const checker *c, const instr *i, int k)
{
    const value *out = i->out[k];
    for (int64_t n = 0; n < c->nlive[out->in_state]; n++) {
        const value *v = c->live[out->in_state][n];
        if (v->offset >= out->offset + out->bytes || out->offset >= v->offset + v->bytes) continue;
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
    for (int64_t n = 0; n < c->nlive[1]; n++) {
        const value *v = c->live[1][n];
        if (v->offset >= end || begin >= v->offset + v->bytes) continue;
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
        c.live[m] = mem_alloc(n * sizeof *c.live[m]);
    find_last_uses(&c);
    for (int k = 0; k < p->nstates; k++)
        begin_life(&c, p->state[k].value);
    for (int k = 0; k < p->nfeeds; k++)
        begin_life(&c, p->feed[k]);
    for (const instr *i = p->first; i; i = i->next) {
        check_instr(&c, i);
        for (int k = 0; k < i->nout; k++)
            begin_life(&c, i->out[k]);
        end_lives(&c, i->id);
    }
    mem_free(c.last);
    mem_free(c.live[0]);
    mem_free(c.live[1]);
}
