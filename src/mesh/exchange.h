/* SPDX-License-Identifier: Apache-2.0
 * From any layout of a tensor to any other, also under another shape of the same elements: which
 * elements move from which processor to which. Pure index arithmetic; nothing is sent here.
 *
 * The two shapes are cut into groups of dims with equal products, so that the flat row-major index
 * is a nested index over groups. Within a group, the blocks of an old and a new owner meet in a
 * short list of pieces; over all groups they meet in the product of the lists.
 *
 * Every element that a processor lacks arrives once, from one owner: among replicas the one whose
 * coordinates on the axes that the old layout does not use are the receiver's. So what is there
 * already does not move, replicas take turns, and the bytes received are the least possible. Where
 * every dim is in as many parts as before, blocks move whole, and each replica gives its own to one
 * receiver. In both cases owner and receiver agree on axes that neither layout uses: a value that
 * is partial over such axes moves as well, each share of it for itself. */
#ifndef MESH_EXCHANGE_H
#define MESH_EXCHANGE_H

#include "mesh/mesh.h"

/* A group's dims in the old shape (0) and the new one (1). */
typedef struct exchange_group {
    int first[2], count[2];
} exchange_group;

/* Element j of dim `dim` of the new shape is element j + start of the old one. What the old one
 * does not have comes from nobody. With a period, elements that are a multiple of it apart are
 * equal. */
typedef struct window {
    int dim; /* -1: all elements stay what they are */
    int64_t start, period;
} window;

typedef struct exchange {
    const mtf_mesh *mesh;
    mtf_shape shape[2]; /* old and new: as many elements, but for the dim of the window */
    split split[2][MTF_MAX_RANK];
    int ngroups;
    exchange_group group[MTF_MAX_RANK];
    unsigned used;      /* axes that the old layout splits over */
    bool permutes;      /* the same shape, every dim in as many parts */
    split lost, gained; /* permutes: axes of the old layout alone, of the new one alone */
    window window;      /* which elements of one dim are wanted */
} exchange;

void exchange_describe(exchange *x, const mtf_mesh *m, const mtf_shape *old_shape,
                       const split *old_split, const mtf_shape *new_shape, const split *new_split);

/* The same dims; that of the window may have another size. */
void exchange_describe_window(exchange *x, const mtf_mesh *m, const mtf_shape *old_shape,
                              const split *old_split, const mtf_shape *new_shape,
                              const split *new_split, window w);

/* Does `dst` take from `src` whatever the two blocks share? (Which may be nothing.) */
bool exchange_serves(const exchange *x, int64_t src, int64_t dst);

/* n elements of one group, from position `from` of the source's block of the group to position `to`
 * of the destination's. */
typedef struct exchange_piece {
    int64_t from, to, n;
} exchange_piece;

/* The pieces of a pair, group by group: list[g][0 .. count[g]-1]. */
typedef struct exchange_pair {
    int ngroups;
    exchange_piece *list[MTF_MAX_RANK];
    int64_t count[MTF_MAX_RANK];
    int64_t from_stride[MTF_MAX_RANK],
        to_stride[MTF_MAX_RANK]; /* elements per position of a group */
    int last;                    /* the last group that is not whole on both sides; -1: none is */
    int64_t elements;            /* in all; 0: the pair shares nothing */
} exchange_pair;

/* Free with exchange_pair_free. */
exchange_pair exchange_meet(const exchange *x, int64_t src, int64_t dst);
void exchange_pair_free(exchange_pair *p);

/* Calls fn for every contiguous run of a pair, in one order on both sides: n elements from offset
 * `from` of the source's block to offset `to` of the destination's. */
typedef void exchange_fn(void *ctx, int64_t from, int64_t to, int64_t n);
void exchange_walk(const exchange_pair *p, exchange_fn *fn, void *ctx);

/* Elements that `dst` receives from others. */
int64_t exchange_received(const exchange *x, int64_t dst);

/* What no plan can do without: the elements of dst's new block that it does not hold already. */
int64_t exchange_bound(const exchange *x, int64_t dst);

/* Elements that `src` sends to others. */
int64_t exchange_sent(const exchange *x, int64_t src);

/* Owners from which `dst` receives something. */
int64_t exchange_senders(const exchange *x, int64_t dst);

/* The most that `asked` says of any processor. Up to 16 are asked (mesh_sample): the cost of a
 * report must not grow with the square of the mesh. */
typedef int64_t exchange_asked(const exchange *x, int64_t proc);
int64_t exchange_most(const exchange *x, exchange_asked *asked);

/* Elements that a processor sends to and receives from others together: exactly those of the
 * processor with the most where not all dims keep their number of parts, else at most one block too
 * many. No pair of processors is asked; the cost grows with the number of processors that the axes
 * of the two layouts tell apart, and beyond EXCHANGE_EXACT of them a bound from the sizes of blocks
 * is returned. */
enum { EXCHANGE_EXACT = 4096 };
int64_t exchange_traffic(const exchange *x);

#endif
