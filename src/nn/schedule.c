/* SPDX-License-Identifier: Apache-2.0
 * What the host computes for each step, in double: learning rates and Adam's corrections. */
#include <math.h>

#include "mtf/optimize.h"

double mtf_learning_rate(mtf_schedule kind, int64_t step, int64_t total, int64_t warmup,
                         double base, double min)
{
    if (step <= warmup) return base * (double)step / (double)warmup;
    const double x = step < total ? (double)(step - warmup) / (double)(total - warmup) : 1.0;
    switch (kind) {
    case MTF_SCHEDULE_LINEAR:
        return base + (min - base) * x;
    case MTF_SCHEDULE_COSINE:
        return min + (base - min) * 0.5 * (1.0 + cos(3.14159265358979323846 * x));
    case MTF_SCHEDULE_RSQRT:
        return fmax(min, base * sqrt((double)(warmup > 1 ? warmup : 1) / (double)step));
    case MTF_SCHEDULE_CONSTANT:
        break;
    }
    return base;
}

/* -expm1 keeps the digits that 1 - beta^step loses for a beta near 1. */
double mtf_adam_correction(double beta, int64_t step)
{
    return beta > 0 ? -1.0 / expm1((double)step * log(beta)) : 1.0;
}
