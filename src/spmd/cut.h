/* SPDX-License-Identifier: Apache-2.0
 * Where sums over one axis are taken: a minimal cut through the values that may be partial.
 *
 * A value is made whole or partial by its instruction; one that is partial and that anybody reads
 * whole is reduced, once. Knows sizes and dependences, and nothing of programs. */
#ifndef SPMD_CUT_H
#define SPMD_CUT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cut_value {
    int64_t bytes;    /* that its reduction moves; even */
    bool source;      /* partial from the start */
    bool needed;      /* somebody reads it whole, wherever sums are taken */
    bool sliced;      /* somebody reads the own part alone: half of a reduction gives that */
    bool closed;      /* must not be reduced */
    bool before_view; /* of equal places, the one behind the view is preferred */
    int nin;          /* operands of its instruction, at most 32; a source shows none */
    const int *in;    /* which values they are, each with a smaller index, or -1: none of these */
    int nways;
    const unsigned
        *way; /* sets of operands, as bits: exactly these partial make a partial result */

    /* the placement */
    unsigned taken; /* the way that is taken; 0: its instruction reads all operands whole */
    bool reduced;   /* it is partial, and somebody reads it whole or sliced */
} cut_value;

/* Finds the placement of fewest bytes, then fewest calls, then fewest sums before a view, with no
 * more calls than when nothing moves; of equals the one nearest to the sources. Each region of
 * values that depend on each other is placed by itself. One flow problem is enough where the fewest
 * bytes need no more calls and no value has to choose between ways. Else the search is exact until
 * its effort is spent, and then gives the best that it has met, which is never worse than to move
 * nothing. */
void cut_place(int n, cut_value *v);

/* Values in all flow problems of one region; it may solve 16 in any case. */
enum { CUT_EFFORT = 1 << 14 };

#endif
