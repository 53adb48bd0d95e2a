/* SPDX-License-Identifier: Apache-2.0
 * Optimisers: functions that build the updates of variables from their gradients, and clipping.
 *
 * Gradients come in as those of the mean loss: the caller has divided by the count. What changes
 * from step to step (rates, corrections) is fed as scalars, computed on the host in double.
 * Everything belongs to the graph; building is local, and every rank builds the same graph. */
#ifndef MTF_OPTIMIZE_H
#define MTF_OPTIMIZE_H

#include "mtf/ops.h"
#include "mtf/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With gradient g, variable w, slots m and v that begin at zero, and step t from 1:
 *   sgd        w -= rate g
 *   momentum   m = momentum m + g;  w -= rate m: the new m, unlike in Mesh-TensorFlow, which takes
 *              the one before the step
 *   nesterov   m = momentum m + g;  w -= rate (g + momentum m)
 *   adam       m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *              w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon); `uncorrected`:
 *              w -= rate m / (sqrt(v) + epsilon), which is Mesh-TensorFlow's
 *   adamw      as adam, and w -= rate weight_decay w (the old w) for the variables that decay
 *   adafactor  see mtf_adafactor_options
 * Sources: Kingma and Ba 2015; Loshchilov and Hutter 2019; Shazeer and Stern 2018. */
typedef enum mtf_optimizer_kind {
    MTF_SGD,
    MTF_MOMENTUM,
    MTF_NESTEROV,
    MTF_ADAM,
    MTF_ADAMW,
    MTF_ADAFACTOR,
    MTF_NUM_OPTIMIZERS,
} mtf_optimizer_kind;

/* How much of the second moment stays in step t, less the offset and at least 1:
 *   pow   1 - t^-exponent
 *   adam  beta2 (1 - beta2^(t - 1)) / (1 - beta2^t), which makes the mean square that of Adam with
 *         its correction */
typedef enum mtf_decay_kind { MTF_DECAY_POW, MTF_DECAY_ADAM } mtf_decay_kind;

/* Adafactor keeps the mean square of a matrix as its means over rows and over columns. With the
 * largest dim d0 and the second-largest d1 (of equal ones the first), decay d of the step:
 *   s = g^2 + epsilon1
 *   vr = d vr + (1 - d) mean over d0 of s;  vc = d vc + (1 - d) mean over d1 of s;
 *   u = g / sqrt(vr / mean over d1 of vr) / sqrt(vc)
 * or, for a variable that is not factored, v = d v + (1 - d) s and u = g / sqrt(v). Then
 *   u = u / max(1, rms(u) / clipping_threshold), rms over the whole tensor,
 *   u = u rate max(rms(w), epsilon2), rms over all but the stacked dims, with
 * multiply_by_parameter_scale, else u = u rate; and w -= u, or with beta1 above 0  m = beta1 m + (1
 * - beta1) u;  w -= m. */
typedef struct mtf_adafactor_options {
    bool multiply_by_parameter_scale;
    bool factored; /* false: no variable is */
    mtf_decay_kind decay;
    double exponent;           /* of decay pow */
    double beta2;              /* of decay adam */
    int64_t decay_offset;      /* steps that are taken off t: those of a training before this one */
    double beta1;              /* 0: no first moment */
    double clipping_threshold; /* 0: no clipping */
    double epsilon1, epsilon2; /* epsilon1 is above 0 in the variables' type */
    int64_t min_dim_size_to_factor; /* of d1 */
    const char *stacked_dims; /* names, apart by `; , .` or space: dims along which variables of
                                 several layers are stacked; neither d0 nor d1. NULL: none */
    const char *exclude_from_parameter_scale; /* pattern: variables without the parameter's scale.
                                                 NULL: none */
} mtf_adafactor_options;

/* The values of the paper and of Mesh-TensorFlow, as an initialiser of the options. */
#define MTF_ADAFACTOR_DEFAULTS                                                                     \
    {                                                                                              \
        .multiply_by_parameter_scale = true, .factored = true, .exponent = 0.8, .beta2 = 0.999,    \
        .clipping_threshold = 1.0, .epsilon1 = 1e-30, .epsilon2 = 1e-3,                            \
        .min_dim_size_to_factor = 128                                                              \
    }

/* The learning rate of the variables that `pattern` matches. */
typedef struct mtf_rate_rule {
    const char *pattern;
    mtf_schedule schedule;
} mtf_rate_rule;

enum {
    MTF_MAX_RATE_RULES = 16,
    MTF_MAX_STEP_SCALARS = MTF_MAX_RATE_RULES + 4,
    MTF_MAX_VARIABLE_UPDATES = 5, /* assignments of one variable: itself and its slots */
};

/* Patterns are extended regular expressions of POSIX; one matches a variable where it matches
 * anywhere in its name ("norm" matches "layer_0/norm/scale"). One that matches no variable is an
 * error. A zeroed field is off. */
typedef struct mtf_optimizer_options {
    mtf_optimizer_kind kind;
    double momentum;     /* momentum and nesterov */
    double beta1, beta2; /* adam and adamw */
    double epsilon;      /* adam and adamw; above 0 in the variables' type */
    bool uncorrected;    /* adam and adamw: no correction of the bias towards 0 */
    double weight_decay; /* adamw only */
    const char
        *exclude_from_weight_decay; /* adamw only: pattern of the variables that do not decay. NULL:
                      those of fewer than two dims, such as scales and biases of norms */
    mtf_adafactor_options adafactor; /* adafactor only */
    mtf_schedule schedule;           /* for mtf_optimizer_scalars */
    int nrules;                      /* learning rates of some variables: the first rule whose */
    const mtf_rate_rule *rules;      /* pattern matches a variable holds for it, no later one */
    double average_decay;            /* above 0: slots with moving averages of the variables,
                                        average = decay average + (1 - decay) w (the new w), which
                                        begin as the variables do */
} mtf_optimizer_options;

/* Variables with their slots, and the scalar placeholders of a step. Slots are not trainable and
 * called "<variable>/m" and so on; one that a variable does not have is NULL. */
typedef struct mtf_optimizer {
    mtf_optimizer_options options;
    int nvariables;
    mtf_tensor **variable;
    mtf_tensor **m, **v;   /* "m", "v": shape of the variable */
    mtf_tensor **vr, **vc; /* "vr", "vc": without d0, without d1 */
    mtf_tensor **average;  /* "average": shape of the variable */
    bool *decays, *scales; /* with weight decay; with the parameter's scale */
    int nslots;            /* all of the above, variable by variable: what a checkpoint needs */
    mtf_tensor **slot;
    int nrates; /* [0]: the schedule's, [1 + k]: that of rule k */
    mtf_tensor *rate[1 + MTF_MAX_RATE_RULES];
    int *rate_of;              /* of each variable */
    mtf_tensor *correction[2]; /* mtf_adam_correction of beta1 and of beta2; NULL: not needed */
    mtf_tensor *decay;         /* mtf_adafactor_decay; NULL: not needed */
    mtf_tensor *novelty;       /* 1 - decay; NULL: not needed */
} mtf_optimizer;

/* Makes slots and placeholders for variables of one floating-point type; f32 and bf16 may stand
 * together. The placeholders are called "learning_rate", "learning_rate_1".., "correction_1",
 * "correction_2", "decay" and "novelty". They and the slots have the variables' type, but f32 for
 * bf16, and so has the work: a variable that is stored as bf16 is rounded once, as it is written.
 * NULL after an error: variables of several types, averages of bf16, an option out of its range, a
 * wrong schedule, a pattern that is broken or matches nothing. */
mtf_optimizer *mtf_optimizer_new(mtf_graph *g, const mtf_optimizer_options *o, int nvariables,
                                 mtf_tensor *const *variables);

/* Builds one step from a gradient per variable, of its shape; a variable whose gradient is NULL
 * stays, and so do its slots. Fills `updates`, which has room for MTF_MAX_VARIABLE_UPDATES per
 * variable, with the assignments (mtf_request) and returns their number; 0 after an error. May be
 * called again for another program. */
int mtf_optimizer_updates(const mtf_optimizer *o, mtf_tensor *const *gradients,
                          mtf_tensor **updates);

/* Exchanges variables and their averages; run twice, nothing has happened. Fills `updates`, which
 * has room for 2 per variable, and returns their number; 0 without averages. */
int mtf_optimizer_swap_averages(const mtf_optimizer *o, mtf_tensor **updates);

typedef struct mtf_step_scalar {
    mtf_tensor *placeholder;
    double value; /* to be fed in the placeholder's type */
} mtf_step_scalar;

/* What to feed in `step` (from 1) of `total`, at most MTF_MAX_STEP_SCALARS; returns their number.
 * The first is the learning rate of the schedule. */
int mtf_optimizer_scalars(const mtf_optimizer *o, int64_t step, int64_t total,
                          mtf_step_scalar *scalars);

/* 1 / (1 - beta^step), for step >= 1. */
double mtf_adam_correction(double beta, int64_t step);
/* The decay of the second moment in a step from 1. */
double mtf_adafactor_decay(const mtf_adafactor_options *o, int64_t step);

/* ---- clipping ---- */

/* sqrt of the sum of the squares of all elements of n tensors (NULL is left out): a scalar. An
 * element that several processors hold counts once. f32 for tensors of bf16. */
mtf_tensor *mtf_global_norm(int n, mtf_tensor *const *tensors);

/* min(1, limit / norm): what to multiply gradients with so that their norm is at most `limit`. */
mtf_tensor *mtf_clip_factor(mtf_tensor *norm, double limit);

/* Limits of gradients; 0: none. Where several are set they act in this order. */
typedef struct mtf_clip {
    double value;         /* of each element: to [-value, value] */
    double variable_norm; /* of the norm of each gradient */
    double norm;          /* of the norm of all together */
} mtf_clip;

/* clipped[i] is gradients[i] (NULL stays) times the scalar `scale` (NULL: 1), clipped. Returns the
 * norm of all gradients times scale, before clipping: a scalar. `clipped` may be `gradients`. */
mtf_tensor *mtf_clip_gradients(int n, mtf_tensor *const *gradients, mtf_tensor *scale,
                               const mtf_clip *c, mtf_tensor **clipped);

#ifdef __cplusplus
}
#endif
#endif
