/* SPDX-License-Identifier: Apache-2.0
 * One training step and one validation. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/feeds.h"
#include "train/lm.h"

typedef struct step_result {
    double loss;      /* nats per real token, before the update */
    double grad_norm; /* of the gradient that is divided by the count, before clipping */
    double learning_rate;
    int64_t tokens; /* real ones */
} step_result;

/* Runs step `index` (from 0) on the windows that `f` gives. MTF_FAILED where the loss or the norm
 * is not finite; the state is then not to be saved. Collective. */
mtf_status step_train(lm *m, token_feed *f, int64_t index, step_result *out, mtf_err *err);

typedef struct step_valid {
    double loss; /* nats per token */
    double loss_sum;
    int64_t tokens;
} step_valid;

/* e to the power of a loss. A model that has diverged may have one that no double holds; it is then
 * the largest double, as JSON has no infinity. */
double step_perplexity(double nats);

/* The loss over all windows of `b` (not shuffled), in batches of m->eval.size; of the averages of
 * the weights where the model keeps them. Collective. */
mtf_status step_validate(lm *m, const batches *b, step_valid *out, mtf_err *err);

#endif
