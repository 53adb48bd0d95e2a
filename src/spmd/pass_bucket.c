/* SPDX-License-Identifier: Apache-2.0
 * Sums over the same axes that nobody waits for become one call. The call stands where the last
 * member stood, so every member must have its first use behind that place. A sum over several axes
 * is a chain of calls, one per axis: chains over the same axes are merged link by link, so that the
 * members of all links are the same and keep their places in memory. */
#include <string.h>

#include "base/fault.h"
#include "spmd/program.h"

typedef struct member {
    instr *sum; /* the first link */
    int links;
    int first_use; /* position of the first instruction that needs the result */
} member;

/* Per value: the first instruction that reads it, or NULL. */
typedef instr *const *users;

static instr **list_users(const mtf_program *p)
{
    instr **user = mem_zalloc(sizeof *user * (size_t)(p->nvalues + 1));
    for (instr *i = p->last; i; i = i->prev)
        for (int k = 0; k < i->nin; k++)
            user[i->in[k]->id] = i;
    return user;
}

/* The link behind `i`, or NULL. */
static instr *next_link(users user, const instr *i)
{
    instr *next = i->out[0]->uses == 1 ? user[i->out[0]->id] : NULL;
    return next && next->kind == INSTR_ALL_REDUCE && next->nin == 1 ? next : NULL;
}

static bool is_first_link(users user, const instr *i)
{
    const instr *before = i->in[0]->def;
    return !(before && before->kind == INSTR_ALL_REDUCE && before->nin == 1 &&
             next_link(user, before) == i);
}

/* A bucket is reduced in place: nobody else may need the operand, by whatever name. */
static bool is_own(const value *v)
{
    while (v->uses == 1 && v->def && v->def->kind == INSTR_VIEW)
        v = v->def->in[0];
    return v->uses == 1 && v->kind == VALUE_LOCAL;
}

static bool fits(users user, const member *a, const member *b)
{
    const instr *x = a->sum, *y = b->sum;
    if (a->links != b->links || x->combine != y->combine || x->in[0]->dtype != y->in[0]->dtype)
        return false;
    for (int k = 1; split_equal(x->axes, y->axes); k++) {
        if (k == a->links) return true;
        x = next_link(user, x);
        y = next_link(user, y);
    }
    return false;
}

static member member_of(const mtf_program *p, users user, instr *sum)
{
    member m = {.sum = sum, .links = 1};
    const instr *last = sum;
    for (const instr *next; (next = next_link(user, last)); m.links++)
        last = next;
    const instr *reader = user[last->out[0]->id];
    m.first_use = reader ? reader->id : p->ninstrs;
    return m;
}

/* All chains of reductions of one operand each, in program order. */
static int64_t collect(mtf_program *p, users user, member *m)
{
    int64_t n = 0;
    for (instr *i = p->first; i; i = i->next)
        if (i->kind == INSTR_ALL_REDUCE && i->nin == 1 && is_first_link(user, i) &&
            is_own(i->in[0]))
            m[n++] = member_of(p, user, i);
    return n;
}

/* Makes one call per link of the members that are marked, at the place of the last of them. */
static void merge(mtf_program *p, users user, const member *m, const bool *take, int64_t last)
{
    int count = 0;
    for (int64_t i = 0; i <= last; i++)
        count += take[i];
    if (count < 2) return;
    instr **link = mem_alloc(sizeof *link * (size_t)(last + 1));
    for (int64_t i = 0; i <= last; i++)
        link[i] = m[i].sum;
    instr *place = m[last].sum;
    for (int level = 0; level < m[last].links; level++) {
        instr *call = program_instr(p, place, INSTR_ALL_REDUCE, link[last]->node, count, count);
        call->axes = link[last]->axes;
        call->combine = link[last]->combine;
        int k = 0;
        for (int64_t i = 0; i <= last; i++) {
            if (!take[i]) continue;
            instr *old = link[i];
            link[i] = level + 1 < m[i].links ? next_link(user, old) : NULL;
            call->in[k] = old->in[0];
            call->out[k++] = old->out[0];
            program_remove(p, old);
        }
        place = call;
    }
    mem_free(link);
}

void pass_bucket(mtf_program *p)
{
    program_count(p);
    member *m = mem_alloc(sizeof *m * (size_t)(p->ninstrs + 1));
    instr **user = list_users(p);
    const int64_t n = collect(p, user, m);
    bool *done = mem_zalloc((size_t)n + 1), *take = mem_zalloc((size_t)n + 1);
    for (int64_t last = n - 1; last >= 0; last--) {
        if (done[last]) continue;
        memset(take, 0, (size_t)n + 1);
        take[last] = done[last] = true;
        for (int64_t i = last - 1; i >= 0; i--) {
            if (done[i] || !fits(user, &m[i], &m[last])) continue;
            if (m[i].first_use < m[last].sum->id && !FAULT(FAULT_BUCKET_EARLY)) continue;
            take[i] = done[i] = true;
        }
        merge(p, user, m, take, last);
    }
    mem_free(m);
    mem_free(user);
    mem_free(done);
    mem_free(take);
    program_count(p);
}
