/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic peak of the machine, measured, for shares of peak in reports. */
#ifndef BASE_PEAK_H
#define BASE_PEAK_H

#include "mtf/types.h"

/* GFLOP/s of multiply-adds (two operations each) of f32, f64 or bf16 with sums in f32 that
 * `threads` threads reach together with operands in registers; of bf16 on a machine without vector
 * instructions for it, those of f32. Takes about 30 milliseconds, on an otherwise idle machine. */
double peak_flops(mtf_dtype type, int threads);

#endif
