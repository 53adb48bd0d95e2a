/* SPDX-License-Identifier: Apache-2.0
 * Elementary functions that give the same bits on every instruction set and compiler, and that
 * gcc and clang turn into vector code inside plain loops (on SSE2 alone gcc leaves sine and cosine
 * scalar): no branches, no tables, no calls, nothing
 * but + - * / and integer operations on the bits. Invariant: no operation may be contracted or
 * reordered, so whoever includes this is compiled with -ffp-contract=off and without -ffast-math.
 *
 * NaN gives NaN (which one is not fixed), and infinities give the limit. The largest errors over
 * the dense samples of tests/base/test_vmath.c, in units in the last place of the exact result:
 *
 *              f32   f64
 *     exp      0.9   0.9    results below 2^-126 (2^-1022) are rounded once more
 *     expm1    1.5   1.5
 *     log      1.3   0.9    log(0) = -inf, log(x < 0) = NaN; subnormals are right
 *     log1p    1.3   0.9
 *     sigmoid  2.3   2.2
 *     tanh     1.3   2.3
 *     erf      1.4   1.3
 *     sin, cos 0.5   2.4    for |x| <= 1e5 in f32 and 1e9 in f64; beyond that the error grows
 *                           with x, and the result stays in [-1, 1]
 *     normal_inv 0.5 6.0    on (0, 1); 0 and 1 give -inf and inf
 *
 * The coefficients are minimax fits of our own, those of vnormal_inv are of Wichura's algorithm
 * AS 241 (Applied Statistics 37, 1988). */
#ifndef BASE_VMATH_H
#define BASE_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Inlined always, so that a caller compiled for a wider instruction set gets a wider copy. */
#define VMATH static inline __attribute__((always_inline, unused))

/* Adding and subtracting 1.5 * 2^23 (2^52) rounds to the nearest integer, whose low bits then
 * stand at the end of the sum's bits: floor and conversions are slow or missing before SSE4.1. */
#define VMATH_ROUND_F32 12582912.0F
#define VMATH_ROUND_F64 6755399441055744.0

VMATH uint32_t vbits_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

VMATH float vfrom_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

VMATH uint64_t vbits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

VMATH double vfrom_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

VMATH float vabsf(float x)
{
    return vfrom_bits_f32(vbits_f32(x) & 0x7fffffffU);
}

VMATH double vabs(double x)
{
    return vfrom_bits_f64(vbits_f64(x) & 0x7fffffffffffffffU);
}

/* The magnitude of `x`, which is not negative, with the sign of `s`. */
VMATH float vwith_signf(float x, float s)
{
    return vfrom_bits_f32(vbits_f32(x) | (vbits_f32(s) & 0x80000000U));
}

VMATH double vwith_sign(double x, double s)
{
    return vfrom_bits_f64(vbits_f64(x) | (vbits_f64(s) & 0x8000000000000000U));
}

/* 2^n for an integer n of the range of normal numbers. */
VMATH float vpow2f(float n)
{
    return vfrom_bits_f32((vbits_f32(n + VMATH_ROUND_F32) << 23) + 0x3f800000U);
}

VMATH double vpow2(double n)
{
    return vfrom_bits_f64((vbits_f64(n + VMATH_ROUND_F64) << 52) + 0x3ff0000000000000U);
}

/* Square roots are rounded correctly by every machine that we know. */
VMATH float vsqrtf(float x)
{
    return __builtin_sqrtf(x);
}

VMATH double vsqrt(double x)
{
    return __builtin_sqrt(x);
}

/* (e^r - 1 - r) / r^2 for |r| <= ln(2)/2. */
VMATH float vexp_tailf(float r)
{
    float p = 1.991562428e-4F;
    p = p * r + 1.394204619e-3F;
    p = p * r + 8.333270621e-3F;
    p = p * r + 4.166634213e-2F;
    p = p * r + 1.666666683e-1F;
    return p * r + 5.000000049e-1F;
}

VMATH double vexp_tail(double r)
{
    double p = 2.09253730203270702e-9;
    p = p * r + 2.51101786995068012e-8;
    p = p * r + 2.75572397673706653e-7;
    p = p * r + 2.75572411647745414e-6;
    p = p * r + 2.48015873640267522e-5;
    p = p * r + 1.98412698888919487e-4;
    p = p * r + 1.38888888888651041e-3;
    p = p * r + 8.33333333332065523e-3;
    p = p * r + 4.16666666666667048e-2;
    p = p * r + 1.66666666666666776e-1;
    return p * r + 0.5;
}

#define VMATH_LN2_HI_F32 0.693359375F    /* ten bits: exact in products with exponents */
#define VMATH_LN2_LO_F32 -2.12194440e-4F /* ln 2 minus the above */
#define VMATH_LN2_HI_F64 0.693147180369123816490
#define VMATH_LN2_LO_F64 1.90821492927058770002e-10

/* c is the part of r that rounding loses. */
VMATH float vexpf(float x)
{
    x = x > 89.0F ? 89.0F : x;
    x = x < -105.0F ? -105.0F : x;
    const float n = (x * 1.44269504F + VMATH_ROUND_F32) - VMATH_ROUND_F32;
    const float hi = x - n * VMATH_LN2_HI_F32, lo = n * VMATH_LN2_LO_F32;
    const float r = hi - lo, c = (hi - r) - lo;
    const float y = 1.0F + (r + (r * r * vexp_tailf(r) + c));
    const float half = (n * 0.5F + VMATH_ROUND_F32) - VMATH_ROUND_F32;
    return y * vpow2f(half) * vpow2f(n - half);
}

VMATH double vexp(double x)
{
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const double n = (x * 1.44269504088896341 + VMATH_ROUND_F64) - VMATH_ROUND_F64;
    const double hi = x - n * VMATH_LN2_HI_F64, lo = n * VMATH_LN2_LO_F64;
    const double r = hi - lo, c = (hi - r) - lo;
    const double y = 1.0 + (r + (r * r * vexp_tail(r) + c));
    const double half = (n * 0.5 + VMATH_ROUND_F64) - VMATH_ROUND_F64;
    return y * vpow2(half) * vpow2(n - half);
}

/* e^x - 1. */
VMATH float vexpm1f(float x)
{
    const float x0 = x;
    x = x > 89.0F ? 89.0F : x;
    x = x < -18.0F ? -18.0F : x;
    const float n = (x * 1.44269504F + VMATH_ROUND_F32) - VMATH_ROUND_F32;
    const float hi = x - n * VMATH_LN2_HI_F32, lo = n * VMATH_LN2_LO_F32;
    const float r = hi - lo, c = (hi - r) - lo;
    const float p = r + (r * r * vexp_tailf(r) + c);
    const float s = vpow2f(n - 1.0F); /* half of 2^n, which may be too large */
    const float y = (p * s + (s - 0.5F)) * 2.0F;
    return x0 == 0.0F ? x0 : y;
}

VMATH double vexpm1(double x)
{
    const double x0 = x;
    x = x > 710.0 ? 710.0 : x;
    x = x < -40.0 ? -40.0 : x;
    const double n = (x * 1.44269504088896341 + VMATH_ROUND_F64) - VMATH_ROUND_F64;
    const double hi = x - n * VMATH_LN2_HI_F64, lo = n * VMATH_LN2_LO_F64;
    const double r = hi - lo, c = (hi - r) - lo;
    const double p = r + (r * r * vexp_tail(r) + c);
    const double s = vpow2(n - 1.0);
    const double y = (p * s + (s - 0.5)) * 2.0;
    return x0 == 0.0 ? x0 : y;
}

/* log(u) + c for u > 0 that is not subnormal, plus k times log(2). */
VMATH float vlog_coref(float u, float c, float k)
{
    const uint32_t shifted = vbits_f32(u) - 0x3f3504f3U; /* the bits of sqrt(1/2) */
    const uint32_t e = shifted & 0xff800000U;            /* exponent, two's complement */
    k += (float)((int32_t)e >> 23);
    const float f = vfrom_bits_f32(vbits_f32(u) - e) - 1.0F;
    float p = 6.746746637e-2F;
    p = p * f - 1.167583709e-1F;
    p = p * f + 1.188821631e-1F;
    p = p * f - 1.240556472e-1F;
    p = p * f + 1.421954261e-1F;
    p = p * f - 1.666799671e-1F;
    p = p * f + 2.000211911e-1F;
    p = p * f - 2.500000959e-1F;
    p = p * f + 3.333333126e-1F;
    const float z = f * f;
    const float y = (f * z * p + (k * VMATH_LN2_LO_F32 + c)) - 0.5F * z;
    return (f + y) + k * VMATH_LN2_HI_F32;
}

VMATH double vlog_core(double u, double c, double k)
{
    const uint64_t shifted = vbits_f64(u) - 0x3fe6a09e667f3bcdU; /* the bits of sqrt(1/2) */
    const uint64_t e = shifted & 0xfff0000000000000U;
    /* The exponent plus 2048, pasted into the bits of 2^52, becomes a double without the
     * conversion of 64-bit integers, which AVX2 does not have. */
    const uint64_t biased = (e + 0x8000000000000000U) >> 52;
    k += vfrom_bits_f64(0x4330000000000000U | biased) - (4503599627370496.0 + 2048.0);
    const double f = vfrom_bits_f64(vbits_f64(u) - e) - 1.0;
    const double s = f / (2.0 + f), z = s * s;
    double p = 1.47961043304281949e-1;
    p = p * z + 1.53140359981354408e-1;
    p = p * z + 1.8183564857722922e-1;
    p = p * z + 2.22221985637238305e-1;
    p = p * z + 2.85714287424716675e-1;
    p = p * z + 3.9999999999414341e-1;
    p = p * z + 6.66666666666673446e-1;
    const double half = 0.5 * f * f;
    const double y = half - (s * (half + p * z) + (k * VMATH_LN2_LO_F64 + c));
    return k * VMATH_LN2_HI_F64 - (y - f);
}

VMATH float vlogf(float x)
{
    const int tiny = x < 1.17549435e-38F;
    const float y = vlog_coref(tiny ? x * 8388608.0F : x, 0.0F, tiny ? -23.0F : 0.0F);
    const float r = x > 0.0F ? y : (x == 0.0F ? -INFINITY : NAN);
    return x == INFINITY ? x : r;
}

VMATH double vlog(double x)
{
    const int tiny = x < 2.2250738585072014e-308;
    const double y = vlog_core(tiny ? x * 4503599627370496.0 : x, 0.0, tiny ? -52.0 : 0.0);
    const double r = x > 0.0 ? y : (x == 0.0 ? (double)-INFINITY : (double)NAN);
    return x == (double)INFINITY ? x : r;
}

/* log(1 + x): what 1 + x loses by rounding is given back, to first order. */
VMATH float vlog1pf(float x)
{
    const float u = 1.0F + x;
    const float c = (x - (u - 1.0F)) / u;
    const float y = vlog_coref(u, c, 0.0F);
    const float r = x > -1.0F ? y : (x == -1.0F ? -INFINITY : NAN);
    return x == INFINITY || x == 0.0F ? x : r;
}

VMATH double vlog1p(double x)
{
    const double u = 1.0 + x;
    const double c = (x - (u - 1.0)) / u;
    const double y = vlog_core(u, c, 0.0);
    const double r = x > -1.0 ? y : (x == -1.0 ? (double)-INFINITY : (double)NAN);
    return x == (double)INFINITY || x == 0.0 ? x : r;
}

/* 1 / (1 + e^-x), by way of e^-|x|, so that neither side overflows. */
VMATH float vsigmoidf(float x)
{
    const float e = vexpf(-vabsf(x));
    return (x < 0.0F ? e : 1.0F) / (1.0F + e);
}

VMATH double vsigmoid(double x)
{
    const double e = vexp(-vabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

VMATH float vtanhf(float x)
{
    const float a = vabsf(x), z = a * a;
    float p = 2.130902617e-3F;
    p = p * z - 8.165033144e-3F;
    p = p * z + 2.169606967e-2F;
    p = p * z - 5.394599341e-2F;
    p = p * z + 1.333320061e-1F;
    p = p * z - 3.333333069e-1F;
    const float small = a + a * z * p;
    const float large = 1.0F - 2.0F / (vexpf(2.0F * a) + 1.0F);
    return vwith_signf(a < 0.625F ? small : large, x);
}

VMATH double vtanh(double x)
{
    const double a = vabs(x);
    const double t = vexpm1(2.0 * (a > 22.0 ? 22.0 : a));
    return vwith_sign(t / (t + 2.0), x);
}

/* Near 0 an odd polynomial; from 1 on, 1 - e^P(x) with P = log(erfc(x)). */
VMATH float verff(float x)
{
    const float a0 = vabsf(x), a = a0 > 4.0F ? 4.0F : a0, z = a * a;
    float p = -9.680139411e-6F;
    p = p * z + 1.127054519e-4F;
    p = p * z - 8.484711487e-4F;
    p = p * z + 5.221074876e-3F;
    p = p * z - 2.686544582e-2F;
    p = p * z + 1.128378275e-1F;
    p = p * z - 3.761263848e-1F;
    p = p * z + 1.283791670e-1F; /* 2/sqrt(pi) - 1 */
    const float small = a + a * p;
    float q = -2.168667007e-5F;
    q = q * a + 4.413341456e-4F;
    q = q * a - 4.204550267e-3F;
    q = q * a + 2.520822391e-2F;
    q = q * a - 1.084185228e-1F;
    q = q * a - 6.332199464e-1F;
    q = q * a - 1.129578396F;
    q = q * a + 1.880338878e-4F;
    const float large = 1.0F - vexpf(q);
    return vwith_signf(a < 1.0F ? small : large, x);
}

VMATH double verf_small(double a)
{
    const double z = a * a;
    double p = 5.96068533852097103e-11;
    p = p * z - 1.13749557360701496e-9;
    p = p * z + 1.46603287227422595e-8;
    p = p * z - 1.63503962228646163e-7;
    p = p * z + 1.64610084778027013e-6;
    p = p * z - 1.49255957721809053e-5;
    p = p * z + 1.20553311329558196e-4;
    p = p * z - 8.54832698142554209e-4;
    p = p * z + 5.22397762482843067e-3;
    p = p * z - 2.68661706450778751e-2;
    p = p * z + 1.12837916709548845e-1;
    p = p * z - 3.76126389031837482e-1;
    p = p * z + 1.28379167095512574e-1; /* 2/sqrt(pi) - 1 */
    return a + a * p;
}

/* 1 - e^(-a^2) P(t) with t = (a - 4) / (a + 4), for a in [1, 6]. */
VMATH double verf_large(double a)
{
    const double t = (a - 4.0) / (a + 4.0);
    double p = 2.28599555231021514e-5;
    p = p * t + 2.03759047693104111e-4;
    p = p * t + 1.5947881271080128e-4;
    p = p * t - 6.29740246622316559e-4;
    p = p * t + 4.16999272618145159e-3;
    p = p * t - 1.2792991894446404e-2;
    p = p * t + 3.13162324176274774e-2;
    p = p * t - 6.31036225638481967e-2;
    p = p * t + 1.08963906546923808e-1;
    p = p * t - 1.64257729445688946e-1;
    p = p * t + 2.18719685662186661e-1;
    p = p * t - 2.59068048462341036e-1;
    p = p * t + 1.36999457630618018e-1;
    return 1.0 - vexp(-a * a) * p;
}

VMATH double verf(double x)
{
    const double a0 = vabs(x), a = a0 > 6.0 ? 6.0 : a0;
    return vwith_sign(a < 1.0 ? verf_small(a) : verf_large(a), x);
}

/* Sine (quarter 0) or cosine (quarter 1) of n * pi/2 + r, where `n_bits` ends in the bits of n. */
VMATH double vsin_quadrant(double r, uint64_t n_bits, uint64_t quarter)
{
    r = r > 0.8 ? 0.8 : r; /* only where x is far outside the range */
    r = r < -0.8 ? -0.8 : r;
    const double z = r * r;
    double s = -7.57808074667258614e-13;
    s = s * z + 1.60583543468564598e-10;
    s = s * z - 2.50521048166006125e-8;
    s = s * z + 2.75573192138315378e-6;
    s = s * z - 1.98412698412543878e-4;
    s = s * z + 8.33333333333332218e-3;
    s = s * z - 1.66666666666666666e-1;
    s = r + r * z * s;
    double c = -1.13585644646099545e-11;
    c = c * z + 2.08757029835865813e-9;
    c = c * z - 2.75573142080895925e-7;
    c = c * z + 2.48015872890017315e-5;
    c = c * z - 1.38888888888733876e-3;
    c = c * z + 4.16666666666665954e-2;
    const double half = 0.5 * z, w = 1.0 - half;
    c = w + (((1.0 - w) - half) + z * z * c);
    const uint64_t q = n_bits + quarter, swap = 0 - (q & 1);
    const uint64_t bits = (vbits_f64(c) & swap) | (vbits_f64(s) & ~swap);
    return vfrom_bits_f64(bits ^ ((q & 2) << 62));
}

/* As above to 38 bits: plenty for f32. */
VMATH double vsin_quadrant_short(double r, uint64_t n_bits, uint64_t quarter)
{
    r = r > 0.8 ? 0.8 : r;
    r = r < -0.8 ? -0.8 : r;
    const double z = r * r;
    double s = 2.7179399545138382e-6;
    s = s * z - 1.9839296138922019e-4;
    s = s * z + 8.33332926676324926e-3;
    s = s * z - 1.66666666406133471e-1;
    s = r + r * z * s;
    double c = -2.72067864044032398e-7;
    c = c * z + 2.47994786035264164e-5;
    c = c * z - 1.38888835981819617e-3;
    c = c * z + 4.16666666210510994e-2;
    c = 1.0 + z * (z * c - 0.5);
    const uint64_t q = n_bits + quarter, swap = 0 - (q & 1);
    const uint64_t bits = (vbits_f64(c) & swap) | (vbits_f64(s) & ~swap);
    return vfrom_bits_f64(bits ^ ((q & 2) << 62));
}

/* pi/2 is cut so that the products with n are exact: 33 bits and the rest for f32; three times 23
 * bits and the rest for f64. */
#define VMATH_PIO2_1 0x1.921fb4p+0
#define VMATH_PIO2_2 0x1.4442dp-24
#define VMATH_PIO2_3 0x1.846988p-48
#define VMATH_PIO2_4 0x1.8cc51701b839ap-72

VMATH float vsin_reducef(float x, uint64_t quarter)
{
    const double t = (double)x * 6.36619772367581343e-1 + VMATH_ROUND_F64;
    const double n = t - VMATH_ROUND_F64;
    const double r = ((double)x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
    return (float)vsin_quadrant_short(r, vbits_f64(t), quarter);
}

VMATH double vsin_reduce(double x, uint64_t quarter)
{
    const double t = x * 6.36619772367581343e-1 + VMATH_ROUND_F64;
    const double n = t - VMATH_ROUND_F64;
    const double r =
        (((x - n * VMATH_PIO2_1) - n * VMATH_PIO2_2) - n * VMATH_PIO2_3) - n * VMATH_PIO2_4;
    return vsin_quadrant(r, vbits_f64(t), quarter);
}

VMATH float vsinf(float x)
{
    return vsin_reducef(x, 0);
}

VMATH float vcosf(float x)
{
    return vsin_reducef(x, 1);
}

VMATH double vsin(double x)
{
    return vsin_reduce(x, 0);
}

VMATH double vcos(double x)
{
    return vsin_reduce(x, 1);
}

/* One step of Horner's rule whose coefficient depends on the region: near, far or very far. */
#define VMATH_STEP(p, a, c, e) (p * x + (near ? (a) : (far ? (c) : (e))))

/* The inverse of the normal distribution function. AS 241 has three quotients of polynomials of
 * the same degree, so one is computed, with coefficients that are selected. */
VMATH double vnormal_inv(double prob)
{
    const double q = prob - 0.5;
    const int near = vabs(q) <= 0.425;
    const double tail = q < 0.0 ? prob : 1.0 - prob;
    const double r = vsqrt(-vlog(tail));
    const int far = r <= 5.0;
    const double x = near ? 0.180625 - q * q : (far ? r - 1.6 : r - 5.0);
    double p = near ? 2.5090809287301226727e+3
                    : (far ? 7.74545014278341407640e-4 : 2.01033439929228813265e-7);
    p = VMATH_STEP(p, 3.3430575583588128105e+4, 2.27238449892691845833e-2,
                   2.71155556874348757815e-5);
    p = VMATH_STEP(p, 6.7265770927008700853e+4, 2.41780725177450611770e-1,
                   1.24266094738807843860e-3);
    p = VMATH_STEP(p, 4.5921953931549871457e+4, 1.27045825245236838258e+0,
                   2.65321895265761230930e-2);
    p = VMATH_STEP(p, 1.3731693765509461125e+4, 3.64784832476320460504e+0,
                   2.96560571828504891230e-1);
    p = VMATH_STEP(p, 1.9715909503065514427e+3, 5.76949722146069140550e+0,
                   1.78482653991729133580e+0);
    p = VMATH_STEP(p, 1.3314166789178437745e+2, 4.63033784615654529590e+0,
                   5.46378491116411436990e+0);
    p = VMATH_STEP(p, 3.3871328727963666080e+0, 1.42343711074968357734e+0,
                   6.65790464350110377720e+0);
    double d = near ? 5.2264952788528545610e+3
                    : (far ? 1.05075007164441684324e-9 : 2.04426310338993978564e-15);
    d = VMATH_STEP(d, 2.8729085735721942674e+4, 5.47593808499534494600e-4,
                   1.42151175831644588870e-7);
    d = VMATH_STEP(d, 3.9307895800092710610e+4, 1.51986665636164571966e-2,
                   1.84631831751005468180e-5);
    d = VMATH_STEP(d, 2.1213794301586595867e+4, 1.48103976427480074590e-1,
                   7.86869131145613259100e-4);
    d = VMATH_STEP(d, 5.3941960214247511077e+3, 6.89767334985100004550e-1,
                   1.48753612908506148525e-2);
    d = VMATH_STEP(d, 6.8718700749205790830e+2, 1.67638483018380384940e+0,
                   1.36929880922735805310e-1);
    d = VMATH_STEP(d, 4.2313330701600911252e+1, 2.05319162663775882187e+0,
                   5.99832206555887937690e-1);
    d = VMATH_STEP(d, 1.0, 1.0, 1.0);
    const double y = p / d;
    const double signed_tail = q < 0.0 ? -y : y;
    const double inside = near ? q * y : signed_tail;
    const double limit = q < 0.0 ? (double)-INFINITY : (double)INFINITY;
    return tail == 0.0 ? limit : inside;
}

VMATH float vnormal_invf(float prob)
{
    return (float)vnormal_inv((double)prob);
}

#undef VMATH_STEP
#endif
