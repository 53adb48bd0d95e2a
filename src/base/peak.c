/* SPDX-License-Identifier: Apache-2.0 */
#include "base/peak.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/check.h"
#include "base/isa.h"
#include "base/pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    CHAINS = 12, /* independent sums: enough to hide the latency of a multiply-add */
    ROUNDS = 200000,
    REPEATS = 5,
};

/* Each loop returns a value that depends on all its work, and how many operations a round has. */
typedef float loop_fn(float start);

#if defined(__x86_64__)

#define LOOP(name, isa, vec, set, fma, first)                                                      \
    __attribute__((target(isa))) static float name(float start)                                    \
    {                                                                                              \
        vec sum[CHAINS];                                                                           \
        const vec x = set(start), y = set(0.5F);                                                   \
        for (int i = 0; i < CHAINS; i++)                                                           \
            sum[i] = set((float)i);                                                                \
        for (int64_t r = 0; r < ROUNDS; r++) {                                                     \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = fma(sum[i], y, x);  \
        }                                                                                          \
        for (int i = 1; i < CHAINS; i++)                                                           \
            sum[0] = fma(sum[i], y, sum[0]);                                                       \
        return first(sum[0]);                                                                      \
    }

LOOP(loop_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
LOOP(loop_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)

#endif

/* Without fused multiply-add: a multiplication and an addition. */
static float loop_base(float start)
{
    typedef float vec __attribute__((vector_size(16)));
    vec sum[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        sum[i] = (vec){(float)i};
    for (int64_t r = 0; r < ROUNDS; r++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)
        {
            sum[i] = sum[i] * 0.5F + start;
        }
    }
    for (int i = 1; i < CHAINS; i++)
        sum[0] += sum[i];
    return sum[0][0];
}

static loop_fn *choose(int *lanes)
{
#if defined(__x86_64__)
    if (isa_best() == ISA_AVX512) {
        *lanes = 16;
        return loop_avx512;
    }
    if (isa_best() == ISA_AVX2 && __builtin_cpu_supports("fma")) {
        *lanes = 8;
        return loop_avx2;
    }
#endif
    *lanes = 4;
    return loop_base;
}

typedef struct meeting {
    loop_fn *loop;
    int threads;
    atomic_int here; /* threads that have come; nobody starts before all have */
    _Atomic float sink;
} meeting;

static void measure(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    meeting *m = ctx;
    for (int64_t i = begin; i < end; i++) {
        atomic_fetch_add(&m->here, 1);
        while (atomic_load(&m->here) < m->threads)
            continue;
        atomic_store(&m->sink, m->loop(1.0F));
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double peak_flops_f32(int threads)
{
    MTF_CHECK(threads >= 1, "a peak of %d threads", threads);
    int lanes;
    meeting m = {.loop = choose(&lanes), .threads = threads};
    pool *p = pool_new(threads);
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        atomic_store(&m.here, 0);
        const double start = now();
        pool_for(p, threads, 1, measure, &m);
        const double seconds = now() - start;
        if (seconds < best) best = seconds;
    }
    pool_free(&p);
    return 2e-9 * CHAINS * ROUNDS * lanes * threads / best;
}
