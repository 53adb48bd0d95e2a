/* SPDX-License-Identifier: Apache-2.0
 * Losses, element by element: the caller sums or averages. They are compositions, so a vocabulary
 * or a class dim may be split; nothing of its size is gathered, only sums of the other dims move.
 * Losses of bf16 are f32.
 */
#ifndef MTF_LOSS_H
#define MTF_LOSS_H

#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed: the plain loss. */
typedef struct mtf_softmax_loss {
    double label_smoothing; /* in [0, 1]: this part of each target is spread over all classes, its
                               own among them (Szegedy et al. 2016) */
    double z_loss; /* at least 0: z_loss log(Z)^2 is added, with Z the sum of e^logits, which
                      keeps Z near 1 */
} mtf_softmax_loss;

/* The cross-entropy of softmax(logits) along `classes` with the targets:
 *   - sum over classes of t log softmax(logits) + z_loss log(Z)^2,
 * where t is `targets` themselves, of the logits' type and dims; or 1 at the class that i32
 * `targets` name, whose dims are those of logits without `classes`, in any order (an index that is
 * no class, such as a negative one for padding, has the loss 0 as a whole). `o` may be NULL. Fails
 * where dims or types are others, and where an option is out of its range. Dims of logits without
 * `classes`. */
mtf_tensor *mtf_softmax_cross_entropy(mtf_tensor *logits, mtf_tensor *targets, const char *classes,
                                      const mtf_softmax_loss *o);

/* - t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)), without overflow. `targets` have the dims of
 * logits, in any order, and their type. Shape of logits. */
mtf_tensor *mtf_sigmoid_cross_entropy(mtf_tensor *logits, mtf_tensor *targets);

/* 1 where the element of `x` (a floating-point type or i32) is not 0, else 0: weights that leave
 * out padding. Shape of x; of `type`. */
mtf_tensor *mtf_weights_nonzero(mtf_tensor *x, mtf_dtype type);

/* ---- of language models, where a negative target is padding ---- */

/* 1 where the i32 target is a real token (>= 0), else 0. Shape of targets; of any type. */
mtf_tensor *mtf_real_tokens(mtf_tensor *targets, mtf_dtype type);

/* mtf_softmax_cross_entropy along `vocab`, plain: 0 where the target is negative. logits [..
 * vocab], targets [..] i32; shape of targets. */
mtf_tensor *mtf_cross_entropy(mtf_tensor *logits, mtf_tensor *targets, const char *vocab);

#ifdef __cplusplus
}
#endif
#endif
