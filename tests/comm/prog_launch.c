/* SPDX-License-Identifier: Apache-2.0
 * Joins a job and then does one thing: prog_comm_launch start|abort|check|turn
 *   start  prints the ranks and whether an MPI library is loaded
 *   abort  the last rank ends the job with code 3 while the others wait for it
 *   check  the last rank fails a check while the others wait for it
 *   turn   prints its process id, then reduces until somebody ends it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "comm/comm.h"

static bool mpi_is_loaded(void)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "libmpi") != NULL;
    if (maps) fclose(maps);
    return found;
}

static void reduce_once(comm *c, void *scratch)
{
    const comm_axes axes = {.n = 1, .axis = {0}};
    const int64_t count = 1;
    float value = 1;
    void *buf = &value;
    comm_all_reduce(c, axes, COMM_SUM, MTF_F32, &buf, &count, &scratch);
    MTF_CHECK(value == (float)comm_size(c), "%d ranks sum to %g", comm_size(c), (double)value);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "start";
    int ranks = 0, rank = 0;
    mtf_err err = {0};
    const mtf_status s = comm_launch(&ranks, &rank, &err);
    if (s != MTF_OK) {
        fprintf(stderr, "mtf: %s\n", err.text);
        return (int)s;
    }
    if (strcmp(what, "start") == 0) {
        if (rank == 0)
            printf("ranks %d, mpi %s, library %s\n", ranks, mpi_is_loaded() ? "yes" : "no",
                   comm_library());
        comm_finish();
        return 0;
    }
    const comm_mesh m = {.naxes = 1, .size = {ranks}};
    comm *c = NULL;
    MTF_CHECK(comm_new_mpi(&m, NULL, &c, &err) == MTF_OK, "%s", err.text);
    static char scratch[1 << 20];
    reduce_once(c, scratch);
    if (strcmp(what, "turn") == 0) {
        printf("pid %d\n", (int)getpid());
        fflush(stdout);
        for (;;)
            reduce_once(c, scratch);
    }
    const bool last = rank == ranks - 1;
    if (last) usleep(200000); /* by now the others wait */
    if (last && strcmp(what, "abort") == 0) comm_abort(c, 3);
    MTF_CHECK(!last, "planted by the test");
    reduce_once(c, scratch);
    return 0;
}
