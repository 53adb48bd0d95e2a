/* SPDX-License-Identifier: Apache-2.0
 * Norms: layer norm, RMS norm and batch norm. Variables and their use are apart, as everywhere in
 * mtf/nn.h. Means over a split dim are summed between processors, one number per element of the
 * result's other dims; nothing is gathered. */
#ifndef MTF_NORM_H
#define MTF_NORM_H

#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MTF_NORM_SCALE = 1, MTF_NORM_BIAS = 2 };

/* A layer or RMS norm over the dims `along` together. */
typedef struct mtf_norm {
    mtf_shape along;
    mtf_tensor *scale; /* [along], begins as ones; NULL: there is none */
    mtf_tensor *bias;  /* [along], begins as zeros; NULL: there is none */
} mtf_norm;

/* Variables <name>/scale and <name>/bias, as far as `parts` has MTF_NORM_SCALE and MTF_NORM_BIAS;
 * it may be 0. */
mtf_norm mtf_norm_variables(mtf_graph *g, const char *name, mtf_shape along, unsigned parts,
                            mtf_dtype type);
mtf_norm mtf_norm_variables_typed(mtf_graph *g, const char *name, mtf_shape along, unsigned parts,
                                  mtf_variable_types types);

/* (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance (the mean square of
 * the distance from the mean) over the norm's dims, which x has; the usual epsilon is 1e-6. Shape
 * of x. Norms of bf16 are worked out in f32. (Ba et al., 2016, "Layer normalization".) */
mtf_tensor *mtf_layer_norm(mtf_tensor *x, mtf_norm norm, double epsilon);

/* x / sqrt(mean of x^2 + epsilon) * scale + bias; usually there is no bias. As mtf_layer_norm.
 * (Zhang and Sennrich, 2019, "Root mean square layer normalization".) */
mtf_tensor *mtf_rms_norm(mtf_tensor *x, mtf_norm norm, double epsilon);

/* A batch norm of the channels, over all other dims of what it is applied to. */
typedef struct mtf_batch_stats {
    mtf_shape channels;
    mtf_tensor *scale, *bias;    /* [channels], trainable; begin as ones (or zeros) and zeros */
    mtf_tensor *mean, *variance; /* [channels], not trainable: moving averages for inference, which
                                    begin as 0 and 1 */
} mtf_batch_stats;

/* Variables <name>/scale, /bias, /mean and /variance. With `zero_scale` the scale begins as zeros,
 * so that a residual branch that ends with this norm begins as nothing (Goyal et al., 2017). */
mtf_batch_stats mtf_batch_norm_variables(mtf_graph *g, const char *name, mtf_shape channels,
                                         bool zero_scale, mtf_dtype type);

/* For training: (x - mean) / sqrt(variance + epsilon) * scale + bias with mean and variance (mean
 * square of the distance) of x itself over all its dims but the channels. updates[0] and [1] are
 * the assignments of the moving averages, momentum * old + (1 - momentum) * new, which belong to
 * the updates of the program; `momentum` is in [0, 1]. Shape of x. (Ioffe and Szegedy,
 * 2015, "Batch normalization".) */
mtf_tensor *mtf_batch_norm(mtf_tensor *x, mtf_batch_stats s, double momentum, double epsilon,
                           mtf_tensor *updates[2]);

/* For inference: the same with the moving averages. */
mtf_tensor *mtf_batch_norm_inference(mtf_tensor *x, mtf_batch_stats s, double epsilon);

#ifdef __cplusplus
}
#endif
#endif
