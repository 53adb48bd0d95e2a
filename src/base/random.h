/* SPDX-License-Identifier: Apache-2.0
 * Random numbers that are a function of (seed, stream, step, index) and of nothing else: Philox
 * 4x32-10 (Salmon et al., SC 2011), by way of the Random123 headers and of vector code of our own
 * that gives the same bits.
 *
 * Value `index` is lane index % 4 of philox(counter = {lo(index / 4), hi(index / 4), lo(step),
 * hi(step)}, key), where the key folds seed and stream. The index is the element's index in the
 * whole tensor, in the declared order of its dims, so that blocks of any layout agree. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

typedef struct random_key {
    uint32_t word[2];
} random_key;

/* The stream of a name: the same on every machine and in every version. */
uint64_t random_stream(const char *name);

/* The first two words of philox({lo(stream), hi(stream), 0x6d746600, 0}, {lo(seed), hi(seed)}). */
random_key random_fold(uint64_t seed, uint64_t stream);

/* One value. */
uint32_t random_u32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index);

/* The values of `n` consecutive indexes from `first`; n may be 0. Every fill function makes its
 * element i from random_u32(.., first + i) alone, so any split of a range gives equal bits. */
void random_fill_u32(uint32_t *out, random_key key, uint64_t step, uint64_t first, int64_t n);

/* Uniform in [0, 1): multiples of 2^-24. */
void random_fill_uniform_f32(float *out, random_key key, uint64_t step, uint64_t first, int64_t n);
void random_fill_uniform_f64(double *out, random_key key, uint64_t step, uint64_t first, int64_t n);

/* Normal with mean 0 and deviation 1: the inverse distribution function of (u32 + 1/2) 2^-32, in
 * double, then rounded. The largest magnitude is 6.34. */
void random_fill_normal_f32(float *out, random_key key, uint64_t step, uint64_t first, int64_t n);
void random_fill_normal_f64(double *out, random_key key, uint64_t step, uint64_t first, int64_t n);

/* The same, cut at -2 and 2 (not scaled: the deviation becomes 0.8796). */
void random_fill_truncated_f32(float *out, random_key key, uint64_t step, uint64_t first,
                               int64_t n);
void random_fill_truncated_f64(double *out, random_key key, uint64_t step, uint64_t first,
                               int64_t n);

/* `value` where u32 < floor(p 2^32), else 0: with p = keep and value = 1 / keep, a dropout mask.
 * p is taken to lie in [0, 1]; p = 1 keeps everything. */
void random_fill_keep_f32(float *out, random_key key, uint64_t step, uint64_t first, int64_t n,
                          double p, float value);
void random_fill_keep_f64(double *out, random_key key, uint64_t step, uint64_t first, int64_t n,
                          double p, double value);

#endif
