/* SPDX-License-Identifier: Apache-2.0
 * One interface over the C interfaces of oneDNN 2.x and 3.x: batched products of f32 matrices, or
 * of bf16 ones to f32, each on one thread. Invariant: only gemm_dnnl.c includes the library's
 * headers. */
#ifndef KERNELS_GEMM_DNNL_H
#define KERNELS_GEMM_DNNL_H

#include <stdbool.h>
#include <stdint.h>

/* A matrix of a batch: strides in elements between entries, rows and columns. */
typedef struct dnnl_matrix {
    int64_t entry, row, column;
} dnnl_matrix;

typedef struct dnnl_product {
    int64_t entries, m, n, k;
    bool bf16; /* A and B; C is f32 */
    dnnl_matrix a, b, c;
} dnnl_product;

/* A primitive; made once, run from any number of threads at a time. */
typedef struct dnnl_kernel dnnl_kernel;

/* The kernel for `p`, or NULL where the library has only an implementation named ref*, or for bf16
 * none that is made of the machine's instructions for it. It tells
 * what it needs; before it runs, dnnl_kernel_build must generate its code. */
dnnl_kernel *dnnl_kernel_new(const dnnl_product *p);
void dnnl_kernel_build(dnnl_kernel *k);
int64_t dnnl_kernel_scratch(const dnnl_kernel *k); /* bytes that a run needs, aligned to 64 */
const char *dnnl_kernel_impl(const dnnl_kernel *k);
void dnnl_kernel_free(dnnl_kernel **k);

void dnnl_kernel_run(const dnnl_kernel *k, const void *a, const void *b, float *c, void *scratch);

/* "oneDNN 2.6.3", for example. */
const char *dnnl_kernel_library(void);

#endif
