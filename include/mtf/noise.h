/* SPDX-License-Identifier: Apache-2.0
 * Dropout and other noise of activations, and a limit on their gradients. Random values depend on
 * the seed, the name, the step and the element alone (mtf/ops.h). */
#ifndef MTF_NOISE_H
#define MTF_NOISE_H

#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mtf_dropout with one random choice for all elements that differ only in dims that `noise` lacks:
 * `noise` is made of dims of x, in any order. Shape of x. */
mtf_tensor *mtf_dropout_shared(mtf_tensor *x, const char *name, double rate, mtf_shape noise);

/* As mtf_dropout_shared, but each element stays with probability `keep`, a scalar of x's type above
 * 0, such as a placeholder that is fed with mtf_annealed_keep. At 1 and above the result is x. */
mtf_tensor *mtf_dropout_keep(mtf_tensor *x, const char *name, mtf_tensor *keep, mtf_shape noise);

/* The probability of staying that rises from 1 - rate at step `begin` to 1 at step `end`:
 * 1 - rate + rate (step - begin) / (end - begin), within [1 - rate, 1]. rate in [0, 1), begin <
 * end.
 */
double mtf_annealed_keep(double rate, int64_t begin, int64_t end, int64_t step);

/* x times uniform numbers from 1 - epsilon to 1 + epsilon; epsilon 0 gives x. Shape of x. */
mtf_tensor *mtf_multiplicative_jitter(mtf_tensor *x, const char *name, double epsilon);

/* x; but the gradient that flows back is divided by max(1, its root mean square / limit). limit >
 * 0. Shape of x. */
mtf_tensor *mtf_clip_activation_gradient(mtf_tensor *x, double limit);

#ifdef __cplusplus
}
#endif
#endif
