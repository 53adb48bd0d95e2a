/* SPDX-License-Identifier: Apache-2.0
 * Running what moves blocks between processors without reducing them: all_to_all, permute and the
 * general exchange. Which runs of elements meet follows from the two layouts alone. Where both ends
 * of a pair are in this process, elements are copied straight from block to block; between
 * processes a pair is one message, packed and unpacked through scratch. */
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "exec/session.h"

static bool hosted(const mtf_session *s, int64_t proc)
{
    return proc >= s->first && proc < s->first + s->nhosted;
}

static void add_link(exchange_list *l, int64_t *cap, exchange_link link)
{
    mem_grow((void **)&l->link, l->n, cap, sizeof *l->link);
    l->link[l->n++] = link;
}

/* Pairs ordered by source, then destination: the order in which messages match. */
static void list_links(const mtf_session *s, const exchange *x, int operand, exchange_list *l,
                       int64_t *cap)
{
    for (int64_t src = 0; src < x->mesh->processors; src++)
        for (int64_t dst = 0; dst < x->mesh->processors; dst++) {
            if (!(hosted(s, src) || hosted(s, dst)) || !exchange_serves(x, src, dst)) continue;
            exchange_link k = {.src = (int)src, .dst = (int)dst, .operand = operand, .offset = -1};
            k.pair = exchange_meet(x, src, dst);
            if (k.pair.elements)
                add_link(l, cap, k);
            else
                exchange_pair_free(&k.pair);
        }
}

/* Messages lie one behind the other in the scratch of the processor that is hosted here. */
static void place_messages(const mtf_session *s, exchange_list *l, int64_t size)
{
    int64_t used = 0;
    for (int64_t i = 0; i < l->n; i++) {
        exchange_link *k = &l->link[i];
        if (hosted(s, k->src) && hosted(s, k->dst)) continue;
        k->offset = used;
        used += k->pair.elements * size;
        l->nmessages++;
    }
    l->message = mem_alloc(sizeof *l->message * (size_t)(l->nmessages + 1));
    MTF_CHECK(used <= s->plan.scratch, "an exchange needs %lld bytes of scratch, planned were %lld",
              (long long)used, (long long)s->plan.scratch);
}

void exchange_bind(const mtf_session *s, bound *b, exec_step *t)
{
    int64_t cap = 0;
    t->exchange = arena_alloc(b->mem, sizeof *t->exchange);
    for (int k = 0; k < t->instr->nin; k++) {
        const exchange x = instr_exchange(b->p, t->instr, k);
        list_links(s, &x, k, t->exchange, &cap);
    }
    place_messages(s, t->exchange, mtf_dtype_size(t->instr->in[0]->dtype));
}

void exchange_unbind(exec_step *t)
{
    if (!t->exchange) return;
    for (int64_t i = 0; i < t->exchange->n; i++)
        exchange_pair_free(&t->exchange->link[i].pair);
    mem_free(t->exchange->link);
    mem_free(t->exchange->message);
    t->exchange = NULL;
}

/* ---- running ---- */

/* Copies runs between two places: a block and a block, or a block and a message that is filled or
 * emptied in order. */
typedef struct transfer {
    const char *from;
    char *to;
    int64_t size;
    bool packs, unpacks;
    int64_t done; /* bytes of the message */
} transfer;

static void copy_run(void *ctx, int64_t from, int64_t to, int64_t n)
{
    transfer *t = ctx;
    const int64_t bytes = n * t->size;
    memcpy(t->to + (t->packs ? t->done : to * t->size),
           t->from + (t->unpacks ? t->done : from * t->size), (size_t)bytes);
    t->done += bytes;
}

typedef struct copies {
    const mtf_session *s;
    const exec_step *t;
} copies;

static char *block_of(const mtf_session *s, const step_view *v, int proc)
{
    return s->memory[proc - s->first] + v->offset;
}

static void copy_links(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const copies *c = ctx;
    for (int64_t i = begin; i < end; i++) {
        const exchange_link *k = &c->t->exchange->link[i];
        if (k->offset >= 0) continue;
        transfer t = {.from = block_of(c->s, &c->t->in[k->operand], k->src),
                      .to = block_of(c->s, &c->t->out[0], k->dst),
                      .size = mtf_dtype_size(c->t->in[0].dtype)};
        exchange_walk(&k->pair, copy_run, &t);
    }
}

static void pack(const mtf_session *s, const exec_step *t, const exchange_link *k, char *message)
{
    transfer c = {.from = block_of(s, &t->in[k->operand], k->src),
                  .to = message,
                  .size = mtf_dtype_size(t->in[0].dtype),
                  .packs = true};
    exchange_walk(&k->pair, copy_run, &c);
}

static void unpack(const mtf_session *s, const exec_step *t, const exchange_link *k,
                   const char *message)
{
    transfer c = {.from = message,
                  .to = block_of(s, &t->out[0], k->dst),
                  .size = mtf_dtype_size(t->in[0].dtype),
                  .unpacks = true};
    exchange_walk(&k->pair, copy_run, &c);
}

static void send_messages(mtf_session *s, const exec_step *t)
{
    const exchange_list *l = t->exchange;
    const int64_t size = mtf_dtype_size(t->in[0].dtype);
    int64_t n = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const exchange_link *k = &l->link[i];
        if (k->offset < 0) continue;
        char *message = (char *)s->scratch[0] + k->offset;
        if (hosted(s, k->src)) pack(s, t, k, message);
        l->message[n++] = (comm_msg){.src = k->src,
                                     .dst = k->dst,
                                     .from = hosted(s, k->src) ? message : NULL,
                                     .to = hosted(s, k->dst) ? message : NULL,
                                     .bytes = k->pair.elements * size};
    }
    comm_move(s->comm, l->message, n);
    for (int64_t i = 0; i < l->n; i++)
        if (l->link[i].offset >= 0 && hosted(s, l->link[i].dst))
            unpack(s, t, &l->link[i], (const char *)s->scratch[0] + l->link[i].offset);
}

/* The own block is [outer, n, inner]; of the n, those that no operand has are zero. */
static void clear_gap(const mtf_session *s, const bound *b, const exec_step *t, int h)
{
    const instr *i = t->instr;
    const step_view *v = &t->out[0];
    int64_t outer = 1, inner = mtf_dtype_size(v->dtype);
    for (int d = 0; d < i->dim; d++)
        outer *= bound_block(b, h, v->cls[d])->local;
    for (int d = i->dim + 1; d < v->rank; d++)
        inner *= bound_block(b, h, v->cls[d])->local;
    const kernel_dim *own = bound_block(b, h, v->cls[i->dim]);
    const int64_t n = own->local, first = -i->start - own->offset;
    const int64_t before = first < 0 ? 0 : first < n ? first : n;
    const int64_t last = first + window_length(i), end = last < before ? before : last;
    for (int64_t o = 0; o < outer; o++) {
        char *block = session_memory(s, h, v->offset) + o * n * inner;
        memset(block, 0, (size_t)(before * inner));
        if (end < n) memset(block + end * inner, 0, (size_t)((n - end) * inner));
    }
}

void exchange_run(mtf_session *s, const bound *b, const exec_step *t)
{
    if (t->instr->kind == INSTR_WINDOW && window_has_gap(t->instr) && !FAULT(FAULT_WINDOW_GAP))
        for (int h = 0; h < s->nhosted; h++)
            clear_gap(s, b, t, h);
    copies c = {.s = s, .t = t};
    pool_for(s->pool, t->exchange->n, 1, copy_links, &c);
    if (session_processes(s) > 1) send_messages(s, t);
}
