/* SPDX-License-Identifier: Apache-2.0 */
#include "text/shuffle.h"

#include "base/check.h"

enum { ROUNDS = 10 }; /* few bits mix slowly; six would do for many */

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014), with its increment. */
uint64_t shuffle_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A Feistel network over 2 * half bits: a permutation whatever the mixing function is. */
static uint64_t network(uint64_t key, int half, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t mixed = shuffle_mix(key ^ shuffle_mix(right ^ round << 32));
        const uint64_t next = left ^ (mixed >> 17 & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

/* Walks the cycle of the power of four above n until it is below n again: under four steps on
 * average. */
int64_t shuffle_index(uint64_t seed, uint64_t epoch, int64_t n, int64_t i)
{
    MTF_CHECK(n >= 1 && i >= 0 && i < n, "element %lld of %lld", (long long)i, (long long)n);
    const uint64_t key = shuffle_mix(shuffle_mix(seed) ^ epoch);
    int half = 1;
    while (half < 32 && (uint64_t)n > UINT64_C(1) << 2 * half)
        half++;
    uint64_t x = (uint64_t)i;
    do {
        x = network(key, half, x);
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}
