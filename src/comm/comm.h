/* SPDX-License-Identifier: Apache-2.0
 * Collectives over the processors of a mesh. They know numbers and pointers, no graphs.
 *
 * A process hosts `nhosted` processors, first .. first + nhosted - 1: all of them (`self`, `local`)
 * or one (`mpi`). Every collective is called once per process, for all the processors that it
 * hosts: `buf[h]` belongs to processor first + h. All processes call the same collectives in the
 * same order.
 *
 * Invariant: a sum has one canonical order per element: axis by axis, minor-most first, and within
 * an axis a binary tree over the coordinates, split at floor(p/2): tree(lo, n) = tree(lo, n/2) +
 * tree(lo + n/2, n - n/2). So results are equal bit for bit for every transport and thread count.
 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include "base/err.h"
#include "base/pool.h"

enum { COMM_MAX_AXES = 8 };

typedef enum comm_op { COMM_SUM, COMM_MAX, COMM_MIN } comm_op;

/* A mesh as plain numbers: processor = row-major index of its coordinates. Axes of size 1 are legal
 * and are no-ops in every collective. */
typedef struct comm_mesh {
    int naxes;
    int64_t size[COMM_MAX_AXES];
} comm_mesh;

typedef struct comm comm;

/* One job's communicator. `pool` is borrowed and may be NULL.
 * comm_new_local: all processors of the mesh in this process (`self` is a mesh of one).
 * comm_new_mpi: one processor per MPI rank; fails (MTF_INVALID) where the mesh's size is not the
 * number of ranks, naming both numbers and the fix. Call comm_launch first. Collective. */
mtf_status comm_new_local(const comm_mesh *m, pool *pool, comm **out, mtf_err *err);
mtf_status comm_new_mpi(const comm_mesh *m, pool *pool, comm **out, mtf_err *err);
void comm_free(comm **c);

int comm_size(const comm *c);  /* processors of the mesh */
int comm_first(const comm *c); /* the first processor hosted here */
int comm_nhosted(const comm *c);
bool comm_is_root(const comm *c); /* does this process print */
/* Coordinate of processor `proc` on `axis`. */
int64_t comm_coord(const comm *c, int proc, int axis);

/* An ordered set of axes, major first: the group of a processor is all processors that differ from
 * it only on these axes, its index in the group the mixed-radix number of its coordinates. */
typedef struct comm_axes {
    int n;
    int axis[COMM_MAX_AXES];
} comm_axes;

/* In place: each element of buf[h] (count[h] elements; equal within a group) becomes the reduction
 * over the group. bool is not reduced. bf16 travels as it is, is added in f32, and is rounded when
 * all of it is there. */
void comm_all_reduce(comm *c, comm_axes axes, comm_op op, mtf_dtype type, void *const *buf,
                     const int64_t *count, void *const *scratch);

/* The blocks of one dim that is cut over a group. A buffer is [outer, dim, inner] of elements of
 * `size` bytes. The dim's full extent is `n`, cut in `parts` pieces (piece i is floor(i n / parts)
 * .. floor((i+1) n / parts)); the members of the group own pieces base .. base + p - 1 in order of
 * their index in the group. `base`, `outer` and `inner` may differ between groups. */
typedef struct comm_cut {
    int64_t n, parts, base, outer, inner;
} comm_cut;

/* in[h]: own piece; out[h]: all pieces of the group. cut[h] per hosted processor. `in` and `out`
 * never overlap, here and in comm_reduce_scatter. */
void comm_all_gather(comm *c, comm_axes axes, int64_t size, void *const *in, void *const *out,
                     const comm_cut *cut, void *const *scratch);

/* in[h]: the group's pieces, each a value to be reduced; out[h]: own piece, reduced. Bits equal
 * those of an all_reduce. */
void comm_reduce_scatter(comm *c, comm_axes axes, comm_op op, mtf_dtype type, void *const *in,
                         void *const *out, const comm_cut *cut, void *const *scratch);

/* Bytes of scratch that a collective takes on a processor in a process of its own; where one
 * process hosts all processors, none is used. Closed forms from sizes, without a communicator: what
 * the processor with the largest blocks uses, and at most an element more per row of a piece where
 * blocks are uneven. A reduction has from `least` to `most` elements of `size` bytes; the other two
 * take the largest `outer` and `inner`, and `base` does not matter. */
int64_t comm_scratch_all_reduce(const comm_mesh *m, comm_axes axes, int64_t size, int64_t least,
                                int64_t most);
int64_t comm_scratch_all_gather(const comm_mesh *m, comm_axes axes, int64_t size,
                                const comm_cut *cut);
int64_t comm_scratch_reduce_scatter(const comm_mesh *m, comm_axes axes, int64_t size,
                                    const comm_cut *cut);

/* One message from processor to processor. `from` is read where `src` is hosted, `to` is written
 * where `dst` is hosted; otherwise they are NULL. Entries of which neither end is hosted here may
 * be left out. Between two processors, messages match in list order. `from` and `to` never overlap.
 * src == dst is a copy. */
typedef struct comm_msg {
    int src, dst;
    const void *from;
    void *to;
    int64_t bytes;
} comm_msg;
void comm_move(comm *c, const comm_msg *msg, int64_t nmsg);

/* The status of the job: the first processor's (in rank order) that failed, with its message, on
 * every process; a later processor's own message gives way to it. Collective. A process that hosts
 * everything returns its own. */
mtf_status comm_agree(comm *c, mtf_status mine, mtf_err *err);

/* Root's bytes on every process. Collective. */
void comm_broadcast(comm *c, void *data, int64_t bytes);

/* True on all where `value` is equal on all processes. Collective. */
bool comm_equal(comm *c, uint64_t value);

/* A flag that was raised on any process is raised on all (a signal): the first value in rank order
 * that is not 0. Collective. */
int comm_any(comm *c, int flag);

/* Ends the whole job at once with this exit code, from one process alone; does not return. c may be
 * NULL: the job that comm_launch joined. Not for signal handlers. */
_Noreturn void comm_abort(comm *c, int code);

/* Looks for a launcher (mpirun of Open MPI or MPICH, srun) in the environment, and initialises MPI
 * through the module of that family where one names more than one rank. *ranks is 1 without. From
 * then on a failed check ends the whole job. Fails (MTF_INVALID) where the launcher and MPI do not
 * see the same number of ranks, naming both, and where the module for the launcher's family is not
 * installed; *rank then still is what the launcher says, so that one rank may print the message.
 * Collective. */
mtf_status comm_launch(int *ranks, int *rank, mtf_err *err);
/* Finalises MPI if comm_launch initialised it. Free every comm first. Collective. */
void comm_finish(void);
/* The MPI library that runs, or that would (its module is installed), for --version; else "none".*/
const char *comm_library(void);

#endif
