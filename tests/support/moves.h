/* SPDX-License-Identifier: Apache-2.0
 * Programs made by hand of moves alone: one operand with a given layout, and values that moves make
 * of it. Running one compares every block of every value on every processor with what its layout
 * says, worked out from element numbers. */
#ifndef TESTS_SUPPORT_MOVES_H
#define TESTS_SUPPORT_MOVES_H

#include "spmd/program.h"

enum { MAX_MOVES = 2048 };

typedef struct moves {
    mtf_graph *g;
    mtf_mesh *m;
    mtf_layout *l;
    mtf_program *p;
    value *operand; /* change its cuts and what is pending before the first move */
} moves;

moves moves_open(const char *mesh, mtf_shape shape);
void moves_close(moves *x);

/* A move and the layout of its result. dim and to_dim: -1 where the kind has none. */
typedef struct hand_move {
    instr_kind kind;
    int dim, to_dim;
    split axes;
    mtf_shape shape;
    split cut[MTF_MAX_RANK];
} hand_move;

/* One over `axes` at dim `dim` (and `to_dim`); one to a layout, under a shape of as many elements.
 */
hand_move move_over(const value *v, instr_kind kind, int dim, int to_dim, split axes);
hand_move move_to(const value *v, instr_kind kind, mtf_shape shape, const split *cut);

/* All ways to cut `shape` over axes that are not in `not_over`: every axis to one dim, in every
 * order, or to none. Fills at most MAX_MOVES and returns how many. */
typedef struct cuts {
    split s[MTF_MAX_RANK];
} cuts;
int all_cuts(const mtf_mesh *m, const mtf_shape *shape, unsigned not_over, cuts *list);

/* All legal moves of `v`, exchanges among them to every layout under its own shape and under the
 * shape of one dim. */
int all_moves(const mtf_mesh *m, const value *v, hand_move *list);

/* Appends a move of `v`; its result. */
value *moves_add(moves *x, value *v, const hand_move *how);
instr *moves_last(const moves *x);

/* Verifies, plans and runs the program and compares all blocks of all values. Ends the process with
 * a message where one differs. */
void moves_run(moves *x);

#endif
