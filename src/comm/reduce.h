/* SPDX-License-Identifier: Apache-2.0
 * The one place where values of processors are added: the canonical order of a reduction.
 *
 * Elements are worked through in blocks that stay in the first-level cache. How a range is cut into
 * blocks or calls never changes the bits of an element. */
#ifndef COMM_REDUCE_H
#define COMM_REDUCE_H

#include "comm/groups.h"

/* Reduces `leaves` (1 to 4) rows of n elements from element `at` on into partial results, which
 * overlap none; out[i] = out[i] (op) more[i] of partial results; n of them become elements. */
typedef void reduce_rows_fn(const void *const *row, int leaves, int64_t at, int64_t n, void *out);
typedef void reduce_join_fn(void *out, const void *more, int64_t n);
typedef void reduce_narrow_fn(void *out, const void *partial, int64_t n);

/* A reduction over groups of one shape. */
typedef struct reduction {
    int n;                   /* levels of the tree, one per axis, major first */
    int size[COMM_MAX_AXES]; /* coordinates on the axis */
    int span[COMM_MAX_AXES]; /* leaves below one coordinate */
    int leaves;              /* of the whole tree */
    int64_t bytes;           /* of one element */
    int64_t partial;         /* of one partial result: those of bf16 are f32 */
    reduce_rows_fn *rows;
    reduce_join_fn *join;
    reduce_narrow_fn *narrow; /* NULL: partial results are elements */
} reduction;

/* SUM of i32 wraps; of bf16 it is that of f32, rounded once. MAX and MIN of floats are NaN where an
 * operand is. `type` is not bool. */
reduction reduction_over(const groups *g, comm_op op, mtf_dtype type);

/* in[leaf][at .. at + n), in leaf order, reduced to out[0 .. n). Where out overlaps an operand it
 * is that operand's element `at`. */
void reduce_to_one(const reduction *r, const void *const *in, int64_t at, int64_t n, void *out);

/* As before, in place: elements at .. at + n of every operand become the result. */
void reduce_to_all(const reduction *r, void *const *buf, int64_t at, int64_t n);

#endif
