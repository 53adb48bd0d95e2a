/* SPDX-License-Identifier: Apache-2.0
 * Many virtual processors in one process: bench/virtual [STEPS [THREADS]]
 *
 * The same training step on meshes of 1, 4, 16 and 64 processors, with equal global work. The last
 * column compares with 4 processors; 64 should stay within 3 on two cores. */
#include <stdio.h>
#include <stdlib.h>

#include "train/benchmark.h"

typedef struct layout_case {
    const char *mesh;
    int processors;
} layout_case;

static const layout_case cases[] = {
    {"", 1}, {"rows:2;cols:2", 4}, {"rows:4;cols:4", 16}, {"rows:8;cols:8", 64}};

static const char *const keys[] = {
    "model.layers=4",   "model.d_model=256", "model.heads=8",
    "model.d_kv=32",    "model.d_ff=1024",   "model.length=64",
    "model.vocab=1024", "train.batch=64",    "model.activation=relu"};

static mtf_status measure(const layout_case *l, int64_t steps, int threads, double *seconds,
                          mtf_err *err)
{
    config c;
    config_defaults(&c);
    mtf_status st = MTF_OK;
    for (size_t i = 0; st == MTF_OK && i < sizeof keys / sizeof *keys; i++)
        st = config_set(&c, keys[i], err);
    char mesh[64];
    snprintf(mesh, sizeof mesh, "mesh=%s", l->mesh);
    if (st == MTF_OK) st = config_set(&c, mesh, err);
    if (st == MTF_OK && l->mesh[0])
        st = config_set(&c, "layout=batch:rows;vocab:cols;d_ff:cols;heads:cols", err);
    benchmark_result r = {0};
    if (st == MTF_OK) st = benchmark_run(&c, steps, threads, true, &r, NULL, err);
    *seconds = r.step_seconds;
    config_free(&c);
    return st;
}

int main(int argc, char **argv)
{
    const int64_t steps = argc > 1 ? atoi(argv[1]) : 3;
    const int threads = argc > 2 ? atoi(argv[2]) : 2;
    double four = 0;
    if (steps < 1 || threads < 1) {
        fprintf(stderr, "usage: bench/virtual [STEPS [THREADS]]\n");
        return 2;
    }
    printf("%d threads, median of %d steps\nprocessors  seconds  to 4\n", threads, (int)steps);
    static const int order[] = {1, 0, 2, 3}; /* 4 first: the others are compared with it */
    for (int i = 0; i < 4; i++) {
        const layout_case *l = &cases[order[i]];
        mtf_err err = {0};
        double seconds = 0;
        if (measure(l, steps, threads, &seconds, &err) != MTF_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        if (l->processors == 4) four = seconds;
        printf("%10d %8.4f %5.2f\n", l->processors, seconds, seconds / four);
        fflush(stdout);
    }
    return 0;
}
