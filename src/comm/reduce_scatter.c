/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "comm/internal.h"

typedef struct direct {
    comm *c;
    groups g;
    reduction r;
    const comm_cut *cut;
    void *const *out;
} direct;

/* Bytes [begin, end) of own piece of the item-th processor. */
static void scatter_grain(void *ctx, int item, int64_t begin, int64_t end)
{
    const direct *d = ctx;
    const int proc = d->c->proc[item], index = group_index(&d->g, proc);
    const void *const *in =
        (const void *const *)(d->c->operand + item / d->g.members * d->g.members);
    const pieces p = pieces_of(&d->cut[proc], d->g.members, d->r.bytes);
    for (int64_t at = begin, run; at < end; at += run) {
        const int64_t from = piece_offset(&p, index, at, &run);
        if (run > end - at) run = end - at;
        reduce_to_one(&d->r, in, from / d->r.bytes, run / d->r.bytes, (char *)d->out[proc] + at);
    }
}

static void scatter_direct(direct *d, void *const *in)
{
    comm *c = d->c;
    comm_list_groups(c, &d->g, in);
    for (int i = 0; i < c->size; i++) {
        const pieces p = pieces_of(&d->cut[c->proc[i]], d->g.members, d->r.bytes);
        c->work[i] = piece_bytes(&p, group_index(&d->g, c->proc[i]));
    }
    comm_run_grains(c, c->size, GRAIN_BYTES, scatter_grain, d);
}

/* The part of piece i that travels in the round at flat offset `at`: in place, or packed. */
static const char *part_of(comm *c, const member *m, const pieces *p, int i, int64_t at,
                           const void *in, char *slot)
{
    const int64_t bytes = member_round_bytes(m, p, i, at);
    if (bytes == 0) return slot;
    if (pieces_contiguous(p)) return (const char *)in + piece_offset(p, i, at, NULL);
    comm_pack(c, p, i, at, bytes, in, slot);
    return slot;
}

/* Lists the messages of one round, and sets the operands. */
static int64_t plan_round(comm *c, const member *m, const pieces *p, const void *in, int64_t at)
{
    const int64_t mine = member_round_bytes(m, p, m->index, at);
    const int others = m->g.members - 1;
    int64_t n = 0;
    int slots = 0;
    for (int leaf = 0; leaf < m->g.members; leaf++) {
        const int peer = group_at_leaf(&m->g, m->base, leaf), i = group_index(&m->g, peer);
        const char *part = part_of(c, m, p, i, at, in, member_slot(m, others + leaf));
        c->operand[leaf] = (char *)part;
        if (peer == m->proc) continue;
        c->operand[leaf] = member_slot(m, slots++);
        c->msg[n++] = (comm_msg){
            .src = m->proc, .dst = peer, .from = part, .bytes = member_round_bytes(m, p, i, at)};
        c->msg[n++] =
            (comm_msg){.src = peer, .dst = m->proc, .to = c->operand[leaf], .bytes = mine};
    }
    return n;
}

typedef struct sum {
    comm *c;
    const reduction *r;
    char *out;
} sum;

static void sum_grain(void *ctx, int item, int64_t begin, int64_t end)
{
    (void)item;
    const sum *s = ctx;
    reduce_to_one(s->r, (const void *const *)s->c->operand, begin, end - begin,
                  s->out + begin * s->r->bytes);
}

void scatter_by_messages(comm *c, const member *m, const reduction *r, const pieces *p,
                         const void *in, void *out)
{
    const int64_t longest = pieces_longest(p);
    for (int64_t at = 0; at < longest; at += m->slot) {
        const int64_t n = plan_round(c, m, p, in, at);
        c->transport->exchange(c->link, c->msg, n, m->tag);
        c->work[0] = member_round_bytes(m, p, m->index, at) / r->bytes;
        sum s = {.c = c, .r = r, .out = (char *)out + at};
        comm_run_grains(c, 1, GRAIN_ELEMENTS, sum_grain, &s);
    }
}

int64_t scatter_scratch(int members, int64_t piece, bool contiguous)
{
    if (members == 1) return 0;
    return comm_slots(members, contiguous ? members - 1 : 2 * members - 1, piece);
}

int64_t comm_scratch_reduce_scatter(const comm_mesh *m, comm_axes axes, int64_t size,
                                    const comm_cut *cut)
{
    return scatter_scratch(groups_over(m, axes).members, cut_longest(cut, size), cut->outer <= 1);
}

void comm_reduce_scatter(comm *c, comm_axes axes, comm_op op, mtf_dtype type, void *const *in,
                         void *const *out, const comm_cut *cut, void *const *scratch)
{
    const groups g = groups_over(&c->mesh, axes);
    direct d = {.c = c, .g = g, .r = reduction_over(&g, op, type), .cut = cut, .out = out};
    if (comm_hosts_all(c)) {
        scatter_direct(&d, in);
        return;
    }
    const pieces p = pieces_of(&cut[0], g.members, d.r.bytes);
    const member m = comm_member(c, axes, scratch, pieces_longest(&p));
    if (g.members == 1) {
        memcpy(out[0], in[0], (size_t)pieces_whole_bytes(&p));
        return;
    }
    scatter_by_messages(c, &m, &d.r, &p, in[0], out[0]);
}
