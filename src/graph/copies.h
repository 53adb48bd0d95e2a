/* SPDX-License-Identifier: Apache-2.0
 * Copies of a part of the graph, for computing it again: the same rows with the same attributes
 * (random streams too, so that dropouts are equal) on other operands. Variables and placeholders
 * are not copied. Invariant: a copy reads only copies of its own recomputation and its inputs, so
 * no later pass finds that the work is the same as the original's; nodes carry the number of the
 * recomputation to say so. */
#ifndef GRAPH_COPIES_H
#define GRAPH_COPIES_H

#include "graph/graph.h"

typedef struct copies copies;

/* Copies of the nodes from `begin` to before `end`; none is made yet. */
copies *copies_new(mtf_graph *g, int64_t begin, int64_t end);
void copies_free(copies **c);
/* Where a node reads `t` from outside of the range, its copy reads `other`. */
void copies_replace(copies *c, mtf_tensor *t, mtf_tensor *other);
/* Makes all of them. */
void copies_make(copies *c);
/* The copy of a tensor of the range; for one outside, the input that copies read in its place. NULL
 * after an error. */
mtf_tensor *copies_of(copies *c, mtf_tensor *t);

#endif
