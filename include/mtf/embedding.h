/* SPDX-License-Identifier: Apache-2.0
 * Embeddings of a vocabulary: from ids to vectors and from hidden vectors to logits, over the same
 * variables. Plain tables, factorised ones, tables in clusters of frequent and rare tokens, and a
 * mixture of softmaxes on top of any of them. Variables and their use are apart, as everywhere in
 * mtf/nn.h. A vocabulary may be split: nothing is gathered then. */
#ifndef MTF_EMBEDDING_H
#define MTF_EMBEDDING_H

#include "mtf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Consecutive ids with a table of their own. */
typedef struct mtf_vocab_cluster {
    int64_t tokens;
    int64_t inner; /* as in the options */
} mtf_vocab_cluster;

/* A zeroed struct with vocab, model and dtype is a plain table. */
typedef struct mtf_vocab_options {
    mtf_dim vocab, model;
    /* The table is the product of [vocab inner] and [inner model]; 0 or the size of `model`: it is
     * one tensor, [vocab model]. Without clusters. */
    int64_t inner;
    /* At most 16; the most frequent tokens first. Their tokens add up to the vocabulary. The dim of
     * each one's table is called as that of the vocabulary. (Grave et al., 2017; Baevski and Auli,
     * 2019, "Adaptive input representations".) */
    int nclusters;
    const mtf_vocab_cluster *clusters; /* read during the call only */
    /* Logits are log sum_k p_k softmax(tanh(h W_k) E) with p = softmax(h M); 0: h E alone. (Yang et
     * al., 2018, "Breaking the softmax bottleneck".) */
    int64_t softmaxes;
    /* Variables begin with deviations that suit logits, and vectors are multiplied by
     * sqrt(size of model); else with those that suit vectors, of deviation 1, and hidden vectors
     * are divided by sqrt(size of model) on the way to logits. */
    bool scale_variable_like_classifier_weights;
    mtf_dtype dtype; /* of vectors and logits; variables as mtf_variable_types_for says */
} mtf_vocab_options;

/* The variables of one cluster; of the whole vocabulary where there are no clusters. */
typedef struct mtf_vocab_part {
    int64_t first;      /* the first of its ids */
    mtf_tensor *table;  /* [vocab model] or [vocab inner] */
    mtf_tensor *factor; /* [inner model], or NULL */
} mtf_vocab_part;

typedef struct mtf_vocab_embedding {
    mtf_vocab_options options; /* clusters are in `part` alone */
    int nparts;
    mtf_vocab_part *part;
    mtf_tensor *mixture; /* M: [softmaxes model], or NULL */
    mtf_tensor *context; /* W: [softmaxes model <model>_context], or NULL */
    int nvariables;      /* all of them */
    mtf_tensor **variable;
} mtf_vocab_embedding;

/* Makes the variables, <name>/table, /factor, /mixture and /context; of clusters
 * <name>/cluster_<k>/table and /factor. They begin as normal numbers: of deviation 1; each of two
 * factors of inner^(-1/4); where they are scaled like those of a classifier, size of model^(-1/2)
 * times that (one of the factors). NULL after an error: a size below 1, counts of clusters that do
 * not add up. */
mtf_vocab_embedding *mtf_vocab_embedding_variables(mtf_graph *g, const char *name,
                                                   const mtf_vocab_options *o);

/* The vectors of i32 ids: their dims, then `model`. Outside of the vocabulary: zeros. */
mtf_tensor *mtf_vocab_vectors(const mtf_vocab_embedding *e, mtf_tensor *ids);

/* Logits for hidden vectors, which have `model` and not `vocab`: their other dims, then `vocab`.
 * With a mixture of softmaxes they are logarithms of probabilities. */
mtf_tensor *mtf_vocab_logits(const mtf_vocab_embedding *e, mtf_tensor *hidden);

#ifdef __cplusplus
}
#endif
#endif
