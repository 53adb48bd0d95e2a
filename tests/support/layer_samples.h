/* SPDX-License-Identifier: Apache-2.0
 * Every layer as a pseudo-row of trait TRAIT_COMPOSED with samples, as rows have them: for the
 * tests that rows go through. */
#ifndef TESTS_SUPPORT_LAYER_SAMPLES_H
#define TESTS_SUPPORT_LAYER_SAMPLES_H

#include "graph/op.h"

extern const op layer_samples_norm[], layer_samples_dense[];
extern const int layer_samples_norm_count, layer_samples_dense_count;

/* Layer i of all, or NULL behind the last. */
static inline const op *layer_sample(int i)
{
    if (i < layer_samples_norm_count) return &layer_samples_norm[i];
    i -= layer_samples_norm_count;
    return i < layer_samples_dense_count ? &layer_samples_dense[i] : NULL;
}

#endif
