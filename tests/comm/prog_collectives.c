/* SPDX-License-Identifier: Apache-2.0
 * Under mpirun: every mesh of as many processors as there are ranks, each collective in each way,
 * by MPI and in this process alone, bit for bit against one reference. Prints one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "comm/internal.h"
#include "support/comm_cases.h"

enum { SMALL_CHUNK = 40, SMALL_SLOT = 128 };

typedef struct way {
    const char *name;
    int64_t chunk, slot; /* 0: as they are */
} way;

/* Messages in one piece; cut where MPI's counts end; in many rounds through scratch; both. */
static const way ways[] = {{.name = "plain"},
                           {.name = "chunks", .chunk = SMALL_CHUNK},
                           {.name = "rounds", .slot = SMALL_SLOT},
                           {.name = "both", .chunk = SMALL_CHUNK, .slot = SMALL_SLOT}};

static void run_mesh(const comm_mesh *m, const way *w, pool *p, cases_result *sum)
{
    mtf_err err = {0};
    comm *job = NULL, *alone = NULL;
    MTF_CHECK(comm_new_mpi(m, p, &job, &err) == MTF_OK, "%s", err.text);
    MTF_CHECK(comm_new_local(m, p, &alone, &err) == MTF_OK, "%s", err.text);
    MTF_CHECK(comm_nhosted(job) == 1, "%d processors on one rank", comm_nhosted(job));
    if (w->chunk) job->transport->set_chunk(job->link, w->chunk);
    if (w->slot) job->max_slot = w->slot;
    const bool large = w->chunk == 0;
    const cases_result there = cases_run(job, m, large), here = cases_run(alone, m, false);
    sum->compared += there.compared;
    sum->wrong += there.wrong + here.wrong;
    sum->reordered += there.reordered;
    if (!w->slot) sum->wrong += there.unused != 0;
    comm_free(&alone);
    comm_free(&job);
}

/* The status of the job, with an error on the last rank only, and the other small agreements. */
static int64_t check_agreements(const comm_mesh *m, int rank, int ranks)
{
    mtf_err err = {0};
    comm *c = NULL;
    int64_t wrong = 0;
    MTF_CHECK(comm_new_mpi(m, NULL, &c, &err) == MTF_OK, "%s", err.text);
    if (rank == ranks - 1) err_set(&err, MTF_FAILED, "the last disk is full");
    wrong += comm_agree(c, err.status, &err) != MTF_FAILED;
    wrong += strcmp(err.text, "the last disk is full") != 0;
    char *data = mem_zalloc(100001);
    if (rank == 0) memset(data, 'x', 100001);
    c->transport->set_chunk(c->link, 1000);
    comm_broadcast(c, data, 100001);
    wrong += data[0] != 'x' || data[100000] != 'x';
    mem_free(data);
    wrong += !comm_equal(c, 5) || comm_equal(c, (uint64_t)(rank == ranks - 1));
    wrong += comm_any(c, 0) != 0 || comm_any(c, rank == ranks - 1 ? 2 : 0) != 2;
    comm_free(&c);
    return wrong;
}

int main(void)
{
    int ranks = 0, rank = 0;
    mtf_err err = {0};
    if (comm_launch(&ranks, &rank, &err) != MTF_OK) {
        fprintf(stderr, "mtf: %s\n", err.text);
        return (int)err.status;
    }
    cases_result sum = {0};
    pool *p = pool_new(2);
    int meshes = 0;
    const comm_mesh line = {.naxes = 1, .size = {ranks}}, other = {.naxes = 1, .size = {ranks + 1}};
    for (int i = 0; i < cases_num_meshes; i++) {
        int64_t size = 1;
        for (int a = 0; a < cases_meshes[i].naxes; a++)
            size *= cases_meshes[i].size[a];
        if (size != ranks) continue;
        meshes++;
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
            run_mesh(&cases_meshes[i], &ways[w], p, &sum);
    }
    sum.wrong += check_agreements(&line, rank, ranks);
    comm *c = NULL;
    sum.wrong += comm_new_mpi(&other, NULL, &c, &err) != MTF_INVALID;
    MTF_CHECK(comm_new_mpi(&line, NULL, &c, NULL) == MTF_OK, "a line of %d", ranks);
    sum.wrong += sum.compared == 0 || (ranks > 2 && sum.reordered == 0);
    const bool bad = comm_any(c, sum.wrong != 0);
    if (comm_is_root(c))
        printf("%s: %d ranks, %d meshes, %lld elements, %s\n", comm_library(), ranks, meshes,
               (long long)sum.compared, bad ? "WRONG" : "equal");
    comm_free(&c);
    pool_free(&p);
    comm_finish();
    return bad;
}
