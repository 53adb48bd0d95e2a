/* SPDX-License-Identifier: Apache-2.0
 * Sums over the same axes that nobody waits for become one call. The call stands where the last
 * member stood, so every member must have its first use behind that place. */
#include <string.h>

#include "spmd/program.h"

typedef struct member {
    instr *sum;
    int first_use; /* position of the first instruction that needs it */
} member;

static int first_use(const mtf_program *p, const value *v)
{
    for (const instr *i = v->def->next; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            if (i->in[k] == v) return i->id;
    return p->ninstrs;
}

static bool fits(const instr *a, const instr *b)
{
    return split_equal(a->axes, b->axes) && a->combine == b->combine &&
           a->in[0]->dtype == b->in[0]->dtype;
}

/* All reductions of one operand whose operand has no other use, in program order. */
static int64_t collect(mtf_program *p, member *m)
{
    int64_t n = 0;
    for (instr *i = p->first; i; i = i->next)
        if (i->kind == INSTR_ALL_REDUCE && i->nin == 1 && i->in[0]->uses == 1 &&
            i->in[0]->kind == VALUE_LOCAL)
            m[n++] = (member){i, first_use(p, i->out[0])};
    return n;
}

/* Makes one call of the members that are marked, at the place of the last of them. */
static void merge(mtf_program *p, const member *m, const bool *take, int64_t last)
{
    int count = 0;
    for (int64_t i = 0; i <= last; i++)
        count += take[i];
    if (count < 2) return;
    const instr *model = m[last].sum;
    instr *call = program_instr(p, m[last].sum, INSTR_ALL_REDUCE, model->node, count, count);
    call->axes = model->axes;
    call->combine = model->combine;
    int k = 0;
    for (int64_t i = 0; i <= last; i++) {
        if (!take[i]) continue;
        call->in[k] = m[i].sum->in[0];
        call->out[k++] = m[i].sum->out[0];
        program_remove(p, m[i].sum);
    }
}

void pass_bucket(mtf_program *p)
{
    program_count(p);
    member *m = mem_alloc(sizeof *m * (size_t)(p->ninstrs + 1));
    const int64_t n = collect(p, m);
    bool *done = mem_zalloc((size_t)n + 1), *take = mem_zalloc((size_t)n + 1);
    for (int64_t last = n - 1; last >= 0; last--) {
        if (done[last]) continue;
        memset(take, 0, (size_t)n + 1);
        take[last] = done[last] = true;
        for (int64_t i = last - 1; i >= 0; i--) {
            if (done[i] || !fits(m[i].sum, m[last].sum)) continue;
            if (m[i].first_use < m[last].sum->id) continue;
            take[i] = done[i] = true;
        }
        merge(p, m, take, last);
    }
    mem_free(m);
    mem_free(done);
    mem_free(take);
    program_count(p);
}
