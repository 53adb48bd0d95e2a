/* SPDX-License-Identifier: Apache-2.0
 * Layers and models: functions that build graphs from the operations of mtf/ops.h and nothing else.
 * They know no mesh and no layout, so any layout works on what they build.
 *
 * Variables and their use are apart: variables are made once, and a layer may be built over them
 * any number of times, at other batch sizes for instance. After an error the graph holds the
 * message and everything here returns NULL tensors (see mtf/graph.h). Building is local; every rank
 * builds the same graph. Everything belongs to the graph. */
#ifndef MTF_NN_H
#define MTF_NN_H

#include "mtf/loss.h"
#include "mtf/norm.h"
#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights and products ---- */

/* The type that functions take which make variables is what layers compute with; the variables have
 * the types of mtf_variable_types_for: those for bf16 are stored as f32. */

/* A trainable variable that begins as normal numbers of deviation `stddev` with mean 0, none beyond
 * 2.3 deviations; with deviation 0 as zeros. Fails for a negative one. */
mtf_tensor *mtf_weight(mtf_graph *g, const char *name, mtf_shape shape, double stddev,
                       mtf_dtype type);
/* The same with types of its own (mtf_variable_typed). Layers read weights with mtf_variable_read.
 */
mtf_tensor *mtf_weight_typed(mtf_graph *g, const char *name, mtf_shape shape, double stddev,
                             mtf_variable_types types);

/* Weights that take tensors with the dims `in` to tensors with the dims `out`: shape [in.. out..],
 * deviation gain / sqrt(size of `in`), which keeps the size of the numbers at gain 1. */
mtf_tensor *mtf_dense_weight(mtf_graph *g, const char *name, mtf_shape in, mtf_shape out,
                             double gain, mtf_dtype type);
mtf_tensor *mtf_dense_weight_typed(mtf_graph *g, const char *name, mtf_shape in, mtf_shape out,
                                   double gain, mtf_variable_types types);

/* x times w, summed over the dims that both have: the other dims of x, then those of w. */
mtf_tensor *mtf_dense(mtf_tensor *x, mtf_tensor *w);

/* Rows of the table [dim ..] at the i32 `indices`: mtf_gather under its usual name. */
mtf_tensor *mtf_embedding(mtf_tensor *table, mtf_tensor *indices, const char *dim);

/* ---- layers ---- */

typedef enum mtf_activation { MTF_RELU, MTF_GELU } mtf_activation;

/* wo applied to the activation of wi applied to x. x [.. d_model], wi [d_model d_ff],
 * wo [d_ff d_model]; shape of x. */
mtf_tensor *mtf_feed_forward(mtf_tensor *x, mtf_tensor *wi, mtf_tensor *wo, mtf_activation a);

/* softmax over `memory` of (q k / sqrt(size of d_kv) + bias), dropped out, times v.
 * q [.. length heads d_kv], k and v [.. memory heads d_kv]; `memory` and `d_kv` name the dims.
 * `bias` may be NULL. The dropout is called "weights". Shape of q. */
mtf_tensor *mtf_attention(mtf_tensor *q, mtf_tensor *k, mtf_tensor *v, mtf_tensor *bias,
                          const char *memory, const char *d_kv, double dropout);

/* ---- reversible residual layers ---- */

/* Two streams of activations, and what carries them back when gradients are taken. */
typedef struct mtf_reversible {
    mtf_tensor *x1, *x2;
    mtf_tensor *back1, *back2; /* of the shapes of x1 and x2; for the functions below alone */
} mtf_reversible;

/* A layer that a reversible stack is made of: the result has the shape and type of x. It reads
 * variables that were made before, and makes none. */
typedef mtf_tensor *mtf_layer_fn(void *context, mtf_tensor *x);

/* Residual layers that keep no activations for the backward pass: it computes those below from
 * those above, and `f` again (Gomez et al., 2017, "The reversible residual network"). So the memory
 * of activations does not grow with the depth. Dropout inside of `f` is the same in both passes;
 * the reconstructed activations differ by rounding.
 *   begin: both streams are x.
 *   layer: (x1, x2) becomes (x2, x1 + f(x2)); `f` is called once, at once.
 *   end: x1 + x2.
 * A pair of streams goes as it is into one layer at most, for that one reconstructs it: a second
 * layer is an error, and so is a stream that was exchanged for another tensor. A stack begins as
 * often as one likes.
 * Layers of attention and feed-forward in turn are the stack of the Reformer. */
mtf_reversible mtf_reversible_begin(mtf_tensor *x);
mtf_reversible mtf_reversible_layer(mtf_reversible s, mtf_layer_fn *f, void *context);
mtf_tensor *mtf_reversible_end(mtf_reversible s);

/* ---- the decoder-only Transformer language model ---- */

typedef struct mtf_transformer_options {
    int64_t vocab, layers, d_model, heads, d_kv, d_ff;
    int64_t length; /* the longest sequence: rows of the table of positions */
    double dropout; /* in [0, 1): of the embedding, attention weights, each sublayer's result */
    mtf_softmax_loss loss; /* where training: smoothing of targets, z-loss */
    mtf_activation activation;
    bool tied; /* the softmax weights are the embedding table */
    /* The backward pass computes every n-th layer again instead of keeping what it needs of it; 1
     * means all layers, 0 none. Numbers stay the same. */
    int64_t recompute;
    mtf_dtype dtype;                     /* of activations */
    const mtf_variable_types *variables; /* NULL: mtf_variable_types_for(dtype) */
} mtf_transformer_options;

typedef struct mtf_transformer_layer {
    mtf_norm attention_norm;
    mtf_tensor *wq, *wk, *wv; /* [d_model heads d_kv] */
    mtf_tensor *wo;           /* [heads d_kv d_model] */
    mtf_norm feed_forward_norm;
    mtf_tensor *wi;        /* [d_model d_ff] */
    mtf_tensor *wo_of_ffn; /* [d_ff d_model] */
} mtf_transformer_layer;

/* The variables of a model. */
typedef struct mtf_transformer {
    mtf_transformer_options options;
    mtf_tensor *embedding; /* [vocab d_model] */
    mtf_tensor *positions; /* [max_length d_model] */
    mtf_transformer_layer *layer;
    mtf_norm final_norm;
    mtf_tensor *softmax; /* [d_model vocab], or the embedding where tied */
    int nvariables;      /* all of them, each once */
    mtf_tensor **variable;
} mtf_transformer;

/* What one instance of the model computes. */
typedef struct mtf_transformer_tensors {
    mtf_tensor *inputs;   /* placeholder, i32 [batch stream_length]; outside of the vocabulary: 0 */
    mtf_tensor *targets;  /* placeholder, i32 [batch length]; negative: padding, no loss */
    mtf_tensor *logits;   /* [batch length vocab] */
    mtf_tensor *loss_sum; /* scalar: the sum of the cross-entropy over real tokens; f32 where the
                             model computes in bf16 */
    mtf_tensor *count;    /* scalar of loss_sum's type: how many real tokens */
} mtf_transformer_tensors;

/* Makes the variables, under the current scope. NULL after an error: a size below 1, a wrong type
 * or dropout, recompute below 0. */
mtf_transformer *mtf_transformer_variables(mtf_graph *g, const mtf_transformer_options *o);

/* Builds the model for `batch` sequences of `length` tokens, at most the options' length; dropout
 * is on where `training`. May be called again: instances share variables, and equal dropouts where
 * batch and length are equal or the batch is a microbatch (mtf_graph_set_batch, to be called before
 * each instance). Begins the numbering of random streams anew (mtf_graph_repeat_streams). */
mtf_transformer_tensors mtf_transformer_apply(const mtf_transformer *m, int64_t batch,
                                              int64_t length, bool training);

#ifdef __cplusplus
}
#endif
#endif
