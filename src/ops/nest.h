/* SPDX-License-Identifier: Apache-2.0
 * Nested loops over dims that several views share, for reference kernels. */
#ifndef OPS_NEST_H
#define OPS_NEST_H

#include "base/kernel.h"

enum { NEST_MAX_VIEWS = 4 };

typedef struct nest {
    int rank;
    int64_t n[KERNEL_MAX_SPACE];
    int views;
    int64_t stride[NEST_MAX_VIEWS]
                  [KERNEL_MAX_SPACE]; /* in elements, 0 where a view lacks the dim */
} nest;

/* The innermost loop: n steps from offset at[v] of each view, stride[v] apart. */
typedef void nest_fn(void *ctx, int64_t n, const int64_t *at, const int64_t *stride);

/* Runs fn for every combination of the outer dims in row-major order. A nest of rank 0 is one call
 * with n = 1; a dim of 0 elements makes none. */
void nest_run(const nest *nst, const int64_t *base, nest_fn *fn, void *ctx);

/* Adds space dim `dim` with its local extent and the strides of the nest's views. */
void nest_add(nest *nst, const kernel_args *k, int dim, const kernel_view *const *views);

#endif
