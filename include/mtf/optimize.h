/* SPDX-License-Identifier: Apache-2.0
 * Optimisers: functions that build the updates of variables from their gradients, the global norm,
 * and learning rates.
 *
 * Gradients come in as those of the mean loss: the caller has divided by the count. What changes
 * from step to step (the rate, the corrections) is fed as scalars, computed on the host in double.
 * Everything belongs to the graph; building is local, and every rank builds the same graph. */
#ifndef MTF_OPTIMIZE_H
#define MTF_OPTIMIZE_H

#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With gradient g, variable w, slots m and v that begin at zero, and step t from 1:
 *   sgd       w -= rate g
 *   momentum  m = momentum m + g;  w -= rate m
 *   adam      m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *             w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
 *   adamw     as adam, and w -= rate weight_decay w (the old w) for variables of two dims or more:
 *             scales and biases of norms do not decay */
typedef enum mtf_optimizer_kind { MTF_SGD, MTF_MOMENTUM, MTF_ADAM, MTF_ADAMW } mtf_optimizer_kind;

typedef struct mtf_optimizer_options {
    mtf_optimizer_kind kind;
    double momentum;     /* momentum only */
    double beta1, beta2; /* adam and adamw */
    double epsilon;      /* adam and adamw */
    double weight_decay; /* adamw only */
} mtf_optimizer_options;

/* Variables with their slots, and the scalar placeholders of a step. */
typedef struct mtf_optimizer {
    mtf_optimizer_options options;
    int nvariables;
    mtf_tensor **variable;
    mtf_tensor **m, **v;       /* slots "<variable>/m" and "/v", not trainable; NULL: not needed */
    mtf_tensor *rate;          /* the learning rate */
    mtf_tensor *correction[2]; /* mtf_adam_correction of beta1 and of beta2; NULL: not needed */
} mtf_optimizer;

/* Makes slots and placeholders for variables of one floating-point type; f32 and bf16 may stand
 * together. The placeholders are called "learning_rate", "correction_1" and "correction_2". They
 * and the slots have the variables' type, but f32 for bf16, and so has the work: a variable that is
 * stored as bf16 is rounded once, as it is written. NULL after an error. */
mtf_optimizer *mtf_optimizer_new(mtf_graph *g, const mtf_optimizer_options *o, int nvariables,
                                 mtf_tensor *const *variables);

/* Builds one step from a gradient per variable; a variable whose gradient is NULL stays. Fills
 * `updates`, which has room for 3 per variable, with the assignments (mtf_request) and returns
 * their number; 0 after an error. May be called again for another program. */
int mtf_optimizer_updates(const mtf_optimizer *o, mtf_tensor *const *gradients,
                          mtf_tensor **updates);

/* 1 / (1 - beta^step), for step >= 1. */
double mtf_adam_correction(double beta, int64_t step);

/* sqrt of the sum of the squares of all elements of n tensors (NULL is left out): a scalar. An
 * element that several processors hold counts once. f32 for tensors of bf16. */
mtf_tensor *mtf_global_norm(int n, mtf_tensor *const *tensors);

/* min(1, limit / norm): what to multiply gradients with so that their norm is at most `limit`. */
mtf_tensor *mtf_clip_factor(mtf_tensor *norm, double limit);

/* The learning rate of a step from 1 to `total`. While step <= warmup it is base step / warmup.
 * Behind that, with x = (step - warmup) / (total - warmup), at most 1:
 *   constant  base
 *   linear    base + (min - base) x
 *   cosine    min + (base - min) (1 + cos(pi x)) / 2
 *   rsqrt     base sqrt(max(warmup, 1) / step), but at least min
 * so that linear and cosine reach `min` at the last step. */
typedef enum mtf_schedule {
    MTF_SCHEDULE_CONSTANT,
    MTF_SCHEDULE_LINEAR,
    MTF_SCHEDULE_COSINE,
    MTF_SCHEDULE_RSQRT,
} mtf_schedule;
double mtf_learning_rate(mtf_schedule kind, int64_t step, int64_t total, int64_t warmup,
                         double base, double min);

#ifdef __cplusplus
}
#endif
#endif
