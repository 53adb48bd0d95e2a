/* SPDX-License-Identifier: Apache-2.0
 * Fast kernels, registered under the names of rows. A row that is not in the table runs its own
 * reference kernel. */
#ifndef KERNELS_TABLE_H
#define KERNELS_TABLE_H

#include "base/err.h"
#include "base/kernel.h"

typedef struct kernel_impl {
    const char *row;
    /* Called once per program and processor, with sizes and strides but without data. *plan comes
     * back in kernel_args.plan; it lives as long as the process. NULL: nothing to prepare. */
    mtf_status (*prepare)(const kernel_args *k, const void **plan, mtf_err *err);
    /* Bytes per worker for such sizes and strides, cheap and without a plan; NULL: none. */
    int64_t (*workspace)(const kernel_args *k);
    kernel_grains_fn *grains; /* NULL: one */
    kernel_fn *run;
    const char *(*implementation)(const kernel_args *k); /* for reports; NULL: the row's name */
} kernel_impl;

/* The fast kernel of a row, or NULL. kernel_use_reference(true) hides them all, for tests. */
const kernel_impl *kernel_find(const char *row);
void kernel_use_reference(bool only);

#endif
