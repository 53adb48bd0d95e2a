/* SPDX-License-Identifier: Apache-2.0
 * Sessions: programs that run, and the state that they share.
 *
 * Without a launcher one process hosts all processors of the mesh. Under mpirun or srun each rank
 * hosts one, and every function here that is called collective must be called by all ranks with the
 * same arguments. Results are the same bits either way. */
#ifndef MTF_SESSION_H
#define MTF_SESSION_H

#include "mtf/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call first, and mtf_finish last, in a program that may run under a launcher. *ranks and *rank may
 * be NULL. Fails where the launcher and the MPI library disagree. */
mtf_status mtf_launch(int *ranks, int *rank, mtf_err *err);
void mtf_finish(void);

typedef struct mtf_session mtf_session;

typedef struct mtf_session_options {
    int threads;   /* workers, to 4096; 0: OMP_NUM_THREADS, else the processor affinity */
    uint64_t seed; /* of all random values */
} mtf_session_options;

/* Memory for `programs` (at least one), which share mesh, state and one slab, and everything that
 * running needs. NULL after an error: programs that differ in their mesh, their variables or how
 * these are cut, a mesh that does not fit the number of ranks, more memory than the machine has.
 * Programs must outlive the session. `options` may be NULL: all zero. State is zero until the
 * initial program has run or mtf_state_set. Collective. */
mtf_session *mtf_session_new(int nprograms, mtf_program *const *programs,
                             const mtf_session_options *options, mtf_err *err);
void mtf_session_free(mtf_session **s);

/* Fills one block of a placeholder: `extent` elements per dim from `offset`, row-major, into
 * `block`. Called once per processor that this process hosts and whose block is not empty, from one
 * thread. */
typedef mtf_status mtf_feed_fn(void *ctx, const int64_t *offset, const int64_t *extent, void *block,
                               mtf_err *err);

/* The value of a placeholder: a whole array of the placeholder's type (mtf_dtype; read during the
 * run only), or a callback. */
typedef struct mtf_feed {
    mtf_tensor *placeholder;
    const void *data;
    mtf_feed_fn *fn;
    void *ctx;
} mtf_feed;

typedef struct mtf_run_values {
    uint64_t step;        /* for random values */
    int64_t batch_offset; /* for microbatches; see mtf_graph_set_batch */
} mtf_run_values;

/* Runs a program of the session. fetched[i] (may be NULL, as may `fetched`) receives the whole of
 * fetch i, row-major, on every rank. Fails, before anything runs, where a placeholder that the
 * program needs has no feed or two, or a feed has neither data nor a callback, and where a callback
 * fails; feeds that the program does not need are left alone. `values` may be NULL: step 0.
 * Collective. */
mtf_status mtf_run(mtf_session *s, const mtf_program *p, int nfeeds, const mtf_feed *feeds,
                   void *const *fetched, const mtf_run_values *values, mtf_err *err);

/* The whole of a variable, row-major, on every rank; sets it everywhere. Fails where it is no
 * variable of the session. Collective. */
mtf_status mtf_state_get(mtf_session *s, const mtf_tensor *variable, void *whole, mtf_err *err);
mtf_status mtf_state_set(mtf_session *s, const mtf_tensor *variable, const void *whole,
                         mtf_err *err);

/* True on the one process that should print. */
bool mtf_session_is_root(const mtf_session *s);

/* Bytes: per processor of variables (state), of all other values (slab), and of what collectives
 * and exchanges move through (scratch); of the workspace of kernels, for all workers of a process
 * together. */
typedef struct mtf_memory {
    int64_t state, slab, scratch, workers;
} mtf_memory;

/* What a session for these programs takes, known before there is one: the programs of a session
 * share state and one slab. `threads` as in the options. `processes`: each processor is a process
 * of its own, as under a launcher; else one process hosts all of them, which needs no scratch, and
 * takes state and slab once per processor. It is what the processor with the largest blocks uses.
 * Where dims are cut unevenly scratch may be more, by an element per row, and so may workspace,
 * which is the most over all combinations of block sizes. Local; all ranks find the same. */
mtf_memory mtf_plan_memory(int nprograms, mtf_program *const *programs, int threads,
                           bool processes);

/* What the session allocated: its plan. */
mtf_memory mtf_session_memory(const mtf_session *s);

#ifdef __cplusplus
}
#endif
#endif
