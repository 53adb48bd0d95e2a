/* SPDX-License-Identifier: Apache-2.0
 * The order of instructions that needs less memory.
 *
 * A list schedule, made from the last instruction to the first: of those whose results nothing that
 * is still to be placed needs, the next is the one that frees most bytes on this way (its results,
 * less the operands that nothing behind it needs); where none frees any, the last in the order as
 * it was. Of those that free none it does not choose the one that takes least: that pulls small
 * work of all layers together and makes their larger values live at once. Of the old order and the
 * new one that is kept whose plan needs less, so the peak never rises. Every processor has the same
 * order, so collectives may change places as well.
 *
 * Recomputed work stays behind everything that came before its region in the old order: computed
 * early it would be kept until its turn comes, as if it had not been recomputed.
 *
 * The pass runs behind pass_bucket: that one finds as many calls in any case, and a call whose
 * members are known takes their places in memory into account here. Assignments stay at the end,
 * where the plan expects them; reads of an old value come before the new one is formed in its place
 * because the plan looks at the order that it finds. */
#include "base/fault.h"
#include "spmd/memory.h"

/* An instruction that may come next, as it was when it was entered. */
typedef struct candidate {
    int64_t freed;
    int id;
} candidate;

/* A recomputation: its first instruction, and how many are not placed yet. */
typedef struct recomputed {
    int first, left;
} recomputed;

typedef struct scheduler {
    mtf_program *p;
    instr **at;        /* by id, which is the position in the old order */
    int *storage;      /* per value: the value whose memory it is in, by views and buckets */
    bool *live;        /* per storage: does something that is placed need it */
    int *first_reader; /* per storage: its readers are reader[first_reader[s] .. [s + 1] - 1] */
    int *reader;
    int *waits;       /* per instruction: operands of unplaced instructions that are its results */
    int *seen, stamp; /* per storage: the last count that it was part of */
    recomputed *region; /* per recomputation of the graph */
    int nregions;
    int fence; /* what stands before it in the old order must wait for the region that begins here
                */
    candidate *heap;
    int64_t nheap, heap_cap;
    instr **placed; /* the last one first */
    int nplaced;
} scheduler;

/* ---- storage ---- */

/* Views and members of buckets are in the memory of their operands. */
static bool keeps_memory(const instr *i)
{
    return i->kind == INSTR_VIEW || (i->kind == INSTR_ALL_REDUCE && i->nin > 1);
}

static void find_storage(scheduler *s)
{
    for (int64_t v = 0; v < s->p->nvalues; v++)
        s->storage[v] = (int)v;
    for (const instr *i = s->p->first; i; i = i->next)
        for (int k = 0; k < i->nout && keeps_memory(i); k++)
            s->storage[i->out[k]->id] = s->storage[i->in[k]->id];
}

static void list_readers(scheduler *s)
{
    int *n = s->first_reader;
    for (const instr *i = s->p->first; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            n[s->storage[i->in[k]->id] + 1]++;
    for (int64_t v = 0; v < s->p->nvalues; v++)
        n[v + 1] += n[v];
    s->reader = mem_alloc(sizeof *s->reader * (size_t)(n[s->p->nvalues] + 1));
    int *end = mem_alloc(sizeof *end * (size_t)(s->p->nvalues + 1));
    for (int64_t v = 0; v < s->p->nvalues; v++)
        end[v] = n[v];
    for (const instr *i = s->p->first; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            s->reader[end[s->storage[i->in[k]->id]]++] = i->id;
    mem_free(end);
}

/* ---- candidates: a heap ---- */

static bool before(candidate a, candidate b)
{
    return a.freed != b.freed ? a.freed > b.freed : a.id > b.id;
}

static void push(scheduler *s, candidate c)
{
    mem_grow((void **)&s->heap, s->nheap, &s->heap_cap, sizeof *s->heap);
    int64_t k = s->nheap++;
    for (; k > 0 && before(c, s->heap[(k - 1) / 2]); k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = c;
}

static candidate pop(scheduler *s)
{
    const candidate top = s->heap[0], c = s->heap[--s->nheap];
    int64_t k = 0;
    for (int64_t child = 1; child < s->nheap; child = 2 * k + 1) {
        if (child + 1 < s->nheap && before(s->heap[child + 1], s->heap[child])) child++;
        if (!before(s->heap[child], c)) break;
        s->heap[k] = s->heap[child];
        k = child;
    }
    s->heap[k] = c;
    return top;
}

/* ---- recomputations ---- */

/* The last unfinished region to begin; 0: there is none. */
static int find_fence(const scheduler *s)
{
    int last = 0;
    for (int r = 0; r < s->nregions; r++)
        if (s->region[r].left > 0 && s->region[r].first > last) last = s->region[r].first;
    return FAULT(FAULT_SCHEDULE_HOIST) ? 0 : last;
}

static void find_regions(scheduler *s)
{
    for (const instr *i = s->p->last; i; i = i->prev) {
        if (!i->node->copy) continue;
        s->region[i->node->copy].first = i->id;
        s->region[i->node->copy].left++;
    }
    s->fence = find_fence(s);
}

/* ---- scheduling ---- */

/* Bytes that are free in front of `i` and not behind it, if it is placed now; 0 where it takes as
 * many or more. */
static int64_t freed_by(scheduler *s, const instr *i)
{
    int64_t bytes = 0;
    s->stamp++;
    for (int k = 0; k < i->nout; k++)
        if (s->live[i->out[k]->id]) bytes += i->out[k]->bytes;
    for (int k = 0; k < i->nin; k++) {
        const int v = s->storage[i->in[k]->id];
        if (s->live[v] || s->seen[v] == s->stamp || s->p->value[v]->kind == VALUE_STATE) continue;
        s->seen[v] = s->stamp;
        bytes -= s->p->value[v]->bytes;
    }
    return bytes > 0 ? bytes : 0;
}

static bool is_ready(const scheduler *s, int id)
{
    return s->at[id] && id >= s->fence && (s->waits[id] == 0 || FAULT(FAULT_SCHEDULE_ORDER));
}

static void enter(scheduler *s, int id)
{
    if (is_ready(s, id)) push(s, (candidate){freed_by(s, s->at[id]), id});
}

/* What reads the storage takes less when it is placed. */
static void begin_use(scheduler *s, const value *v)
{
    const int storage = s->storage[v->id];
    if (s->live[storage]) return;
    s->live[storage] = true;
    for (int k = s->first_reader[storage]; k < s->first_reader[storage + 1]; k++)
        enter(s, s->reader[k]);
}

/* The instruction of a region is placed: with its last one the way is free for what came before. */
static void leave(scheduler *s, const instr *i)
{
    if (!i->node->copy || --s->region[i->node->copy].left > 0) return;
    const int before = s->fence;
    s->fence = find_fence(s);
    for (int id = s->fence; id < before; id++)
        enter(s, id);
}

static void place(scheduler *s, instr *i)
{
    s->at[i->id] = NULL;
    s->placed[s->nplaced++] = i;
    for (int k = 0; k < i->nout; k++)
        s->live[i->out[k]->id] = false;
    for (int k = 0; k < i->nin; k++) {
        begin_use(s, i->in[k]);
        if (i->in[k]->def && --s->waits[i->in[k]->def->id] == 0) enter(s, i->in[k]->def->id);
    }
    leave(s, i);
}

static void schedule(scheduler *s)
{
    mtf_program *p = s->p;
    for (int k = 0; k < p->nfetches; k++)
        begin_use(s, p->fetch[k]);
    for (instr *i = p->last; i && i->kind == INSTR_ASSIGN; i = i->prev)
        place(s, i);
    for (int k = 0; k < p->ninstrs; k++)
        enter(s, k);
    while (s->nheap) {
        const candidate c = pop(s);
        if (is_ready(s, c.id) && freed_by(s, s->at[c.id]) == c.freed) place(s, s->at[c.id]);
    }
}

/* ---- the pass ---- */

static scheduler scheduler_new(mtf_program *p)
{
    const size_t values = (size_t)p->nvalues + 2, instrs = (size_t)p->ninstrs + 1;
    const int regions = p->graph->ncopies + 1;
    scheduler s = {.p = p,
                   .nregions = regions,
                   .region = mem_zalloc(sizeof *s.region * (size_t)regions),
                   .at = mem_zalloc(sizeof *s.at * instrs),
                   .storage = mem_zalloc(sizeof *s.storage * values),
                   .live = mem_zalloc(sizeof *s.live * values),
                   .first_reader = mem_zalloc(sizeof *s.first_reader * values),
                   .waits = mem_zalloc(sizeof *s.waits * instrs),
                   .seen = mem_zalloc(sizeof *s.seen * values),
                   .placed = mem_zalloc(sizeof *s.placed * instrs)};
    for (instr *i = p->first; i; i = i->next) {
        s.at[i->id] = i;
        for (int k = 0; k < i->nin; k++)
            if (i->in[k]->def) s.waits[i->in[k]->def->id]++;
    }
    find_storage(&s);
    list_readers(&s);
    find_regions(&s);
    return s;
}

static void scheduler_free(scheduler *s)
{
    mem_free(s->at);
    mem_free(s->storage);
    mem_free(s->live);
    mem_free(s->first_reader);
    mem_free(s->reader);
    mem_free(s->waits);
    mem_free(s->seen);
    mem_free(s->region);
    mem_free(s->heap);
    mem_free(s->placed);
}

/* Links the program's instructions in the order of the list. */
static void set_order(mtf_program *p, instr *const *list)
{
    for (int k = 0; k < p->ninstrs; k++) {
        list[k]->prev = k > 0 ? list[k - 1] : NULL;
        list[k]->next = k + 1 < p->ninstrs ? list[k + 1] : NULL;
    }
    p->first = p->ninstrs ? list[0] : NULL;
    p->last = p->ninstrs ? list[p->ninstrs - 1] : NULL;
}

void pass_schedule(mtf_program *p)
{
    const int64_t bytes = memory_slab(p); /* numbers the instructions */
    instr **old = mem_alloc(sizeof *old * (size_t)(p->ninstrs + 1));
    for (instr *i = p->first; i; i = i->next)
        old[i->id] = i;
    scheduler s = scheduler_new(p);
    schedule(&s);
    for (int k = 0; k < s.nplaced / 2; k++) {
        instr *i = s.placed[k];
        s.placed[k] = s.placed[s.nplaced - 1 - k];
        s.placed[s.nplaced - 1 - k] = i;
    }
    set_order(p, s.placed);
    if (memory_slab(p) >= bytes && !FAULT(FAULT_SCHEDULE_WORSE)) set_order(p, old);
    program_count(p);
    scheduler_free(&s);
    mem_free(old);
}
