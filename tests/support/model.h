/* SPDX-License-Identifier: Apache-2.0
 * A small Transformer with its gradients, under any mesh and layout. */
#ifndef TESTS_SUPPORT_MODEL_H
#define TESTS_SUPPORT_MODEL_H

#include "mtf/mtf.h"

enum { MODEL_MAX_VARIABLES = 96 };

/* A graph with one instance of the model. The gradients are those of the summed loss. */
typedef struct model {
    mtf_graph *g;
    mtf_transformer *m;
    mtf_transformer_tensors t;
    mtf_tensor *gradient[MODEL_MAX_VARIABLES];
    int64_t batch;
} model;

/* Builds it for whole sequences, training. Fails the test on an error. */
model model_new(const mtf_transformer_options *o, int64_t batch);

/* A mesh, a layout, one program and the initial one, and a session that holds them. */
typedef struct machine {
    mtf_mesh *mesh;
    mtf_layout *layout;
    mtf_program *initial, *program;
    mtf_session *session;
} machine;

/* Compiles, makes the session with seed 3 and initialises the variables. Fails the test. */
machine machine_new(mtf_graph *g, const char *mesh, const char *layout, const mtf_request *r);
void machine_free(machine *m);

/* The elements of a tensor. */
int64_t tensor_size(const mtf_tensor *t);

#endif
