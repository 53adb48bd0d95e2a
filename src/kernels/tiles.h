/* SPDX-License-Identifier: Apache-2.0
 * Elementwise work: walks the result in runs and calls a row's function for each.
 *
 * Operands may have any strides; the result is compact and row-major over the first dims of the
 * iteration space. Grains are fixed ranges of the result's elements. Nothing is done for an empty
 * block. */
#ifndef KERNELS_TILES_H
#define KERNELS_TILES_H

#include "base/kernel.h"

/* Grains [begin, end). `indexed`: the function reads the global index, and k->attr begins with a
 * tile_origin. */
void tiles_run(tile_fn *fn, bool indexed, const kernel_args *k, int64_t begin, int64_t end);
int64_t tiles_grains(const kernel_args *k);

#endif
