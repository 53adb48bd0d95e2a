/* SPDX-License-Identifier: Apache-2.0
 * bf16, the upper half of an f32: eight bits of precision, the range of f32. Nothing is computed in
 * it. Values are widened, which is exact, worked on in f32 or more, and rounded once.
 *
 * Rounding is to nearest, ties to even; a NaN stays a NaN, made quiet. */
#ifndef BASE_BFLOAT_H
#define BASE_BFLOAT_H

#include <stdint.h>
#include <string.h>

/* A type of its own, so that its bits are not taken for a number. */
typedef struct bf16 {
    uint16_t bits;
} bf16;

_Static_assert(sizeof(bf16) == 2, "a bf16 lies in memory as two bytes");

#define BFLOAT_INLINE static inline __attribute__((always_inline))

BFLOAT_INLINE float bf16_to_f32(bf16 x)
{
    const uint32_t u = (uint32_t)x.bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Branch-free, so that loops of it vectorise. */
BFLOAT_INLINE bf16 bf16_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    const uint32_t nearest = (u + 0x7fff + (u >> 16 & 1)) >> 16, quiet = u >> 16 | 0x40;
    return (bf16){(uint16_t)((u & 0x7fffffff) > 0x7f800000 ? quiet : nearest)};
}

/* By way of the f32 on the side of zero, whose last bit then says that something was cut off:
 * rounding to the nearest f32 first would round twice. */
BFLOAT_INLINE bf16 bf16_from_f64(double x)
{
    const float near = (float)x;
    const double back = (double)near;
    uint32_t u;
    memcpy(&u, &near, sizeof u);
    if (back != x && x == x) {
        if (__builtin_fabs(back) > __builtin_fabs(x)) u--;
        u |= 1;
    }
    float odd;
    memcpy(&odd, &u, sizeof odd);
    return bf16_from_f32(odd);
}

#endif
