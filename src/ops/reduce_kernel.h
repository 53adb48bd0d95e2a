/* SPDX-License-Identifier: Apache-2.0
 * The reduction kernel: one place for how local sums are grained and combined.
 *
 * in[0]: any strides; out[0]: compact, of the operand's type, but f32 for sums of bf16. Space dims
 * 0 .. out.rank-1 are the output's. Sums of f32 are formed in runs of 16 lanes that are combined in
 * double, so long sums keep their precision. No element where the block is empty: the identity (0,
 * -inf, +inf, or the extreme i32). */
#ifndef OPS_REDUCE_KERNEL_H
#define OPS_REDUCE_KERNEL_H

#include "base/kernel.h"

typedef enum reduce_kind { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } reduce_kind;

/* Grains [begin, end) of the reduction. */
void reduce_run(const kernel_args *k, reduce_kind kind, int64_t begin, int64_t end);
int64_t reduce_grains(const kernel_args *k);

#endif
