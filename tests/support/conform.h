/* SPDX-License-Identifier: Apache-2.0
 * The conformance of a row: a sample's value and gradients against finite differences, and under
 * every layout against one processor. */
#ifndef TESTS_SUPPORT_CONFORM_H
#define TESTS_SUPPORT_CONFORM_H

#include "graph/op.h"

/* What the layouts of all samples so far have covered. */
typedef struct coverage coverage;
coverage *coverage_new(void);
void coverage_free(coverage **c);
/* One line per row, dim and role: meshes under which it was cut evenly and unevenly. Allocated with
 * malloc. */
char *coverage_text(const coverage *c);
/* One line per sample and mesh: how many legal layouts move nothing, and for every other one the
 * calls and bytes of its collectives. So no change moves more, unseen. Belongs to `c`. */
const char *coverage_volume(coverage *c);
/* Is there a dim of a row, but for WHOLE ones, that was never cut, or a row none of whose dims of a
 * role was cut evenly, or unevenly? Names the first in `text`. */
bool coverage_has_gap(const coverage *c, char *text, size_t room);

/* Runs sample k of a row; false when there is no such sample. Fails the test on a mismatch. */
bool conform_sample(const op *row, int k, coverage *c);

/* The same sample with bf16 in the place of f64: its value and gradients, on one processor and
 * under every layout of two meshes, are those of f64 up to a few roundings. */
bool conform_sample_bf16(const op *row, int k);

/* The pseudo-row of a layer that the function `fn` builds samples of. */
#define CONFORM_LAYER(fn)                                                                          \
    {                                                                                              \
        .name = #fn, .traits = TRAIT_COMPOSED, .sample = fn                                        \
    }

/* Runs all samples of all layers (layer_samples.h); those called `only` alone where it is not NULL.
 * What they move is compared with the golden file. */
void conform_layers(const char *only, const char *golden);

/* What the tests feed to a placeholder of a sample, by the first word of its name; free with
 * mem_free. `at` counts the numbers that were drawn. */
void *sample_data(const mtf_tensor *t, int64_t *at);

#endif
