/* SPDX-License-Identifier: Apache-2.0 */
#include "spmd/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fault.h"

static int root(const memory *m, int g)
{
    while (m->g[g].parent != g)
        g = m->g[g].parent = m->g[m->g[g].parent].parent;
    return g;
}

group *memory_group(const memory *m, const value *v)
{
    return &m->g[root(m, v->id)];
}

static const value *old_value(const memory *m, int state)
{
    return m->p->state[state].value;
}

/* ---- one group per value ---- */

static void start_groups(memory *m)
{
    mtf_program *p = m->p;
    for (int64_t k = 0; k < p->nvalues; k++) {
        value *v = p->value[k];
        v->bytes = (value_bound(p, v) * mtf_dtype_size(v->dtype) + 63) / 64 * 64;
        m->g[k] = (group){.parent = (int)k, .begin = -1, .end = -1, .bytes = v->bytes};
        m->g[k].state = v->kind == VALUE_STATE ? v->state : -1;
        m->g[k].bucket = -1;
        m->next_of[k] = -1;
    }
    for (instr *i = p->first; i; i = i->next) {
        for (int k = 0; k < i->nin; k++)
            m->g[i->in[k]->id].end = i->id;
        for (int k = 0; k < i->nout; k++) {
            group *g = &m->g[i->out[k]->id];
            g->begin = i->id;
            g->maker = i;
            if (g->end < i->id) g->end = i->id;
        }
        if (i->kind == INSTR_ASSIGN) m->next_of[i->in[0]->id] = i->state;
    }
    for (int k = 0; k < p->nfetches; k++)
        m->g[p->fetch[k]->id].end = p->ninstrs;
}

static bool is_bucket(const instr *i)
{
    return i->kind == INSTR_ALL_REDUCE && i->nin > 1;
}

static bool works_in_place(const instr *i)
{
    return i->kind == INSTR_COMPUTE && (i->op->traits & TRAIT_INPLACE);
}

/* Backwards: what is an operand of a bucket, or may become one in its place. */
static void mark_bucket_operands(memory *m)
{
    for (const instr *i = m->p->last; i; i = i->prev) {
        bool marked = is_bucket(i);
        if (i->kind == INSTR_VIEW || i->kind == INSTR_ALL_REDUCE || works_in_place(i))
            for (int k = 0; k < i->nout; k++)
                marked = marked || m->to_bucket[i->out[k]->id];
        for (int k = 0; k < i->nin && marked; k++)
            m->to_bucket[i->in[k]->id] = true;
    }
}

/* ---- sharing ---- */

static void unite(memory *m, const value *into, const value *v)
{
    const int a = root(m, into->id), b = root(m, v->id);
    if (a == b) return;
    group *g = &m->g[a], *h = &m->g[b];
    h->parent = a;
    if (h->end > g->end) g->end = h->end;
    if (h->bytes > g->bytes) g->bytes = h->bytes;
}

/* May `result` take the place of operand `v` of `i`, which dies there? A group is a member of one
 * bucket at most. */
static bool gives_way(const memory *m, const instr *i, const value *v, const value *result)
{
    const group *g = memory_group(m, v);
    const bool dies = g->end == i->id || (FAULT(FAULT_INPLACE_EARLY) && g->end > i->id);
    const bool taken = g->reduced && !FAULT(FAULT_MEMORY_BUCKETS);
    return dies && g->state < 0 && !(taken && m->to_bucket[result->id]);
}

/* Does `i` read all operands in the memory of group `g` element by element with its result? A view
 * of the same memory under other names is read in another order. */
static bool reads_in_step(const memory *m, const instr *i, const group *g)
{
    for (int k = 0; k < i->nin; k++)
        if (memory_group(m, i->in[k]) == g && !value_same_block(i->in[k], i->out[0])) return false;
    return true;
}

/* May group `g`, which holds the next value of a variable, lie in the variable's memory? It may
 * begin where the old value is read for the last time only if that instruction works element by
 * element on the same block. */
static bool fits_state(const memory *m, const group *g, int state)
{
    const value *old = old_value(m, state);
    const group *before = memory_group(m, old);
    if (g->state >= 0 || g->begin < 0 || g->reduced || g->bucket >= 0 || g->bytes != old->bytes)
        return false;
    if (g->begin > before->end || FAULT(FAULT_STATE_EARLY)) return true;
    return g->begin == before->end && g->maker && works_in_place(g->maker) &&
           reads_in_step(m, g->maker, before);
}

/* The result in the place of an operand: first of one that can lie in the memory of the variable
 * whose next value the result is. Where none can and the result alone can, it stays alone. */
static void share_operand(memory *m, const instr *i)
{
    const value *out = i->out[0], *place = NULL;
    const int state = m->next_of[out->id];
    for (int k = 0; k < i->nin; k++) {
        value *v = i->in[k];
        if (!gives_way(m, i, v, out) || !value_same_block(v, out) ||
            !reads_in_step(m, i, memory_group(m, v)))
            continue;
        if (!place) place = v;
        if (state < 0 || !fits_state(m, memory_group(m, v), state)) continue;
        unite(m, v, out);
        return;
    }
    if (place && !(state >= 0 && fits_state(m, memory_group(m, out), state))) unite(m, place, out);
}

/* A bucket reduces in place always (pass_bucket); a single sum where it can. */
static void share_sums(memory *m, const instr *i)
{
    for (int k = 0; k < i->nin; k++) {
        if (i->nin == 1 && !gives_way(m, i, i->in[k], i->out[k])) continue;
        unite(m, i->in[k], i->out[k]);
        if (i->nin > 1) memory_group(m, i->out[k])->reduced = true;
    }
}

static void form_groups(memory *m)
{
    for (const instr *i = m->p->first; i; i = i->next) {
        if (i->kind == INSTR_ALL_REDUCE)
            share_sums(m, i);
        else if (works_in_place(i))
            share_operand(m, i);
        else if (i->kind == INSTR_VIEW && !FAULT(FAULT_MEMORY_VIEW))
            unite(m, i->in[0], i->out[0]);
    }
}

static void form_in_state(memory *m)
{
    for (const instr *i = m->p->last; i && i->kind == INSTR_ASSIGN; i = i->prev) {
        group *next = memory_group(m, i->in[0]);
        if (fits_state(m, next, i->state)) next->state = i->state;
    }
}

/* ---- buckets ---- */

typedef struct member {
    int64_t key;
    int k; /* position among the operands */
    value *in, *out;
} member;

static int by_key(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->k - y->k;
}

/* The operands in the order in which they are formed: while a bucket fills, what it takes is one
 * extent that grows. A call that reduces the results of another one over one more axis has the
 * order of that one. */
static void order_members(const memory *m, instr *i)
{
    member *list = mem_alloc(sizeof *list * (size_t)i->nin);
    for (int k = 0; k < i->nin; k++) {
        const group *g = memory_group(m, i->in[k]);
        list[k] = (member){g->bucket >= 0 ? g->at : g->begin, k, i->in[k], i->out[k]};
    }
    qsort(list, (size_t)i->nin, sizeof *list, by_key);
    for (int k = 0; k < i->nin; k++) {
        i->in[k] = list[k].in;
        i->out[k] = list[k].out;
    }
    mem_free(list);
}

/* Do the operands lie in one bucket already, from its beginning on? */
static bool in_bucket(const memory *m, const instr *i)
{
    const int bucket = memory_group(m, i->in[0])->bucket;
    int64_t at = 0;
    for (int k = 0; k < i->nin; k++) {
        const group *g = memory_group(m, i->in[k]);
        MTF_CHECK(g->state < 0 && g->bucket == bucket && (bucket < 0 || g->at == at),
                  "'%s' is in two buckets", i->node->name);
        at += g->bytes;
    }
    return bucket >= 0;
}

static void form_buckets(memory *m)
{
    for (instr *i = m->p->first; i; i = i->next) {
        if (!is_bucket(i)) continue;
        order_members(m, i);
        if (in_bucket(m, i)) continue;
        int64_t at = 0;
        for (int k = 0; k < i->nin; k++) {
            group *g = memory_group(m, i->in[k]);
            g->bucket = m->nbuckets;
            g->at = at;
            at += g->bytes;
        }
        m->nbuckets++;
    }
}

memory memory_form(mtf_program *p)
{
    program_count(p);
    const size_t n = (size_t)p->nvalues + 1;
    memory m = {.p = p,
                .g = mem_zalloc(sizeof *m.g * n),
                .next_of = mem_zalloc(sizeof *m.next_of * n),
                .to_bucket = mem_zalloc(n)};
    start_groups(&m);
    mark_bucket_operands(&m);
    form_groups(&m);
    form_in_state(&m);
    form_buckets(&m);
    return m;
}

void memory_free(memory *m)
{
    mem_free(m->g);
    mem_free(m->next_of);
    mem_free(m->to_bucket);
}

/* ---- blocks ---- */

typedef struct place {
    int bucket;
    int64_t at;
    int group;
} place;

/* Bucket by bucket, then what is in none. */
static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->bucket != y->bucket) return (unsigned)x->bucket < (unsigned)y->bucket ? -1 : 1;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->group - y->group;
}

int64_t memory_blocks(const memory *m, pack_block **blocks, int **of)
{
    const int64_t nvalues = m->p->nvalues;
    place *list = mem_alloc(sizeof *list * (size_t)(nvalues + 1));
    int64_t n = 0;
    for (int k = 0; k < nvalues; k++) {
        const group *g = &m->g[k];
        if (g->parent != k || g->state >= 0 || g->end < 0) continue; /* unused: it needs none */
        list[n++] = (place){.bucket = g->bucket, .at = g->at, .group = k};
    }
    qsort(list, (size_t)n, sizeof *list, by_place);
    *blocks = mem_alloc(sizeof **blocks * (size_t)(n + 1));
    if (of) *of = mem_alloc(sizeof **of * (size_t)(n + 1));
    for (int64_t k = 0; k < n; k++) {
        const group *g = &m->g[list[k].group];
        (*blocks)[k] =
            (pack_block){.begin = g->begin, .end = g->end, .bytes = g->bytes, .stack = g->bucket};
        if (of) (*of)[k] = list[k].group;
    }
    mem_free(list);
    return n;
}

int64_t memory_slab(mtf_program *p)
{
    memory m = memory_form(p);
    pack_block *b;
    const int64_t n = memory_blocks(&m, &b, NULL), bytes = pack_blocks(b, n, NULL);
    memory_free(&m);
    mem_free(b);
    return bytes;
}
