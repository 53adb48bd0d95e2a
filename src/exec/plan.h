/* SPDX-License-Identifier: Apache-2.0
 * What a session will take of memory, from its programs alone: closed forms and kernels' own
 * answers, before anything is bound or allocated. The plan is the same on all ranks. */
#ifndef EXEC_PLAN_H
#define EXEC_PLAN_H

#include "comm/comm.h"
#include "mtf/session.h"
#include "spmd/program.h"

typedef struct session_plan {
    int64_t state, slab, scratch; /* bytes per processor */
    int64_t work;                 /* bytes per worker */
} session_plan;

/* `processes`: each processor is a process of its own; else one process hosts all. */
session_plan plan_session(int nprograms, mtf_program *const *programs, bool processes);

/* plan_work.c: bytes of workspace that a worker needs for any instruction on any processor. */
int64_t plan_work(const mtf_program *p);

/* Workers where `asked` are asked for; 0: as many as this process may use, and no more than its
 * share of the machine. */
int plan_threads(int asked);
/* Ranks that the launcher put on this machine; 1 where it does not say. */
int plan_local_ranks(void);

comm_mesh plan_comm_mesh(const mtf_mesh *m);

/* Axes as the collectives take them. */
static inline comm_axes axes_of(split a)
{
    comm_axes c = {.n = a.n};
    for (int i = 0; i < a.n; i++)
        c.axis[i] = a.axis[i];
    return c;
}

#endif
