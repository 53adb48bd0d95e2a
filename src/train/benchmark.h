/* SPDX-License-Identifier: Apache-2.0
 * The speed of training steps. */
#ifndef TRAIN_BENCHMARK_H
#define TRAIN_BENCHMARK_H

#include "base/err.h"
#include "train/config.h"

typedef struct benchmark_result {
    int64_t steps;
    int threads;
    double step_seconds; /* median */
    double tokens_per_second;
    double gflops;        /* model flops (lm_model_flops) per second */
    double peak_gflops;   /* multiply-adds of train.dtype in registers, measured in the same run */
    double share_of_peak; /* gflops / peak_gflops */
    double executed_gflops; /* flops of all instructions of all processors per second */
} benchmark_result;

/* Runs `steps` training steps after a warm-up, on the configuration's text or, where it names none,
 * on random tokens. Writes nothing. `warning` (may be
 * NULL) is of the layout. Collective. */
mtf_status benchmark_run(const config *c, int64_t steps, int threads, bool strict,
                         benchmark_result *r, mtf_err *warning, mtf_err *err);

#endif
