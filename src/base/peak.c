/* SPDX-License-Identifier: Apache-2.0 */
#include "base/peak.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/check.h"
#include "base/isa.h"
#include "base/mem.h"
#include "base/pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    CHAINS = 12, /* independent sums: enough to hide the latency of a multiply-add */
    ROUNDS = 200000,
    REPEATS = 5,
};

/* Each loop returns a value that depends on all its work, so that no compiler drops it. */
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

/* Each f32 takes the products of two pairs of bf16. */
__attribute__((target("avx512f,avx512bf16"))) static float loop_bf16(float start)
{
    __m512 sum[CHAINS];
    const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(start), _mm512_set1_ps(start));
    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (int64_t r = 0; r < ROUNDS; r++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] =
            _mm512_dpbf16_ps(sum[i], x, x);
    }
    for (int i = 1; i < CHAINS; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_cvtss_f32(sum[0]);
}

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

/* *lanes: multiply-adds of one instruction. */
static loop_fn *choose(mtf_dtype type, int *lanes)
{
#if defined(__x86_64__)
    if (type == MTF_BF16 && __builtin_cpu_supports("avx512bf16")) {
        *lanes = 32;
        return loop_bf16;
    }
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
    atomic_int here; /* threads that have come */
    _Atomic float sink;
    double *seconds; /* of each thread's loop, in processor time, which others cannot take */
} meeting;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The loops should run side by side, because they may share a core, but a machine that is busy
 * with something else may never run all threads at once: they wait for each other for a while. */
static void measure(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    meeting *m = ctx;
    for (int64_t i = begin; i < end; i++) {
        atomic_fetch_add(&m->here, 1);
        const double patience = now(CLOCK_MONOTONIC) + 2e-3;
        while (atomic_load(&m->here) < m->threads && now(CLOCK_MONOTONIC) < patience)
            continue;
        const double start = now(CLOCK_THREAD_CPUTIME_ID);
        atomic_store(&m->sink, m->loop(1.0F));
        m->seconds[i] = now(CLOCK_THREAD_CPUTIME_ID) - start;
    }
}

double peak_flops(mtf_dtype type, int threads)
{
    MTF_CHECK(threads >= 1, "a peak of %d threads", threads);
    int lanes;
    meeting m = {.loop = choose(type, &lanes), .threads = threads};
    if (type == MTF_F64) lanes /= 2; /* in registers of the same size */
    m.seconds = mem_zalloc(sizeof *m.seconds * (size_t)threads);
    pool *p = pool_new(threads);
    double best = 0;
    for (int i = 0; i < REPEATS; i++) {
        atomic_store(&m.here, 0);
        pool_for(p, threads, 1, measure, &m);
        double rate = 0;
        for (int t = 0; t < threads; t++)
            rate += 2e-9 * CHAINS * ROUNDS * lanes / m.seconds[t];
        if (rate > best) best = rate;
    }
    pool_free(&p);
    mem_free(m.seconds);
    return best;
}
