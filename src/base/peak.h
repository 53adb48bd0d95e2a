/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic peak of the machine, measured, for shares of peak in reports. */
#ifndef BASE_PEAK_H
#define BASE_PEAK_H

/* GFLOP/s of f32 multiply-adds (two operations each) that `threads` threads reach together with
 * operands in registers. Takes about 30 milliseconds, on an otherwise idle machine. */
double peak_flops_f32(int threads);

#endif
