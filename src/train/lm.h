/* SPDX-License-Identifier: Apache-2.0
 * A language model ready to run: the graph of a configuration, its programs, its session.
 *
 * A training step is one program; with microbatches it is one program per size of microbatch, which
 * adds to accumulators, and one that applies them. All programs share the variables. */
#ifndef TRAIN_LM_H
#define TRAIN_LM_H

#include "exec/session.h"
#include "mtf/gradient.h"
#include "mtf/nn.h"
#include "mtf/optimize.h"
#include "train/config.h"

enum { LM_TRAIN = 1, LM_EVAL = 2, LM_PREDICT = 4, LM_GRADIENTS = 8 };

/* A batch of one size: its placeholders and the program that reads them. */
typedef struct lm_batch {
    int64_t size; /* sequences */
    mtf_tensor *inputs, *targets;
    mtf_program *program;
} lm_batch;

typedef struct lm {
    const config *config; /* borrowed */
    int64_t vocab;
    mtf_graph *graph;
    mtf_mesh *mesh;
    mtf_layout *layout;
    mtf_program *initial;
    lm_batch micro[2];  /* [0]: floor(batch / microbatches), or the whole batch; [1]: one more */
    int nmicro;         /* sizes that exist */
    mtf_program *apply; /* NULL without microbatches */
    mtf_program *swap;  /* exchanges weights and their averages; NULL: none, or no evaluation */
    lm_batch eval;      /* fetches loss_sum, count */
    lm_batch predict;   /* one sequence; fetches logits [batch length vocab] */
    lm_batch gradients; /* the whole batch; fetches loss_sum, count and every gradient of loss_sum
                           in the order of `variables` */
    mtf_variable_types types; /* of the trainable variables */
    mtf_dtype dtype; /* of loss, count, fetched logits, accumulators and the scalars of a step: that
                        of activations, but f32 for bf16 */
    mtf_optimizer *optimizer; /* NULL unless LM_TRAIN */
    mtf_transformer *transformer;
    int nvariables; /* trainable */
    mtf_tensor **variables;
    int nsaved; /* what a checkpoint holds: variables, then optimizer slots */
    mtf_tensor **saved;
    int64_t parameters;       /* elements of the trainable variables */
    int64_t model_parameters; /* without the embedding tables; the softmax weights once */
    int64_t resumed_at;       /* the step of the checkpoint that was loaded */
    mtf_session *session;     /* NULL until lm_start */
    arena *mem;
} lm;

/* What is built: parts as LM_ bits; `vocab` is the size to use; warnings of the layout. */
typedef struct lm_request {
    unsigned parts;
    int64_t vocab;
    bool strict;
    const char *mesh, *layout; /* NULL: the configuration's */
    int dtype;                 /* of everything; -1: the configuration's */
} lm_request;

/* Builds graph and programs; allocates nothing large. MTF_INVALID for what the graph, the mesh, the
 * layout or the compiler refuses. `warning` may be NULL. Local. */
mtf_status lm_open(const config *c, const lm_request *r, lm **out, mtf_err *warning, mtf_err *err);
void lm_close(lm **m);

/* What the session will take of memory; see mtf_plan_memory. Local. */
mtf_memory lm_memory(const lm *m, int threads, bool processes);
/* Makes the session. Collective. */
mtf_status lm_start(lm *m, int threads, mtf_err *err);
/* Gives every variable its initial value. Collective. */
mtf_status lm_initialise(lm *m, mtf_err *err);

/* Sequences of microbatch i of the step, and where it begins: floor(i n / k). */
int64_t lm_microbatch(const lm *m, int64_t i, int64_t *first);

/* Model flops of a training step: 6 N tokens + 12 layers heads d_kv length tokens. */
double lm_model_flops(const lm *m);
/* Flops that one processor executes in a training step, and bytes of its memory. */
double lm_step_flops(const lm *m);

#endif
