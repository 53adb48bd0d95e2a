/* SPDX-License-Identifier: Apache-2.0
 * Random programs under random layouts compute what one processor computes without working in
 * place.
 *
 * A program has 5 to 30 rows, gradients, fetches of anything, and assignments between its
 * variables; it runs twice, so that its state counts. Usage: test [SEED [PROGRAMS]]; a failure
 * prints the seed of the program that failed, which repeats it alone with PROGRAMS = 1. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/random_program.h"

static const char *const meshes[] = {"x:2", "x:3", "x:4", "x:2;y:2", "x:3;y:2", "x:2;y:2;z:2"};
enum { MESHES = sizeof meshes / sizeof *meshes, LAYOUTS = 4 * MESHES };

static uint64_t first_seed = 1;
/* The sanitizers make a program ten times as slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static int programs = 200;
#else
static int programs = 2000;
#endif

/* One program on one processor and under four layouts of every mesh; counts the legal ones, and in
 * `fan_outs` those with a partial value that several instructions read. */
static int check_program(uint64_t seed, int *fan_outs)
{
    random_program p = program_new(seed);
    results want = {0}, got = {0};
    int legal = 0;
    assert_true(program_run(&p, "", "", 1, true, &want));
    for (int i = 0; i < LAYOUTS; i++) {
        char layout[256];
        const char *mesh = meshes[i % MESHES];
        any_layout(&p.r, mesh, layout, sizeof layout);
        /* Every fifth with a limit, so that values stay away from home and products are chunked. */
        p.max_value_bytes = i % 5 == 4 ? 64 << i % 3 : 0;
        if (!program_run(&p, mesh, layout, 1 + i % 2, false, &got)) continue;
        legal++;
        results_compare(&p, mesh, layout, &want, &got);
        results_free(&got);
    }
    *fan_outs += p.fan_outs;
    results_free(&want);
    program_free(&p);
    return legal;
}

static void programs_agree(void **state)
{
    (void)state;
    int legal = 0, fan_outs = 0;
    for (int k = 0; k < programs; k++)
        legal += check_program(first_seed + (uint64_t)k, &fan_outs);
    print_message("seed %llu, %d programs, %d of %d layouts legal, %d with a partial value that "
                  "has several readers\n",
                  (unsigned long long)first_seed, programs, legal, programs * LAYOUTS, fan_outs);
    if (programs >= 100) assert_true(legal > programs && fan_outs > programs / 8);
    if (programs >= 1000 && unused_sample()) fail_msg("no program has '%s'", unused_sample());
}

/* Two exchanges of one value to different shapes were taken for one (1001163). */
static void seeds_that_failed_once(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {1001163};
    int fan_outs = 0;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        check_program(seeds[i], &fan_outs);
}

int main(int argc, char **argv)
{
    if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) programs = atoi(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_agree),
                                       cmocka_unit_test(seeds_that_failed_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
