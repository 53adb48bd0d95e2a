/* SPDX-License-Identifier: Apache-2.0
 * Collectives against a plain serial reference, for any communicator: the inputs of all processors
 * are known to everybody, so each process checks what it hosts by itself, bit for bit. */
#ifndef SUPPORT_COMM_CASES_H
#define SUPPORT_COMM_CASES_H

#include "comm/comm.h"

typedef struct cases_result {
    int64_t compared;  /* elements */
    int64_t wrong;     /* elements, and scratch that was overrun */
    int64_t reordered; /* sums whose bits another order of the same operands would change */
    int64_t unused; /* bytes of scratch behind the last that was written, where pieces are even */
} cases_result;

/* Runs every ordered subset of the mesh's axes through every collective, with uneven and empty
 * pieces. `large` adds buffers of several grains. Prints the first wrong element. Collective. */
cases_result cases_run(comm *c, const comm_mesh *m, bool large);

/* Meshes to run on. */
extern const comm_mesh cases_meshes[];
extern const int cases_num_meshes;

#endif
