/* SPDX-License-Identifier: Apache-2.0
 * Which offsets are taken when: an interval tree over time, for packing.
 *
 * A node stands for a stretch of time. It has two ordered lists of extents of offsets: those that
 * are taken all through the stretch, and those that are taken at some moment of it. Extents that
 * touch are joined, and in a dense packing most do, so that lists stay short however many blocks
 * lie there: taking and asking cost about the logarithm of the number of moments. */
#ifndef SPMD_OCCUPANCY_H
#define SPMD_OCCUPANCY_H

#include <stdint.h>

typedef struct extent {
    int64_t from, to; /* from <= offset < to */
} extent;

typedef struct extent_list {
    extent *item;
    int64_t n, cap;
} extent_list;

typedef struct occupancy occupancy;

/* Nothing is taken at moments 0 .. moments-1. */
occupancy *occupancy_new(int moments);
void occupancy_free(occupancy *o);
void occupancy_clear(occupancy *o);

/* Takes an extent from moment `begin` to moment `end`. */
void occupancy_take(occupancy *o, int begin, int end, extent e);

/* Appends what is taken at any of these moments, in no order; extents may overlap. */
void occupancy_list(occupancy *o, int begin, int end, extent_list *out);

/* Extents looked at or written so far: what the work grows with. */
int64_t occupancy_steps(const occupancy *o);

#endif
