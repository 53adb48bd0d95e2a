/* SPDX-License-Identifier: Apache-2.0
 * Windows of a corpus: what one sequence of a batch sees.
 *
 * A part of n tokens is cut into windows of `length`: window w predicts tokens wL + 1 up to and
 * with min((w + 1) L, n - 1), each from those before it in the window. So every token but the very
 * first is predicted exactly once in an epoch. Which window stands at which place of which batch
 * depends on the seed alone, never on the mesh. All local. */
#ifndef TEXT_BATCHES_H
#define TEXT_BATCHES_H

#include "text/corpus.h"

typedef struct batches {
    const corpus *c; /* borrowed */
    corpus_range range;
    int64_t length;  /* tokens of a window */
    int64_t windows; /* in one epoch; the last may be short */
    uint64_t seed;
    bool is_shuffled;
} batches;

/* For training: shuffled anew in every epoch. MTF_INVALID when the part is shorter than one window
 * and its last target, length + 1 tokens. */
mtf_status batches_train(batches *b, const corpus *c, corpus_range range, int64_t length,
                         uint64_t seed, mtf_err *err);

/* For validation: the windows in order, one epoch. MTF_INVALID for fewer than 2 tokens. */
mtf_status batches_valid(batches *b, const corpus *c, corpus_range range, int64_t length,
                         mtf_err *err);

/* The window at a position: step * batch + place in the batch for training, 0 .. windows - 1 for
 * validation. Writes `length` inputs and targets. Where the text has ended, and for validation at
 * positions from `windows` on, inputs are 0 and targets -1: not counted. */
void batches_window(const batches *b, int64_t position, int32_t *inputs, int32_t *targets);

/* How many targets of that window count. */
int64_t batches_real_tokens(const batches *b, int64_t position);

/* Sum of batches_real_tokens over positions [first, first + count). */
int64_t batches_real_tokens_of(const batches *b, int64_t first, int64_t count);

#endif
