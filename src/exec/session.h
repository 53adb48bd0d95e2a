/* SPDX-License-Identifier: Apache-2.0
 * A session inside: memory of the hosted processors, programs bound to it, the instruction loop.
 *
 * Invariant: after binding, running allocates nothing. */
#ifndef EXEC_SESSION_H
#define EXEC_SESSION_H

#include "base/pool.h"
#include "exec/plan.h"
#include "kernels/table.h"
#include "mesh/exchange.h"

/* A dim with its cut; the same for many values. Its block per hosted processor is in a table. */
typedef struct dim_class {
    mtf_dim dim;
    split split;
} dim_class;

typedef struct step_view {
    int64_t offset; /* in the processor's memory */
    mtf_dtype dtype;
    int rank;
    int space[MTF_MAX_RANK]; /* COMPUTE: position of the dim in the iteration space */
    int cls[MTF_MAX_RANK];   /* dim class */
} step_view;

/* The exchange of one instruction as this process sees it: every pair of processors that share
 * elements and of which one is hosted here. */
typedef struct exchange_link {
    int src, dst, operand;
    exchange_pair pair;
    int64_t offset; /* of its message in the scratch of the hosted end; -1: both ends are here */
} exchange_link;

typedef struct exchange_list {
    int64_t n;
    exchange_link *link;
    int64_t nmessages;
    comm_msg *message; /* rebuilt for every run, in the order of the links */
} exchange_list;

/* An instruction, ready to run. */
typedef struct exec_step {
    const instr *instr;
    int nspace;
    int *space; /* dim classes of the iteration space */
    step_view *in, *out;
    const kernel_impl *fast; /* NULL: the row's reference kernel or tile */
    const void **plan;       /* per hosted processor, where `fast` prepares */
    exchange_list *exchange; /* where instr_exchanges */
} exec_step;

typedef struct bound {
    const mtf_program *p;
    int nsteps;
    exec_step *step;
    dim_class *cls;
    int64_t nclasses, classes_cap;
    kernel_dim *block; /* [hosted][class] */
    arena *mem;
} bound;

struct mtf_session {
    const mtf_mesh *mesh;
    pool *pool;
    comm *comm;
    int first, nhosted;
    uint64_t seed;
    session_plan plan;
    char **memory;  /* per hosted processor: state, then slab */
    void **scratch; /* per hosted processor, of the collectives */
    char **work;    /* per worker */
    int nbound;
    bound *bound;
    void **ptr[2]; /* per hosted processor: arguments of a collective */
    int64_t *count;
    comm_cut *cut;
    kernel_run run;
};

/* Prepares a program: classes, views, kernels. */
mtf_status session_bind(const mtf_session *s, bound *b, const mtf_program *p, mtf_err *err);
void session_unbind(bound *b);

/* Runs all instructions of a bound program. */
void session_execute(mtf_session *s, const bound *b);

/* exchange.c: lists who gives what to whom, with places in scratch for messages; runs it. */
void exchange_bind(const mtf_session *s, bound *b, exec_step *t);
void exchange_unbind(exec_step *t);
void exchange_run(mtf_session *s, const bound *b, const exec_step *t);

/* The block of dim class `cls` on hosted processor h. */
static inline const kernel_dim *bound_block(const bound *b, int h, int cls)
{
    return &b->block[(int64_t)h * b->nclasses + cls];
}

/* The arguments of a COMPUTE step on hosted processor h; no memory is touched. */
void step_args(const mtf_session *s, const bound *b, const exec_step *t, int h, kernel_args *k);
int64_t step_grains(const exec_step *t, const kernel_args *k);

/* Where a value that lives in the session's memory begins on hosted processor h. */
static inline char *session_memory(const mtf_session *s, int h, int64_t offset)
{
    return s->memory[h] + offset;
}
/* Offset of a value in a processor's memory. */
int64_t session_offset(const mtf_session *s, const value *v);

/* ---- blocks.c: whole tensors and their blocks ---- */

/* Elements [lo, hi) of the flat row-major index of the tensor that `v` holds blocks of, into
 * `out`; each process may ask for another range: lo[q] .. hi[q] for process q. Collective. */
void blocks_gather(mtf_session *s, const value *v, const int64_t *lo, const int64_t *hi, void *out);
/* The reverse: process q holds elements lo[q] .. hi[q] in `in`; the ranges together are the whole
 * tensor. Every replica is written. Collective. */
void blocks_scatter(mtf_session *s, const value *v, const int64_t *lo, const int64_t *hi,
                    const void *in);
int session_processes(const mtf_session *s);
/* Which process hosts processor `proc`; which process this is. */
int session_process_of(const mtf_session *s, int proc);
int session_process(const mtf_session *s);

#endif
