/* SPDX-License-Identifier: Apache-2.0
 * Random programs on one mesh: prog SEED PROGRAMS MESH. Prints a hash of the bits of every result,
 * so that a run under mpirun can be compared with one in a single process. */
#include <stdio.h>
#include <stdlib.h>

#include "mtf/mtf.h"
#include "support/random_program.h"

static uint64_t hash_results(const results *r)
{
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < r->n; i++) {
        const unsigned char *bytes = (const unsigned char *)r->value[i];
        for (int64_t k = 0; k < r->size[i] * 8; k++)
            h = (h ^ bytes[k]) * 1099511628211u;
    }
    return h;
}

int main(int argc, char **argv)
{
    mtf_err err = {0};
    int rank = 0;
    if (argc != 4) return fprintf(stderr, "usage: %s SEED PROGRAMS MESH\n", argv[0]), 2;
    if (mtf_launch(NULL, &rank, &err) != MTF_OK) return fprintf(stderr, "%s\n", err.text), 2;
    const uint64_t seed = strtoull(argv[1], NULL, 10);
    for (int k = 0; k < atoi(argv[2]); k++) {
        random_program p = program_new(seed + (uint64_t)k);
        results r = {0};
        char layout[256];
        any_layout(&p.r, argv[3], layout, sizeof layout);
        const bool legal = program_run(&p, argv[3], layout, 1, false, &r);
        if (rank == 0)
            printf("%llu %s %016llx\n", (unsigned long long)p.seed, layout,
                   legal ? (unsigned long long)hash_results(&r) : 0);
        results_free(&r);
        program_free(&p);
    }
    mtf_finish();
    return 0;
}
