/* SPDX-License-Identifier: Apache-2.0
 * Schedules: learning rates over the steps of a run, as products of factors.
 *
 * Everything here is computed on the host in double. A step counts from 1, as in the log of a run:
 * the value of step 1 goes with the first update. Nothing allocates and nothing is shared. */
#ifndef MTF_SCHEDULE_H
#define MTF_SCHEDULE_H

#include "mtf/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MTF_MAX_FACTORS = 8, MTF_MAX_ARGUMENTS = 15 };

/* With step s of T in all, the factors and their arguments (and what stands for one that is not
 * given). An argument called `part` is a number of steps where it is above 1, else a part of T.
 *   constant(value 1)                       value
 *   linear_warmup(part 10000)               min(1, s / part)
 *   linear_decay(part 0.1)                  min(1, (T - s) / part), at least 0
 *   rsqrt(warmup 10000)                     1 / sqrt(max(s, warmup))
 *   linear(from 0, floor 0)                 1 up to step `from`, then straight to `floor` at T
 *   cosine(from 0, floor 0)                 1 up to step `from`, then half a cosine to `floor` at T
 *   inverse_sqrt(from 1, floor 0)           max(floor, sqrt(from / max(s, from)))
 *   relative(highest 0.01)                  min(highest, 1 / sqrt(s)): Adafactor's own (times 0.05
 *                                           where it does not multiply by the parameter scale)
 *   noam(warmup 10000, fraction 0.1, multiplier 1)
 *                                           rsqrt(warmup) linear_decay(fraction) multiplier; a
 *                                           fraction of 0: no decay
 *   slanted_triangular(cut 0.1, ratio 32, highest 0.01, start 0)
 *                                           highest (1 + p (ratio - 1)) / ratio, where p rises from
 *                                           0 to 1 over the first floor(T cut) steps behind
 *                                           `start`, then falls back (Howard and Ruder 2018)
 *   linear_decay_learning_rate(initial 0.1, offset 0)
 *                                           initial min(1, (T - s) / (T - offset)), at least 0
 *   piecewise(value, step, value, ..)       the value that stands behind the last step below s
 * Source: the schedules of Mesh-TensorFlow, which count s from 0. */
typedef enum mtf_factor_kind {
    MTF_FACTOR_CONSTANT,
    MTF_FACTOR_LINEAR_WARMUP,
    MTF_FACTOR_LINEAR_DECAY,
    MTF_FACTOR_RSQRT,
    MTF_FACTOR_LINEAR,
    MTF_FACTOR_COSINE,
    MTF_FACTOR_INVERSE_SQRT,
    MTF_FACTOR_RELATIVE,
    MTF_FACTOR_NOAM,
    MTF_FACTOR_SLANTED_TRIANGULAR,
    MTF_FACTOR_LINEAR_DECAY_LEARNING_RATE,
    MTF_FACTOR_PIECEWISE,
    MTF_NUM_FACTOR_KINDS,
} mtf_factor_kind;

typedef struct mtf_factor {
    mtf_factor_kind kind;
    int narguments; /* those that are given; the others have their defaults */
    double argument[MTF_MAX_ARGUMENTS];
} mtf_factor;

/* A product; of no factors it is 1. */
typedef struct mtf_schedule {
    int nfactors;
    mtf_factor factor[MTF_MAX_FACTORS];
    int64_t offset; /* is taken off the step and the number of steps; 0 before that step */
} mtf_schedule;

/* The value of `step` in a run of `total` steps. The schedule is one that mtf_schedule_check or
 * mtf_schedule_parse accepts. Behind the last step it is the value of the last. */
double mtf_schedule_rate(const mtf_schedule *s, int64_t step, int64_t total);

/* MTF_INVALID where the schedule has too many factors, one of no known kind, or an argument out of
 * its range; names factor, argument and range. */
mtf_status mtf_schedule_check(const mtf_schedule *s, mtf_err *err);

/* Reads "linear_warmup(1000) * rsqrt(1000) * 0.5": factors with their arguments, or plain numbers,
 * joined by `*`. Arguments may be left out from the right. The offset is 0. MTF_INVALID, and *out
 * as it was, with the place and what is expected there. */
mtf_status mtf_schedule_parse(const char *text, mtf_schedule *out, mtf_err *err);

#ifdef __cplusplus
}
#endif
#endif
