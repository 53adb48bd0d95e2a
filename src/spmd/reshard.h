/* SPDX-License-Identifier: Apache-2.0
 * The cheapest way from one placement of a value to another, also under another shape of the same
 * elements. Pure search: nothing is emitted here.
 *
 * A route is a sequence of moves: slice, all_to_all, permute, reduce_scatter, all_gather,
 * all_reduce, a view under the new shape where blocks coincide, and the direct exchange, in which
 * every element arrives once. Which is cheapest is decided by an estimate of
 * latency and bandwidth (mesh/link.h); ties by bytes, then calls, then moves. Sums over several
 * axes are taken minor-most first, so that every route gives the same bits. */
#ifndef SPMD_RESHARD_H
#define SPMD_RESHARD_H

#include "base/memo.h"
#include "spmd/program.h"

/* How a value lies on the mesh: the cuts of its dims, and the axes over which it is partial. */
typedef struct placement {
    split split[MTF_MAX_RANK];
    unsigned pending;
} placement;

bool placement_equal(const placement *a, const placement *b);
placement placement_of(const value *v);
/* All axes that cut it. */
unsigned placement_axes(const placement *p);
/* The axes of both, in the order of the mesh: over them a permutation or an exchange moves. */
split placement_axes_between(const mtf_mesh *m, const placement *a, const placement *b);
/* Bytes of the largest block. */
int64_t placement_bytes(const mtf_mesh *m, const mtf_shape *s, int64_t element, const placement *p);

typedef struct move {
    instr_kind kind;
    int dim, to_dim; /* positions in the shape; -1 where the kind has none */
    split axes;
    bool reshapes; /* the result has the new shape */
    placement to;
} move;

enum { ROUTE_MAX_MOVES = 24 };

/* What a plan costs one processor, the busiest. */
typedef struct price {
    double seconds, bytes; /* bytes received */
    int calls, moves;      /* collectives; instructions */
} price;

price price_sum(price a, price b);
/* Is a better than b? Seconds, then bytes, then calls, then instructions. */
bool price_less(price a, price b);

typedef struct route {
    int n;
    price price;
    move move[ROUTE_MAX_MOVES];
} route;

typedef struct reshard_task {
    const mtf_mesh *mesh;
    const mtf_shape *from_shape, *to_shape; /* one pointer where only the placement changes */
    int64_t element;                        /* bytes */
    placement from, to;
    bool anywhere;     /* any placement under the new shape will do; `to` is not read */
    int64_t max_bytes; /* no move makes a block larger than this and its operand's; 0: no limit */
    memo *known;       /* routes found before, for this mesh; NULL: none */
} reshard_task;

/* False where the limit leaves no route, or where `to` is partial over an axis that `from` is not.
 */
bool reshard_route(const reshard_task *r, route *out);

/* No route takes less. */
double reshard_least_seconds(const reshard_task *r);

/* Of the direct exchange alone, between placements that are partial over the same axes. */
price reshard_exchange_price(const reshard_task *r);

#endif
