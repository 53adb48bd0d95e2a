/* SPDX-License-Identifier: Apache-2.0
 * Initial values of weights, activations by name, and dense layers.
 *
 * Variables and their use are apart: <layer>_variables makes variables once, <layer> builds the
 * layer over them any number of times. A layer's struct is open: any tensors of these shapes may
 * stand in it. `type` is that of the activations; weights have mtf_variable_types_for(type). After
 * an error the graph holds the message (mtf/graph.h). */
#ifndef MTF_DENSE_H
#define MTF_DENSE_H

#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values ---- */

typedef enum mtf_initializer_kind { MTF_VARIANCE_SCALING, MTF_CONSTANT_VALUE } mtf_initializer_kind;
/* The size that the variance is divided by: of the dims that a product sums over, of those that it
 * makes, or the mean of both. */
typedef enum mtf_fan { MTF_FAN_IN, MTF_FAN_OUT, MTF_FAN_AVG } mtf_fan;
/* All have mean 0 and the stated deviation; a truncated one is cut at 2.27 deviations (the normal
 * distribution that it is cut from at two of its own), a uniform one ends at sqrt(3). */
typedef enum mtf_distribution {
    MTF_DISTRIBUTION_TRUNCATED_NORMAL,
    MTF_DISTRIBUTION_NORMAL,
    MTF_DISTRIBUTION_UNIFORM,
} mtf_distribution;

/* Numbers of deviation sqrt(scale / fan), or a constant. Zeroed: scale 1, fan-in, truncated normal.
 * (He et al. 2015.) */
typedef struct mtf_initializer {
    mtf_initializer_kind kind;
    double value; /* of a constant */
    double scale; /* 0 stands for 1 */
    mtf_fan fan;
    mtf_distribution distribution;
    bool unit; /* deviation sqrt(scale), whatever the fan-in is: for products that divide by its
                  root themselves (mtf_unit_einsum); fan-out and the mean are errors */
} mtf_initializer;

#define MTF_INITIAL_ZEROS ((mtf_initializer){.kind = MTF_CONSTANT_VALUE, .value = 0.0})
#define MTF_INITIAL_ONES  ((mtf_initializer){.kind = MTF_CONSTANT_VALUE, .value = 1.0})

/* A trainable variable that begins as `i` says; `in` and `out` are what the fan is made of. Its
 * types are mtf_variable_types_for(type). */
mtf_tensor *mtf_initialized(mtf_graph *g, const char *name, mtf_shape shape, mtf_shape in,
                            mtf_shape out, const mtf_initializer *i, mtf_dtype type);

/* mtf_einsum over sqrt(size of the dims that are summed over): of operands of variance 1 and mean 0
 * a result of variance 1. */
mtf_tensor *mtf_unit_einsum(int n, mtf_tensor *const *xs, mtf_shape output);

/* ---- activations ---- */

/* The elementwise function called `name`: linear (x itself; NULL is the same), relu, gelu, swish,
 * sigmoid, tanh, softplus, elu, selu, exp, square, sin, cos. An unknown name is an error that tells
 * the nearest. */
mtf_tensor *mtf_activate(mtf_tensor *x, const char *name);

/* ---- dense ---- */

typedef struct mtf_dense_options {
    mtf_shape reduced; /* dims of x that are summed over */
    mtf_shape out;     /* dims that come in their place */
    mtf_shape expert;  /* dims of x that index weights of their own: experts, ensembles, channels */
    bool bias;
    const char *activation; /* as in mtf_activate */
    mtf_initializer kernel;
    bool unit_scaling; /* weights of variance 1, and mtf_unit_einsum */
} mtf_dense_options;

/* The weights of activation(x kernel + bias). */
typedef struct mtf_dense_weights {
    mtf_tensor *kernel;    /* [expert.. reduced.. out..]; a reduced dim whose name is that of an out
                              dim as well is called "_<name>" */
    mtf_tensor *bias;      /* [expert.. out..], or NULL */
    int nexpert, nreduced; /* how many dims of kernel */
    const char *activation; /* NULL: none */
    bool unit_scaling;
} mtf_dense_weights;

/* Variables <name>/kernel and, beginning as zeros, <name>/bias. Fails where a dim is in two of the
 * lists (but for a reduced one among `out`), and for an unknown activation. */
mtf_dense_weights mtf_dense_variables(mtf_graph *g, const char *name, const mtf_dense_options *o,
                                      mtf_dtype type);

/* Dims of x without the reduced ones, then the out dims. Fails where x lacks a reduced or expert
 * dim, or has an out dim that is not reduced. */
mtf_tensor *mtf_dense_layer(mtf_tensor *x, const mtf_dense_weights *w);

/* ---- products of dense layers ---- */

enum { MTF_MAX_DENSE_FACTORS = 4 };

/* The product of dense layers of the same input, each with an activation of its own: "linear" and
 * "sigmoid" are GLU, "gelu" and "linear" GEGLU, "swish" and "linear" SwiGLU (Shazeer 2020). */
typedef struct mtf_dense_product {
    int nfactors;
    mtf_dense_weights factor[MTF_MAX_DENSE_FACTORS];
} mtf_dense_product;

/* The variables of one factor are <name>/kernel .., of several <name>_0/kernel, <name>_1/kernel ..
 * `o`'s own activation is not used. */
mtf_dense_product mtf_dense_product_variables(mtf_graph *g, const char *name,
                                              const mtf_dense_options *o, int nactivations,
                                              const char *const *activations, mtf_dtype type);
mtf_tensor *mtf_dense_product_layer(mtf_tensor *x, const mtf_dense_product *p);

/* ---- feed-forward ---- */

/* wo applied to wi(x) after dropout. With one activation "relu" it is dense_relu_dense. */
typedef struct mtf_dense_pair {
    mtf_dense_product wi; /* [channels.. hidden..] */
    mtf_dense_weights wo; /* [hidden.. channels..] */
} mtf_dense_pair;

/* Variables <name>/wi/kernel and <name>/wo/kernel, without biases. */
mtf_dense_pair mtf_dense_pair_variables(mtf_graph *g, const char *name, mtf_shape channels,
                                        mtf_shape hidden, int nactivations,
                                        const char *const *activations, mtf_dtype type);
/* Dropout called "hidden" of `rate`, the same along the hidden tensor's dims that `shared` names
 * (apart by `; , .` or space; NULL: none). Dims of x, the channels last. */
mtf_tensor *mtf_dense_pair_layer(mtf_tensor *x, const mtf_dense_pair *p, double rate,
                                 const char *shared);

/* ---- convolution in two steps ---- */

/* Along one dim, the channels one by one, and then between channels at every position. */
typedef struct mtf_separable_weights {
    int64_t first; /* the relative positions of the filter are first, first + 1, .. */
    int npositions;
    mtf_dense_weights *depthwise; /* of each position: kernel [in], the first one with a bias */
    mtf_dense_weights pointwise;  /* kernel [in out] */
} mtf_separable_weights;

/* For relative positions first to last: variables <name>/depthwise_<i>/kernel of variance
 * 1 / (last - first + 1), <name>/pointwise/kernel, and with `bias` <name>/depthwise_0/bias and
 * <name>/pointwise/bias. Fails for last < first. */
mtf_separable_weights mtf_separable_variables(mtf_graph *g, const char *name, mtf_dim in,
                                              mtf_dim out, int64_t first, int64_t last, bool bias,
                                              mtf_dtype type);
/* pointwise(sum over i of depthwise[i] x at position + first + i along `length`), zeros beyond the
 * ends. Dims of x without `in`, then `out`. */
mtf_tensor *mtf_separable_conv1d(mtf_tensor *x, const mtf_separable_weights *w, const char *length);

#ifdef __cplusplus
}
#endif
#endif
