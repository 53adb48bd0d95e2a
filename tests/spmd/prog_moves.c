/* SPDX-License-Identifier: Apache-2.0
 * Checks all moves on one mesh: prog MESH THIN. For runs under mpirun. */
#include <stdio.h>
#include <stdlib.h>

#include "mtf/mtf.h"
#include "support/move_cases.h"

int main(int argc, char **argv)
{
    mtf_err err = {0};
    if (argc != 3) return fprintf(stderr, "usage: %s MESH THIN\n", argv[0]), 2;
    if (mtf_launch(NULL, NULL, &err) != MTF_OK) return fprintf(stderr, "%s\n", err.text), 2;
    move_counts n = {0};
    check_moves_on(argv[1], atoi(argv[2]), &n);
    mtf_finish();
    return n.moves[INSTR_ALL_TO_ALL] || n.moves[INSTR_ALL_GATHER] ? 0 : 1;
}
