/* SPDX-License-Identifier: Apache-2.0
 * What the collectives share: the communicator's fields, and the steps that more than one needs.
 *
 * Each collective has two ways. Where all processors live in this process it works on the peers'
 * own memory: no messages, no scratch. Otherwise this process hosts one processor, and messages go
 * over the transport. Both add through reduce.h, so their bits are equal. */
#ifndef COMM_INTERNAL_H
#define COMM_INTERNAL_H

#include "comm/pieces.h"
#include "comm/reduce.h"
#include "comm/transport.h"

/* Elements, and bytes, that one grain of work covers. */
enum { GRAIN_ELEMENTS = 4096, GRAIN_BYTES = 1 << 16 };

struct comm {
    const transport *transport;
    void *link; /* the transport's communicator of this comm */
    comm_mesh mesh;
    int size, first, nhosted;
    int ranks; /* processes: 1, or `size` */
    pool *pool;
    unsigned calls;   /* collectives so far, the same on all processes: the tag of their messages */
    int64_t max_slot; /* bytes of a slot of scratch, at most; a multiple of 64. For tests. */
    /* Room for one collective at a time, so that none allocates. */
    int64_t *work;   /* [size] how much there is to do for each group or processor */
    int64_t *grains; /* [size + 1] the first grain of each */
    int *proc;       /* [size] processors, group by group, each group in leaf order */
    void **operand;  /* [size] their buffers, in the same order */
    comm_msg *msg;   /* [2 size] */
    void *gathered;  /* [size] 8 bytes of each process */
};

/* A comm over `ranks` processes, of which this is `rank`, or over one that hosts all. `link` was
 * opened by `t` and is the comm's from then on. The mesh is valid. */
comm *comm_over(const transport *t, void *link, int ranks, int rank, const comm_mesh *m,
                pool *workers);

/* The transport that comm_launch started, or the one of a process without peers. */
const transport *comm_launched(void);
extern const transport transport_one_process;

/* True where every processor of the mesh is hosted here. */
bool comm_hosts_all(const comm *c);

/* The tag of the next collective. Every collective that sends takes one, used or not. */
int comm_next_tag(comm *c);

/* Lists the hosted processors group by group in c->proc, and their buffers in c->operand. */
void comm_list_groups(comm *c, const groups *g, void *const *buf);

/* Does units [begin, end) of one item. */
typedef void grain_fn(void *ctx, int item, int64_t begin, int64_t end);

/* Cuts items 0 .. n-1, of c->work[i] units each, into grains of `grain` units, and runs them all on
 * the pool. */
void comm_run_grains(comm *c, int n, int64_t grain, grain_fn *fn, void *ctx);

/* One group's part of a collective by messages, seen by the one processor that is hosted here.
 * Scratch is so many slots: first one for each of the others, in their order, to receive from them,
 * then, where pieces must be packed, one for each member to send. Pieces that do not fit in a slot
 * travel in rounds of `slot` bytes. */
typedef struct member {
    groups g;
    int proc, base; /* this processor; the first of its group */
    int index;      /* of this processor in its group */
    int tag;
    int64_t slot; /* bytes of one */
    char *scratch;
} member;

/* Begins a collective in which the longest piece that travels has `piece` bytes. */
member comm_member(comm *c, comm_axes axes, void *const *scratch, int64_t piece);

/* The k-th slot of scratch. */
static inline char *member_slot(const member *m, int k)
{
    return m->scratch + k * m->slot;
}

/* Scratch of `slots` slots for pieces of at most `piece` bytes, in groups of this size. */
int64_t comm_slots(int members, int64_t slots, int64_t piece);

/* What scatter_by_messages and gather_by_messages take. */
int64_t scatter_scratch(int members, int64_t piece, bool contiguous);
int64_t gather_scratch(int members, int64_t piece, bool contiguous);

/* How much of piece i travels in the round that begins at flat offset `at` of every piece. */
int64_t member_round_bytes(const member *m, const pieces *p, int i, int64_t at);

/* piece_pack and piece_unpack on the pool. */
void comm_pack(comm *c, const pieces *p, int i, int64_t at, int64_t bytes, const void *whole,
               void *flat);
void comm_unpack(comm *c, const pieces *p, int i, int64_t at, int64_t bytes, const void *flat,
                 void *whole);

/* Own piece of `in` (a whole) over all members, reduced into `out` (flat). `out` may be own piece
 * in `in` itself where the pieces are contiguous. */
void scatter_by_messages(comm *c, const member *m, const reduction *r, const pieces *p,
                         const void *in, void *out);

/* Own piece `in` (flat) and those of all members put into `out` (a whole). `in` may be own piece in
 * `out` itself where the pieces are contiguous. */
void gather_by_messages(comm *c, const member *m, const pieces *p, const void *in, void *out);

#endif
