/* SPDX-License-Identifier: Apache-2.0
 * One element of an array of any type, as a number. For edges and references; inner loops have a
 * type. */
#ifndef BASE_ELEMENT_H
#define BASE_ELEMENT_H

#include "base/bfloat.h"
#include "mtf/types.h"

/* A number as i32: truncated towards zero, saturated; NaN is 0. A plain conversion would be
 * undefined for what does not fit. */
static inline __attribute__((always_inline)) int32_t element_to_i32(double x)
{
    if (x != x) return 0;
    return x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

static inline __attribute__((always_inline)) double element_get(const void *data, mtf_dtype type,
                                                                int64_t at)
{
    switch (type) {
    case MTF_F32:
        return (double)((const float *)data)[at];
    case MTF_F64:
        return ((const double *)data)[at];
    case MTF_BF16:
        return (double)bf16_to_f32(((const bf16 *)data)[at]);
    case MTF_I32:
        return ((const int32_t *)data)[at];
    default:
        return ((const uint8_t *)data)[at];
    }
}

/* Rounded once, or made an integer, or whether it is not 0. */
static inline __attribute__((always_inline)) void element_put(void *data, mtf_dtype type,
                                                              int64_t at, double x)
{
    switch (type) {
    case MTF_F32:
        ((float *)data)[at] = (float)x;
        break;
    case MTF_F64:
        ((double *)data)[at] = x;
        break;
    case MTF_BF16:
        ((bf16 *)data)[at] = bf16_from_f64(x);
        break;
    case MTF_I32:
        ((int32_t *)data)[at] = element_to_i32(x);
        break;
    default:
        ((uint8_t *)data)[at] = x != 0;
        break;
    }
}

/* The elements [at, at + n) become x. */
static inline void element_fill(void *data, mtf_dtype type, int64_t at, int64_t n, double x)
{
#define FILL(T, value)                                                                             \
    do {                                                                                           \
        const T fill = (value);                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)data)[at + i] = fill;                                                            \
    } while (0)
    switch (type) {
    case MTF_F32:
        FILL(float, (float)x);
        break;
    case MTF_F64:
        FILL(double, x);
        break;
    case MTF_BF16:
        FILL(bf16, bf16_from_f64(x));
        break;
    case MTF_I32:
        FILL(int32_t, element_to_i32(x));
        break;
    default:
        FILL(uint8_t, x != 0);
        break;
    }
#undef FILL
}

#endif
