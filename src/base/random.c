/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <Random123/philox.h>
#include <string.h>

#include "base/isa.h"
#include "base/vmath.h"

enum {
    LANES = ISA_LANES,   /* counters that are computed side by side */
    BLOCK = 4 * LANES,   /* values that they give */
    BUFFER = 16 * BLOCK, /* values that are converted at a time; stays in the first-level cache */
};

ISA_BODY uint32_t low(uint64_t x)
{
    return (uint32_t)x;
}

ISA_BODY uint32_t high(uint64_t x)
{
    return (uint32_t)(x >> 32);
}

uint64_t random_stream(const char *name)
{
    uint64_t h = 0xcbf29ce484222325U;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3U;
    h ^= h >> 33; /* FNV leaves the last characters' bits in place: mix them through */
    h *= 0xff51afd7ed558ccdU;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53U;
    return h ^ (h >> 33);
}

static philox4x32_ctr_t philox_group(random_key key, uint64_t step, uint64_t group)
{
    const philox4x32_ctr_t counter = {{low(group), high(group), low(step), high(step)}};
    const philox4x32_key_t k = {{key.word[0], key.word[1]}};
    return philox4x32(counter, k);
}

random_key random_fold(uint64_t seed, uint64_t stream)
{
    const philox4x32_ctr_t counter = {{low(stream), high(stream), 0x6d746600U, 0}};
    const philox4x32_key_t key = {{low(seed), high(seed)}};
    const philox4x32_ctr_t r = philox4x32(counter, key);
    return (random_key){{r.v[0], r.v[1]}};
}

uint32_t random_u32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index)
{
    return philox_group(random_fold(seed, stream), step, index / 4).v[index % 4];
}

typedef struct philox_words {
    uint32_t c0, c1, c2, c3;
} philox_words;

/* The low halves are products of their own: 64-bit ones are slow or missing on most machines. */
ISA_BODY philox_words philox_round(philox_words w, const random_key *key, uint32_t round)
{
    const uint32_t m0 = 0xd2511f53U, m1 = 0xcd9e8d57U;
    const uint32_t k0 = key->word[0] + round * 0x9e3779b9U;
    const uint32_t k1 = key->word[1] + round * 0xbb67ae85U;
    return (philox_words){.c0 = high((uint64_t)m1 * w.c2) ^ w.c1 ^ k0,
                          .c1 = m1 * w.c2,
                          .c2 = high((uint64_t)m0 * w.c0) ^ w.c3 ^ k1,
                          .c3 = m0 * w.c0};
}

/* Blocks of LANES groups: the rounds of all lanes go side by side. They are written out because
 * compilers vectorise the loop over lanes only when it holds no other. */
ISA_BODY void blocks_body(uint32_t *out, const random_key *key, uint64_t step, uint64_t group,
                          int64_t blocks)
{
    const random_key k = *key;
    for (int64_t b = 0; b < blocks; b++, group += LANES, out += BLOCK) {
        const uint32_t lo = low(group), hi = high(group);
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t c0 = lo + l;
            philox_words w = {c0, hi + (c0 < l), low(step), high(step)};
            w = philox_round(philox_round(w, &k, 0), &k, 1);
            w = philox_round(philox_round(w, &k, 2), &k, 3);
            w = philox_round(philox_round(w, &k, 4), &k, 5);
            w = philox_round(philox_round(w, &k, 6), &k, 7);
            w = philox_round(philox_round(w, &k, 8), &k, 9);
            out[4 * l] = w.c0;
            out[4 * l + 1] = w.c1;
            out[4 * l + 2] = w.c2;
            out[4 * l + 3] = w.c3;
        }
    }
}
ISA_VARIANTS(fill_blocks, blocks_body,
             (uint32_t * out, const random_key *key, uint64_t step, uint64_t group, int64_t blocks),
             (out, key, step, group, blocks))

void random_fill_u32(uint32_t *out, random_key key, uint64_t step, uint64_t first, int64_t n)
{
    /* up to the first whole group, then whole blocks, then what is left */
    int64_t i = 0;
    while (i < n) {
        const uint64_t index = first + (uint64_t)i;
        if (index % 4 == 0 && n - i >= BLOCK) {
            const int64_t blocks = (n - i) / BLOCK;
            fill_blocks(out + i, &key, step, index / 4, blocks);
            i += blocks * BLOCK;
            continue;
        }
        const philox4x32_ctr_t r = philox_group(key, step, index / 4);
        for (uint64_t lane = index % 4; lane < 4 && i < n; lane++)
            out[i++] = r.v[lane];
    }
}

ISA_BODY void uniform_f32_body(float *restrict out, const uint32_t *restrict u, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(int32_t)(u[i] >> 8) * 0x1p-24F;
}
ISA_VARIANTS(uniform_f32, uniform_f32_body,
             (float *restrict out, const uint32_t *restrict u, int64_t n), (out, u, n))

ISA_BODY void uniform_f64_body(double *restrict out, const uint32_t *restrict u, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (double)(int32_t)(u[i] >> 8) * 0x1p-24;
}
ISA_VARIANTS(uniform_f64, uniform_f64_body,
             (double *restrict out, const uint32_t *restrict u, int64_t n), (out, u, n))

/* (u + 1/2) 2^-32. Signed conversion is the one that every instruction set has. */
ISA_BODY double centred(uint32_t u)
{
    return ((double)(int32_t)(u ^ 0x80000000U) + (2147483648.0 + 0.5)) * 0x1p-32;
}

/* The normal distribution function between its values at -2 and 2. */
ISA_BODY double truncated(uint32_t u)
{
    const double at_minus_2 = 0.022750131948179207;
    return vnormal_inv(at_minus_2 + centred(u) * (1.0 - 2.0 * at_minus_2));
}

ISA_BODY void normal_f32_body(float *restrict out, const uint32_t *restrict u, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)vnormal_inv(centred(u[i]));
}
ISA_VARIANTS(normal_f32, normal_f32_body,
             (float *restrict out, const uint32_t *restrict u, int64_t n), (out, u, n))

ISA_BODY void normal_f64_body(double *restrict out, const uint32_t *restrict u, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = vnormal_inv(centred(u[i]));
}
ISA_VARIANTS(normal_f64, normal_f64_body,
             (double *restrict out, const uint32_t *restrict u, int64_t n), (out, u, n))

ISA_BODY void truncated_f32_body(float *restrict out, const uint32_t *restrict u, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)truncated(u[i]);
}
ISA_VARIANTS(truncated_f32, truncated_f32_body,
             (float *restrict out, const uint32_t *restrict u, int64_t n), (out, u, n))

ISA_BODY void truncated_f64_body(double *restrict out, const uint32_t *restrict u, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = truncated(u[i]);
}
ISA_VARIANTS(truncated_f64, truncated_f64_body,
             (double *restrict out, const uint32_t *restrict u, int64_t n), (out, u, n))

/* Fills a buffer with u32 and converts it, piece by piece. */
#define FILL(name, type, convert)                                                                  \
    void name(type *out, random_key key, uint64_t step, uint64_t first, int64_t n)                 \
    {                                                                                              \
        uint32_t u[BUFFER];                                                                        \
        for (int64_t i = 0; i < n; i += BUFFER) {                                                  \
            const int64_t m = n - i < BUFFER ? n - i : BUFFER;                                     \
            random_fill_u32(u, key, step, first + (uint64_t)i, m);                                 \
            convert(out + i, u, m);                                                                \
        }                                                                                          \
    }

FILL(random_fill_uniform_f32, float, uniform_f32)
FILL(random_fill_uniform_f64, double, uniform_f64)
FILL(random_fill_normal_f32, float, normal_f32)
FILL(random_fill_normal_f64, double, normal_f64)
FILL(random_fill_truncated_f32, float, truncated_f32)
FILL(random_fill_truncated_f64, double, truncated_f64)

ISA_BODY void keep_f32_body(float *restrict out, const uint32_t *restrict u, int64_t n,
                            uint32_t threshold, float value)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = u[i] < threshold ? value : 0.0F;
}
ISA_VARIANTS(keep_f32, keep_f32_body,
             (float *restrict out, const uint32_t *restrict u, int64_t n, uint32_t threshold,
              float value),
             (out, u, n, threshold, value))

ISA_BODY void keep_f64_body(double *restrict out, const uint32_t *restrict u, int64_t n,
                            uint32_t threshold, double value)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = u[i] < threshold ? value : 0.0;
}
ISA_VARIANTS(keep_f64, keep_f64_body,
             (double *restrict out, const uint32_t *restrict u, int64_t n, uint32_t threshold,
              double value),
             (out, u, n, threshold, value))

/* p = 1 has no 32-bit threshold: everything is kept, and no number is drawn. */
#define FILL_KEEP(name, type, convert)                                                             \
    void name(type *out, random_key key, uint64_t step, uint64_t first, int64_t n, double p,       \
              type value)                                                                          \
    {                                                                                              \
        uint32_t u[BUFFER];                                                                        \
        for (int64_t i = 0; i < n && p >= 1.0; i++)                                                \
            out[i] = value;                                                                        \
        if (p >= 1.0) return;                                                                      \
        const uint32_t threshold = (uint32_t)(p * 0x1p32);                                         \
        for (int64_t i = 0; i < n; i += BUFFER) {                                                  \
            const int64_t m = n - i < BUFFER ? n - i : BUFFER;                                     \
            random_fill_u32(u, key, step, first + (uint64_t)i, m);                                 \
            convert(out + i, u, m, threshold, value);                                              \
        }                                                                                          \
    }

FILL_KEEP(random_fill_keep_f32, float, keep_f32)
FILL_KEEP(random_fill_keep_f64, double, keep_f64)
