/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "comm/internal.h"

/* Up to this many bytes, one round of messages that everybody adds costs less than two rounds. */
enum { SMALL_BYTES = 2048 };

typedef struct direct {
    comm *c;
    reduction r;
} direct;

static void reduce_grain(void *ctx, int group, int64_t begin, int64_t end)
{
    const direct *d = ctx;
    reduce_to_all(&d->r, d->c->operand + (int64_t)group * d->r.leaves, begin, end - begin);
}

/* All members' buffers are here: each grain is read from all, added, and written to all. */
static void reduce_direct(comm *c, const groups *g, const reduction *r, void *const *buf,
                          const int64_t *count)
{
    comm_list_groups(c, g, buf);
    const int n = c->size / g->members;
    for (int i = 0; i < c->size; i++) {
        const int64_t own = count[c->proc[i]];
        if (i % g->members == 0) c->work[i / g->members] = own;
        MTF_DCHECK(own == c->work[i / g->members], "one group reduces %lld and %lld elements",
                   (long long)own, (long long)c->work[i / g->members]);
    }
    direct d = {.c = c, .r = *r};
    comm_run_grains(c, n, GRAIN_ELEMENTS, reduce_grain, &d);
}

/* Everybody sends everything to everybody, and adds for itself. */
static void reduce_small(comm *c, const member *m, const reduction *r, void *buf, int64_t count)
{
    const int64_t bytes = count * r->bytes;
    int64_t n = 0;
    int slots = 0;
    for (int leaf = 0; leaf < r->leaves; leaf++) {
        const int peer = group_at_leaf(&m->g, m->base, leaf);
        c->operand[leaf] = buf;
        if (peer == m->proc) continue;
        c->operand[leaf] = member_slot(m, slots++);
        c->msg[n++] = (comm_msg){.src = m->proc, .dst = peer, .from = buf, .bytes = bytes};
        c->msg[n++] =
            (comm_msg){.src = peer, .dst = m->proc, .to = c->operand[leaf], .bytes = bytes};
    }
    c->transport->exchange(c->link, c->msg, n, m->tag);
    reduce_to_one(r, (const void *const *)c->operand, 0, count, buf);
}

static int64_t longest_piece(int64_t count, int members, int64_t size)
{
    return (count + members - 1) / members * size;
}

int64_t comm_scratch_all_reduce(const comm_mesh *m, comm_axes axes, int64_t size, int64_t least,
                                int64_t most)
{
    const int n = groups_over(m, axes).members;
    const int64_t small = most * size < SMALL_BYTES ? most * size : SMALL_BYTES;
    const int64_t one_round = least * size <= SMALL_BYTES ? comm_slots(n, n - 1, small) : 0;
    const int64_t two_rounds =
        most * size > SMALL_BYTES ? scatter_scratch(n, longest_piece(most, n, size), true) : 0;
    return one_round > two_rounds ? one_round : two_rounds;
}

void comm_all_reduce(comm *c, comm_axes axes, comm_op op, mtf_dtype type, void *const *buf,
                     const int64_t *count, void *const *scratch)
{
    const groups g = groups_over(&c->mesh, axes);
    const reduction r = reduction_over(&g, op, type);
    if (g.members == 1) return;
    if (comm_hosts_all(c)) {
        reduce_direct(c, &g, &r, buf, count);
        return;
    }
    const int64_t bytes = count[0] * r.bytes;
    const bool small = bytes <= SMALL_BYTES && bytes <= c->max_slot;
    const member m =
        comm_member(c, axes, scratch, small ? bytes : longest_piece(count[0], g.members, r.bytes));
    if (small) {
        reduce_small(c, &m, &r, buf[0], count[0]);
        return;
    }
    const comm_cut cut = {.n = count[0], .parts = g.members, .base = 0, .outer = 1, .inner = 1};
    const pieces p = pieces_of(&cut, g.members, r.bytes);
    void *own = (char *)buf[0] + block_begin(m.index, p.n, p.parts) * r.bytes;
    scatter_by_messages(c, &m, &r, &p, buf[0], own);
    gather_by_messages(c, &m, &p, own, buf[0]);
}
