/* SPDX-License-Identifier: Apache-2.0
 * Random permutations with random access: no memory, and any element in constant time. */
#ifndef TEXT_SHUFFLE_H
#define TEXT_SHUFFLE_H

#include <stdint.h>

/* Mixes 64 bits into 64 that look unrelated; a bijection. */
uint64_t shuffle_mix(uint64_t x);

/* Where a permutation of 0 .. n-1 sends `i`. (seed, epoch) choose the permutation; the same on
 * every machine. n >= 1, 0 <= i < n. */
int64_t shuffle_index(uint64_t seed, uint64_t epoch, int64_t n, int64_t i);

#endif
