/* SPDX-License-Identifier: Apache-2.0
 * Products of two tensors as batched matrix products: C[batch, m, n] = sum over k A[batch, m, k] *
 * B[batch, k, n], where batch, m, n and k are each any number of dims with any strides.
 *
 * The wrapper brings a product into a form that the library is fast at (gemm_canon.c,
 * gemm_library.c; gemm_dnnl.c alone includes the library's headers). Products of f64 and i32, and
 * those that the library has nothing but a reference implementation for, run in kernels of our own
 * (gemm_own.c). Invariant: C is compact in memory as a whole, so every element of C is
 * written exactly once; A and B are only read and may be any strided views. Products of bf16 are
 * formed and added in f32. */
#ifndef KERNELS_GEMM_H
#define KERNELS_GEMM_H

#include "base/err.h"
#include "base/kernel.h"

enum { GEMM_MAX_DIMS = KERNEL_MAX_RANK }; /* of one kind: all stand in one operand */

typedef struct gemm_dim {
    int64_t n;       /* elements; may be 0 or 1 */
    int64_t a, b, c; /* strides in elements; 0 where the operand lacks the dim */
} gemm_dim;

typedef struct gemm_desc {
    mtf_dtype dtype; /* of A, B and C: f32, f64 or i32; bf16 of A and B, and then C is f32 */
    int nbatch, nm, nn, nk;
    gemm_dim batch[GEMM_MAX_DIMS], m[GEMM_MAX_DIMS], n[GEMM_MAX_DIMS], k[GEMM_MAX_DIMS];
} gemm_desc;

typedef struct gemm gemm;

/* A plan for the product, made once and then cached for the life of the process by shape, strides
 * and type; thread-safe. Fails (MTF_INVALID) for bool. The library's implementations named ref* are
 * never used. The pointer is borrowed. */
mtf_status gemm_get(const gemm_desc *d, const gemm **out, mtf_err *err);

/* The same, but not ready to run: cheap, for gemm_workspace. */
mtf_status gemm_plan(const gemm_desc *d, const gemm **out, mtf_err *err);

/* Bytes of scratch that one worker needs for one grain. */
int64_t gemm_workspace(const gemm *g);

/* Grains of the product: a function of the sizes only. */
int64_t gemm_grains(const gemm *g);

/* Computes grains [begin, end) of C. `work` belongs to the calling worker, is aligned to 64 bytes
 * and holds gemm_workspace() bytes. Bits do not depend on how grains are dealt out. Where k
 * has no elements, C becomes zeros. Runs on the calling thread alone, whatever OpenMP is set to. */
void gemm_run(const gemm *g, const void *a, const void *b, void *c, void *work, int64_t begin,
              int64_t end);

/* The name of the implementation that runs, as the library gives it, or "own". */
const char *gemm_impl(const gemm *g);

/* The library's name and version, for --version; "none" where it was built without. */
const char *gemm_library(void);

#endif
