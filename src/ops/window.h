/* SPDX-License-Identifier: Apache-2.0
 * What rows share that take other elements of one dim: slice, pad, shift, concat, split. */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "graph/op.h"

/* out[.., i, ..] = x[.., i + start, ..], where x is the operands one behind the other along `dim`;
 * beyond its ends zero, or with wrap the other end. */
typedef struct window_attr {
    const char *dim;
    int64_t start, size; /* size: of the dim in the result */
    int wrap;
} window_attr;

extern const op_field window_fields[];

/* Position of the dim called `dim` in the tensor; -1 after storing an error of node `n`. */
int window_dim(mtf_graph *g, const mtf_node *n, const mtf_tensor *x, const char *dim);
/* Size of the dim called `dim`; 0 after storing an error of `what`, where there is none. */
int64_t window_has(const mtf_tensor *x, const char *what, const char *dim);
/* `like` with another size of its dim `dim`. */
mtf_shape window_shape(const mtf_shape *like, const char *dim, int64_t size);

role window_role(const mtf_node *n, const char *dim);
bool window_linear(const mtf_node *n, unsigned mask); /* when all operands are partial */
bool window_lower(lowering *l, mtf_node *n);
bool window_infer(mtf_graph *g, mtf_node *n);
void window_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx);

/* x with its dims in the order of those of `like`; another size of `dim` does not matter. */
mtf_tensor *window_ordered(mtf_tensor *x, const mtf_tensor *like, const char *dim);

/* A node of such a row: of slice where all its elements are x's, of pad where x's ends are passed.
 */
mtf_tensor *window_build(mtf_tensor *x, const char *dim, int64_t start, int64_t size);

#endif
