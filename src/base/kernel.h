/* SPDX-License-Identifier: Apache-2.0
 * How local work is described to a kernel: pointers, sizes, strides and offsets, plain numbers.
 *
 * An operation has an iteration space: the union of the dims of its operands and results. A view
 * says, for each of its own dims, which dim of that space it is and how far apart its elements
 * are. A kernel sees the local block: `local` elements from `offset` of `global`. A block of zero
 * elements is legal everywhere.
 *
 * Work is cut into grains by its size alone, never by the number of threads, so that the bits of a
 * result do not depend on who computes it. */
#ifndef BASE_KERNEL_H
#define BASE_KERNEL_H

#include "mtf/types.h"

enum {
    KERNEL_MAX_RANK = 12,  /* dims of one tensor */
    KERNEL_MAX_SPACE = 24, /* dims of one iteration space */
    KERNEL_MAX_IN = 16,
    KERNEL_MAX_OUT = 4,
};

typedef struct kernel_dim {
    int64_t local;  /* elements in this block */
    int64_t global; /* elements in the whole dim */
    int64_t offset; /* index of the block's first element in the whole dim */
} kernel_dim;

typedef struct kernel_view {
    void *data; /* the block's first element; inputs may share memory, see each kernel on outputs */
    mtf_dtype dtype;
    int rank;
    int dim[KERNEL_MAX_RANK];        /* position in the iteration space */
    int64_t stride[KERNEL_MAX_RANK]; /* in elements; outputs are compact and row-major */
} kernel_view;

/* Stride, in elements, of a dim of the iteration space in a view; 0 where the view lacks it. */
static inline int64_t view_stride(const kernel_view *v, int dim)
{
    for (int i = 0; i < v->rank; i++)
        if (v->dim[i] == dim) return v->stride[i];
    return 0;
}

/* Values that a program is given anew for every run. */
typedef struct kernel_run {
    uint64_t seed;
    uint64_t step;
    int64_t batch_offset; /* index in the full batch of this microbatch's first sequence */
} kernel_run;

typedef struct kernel_args {
    int space; /* dims of the iteration space */
    kernel_dim dim[KERNEL_MAX_SPACE];
    int nin, nout;
    kernel_view in[KERNEL_MAX_IN];
    kernel_view out[KERNEL_MAX_OUT];
    const void *attr; /* the operation's own attributes */
    const void *plan; /* what the kernel prepared at compile time, or NULL */
    const kernel_run *run;
    void *work; /* scratch of the worker, aligned to 64 bytes */
} kernel_args;

/* Computes grains [begin, end). */
typedef void kernel_fn(const kernel_args *k, int64_t begin, int64_t end);

/* A run of elements for an elementwise function: out[i] = f(in0[i * stride0], ...). */
enum { TILE_MAX_IN = 4 };
typedef struct tile_args {
    int64_t n;
    const void *in[TILE_MAX_IN];
    int64_t stride[TILE_MAX_IN]; /* in elements; 0 for an operand that is broadcast along the run */
    void *out;                   /* compact; may be in[k] where stride[k] is 1 */
    mtf_dtype in_dtype, dtype;   /* of the last operand and of out */
    const void *attr;
    const kernel_run *run;
    uint64_t index; /* row-major index of out[0] in the whole tensor, of the full batch */
} tile_args;

typedef void tile_fn(const tile_args *t);

/* First member of the attributes of a row whose tiles ask for `index`: which dim of the result, if
 * any, is the batch that microbatches cut, and its size in the full batch. */
typedef struct tile_origin {
    int batch_dim; /* -1: none */
    int64_t batch_full;
} tile_origin;

/* How many grains the work has; a function of the sizes only. */
typedef int64_t kernel_grains_fn(const kernel_args *k);

#endif
