/* SPDX-License-Identifier: Apache-2.0
 * Jobs of several processes: joins the launcher's job through the module of its MPI family. */
#include <stdio.h>

#include "base/check.h"
#include "comm/internal.h"
#include "comm/launcher.h"

/* The job that this process has joined. A process can join one only, and only once. */
static struct {
    const transport *transport; /* NULL while it has no peers */
    int ranks, rank;
} job = {.ranks = 1};

enum { ABORTED = 134 }; /* what a shell shows for a process that ended by abort() */

static void abort_all(void)
{
    comm_abort(NULL, ABORTED);
}

const transport *comm_launched(void)
{
    return job.transport ? job.transport : &transport_one_process;
}

/* Joins, and compares what the launcher said with what MPI sees. */
static mtf_status join(const launcher *l, const transport *t, mtf_err *err)
{
    char text[256] = "";
    int ranks = 1, rank = 0;
    if (!t->start(&ranks, &rank, text, sizeof text))
        return err_set(err, MTF_FAILED, "starting under %s: %s: %s", l->name, t->library(), text);
    if (ranks != l->ranks) {
        t->finish();
        return err_set(err, MTF_INVALID,
                       "%s started %d processes (%s), but the MPI library of this program, %s, "
                       "sees %d: start it with the mpirun that belongs to %s",
                       l->name, l->ranks, l->variable, t->library(), ranks, t->library());
    }
    job.transport = t;
    job.ranks = ranks;
    job.rank = rank;
    check_set_abort(abort_all);
    return MTF_OK;
}

mtf_status comm_launch(int *ranks, int *rank, mtf_err *err)
{
    const launcher l = launcher_detect();
    if (l.ranks > 1 && !job.transport) {
        *ranks = l.ranks;
        *rank = l.rank;
        const transport *t = NULL;
        TRY(module_load(&l, &t, err));
        TRY(join(&l, t, err));
    }
    *ranks = job.ranks;
    *rank = job.rank;
    return MTF_OK;
}

void comm_finish(void)
{
    if (!job.transport) return;
    check_set_abort(NULL);
    job.transport->finish();
    job.transport = NULL;
    job.ranks = 1;
    job.rank = 0;
}

const char *comm_library(void)
{
    static char text[64];
    if (job.transport) return job.transport->library();
    text[0] = '\0';
    char path[4200];
    for (int f = 0, n = 0; f < MPI_NUM_FAMILIES; f++)
        if (module_find((mpi_family)f, path, sizeof path))
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", n ? ", " : "",
                          module_family_name((mpi_family)f));
    return text[0] ? text : "none";
}

mtf_status comm_new_mpi(const comm_mesh *m, pool *workers, comm **out, mtf_err *err)
{
    *out = NULL;
    const int size = mesh_processors(m);
    if (size != job.ranks && size > 0)
        return err_set(err, MTF_INVALID,
                       "a mesh of %d processors does not fit %d MPI ranks: start the program with "
                       "'mpirun -n %d', or choose a mesh whose sizes multiply to %d",
                       size, job.ranks, size, job.ranks);
    if (size <= 1) return comm_new_local(m, workers, out, err);
    *out = comm_over(job.transport, job.transport->open(), job.ranks, job.rank, m, workers);
    return MTF_OK;
}
