/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "comm/internal.h"

typedef struct direct {
    comm *c;
    groups g;
    int64_t size; /* bytes of an element */
    const comm_cut *cut;
    void *const *out;
} direct;

/* Bytes [begin, end) of the item-th processor's piece, to all members: read once, written often. */
static void gather_grain(void *ctx, int item, int64_t begin, int64_t end)
{
    const direct *d = ctx;
    const int *proc = d->c->proc, first = item / d->g.members * d->g.members;
    const int index = group_index(&d->g, proc[item]);
    const pieces p = pieces_of(&d->cut[proc[item]], d->g.members, d->size);
    const char *in = d->c->operand[item];
    for (int leaf = 0; leaf < d->g.members; leaf++)
        piece_unpack(&p, index, begin, end - begin, in + begin, d->out[proc[first + leaf]]);
}

static void gather_direct(direct *d, void *const *in)
{
    comm *c = d->c;
    comm_list_groups(c, &d->g, in);
    for (int i = 0; i < c->size; i++) {
        const pieces p = pieces_of(&d->cut[c->proc[i]], d->g.members, d->size);
        c->work[i] = piece_bytes(&p, group_index(&d->g, c->proc[i]));
    }
    comm_run_grains(c, c->size, GRAIN_BYTES, gather_grain, d);
}

/* Where each piece is one run of the whole, it is received in place. */
static void gather_in_place(comm *c, const member *m, const pieces *p, const void *in, char *out)
{
    const int64_t mine = piece_bytes(p, m->index);
    char *own = mine ? out + piece_offset(p, m->index, 0, NULL) : out;
    if (mine && own != in) memcpy(own, in, (size_t)mine);
    int64_t n = 0;
    for (int i = 0; i < m->g.members; i++) {
        const int peer = group_at_index(&m->g, m->base, i);
        const int64_t theirs = piece_bytes(p, i);
        if (peer == m->proc) continue;
        c->msg[n++] = (comm_msg){.src = m->proc, .dst = peer, .from = in, .bytes = mine};
        c->msg[n++] = (comm_msg){.src = peer,
                                 .dst = m->proc,
                                 .to = theirs ? out + piece_offset(p, i, 0, NULL) : out,
                                 .bytes = theirs};
    }
    c->transport->exchange(c->link, c->msg, n, m->tag);
}

/* Otherwise pieces come slot by slot through scratch. */
static void gather_in_rounds(comm *c, const member *m, const pieces *p, const char *in, void *out)
{
    const int64_t longest = pieces_longest(p);
    for (int64_t at = 0; at < longest; at += m->slot) {
        const int64_t mine = member_round_bytes(m, p, m->index, at);
        int64_t n = 0;
        int slots = 0;
        for (int i = 0; i < m->g.members; i++) {
            const int peer = group_at_index(&m->g, m->base, i);
            if (peer == m->proc) continue;
            c->msg[n++] = (comm_msg){.src = m->proc, .dst = peer, .from = in + at, .bytes = mine};
            c->msg[n++] = (comm_msg){.src = peer,
                                     .dst = m->proc,
                                     .to = member_slot(m, slots++),
                                     .bytes = member_round_bytes(m, p, i, at)};
        }
        c->transport->exchange(c->link, c->msg, n, m->tag);
        slots = 0;
        for (int i = 0; i < m->g.members; i++) {
            const bool own = i == m->index;
            comm_unpack(c, p, i, at, member_round_bytes(m, p, i, at),
                        own ? in + at : member_slot(m, slots++), out);
        }
    }
}

void gather_by_messages(comm *c, const member *m, const pieces *p, const void *in, void *out)
{
    if (pieces_contiguous(p)) {
        gather_in_place(c, m, p, in, out);
    } else {
        gather_in_rounds(c, m, p, in, out);
    }
}

int64_t gather_scratch(int members, int64_t piece, bool contiguous)
{
    return contiguous ? 0 : comm_slots(members, members - 1, piece);
}

int64_t comm_scratch_all_gather(const comm_mesh *m, comm_axes axes, int64_t size,
                                const comm_cut *cut)
{
    return gather_scratch(groups_over(m, axes).members, cut_longest(cut, size), cut->outer <= 1);
}

void comm_all_gather(comm *c, comm_axes axes, int64_t size, void *const *in, void *const *out,
                     const comm_cut *cut, void *const *scratch)
{
    direct d = {.c = c, .g = groups_over(&c->mesh, axes), .size = size, .cut = cut, .out = out};
    if (comm_hosts_all(c)) {
        gather_direct(&d, in);
        return;
    }
    const pieces p = pieces_of(&cut[0], d.g.members, size);
    const member m = comm_member(c, axes, scratch, pieces_longest(&p));
    gather_by_messages(c, &m, &p, in[0], out[0]);
}
