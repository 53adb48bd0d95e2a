/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/job.h"

#include "comm/comm.h"

/* A communicator of all ranks, whatever mesh comes later; NULL in a job of one process. */
static mtf_status open_world(comm **world, mtf_err *err)
{
    int ranks = 1, rank = 0;
    *world = NULL;
    TRY(comm_launch(&ranks, &rank, err));
    const comm_mesh line = {.naxes = 1, .size = {ranks}};
    return ranks > 1 ? comm_new_mpi(&line, NULL, world, err) : MTF_OK;
}

mtf_status job_agree(mtf_status mine, mtf_err *err)
{
    comm *world;
    mtf_err local = {0};
    TRY(open_world(&world, err));
    if (!world) return mine;
    if (mine != MTF_OK && err) err_set(&local, mine, "%s", err->text);
    const mtf_status st = comm_agree(world, mine, &local);
    comm_free(&world);
    if (st != MTF_OK && mine == MTF_OK) err_set(err, st, "%s", local.text);
    return st;
}

mtf_status job_broadcast(void *data, int64_t bytes, mtf_err *err)
{
    comm *world;
    TRY(open_world(&world, err));
    if (!world) return MTF_OK;
    comm_broadcast(world, data, bytes);
    comm_free(&world);
    return MTF_OK;
}
