/* SPDX-License-Identifier: Apache-2.0
 * Where every value lives: one slab whose offsets serve all processors, and one block for state.
 *
 * Values that share memory form a group: a view and its operand, an elementwise result in the place
 * of an operand that dies there, a sum in place. A group lives from its first definition to its
 * last use. The next value of a variable is formed in the variable's own memory where the old value
 * has its last read before. The members of a bucket lie side by side. Groups are placed by best
 * fit, the largest first. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "spmd/program.h"

typedef struct group {
    int parent;     /* union-find: itself for the root */
    int begin, end; /* instructions: first definition (-1: before the first), last use */
    int64_t bytes;
    int state;  /* the variable whose memory it is, or -1 */
    int bucket; /* the bucket that it is a member of, or -1 */
    int64_t offset;
    instr *maker; /* what defines its first value */
    bool reduced; /* holds the result of a bucket */
} group;

typedef struct planner {
    mtf_program *p;
    group *g;
    int n;
} planner;

static int64_t round_up(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int root(planner *pl, int g)
{
    while (pl->g[g].parent != g)
        g = pl->g[g].parent = pl->g[pl->g[g].parent].parent;
    return g;
}

static group *group_of(planner *pl, const value *v)
{
    return &pl->g[root(pl, v->group)];
}

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
    program_count(p);
}

/* ---- groups ---- */

static void start_groups(planner *pl)
{
    mtf_program *p = pl->p;
    pl->g = mem_zalloc(sizeof *pl->g * (size_t)(p->nvalues + 1));
    for (int64_t k = 0; k < p->nvalues; k++) {
        value *v = p->value[k];
        v->group = (int)k;
        v->bytes = round_up(value_bound(p, v) * mtf_dtype_size(v->dtype));
        pl->g[k] = (group){.parent = (int)k, .begin = -1, .end = -1, .bytes = v->bytes};
        pl->g[k].state = v->kind == VALUE_STATE ? v->state : -1;
        pl->g[k].bucket = -1;
    }
    pl->n = (int)p->nvalues;
    for (instr *i = p->first; i; i = i->next) {
        for (int k = 0; k < i->nin; k++)
            pl->g[i->in[k]->group].end = i->id;
        for (int k = 0; k < i->nout; k++) {
            group *g = &pl->g[i->out[k]->group];
            g->begin = i->id;
            g->maker = i;
            if (g->end < i->id) g->end = i->id;
        }
    }
    for (int k = 0; k < p->nfetches; k++)
        pl->g[p->fetch[k]->group].end = p->ninstrs;
}

static void unite(planner *pl, const value *into, const value *v)
{
    const int a = root(pl, into->group), b = root(pl, v->group);
    if (a == b) return;
    group *g = &pl->g[a], *h = &pl->g[b];
    h->parent = a;
    if (h->end > g->end) g->end = h->end;
    if (h->bytes > g->bytes) g->bytes = h->bytes;
}

static bool same_block(const value *a, const value *b)
{
    return mtf_dtype_size(a->dtype) == mtf_dtype_size(b->dtype) &&
           shape_equal(&a->shape, &b->shape) && memcmp(a->split, b->split, sizeof a->split) == 0;
}

static bool dies_at(planner *pl, const value *v, const instr *i)
{
    const group *g = group_of(pl, v);
    return (g->end == i->id || (FAULT(FAULT_INPLACE_EARLY) && g->end > i->id)) && g->state < 0 &&
           !g->reduced;
}

/* Does `i` read all operands in the memory of group `g` element by element with its result? A view
 * of the same memory under other names is read in another order. */
static bool reads_in_step(planner *pl, const instr *i, const group *g)
{
    for (int k = 0; k < i->nin; k++)
        if (group_of(pl, i->in[k]) == g && !same_block(i->in[k], i->out[0])) return false;
    return true;
}

static void share_operand(planner *pl, instr *i)
{
    for (int k = 0; k < i->nin; k++)
        if (dies_at(pl, i->in[k], i) && same_block(i->in[k], i->out[0]) &&
            reads_in_step(pl, i, group_of(pl, i->in[k]))) {
            unite(pl, i->in[k], i->out[0]);
            return;
        }
}

static void form_groups(planner *pl)
{
    for (instr *i = pl->p->first; i; i = i->next) {
        if (i->kind == INSTR_VIEW) {
            if (!FAULT(FAULT_MEMORY_VIEW)) unite(pl, i->in[0], i->out[0]);
        } else if (i->kind == INSTR_ALL_REDUCE) {
            for (int k = 0; k < i->nin; k++) {
                /* A bucket reduces in place always (pass_bucket); a single sum where it can. */
                if (i->nin == 1 && !dies_at(pl, i->in[k], i)) continue;
                unite(pl, i->in[k], i->out[k]);
                group_of(pl, i->out[k])->reduced = i->nin > 1;
            }
        } else if (i->kind == INSTR_COMPUTE && (i->op->traits & TRAIT_INPLACE)) {
            share_operand(pl, i);
        }
    }
}

/* ---- state ---- */

static int64_t place_state(mtf_program *p)
{
    int64_t bytes = 0;
    for (int s = 0; s < p->nstates; s++) {
        p->state[s].offset = bytes;
        bytes += p->state[s].value->bytes;
    }
    return bytes;
}

/* May the group of the next value begin where the old value is read for the last time? Only where
 * that instruction works element by element on the same block. */
static bool may_follow(planner *pl, const group *next, const value *old)
{
    const group *g = group_of(pl, old);
    if (next->begin > g->end || FAULT(FAULT_STATE_EARLY)) return true;
    const instr *i = next->maker;
    return next->begin == g->end && i && i->kind == INSTR_COMPUTE &&
           (i->op->traits & TRAIT_INPLACE) && reads_in_step(pl, i, g);
}

static void form_in_state(planner *pl)
{
    for (instr *i = pl->p->last; i && i->kind == INSTR_ASSIGN; i = i->prev) {
        group *next = group_of(pl, i->in[0]);
        const value *old = pl->p->state[i->state].value;
        if (next->state >= 0 || next->begin < 0 || next->reduced || next->bucket >= 0) continue;
        if (next->bytes == old->bytes && may_follow(pl, next, old)) next->state = i->state;
    }
}

/* ---- buckets ---- */

/* The bucket that holds the operands of `i` already, because `i` reduces the results of another
 * call over one more axis; -1: none. Such calls have the same members in the same order. */
static int bucket_before(planner *pl, const instr *i)
{
    const int bucket = group_of(pl, i->in[0])->bucket;
    int64_t offset = 0;
    for (int k = 0; k < i->nin; k++) {
        const group *m = group_of(pl, i->in[k]);
        MTF_CHECK(m->state < 0 && m->bucket == bucket && (bucket < 0 || m->offset == offset),
                  "'%s' is in two buckets", i->node->name);
        offset += m->bytes;
    }
    return bucket;
}

/* A bucket's members become parts of one group of its own. */
static void form_buckets(planner *pl)
{
    int buckets = 0;
    for (instr *i = pl->p->first; i; i = i->next) {
        if (i->kind != INSTR_ALL_REDUCE || i->nin < 2 || bucket_before(pl, i) >= 0) continue;
        group *b = &pl->g[pl->n + buckets];
        *b = (group){.parent = pl->n + buckets, .begin = i->id, .state = -1, .bucket = -1};
        for (int k = 0; k < i->nin; k++) {
            group *m = group_of(pl, i->in[k]);
            m->bucket = pl->n + buckets;
            m->offset = b->bytes;
            b->bytes += m->bytes;
            if (m->begin < b->begin) b->begin = m->begin;
            if (m->end > b->end) b->end = m->end;
        }
        buckets++;
    }
    pl->n += buckets;
}

static int count_buckets(const mtf_program *p)
{
    int n = 0;
    for (const instr *i = p->first; i; i = i->next)
        n += i->kind == INSTR_ALL_REDUCE && i->nin > 1;
    return n;
}

/* ---- placing ---- */

static int by_size(const void *a, const void *b)
{
    const group *x = *(group *const *)a, *y = *(group *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->parent < y->parent ? -1 : x->parent > y->parent;
}

static bool overlap(const group *a, const group *b)
{
    if (FAULT(FAULT_MEMORY_LIFETIME)) return a->begin < b->end && b->begin < a->end;
    return a->begin <= b->end && b->begin <= a->end;
}

/* The lowest gap, among groups that live at the same time, that is the tightest fit. `placed` is
 * sorted by offset. */
static int64_t best_gap(group *const *placed, int n, const group *g)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    for (int i = 0; i < n; i++) {
        if (!overlap(placed[i], g)) continue;
        const int64_t gap = placed[i]->offset - end;
        if (gap >= g->bytes && gap < best_size) {
            best = end;
            best_size = gap;
        }
        if (placed[i]->offset + placed[i]->bytes > end) end = placed[i]->offset + placed[i]->bytes;
    }
    return best >= 0 ? best : end;
}

static bool has_place(const planner *pl, int k)
{
    const group *g = &pl->g[k];
    return g->parent == k && g->state < 0 && g->bucket < 0 && g->end >= 0;
}

static int64_t place_groups(planner *pl)
{
    group **list = mem_alloc(sizeof(group *) * (size_t)(pl->n + 1));
    group **placed = mem_alloc(sizeof(group *) * (size_t)(pl->n + 1));
    int n = 0;
    int64_t top = 0;
    for (int k = 0; k < pl->n; k++) {
        group *g = &pl->g[k];
        if (has_place(pl, k)) list[n++] = g; /* an unused variable or copy has none */
    }
    qsort(list, (size_t)n, sizeof *list, by_size);
    for (int k = 0; k < n; k++) {
        group *g = list[k];
        g->offset = best_gap(placed, k, g);
        int at = k;
        while (at > 0 && placed[at - 1]->offset > g->offset)
            at--;
        memmove(placed + at + 1, placed + at, sizeof *placed * (size_t)(k - at));
        placed[at] = g;
        if (g->offset + g->bytes > top) top = g->offset + g->bytes;
    }
    mem_free(list);
    mem_free(placed);
    return top;
}

/* Where most bytes are live: the position of the instruction (-1: before the first). */
static int find_peak(const planner *pl, int64_t *bytes)
{
    const int ninstrs = pl->p->ninstrs;
    int64_t *change = mem_zalloc(sizeof *change * (size_t)(ninstrs + 3)), live = 0;
    int peak = -1;
    for (int k = 0; k < pl->n; k++) {
        if (!has_place(pl, k)) continue;
        change[pl->g[k].begin + 1] += pl->g[k].bytes;
        change[pl->g[k].end + 2] -= pl->g[k].bytes;
    }
    *bytes = 0;
    for (int k = 0; k < ninstrs + 2; k++) {
        live += change[k];
        if (live <= *bytes) continue;
        *bytes = live;
        peak = k - 1;
    }
    mem_free(change);
    return peak;
}

/* The largest groups that are live at the peak, the largest first. A group is shown by its first
 * value; a bucket has none of its own. */
static void list_peak(const planner *pl, int peak)
{
    mtf_program *p = pl->p;
    p->npeak = 0;
    for (int k = 0; k < pl->n; k++) {
        const group *g = &pl->g[k];
        if (!has_place(pl, k) || g->begin > peak || g->end < peak) continue;
        int at = p->npeak < PROGRAM_PEAK ? p->npeak++ : PROGRAM_PEAK;
        for (; at > 0 && p->peak[at - 1].bytes < g->bytes; at--)
            if (at < PROGRAM_PEAK) p->peak[at] = p->peak[at - 1];
        if (at < PROGRAM_PEAK)
            p->peak[at] =
                (peak_value){.value = k < p->nvalues ? p->value[k] : NULL, .bytes = g->bytes};
    }
}

static void store_offsets(planner *pl)
{
    for (int64_t k = 0; k < pl->p->nvalues; k++) {
        value *v = pl->p->value[k];
        const group *g = group_of(pl, v);
        v->in_state = g->state >= 0;
        if (v->in_state)
            v->offset = pl->p->state[g->state].offset;
        else
            v->offset = g->offset + (g->bucket >= 0 ? pl->g[g->bucket].offset : 0);
    }
}

void plan_memory(mtf_program *p)
{
    protect_old_state(p);
    planner pl = {.p = p};
    start_groups(&pl);
    pl.g = mem_realloc(pl.g, sizeof *pl.g * (size_t)(p->nvalues + 1 + count_buckets(p)));
    form_groups(&pl);
    p->state_bytes = place_state(p);
    form_in_state(&pl);
    form_buckets(&pl);
    p->slab_bytes = place_groups(&pl);
    list_peak(&pl, find_peak(&pl, &p->live_bytes));
    store_offsets(&pl);
    mem_free(pl.g);
}
