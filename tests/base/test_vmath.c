/* SPDX-License-Identifier: Apache-2.0
 * Every function against a wider one of the C library, at dense samples and at the edges, and a
 * vectorised loop against single calls, bit for bit. */
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/vmath.h"

enum { SAMPLES = 400000, BATCH = 1024 };

typedef struct row {
    const char *name;
    double lo, hi;       /* the range that is sampled */
    double ulp32, ulp64; /* the bounds that vmath.h states */
    long double (*exact)(long double);
    float (*one32)(float);
    double (*one64)(double);
    void (*many32)(const float *, float *, int);
    void (*many64)(const double *, double *, int);
} row;

/* The scalar calls are kept out of line so that no loop around them is vectorised. */
#define FUNCTION(name)                                                                             \
    __attribute__((noinline)) static float name##_one32(float x)                                   \
    {                                                                                              \
        return v##name##f(x);                                                                      \
    }                                                                                              \
    __attribute__((noinline)) static double name##_one64(double x)                                 \
    {                                                                                              \
        return v##name(x);                                                                         \
    }                                                                                              \
    __attribute__((noinline)) static void name##_many32(const float *restrict x,                   \
                                                        float *restrict y, int n)                  \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            y[i] = v##name##f(x[i]);                                                               \
    }                                                                                              \
    __attribute__((noinline)) static void name##_many64(const double *restrict x,                  \
                                                        double *restrict y, int n)                 \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            y[i] = v##name(x[i]);                                                                  \
    }

FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(sigmoid)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(normal_inv)

static long double sigmoid_exact(long double x)
{
    return 1.0L / (1.0L + expl(-x));
}

/* Newton's method on erfc, from our own value. */
static long double normal_inv_exact(long double p)
{
    const long double tail = p < 0.5L ? p : 1.0L - p;
    long double z = -fabsl((long double)vnormal_inv((double)tail));
    for (int i = 0; i < 3; i++) {
        const long double cdf = 0.5L * erfcl(-z * sqrtl(0.5L));
        const long double density = expl(-z * z / 2) * 0.398942280401432677939946L;
        z -= (cdf - tail) / density;
    }
    return p < 0.5L ? z : -z;
}

#define ROW(f, lo_, hi_, u32, u64, exact_)                                                         \
    {                                                                                              \
        .name = #f, .lo = lo_, .hi = hi_, .ulp32 = u32, .ulp64 = u64, .exact = exact_,             \
        .one32 = f##_one32, .one64 = f##_one64, .many32 = f##_many32, .many64 = f##_many64         \
    }

static const row rows[] = {
    ROW(exp, -87, 88, 1.0, 1.0, expl),
    ROW(exp, -1, 1, 1.0, 1.0, expl),
    ROW(expm1, -30, 88, 1.6, 1.6, expm1l),
    ROW(expm1, -1.5, 1.5, 1.6, 1.6, expm1l),
    ROW(log, 0, 1e-30, 1.4, 1.0, logl),
    ROW(log, 0, 4, 1.4, 1.0, logl),
    ROW(log, 0.6, 1.6, 1.4, 1.0, logl),
    ROW(log, 1, 3e38, 1.4, 1.0, logl),
    ROW(log1p, -1, 1, 1.4, 1.0, log1pl),
    ROW(log1p, -1e-4, 1e-4, 1.4, 1.0, log1pl),
    ROW(log1p, 0, 1e30, 1.4, 1.0, log1pl),
    ROW(sigmoid, -80, 80, 2.4, 2.4, sigmoid_exact),
    ROW(sigmoid, -4, 4, 2.4, 2.4, sigmoid_exact),
    ROW(tanh, -10, 10, 1.5, 2.5, tanhl),
    ROW(tanh, -1, 1, 1.5, 2.5, tanhl),
    ROW(tanh, -1e-4, 1e-4, 1.5, 2.5, tanhl),
    ROW(erf, -6, 6, 1.5, 1.5, erfl),
    ROW(erf, -1.2, 1.2, 1.5, 1.5, erfl),
    ROW(erf, -1e-4, 1e-4, 1.5, 1.5, erfl),
    ROW(sin, -1e5, 1e5, 0.6, 2.6, sinl),
    ROW(sin, -8, 8, 0.6, 2.6, sinl),
    ROW(cos, -1e5, 1e5, 0.6, 2.6, cosl),
    ROW(cos, -8, 8, 0.6, 2.6, cosl),
    ROW(normal_inv, 1e-300, 1e-9, 0.6, 6.5, normal_inv_exact),
    ROW(normal_inv, 1e-300, 0.07, 0.6, 6.5, normal_inv_exact),
    ROW(normal_inv, 0.01, 0.99, 0.6, 6.5, normal_inv_exact),
};
enum { ROWS = sizeof rows / sizeof *rows };

static double error32(float got, long double want)
{
    const float near = (float)want;
    const int e = near == 0.0F ? -126 : ilogbf(near);
    return (double)(fabsl((long double)got - want) / ldexpl(1.0L, (e < -126 ? -126 : e) - 23));
}

static double error64(double got, long double want)
{
    const double near = (double)want;
    const int e = near == 0.0 ? -1022 : ilogb(near);
    return (double)(fabsl((long double)got - want) / ldexpl(1.0L, (e < -1022 ? -1022 : e) - 52));
}

/* An even cut of the range, with steps that are no round number. */
static double sample(const row *r, int i)
{
    return r->lo + (r->hi - r->lo) * ((i + 0.618033988749895) / SAMPLES);
}

static void errors_stay_within_the_bounds(void **state)
{
    (void)state;
    for (int k = 0; k < ROWS; k++) {
        const row *r = &rows[k];
        double worst32 = 0, worst64 = 0, at32 = 0, at64 = 0;
        for (int i = 0; i < SAMPLES; i++) {
            const double x = sample(r, i);
            const float x32 = (float)x;
            const double e64 = error64(r->one64(x), r->exact(x));
            const double e32 = error32(r->one32(x32), r->exact(x32));
            if (e64 > worst64) worst64 = e64, at64 = x;
            if (e32 > worst32 && (double)x32 >= r->lo && (double)x32 <= r->hi)
                worst32 = e32, at32 = x;
        }
        printf("%-10s [%9.3g, %9.3g]: f32 %.3f ulp at %.9g, f64 %.3f ulp at %.17g\n", r->name,
               r->lo, r->hi, worst32, at32, worst64, at64);
        assert_true(worst32 <= r->ulp32);
        assert_true(worst64 <= r->ulp64);
    }
}

static void vector_loops_give_the_bits_of_single_calls(void **state)
{
    (void)state;
    static float x32[BATCH], y32[BATCH];
    static double x64[BATCH], y64[BATCH];
    for (int k = 0; k < ROWS; k++) {
        const row *r = &rows[k];
        for (int base = 0; base < SAMPLES; base += 7 * BATCH) {
            const int n = SAMPLES - base < BATCH - 3 ? SAMPLES - base : BATCH - 3;
            for (int i = 0; i < n; i++)
                x32[i] = (float)(x64[i] = sample(r, base + i));
            r->many32(x32, y32, n);
            r->many64(x64, y64, n);
            for (int i = 0; i < n; i++) {
                assert_int_equal(vbits_f32(y32[i]), vbits_f32(r->one32(x32[i])));
                assert_int_equal(vbits_f64(y64[i]), vbits_f64(r->one64(x64[i])));
            }
        }
    }
}

/* x, and what exp, expm1, log, log1p, sigmoid, tanh, erf, sin and cos give there. */
static const double limits[][10] = {
    {(double)INFINITY, (double)INFINITY, (double)INFINITY, (double)INFINITY, (double)INFINITY, 1, 1,
     1, (double)NAN, (double)NAN},
    {(double)-INFINITY, 0, -1, (double)NAN, (double)NAN, 0, -1, -1, (double)NAN, (double)NAN},
    {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN,
     (double)NAN, (double)NAN, (double)NAN},
    {0, 1, 0, (double)-INFINITY, 0, 0.5, 0, 0, 0, 1},
};

static void assert_same(double got, double want)
{
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_true(got == want);
}

static void edges_give_the_limits(void **state)
{
    (void)state;
    float (*const f32[])(float) = {exp_one32,  expm1_one32, log_one32, log1p_one32, sigmoid_one32,
                                   tanh_one32, erf_one32,   sin_one32, cos_one32};
    double (*const f64[])(double) = {exp_one64,  expm1_one64, log_one64, log1p_one64, sigmoid_one64,
                                     tanh_one64, erf_one64,   sin_one64, cos_one64};
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 9; k++) {
            assert_same((double)f32[k]((float)limits[i][0]), limits[i][k + 1]);
            assert_same(f64[k](limits[i][0]), limits[i][k + 1]);
        }
    }
    assert_same((double)vexpf(89.0F), (double)INFINITY);
    assert_same((double)vexpf(-104.5F), 0);
    assert_same((double)vexpf(-100.0F), (double)expf(-100.0F));
    assert_same(vexp(-740.0), exp(-740.0));
    assert_same(vexp(709.9), (double)INFINITY);
    assert_same(vexp(-746.0), 0);
    assert_same((double)vexpm1f(3.4e38F), (double)INFINITY);
    assert_same((double)vlogf(-1.0F), (double)NAN);
    assert_same(vlog(-1.0), (double)NAN);
    assert_same((double)vlog1pf(-1.0F), (double)-INFINITY);
    assert_same(vlog1p(-2.0), (double)NAN);
    assert_true(fabs((double)vlogf(1e-45F) - log((double)1e-45F)) < 1e-5);
    assert_true(fabs(vlog(5e-324) - log(5e-324)) < 1e-12);
    assert_same(vnormal_inv(0.0), (double)-INFINITY);
    assert_same(vnormal_inv(1.0), (double)INFINITY);
    assert_same(vnormal_inv(0.5), 0);
    assert_same(vnormal_inv(1.5), (double)NAN);
    assert_same(vnormal_inv(-0.5), (double)NAN);
    assert_same(vnormal_inv(0.25), -vnormal_inv(0.75));
}

static void sine_stays_bounded_and_exact_where_promised(void **state)
{
    (void)state;
    for (int i = 1; i < 10000; i++) {
        const double x = 1e5 * i * 1.0007;
        assert_true(error64(vsin(x), sinl(x)) <= 2.6);
        const float far = 3.1e30F * (float)i;
        assert_true(vabsf(vsinf(far)) <= 1.0F);
        assert_true(vabs(vcos((double)far * 1e200)) <= 1.0);
    }
    /* a multiple of pi to within rounding, where the reduction cancels most, and the far end */
    const double pi = 3.14159265358979312, end = 1e9;
    assert_true(error64(vsin(pi), sinl(pi)) <= 2.6);
    assert_true(error64(vsin(end), sinl(end)) <= 2.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_within_the_bounds),
        cmocka_unit_test(vector_loops_give_the_bits_of_single_calls),
        cmocka_unit_test(edges_give_the_limits),
        cmocka_unit_test(sine_stays_bounded_and_exact_where_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
