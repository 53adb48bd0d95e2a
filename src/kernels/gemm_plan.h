/* SPDX-License-Identifier: Apache-2.0
 * What the files of gemm share: the canonical product, and what an engine prepares for it.
 *
 * A product is cut into tasks by its sizes alone; a grain is a run of consecutive tasks. Invariant:
 * a task writes a part of C that no other task writes. */
#ifndef KERNELS_GEMM_PLAN_H
#define KERNELS_GEMM_PLAN_H

#include "kernels/gemm.h"

/* Computes tasks [begin, end) of the plan; a and b are already in the canonical order. */
typedef void gemm_tasks_fn(const gemm *g, const void *a, const void *b, void *c, void *work,
                           int64_t begin, int64_t end);

struct gemm {
    gemm_desc d;            /* canonical */
    bool swapped;           /* the caller's A is our B */
    int64_t batch, m, n, k; /* elements of each group of dims */
    gemm_tasks_fn *run;
    void (*build)(void *engine); /* makes the engine ready to run; NULL: it is */
    bool built;
    void *engine;              /* what the engine prepared; lives as long as the plan */
    int64_t tasks, task_flops; /* task_flops: of a whole task */
    int64_t tasks_per_grain;
    int64_t work; /* bytes */
    char impl[64];
    gemm *next; /* in its bucket of the cache */
};

/* Elements of `nd` dims together. */
int64_t gemm_total(const gemm_dim *dims, int nd);

/* Brings the product into canonical form: no dim of size 1, dims that are adjacent in memory in
 * every operand merged, each group from the largest stride of C (of A for k) to the smallest, and
 * a unit stride of C among the n dims if m or n have it. Unused entries are zero. Returns whether
 * A and B changed places. */
bool gemm_canonicalise(gemm_desc *d);

/* Fills run, engine, tasks, task_flops, work and impl for the kernels of our own; always works. */
void gemm_own_prepare(gemm *g);

/* The same for the library. Returns false, with nothing changed, where the library is missing or
 * has nothing but a reference implementation for this product. */
bool gemm_library_prepare(gemm *g);

#endif
