/* SPDX-License-Identifier: Apache-2.0
 * Packing: offsets for blocks whose lives are known, so that blocks that live at the same time do
 * not overlap and little memory is needed. Plain numbers, no programs.
 *
 * Best fit, the largest first: each block goes to the tightest gap, or the lowest, that is free all
 * its life. A few orders are tried and the best result is kept. Time grows about as n log n in the
 * number of blocks (occupancy.h). */
#ifndef SPMD_PACK_H
#define SPMD_PACK_H

#include <stdint.h>

/* Blocks with the same `stack` (0 or more) are neighbours in the list, and lie side by side in its
 * order; each still takes its place only while it lives. */
typedef struct pack_block {
    int begin, end; /* the first and the last moment of its life, -1 or later */
    int64_t bytes;
    int stack;      /* -1: none */
    int64_t offset; /* the result */
} pack_block;

/* Fills the offsets; returns the bytes in all. *steps, if not NULL, grows by the work done. */
int64_t pack_blocks(pack_block *b, int64_t n, int64_t *steps);

/* The largest live set: no packing needs less. *moment, if not NULL, is when that is. */
int64_t pack_bound(const pack_block *b, int64_t n, int *moment);

#endif
