/* SPDX-License-Identifier: Apache-2.0
 * All moves of all layouts on small meshes, also of partial values, and chains of them. */
#ifndef TESTS_SUPPORT_MOVE_CASES_H
#define TESTS_SUPPORT_MOVE_CASES_H

#include "support/moves.h"

typedef struct move_counts {
    int64_t moves[INSTR_KINDS], partial[INSTR_KINDS]; /* all, and those of partial values */
} move_counts;

/* Every layout of some shapes and every set of pending axes on one mesh; of the many exchanges and
 * permutes of a layout one in `thin` is taken, another one each time. Ends the process with a
 * message where a block is wrong. */
void check_moves_on(const char *mesh, int thin, move_counts *n);
move_counts check_all_moves(int thin);

#endif
