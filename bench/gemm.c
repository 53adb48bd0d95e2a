/* SPDX-License-Identifier: Apache-2.0
 * Speed of the products of a Transformer (configurations L and S of tests/transformer_shapes.h),
 * as GFLOP/s and as a share of the measured peak, with 1 and 2 threads.
 *
 *     build/bench/gemm [f32|f64] [pattern]     runs the shapes whose name contains the pattern */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/transformer_shapes.h"
#include "base/element.h"
#include "base/mem.h"
#include "base/peak.h"
#include "base/pool.h"

enum { MAX_THREADS = 2, REPEATS = 15 };

typedef struct job {
    const gemm *g;
    const void *a, *b;
    void *c;
    char *work[MAX_THREADS];
} job;

static void run_grains(void *ctx, int64_t begin, int64_t end, int worker)
{
    job *j = ctx;
    gemm_run(j->g, j->a, j->b, j->c, j->work[worker], begin, end);
}

/* Least seconds of one product: the machine may be shared. */
static double measure(job *j, pool *p, int64_t chunk)
{
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        const double start = measure_now();
        pool_for(p, gemm_grains(j->g), chunk, run_grains, j);
        const double seconds = measure_now() - start;
        if (seconds < best) best = seconds;
    }
    return best;
}

static double flops(const gemm_desc *d)
{
    const gemm_dim *groups[] = {d->batch, d->m, d->n, d->k};
    const int counts[] = {d->nbatch, d->nm, d->nn, d->nk};
    double total = 2;
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < counts[g]; i++)
            total *= (double)groups[g][i].n;
    return total;
}

/* Elements of the largest operand of any shape. */
static void *operand(mtf_dtype t, int64_t n)
{
    void *x = mem_aligned((size_t)(n * mtf_dtype_size(t)));
    for (int64_t i = 0; i < n; i++) {
        const double value = (double)(i % 1999) / 1000 - 1;
        element_put(x, t, i, value);
    }
    return x;
}

static mtf_dtype type_named(const char *name)
{
    return strcmp(name, "f64") == 0 ? MTF_F64 : strcmp(name, "bf16") == 0 ? MTF_BF16 : MTF_F32;
}

int main(int argc, char **argv)
{
    const mtf_dtype type = type_named(argc > 1 ? argv[1] : "f32");
    const char *pattern = argc > 2 ? argv[2] : "";
    const mtf_dtype of = type == MTF_F64 ? MTF_F64 : MTF_F32; /* bf16 is compared with f32 */
    const int64_t n = (int64_t)2048 * 8192;
    job j = {
        .a = operand(type, n), .b = operand(type, n), .c = operand(mtf_dtype_of_sums(type), n)};
    pool *pools[MAX_THREADS] = {pool_new(1), pool_new(2)};
    double peak[MAX_THREADS];
    for (int t = 0; t < MAX_THREADS; t++)
        peak[t] = peak_flops(of, t + 1);
    printf("%s, %s; peak %.0f GFLOP/s on 1 thread, %.0f on 2\n", gemm_library(),
           mtf_dtype_name(type), peak[0], peak[1]);
    printf("%-12s %-18s %6s %9s %7s %9s %7s\n", "shape", "kernel", "grains", "1 thread", "share",
           "2 threads", "share");
    for (int i = 0; i < 2 * SHAPES; i++) {
        if (!strstr(shape_name(i % SHAPES), pattern)) continue;
        gemm_desc d = shape_desc(i % SHAPES, i / SHAPES);
        d.dtype = type;
        mtf_err err = {0};
        if (gemm_get(&d, &j.g, &err) != MTF_OK) {
            fprintf(stderr, "gemm: %s\n", err.text);
            return 1;
        }
        for (int t = 0; t < MAX_THREADS; t++)
            j.work[t] = mem_aligned((size_t)gemm_workspace(j.g));
        double rate[MAX_THREADS];
        for (int t = 0; t < MAX_THREADS; t++)
            rate[t] = flops(&d) / measure(&j, pools[t], 1) * 1e-9;
        printf("%c %-10s %-18s %6lld %9.0f %6.0f%% %9.0f %6.0f%%\n", "LS"[i / SHAPES],
               shape_name(i % SHAPES), gemm_impl(j.g), (long long)gemm_grains(j.g), rate[0],
               100 * rate[0] / peak[0], rate[1], 100 * rate[1] / peak[1]);
        for (int t = 0; t < MAX_THREADS; t++)
            mem_free(j.work[t]);
    }
    for (int t = 0; t < MAX_THREADS; t++)
        pool_free(&pools[t]);
    return 0;
}
