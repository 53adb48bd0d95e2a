/* SPDX-License-Identifier: Apache-2.0
 * The optimiser of a configuration, and how a step ends: from sums over tokens to the update. */
#ifndef TRAIN_UPDATE_H
#define TRAIN_UPDATE_H

#include "train/lm.h"

/* Makes m->optimizer. */
mtf_status update_optimizer(lm *m, mtf_err *err);

/* Builds the update from the sums of gradients: divided by the count and clipped. Fills `updates`,
 * returns their number; *norm is that of the mean gradient before clipping. */
int update_build(lm *m, mtf_tensor *count, mtf_tensor *const *gradients, mtf_tensor **updates,
                 mtf_tensor **norm);

#endif
