/* SPDX-License-Identifier: Apache-2.0
 * Dropout with shared and with changing choices, jitter, and clipped gradients of activations. */
#include "check.h"

#include <math.h>

#include "mtf/mtf.h"
#include "support/eval.h"
#include "support/mistakes.h"

enum { A = 40, B = 30, N = A * B };

#define AB MTF_SHAPE({"a", A}, {"b", B})

static mtf_tensor *ones(mtf_graph *g)
{
    return mtf_constant(g, 1, AB, MTF_F64);
}

/* Shares of 1200 choices: within four deviations. */
static void expect_share(const double *x, int n, double kept, double value)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        assert_true(x[i] == 0 || fabs(x[i] - value) < 1e-15 * value);
        count += x[i] != 0;
    }
    assert_true(fabs(count - kept * n) < 4 * sqrt(n * kept * (1 - kept)));
}

static void shared_choices(void **state)
{
    (void)state;
    static const char *const cuts[][2] = {{"", ""}, {"x:2;y:3", "a:x;b:y"}, {"x:7", "a:x"}};
    double x[3][N], all[N];
    eval e = eval_open();
    mtf_tensor *rows = mtf_dropout_shared(ones(e.g), "rows", 0.3, MTF_SHAPE({"a", A}));
    mtf_tensor *every = mtf_dropout_shared(ones(e.g), "all", 0.3, MTF_SHAPE({"b", B}, {"a", A}));
    for (int c = 0; c < 3; c++)
        eval_run(&e, cuts[c][0], cuts[c][1], rows, x[c]);
    double first[A];
    for (int i = 0; i < N; i++) {
        assert_true(x[0][i] == x[0][i / B * B]); /* one choice per a */
        assert_true(x[1][i] == x[0][i] && x[2][i] == x[0][i]);
        first[i / B] = x[0][i];
    }
    expect_share(first, A, 0.7, 1 / 0.7);
    eval_run(&e, "", "", every, all);
    expect_share(all, N, 0.7, 1 / 0.7);
    mtf_tensor *one = mtf_dropout_shared(ones(e.g), "one", 0.5, MTF_SCALAR);
    eval_run(&e, "", "", one, all);
    for (int i = 0; i < N; i++)
        assert_true(all[i] == all[0] && (all[0] == 0 || all[0] == 2));
    eval_close(&e);
}

/* What is dropped is 0, whatever it was; so is its gradient. */
static void infinite_values(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = mtf_scale(ones(e.g), INFINITY), *y[2];
    y[0] = mtf_dropout_shared(x, "rows", 0.5, MTF_SHAPE({"a", A}));
    y[1] = mtf_dropout_keep(x, "keep", mtf_constant(e.g, 0.5, MTF_SCALAR, MTF_F64), AB);
    for (int k = 0; k < 2; k++) {
        double value[N], slope[N];
        eval_run(&e, "", "", y[k], value);
        eval_run(&e, "", "", eval_gradient(y[k], x), slope);
        int dropped = 0;
        for (int i = 0; i < N; i++) {
            assert_true(value[i] == 0 ? slope[i] == 0 : isinf(value[i]) && slope[i] == 2);
            dropped += value[i] == 0;
        }
        assert_in_range(dropped, N / 5, 4 * N / 5);
    }
    eval_close(&e);
}

/* Defect C14 of the reference: its annealed dropout compares a tensor with 1.0, so that it never
 * ends. Here it ends at step `end`. */
static void annealed(void **state)
{
    (void)state;
    assert_true(fabs(mtf_annealed_keep(0.4, 10, 30, 10) - 0.6) < 1e-15);
    assert_true(fabs(mtf_annealed_keep(0.4, 10, 30, 20) - 0.8) < 1e-15);
    assert_true(mtf_annealed_keep(0.4, 10, 30, 30) == 1);
    assert_true(mtf_annealed_keep(0.4, 10, 30, 1000) == 1);
    assert_true(fabs(mtf_annealed_keep(0.4, 10, 30, 0) - 0.6) < 1e-15);
    static const double keeps[] = {0.6, 0.8, 1, 1.5};
    for (int k = 0; k < 4; k++) {
        eval e = eval_open();
        mtf_tensor *keep = INPUT(&e, MTF_SCALAR, MTF_F64, keeps[k]);
        mtf_tensor *y = mtf_dropout_keep(ones(e.g), "d", keep, AB);
        double x[2][N];
        eval_run(&e, "", "", y, x[0]);
        eval_run(&e, "x:2;y:3", "a:y;b:x", y, x[1]);
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        const double kept = fmin(1, keeps[k]);
        if (kept < 1)
            expect_share(x[0], N, kept, 1 / kept);
        else
            for (int i = 0; i < N; i++)
                assert_true(x[0][i] == 1);
        eval_close(&e);
    }
}

static void jitter(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = ones(e.g);
    assert_ptr_equal(mtf_multiplicative_jitter(x, "j", 0), x);
    double y[N], sum = 0, low = 2, high = 0;
    eval_run(&e, "", "", mtf_multiplicative_jitter(mtf_scale(x, 2), "j", 0.25), y);
    for (int i = 0; i < N; i++) {
        sum += y[i];
        low = fmin(low, y[i]);
        high = fmax(high, y[i]);
    }
    assert_true(low >= 1.5 && low < 1.51 && high <= 2.5 && high > 2.49);
    assert_true(fabs(sum / N - 2) < 4 * 0.5 / sqrt(3. * N));
    eval_close(&e);
}

/* The gradient 3, 4 has the root mean square sqrt(12.5). */
static void clipped_gradients(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape shape = MTF_SHAPE({"a", 2});
    mtf_tensor *x = INPUT(&e, shape, MTF_F64, 5, 6), *w = INPUT(&e, shape, MTF_F64, 3, 4);
    const double rms = sqrt(12.5);
    mtf_tensor *loose = mtf_clip_activation_gradient(x, 4),
               *tight = mtf_clip_activation_gradient(x, 0.5);
    EXPECT(&e, tight, 0, 5, 6);
    for (int c = 0; c < 2; c++) {
        const char *m = c ? "x:2" : "", *l = c ? "a:x" : "";
        EXPECT_ON(&e, m, l, eval_gradient(mtf_mul(loose, w), x), 0, 3, 4);
        EXPECT_ON(&e, m, l, eval_gradient(mtf_mul(tight, w), x), 1e-15, 1.5 / rms, 2 / rms);
    }
    eval_close(&e);
}

/* ---- messages ---- */

MISTAKE(noise_of_no_dim, mtf_dropout_shared(p->x, "d", 0.5, MTF_SHAPE({"z", 2})))
MISTAKE(noise_of_another_size, mtf_dropout_shared(p->x, "d", 0.5, MTF_SHAPE({"a", 3})))
MISTAKE(noise_of_a_dim_twice, mtf_dropout_shared(p->x, "d", 0.5, MTF_SHAPE({"a", 4}, {"a", 4})))
MISTAKE(rate_above_one, mtf_dropout_shared(p->x, "d", 1.5, MTF_SHAPE({"a", 4})))
MISTAKE(rate_of_one, mtf_dropout_shared(p->x, "d", 1, MTF_SHAPE({"a", 4})))
MISTAKE(rate_below_zero, mtf_dropout_shared(p->x, "d", -0.1, MTF_SCALAR))
MISTAKE(rate_is_nan, mtf_dropout_shared(p->x, "d", (double)NAN, MTF_SCALAR))
MISTAKE(dropout_of_integers, mtf_dropout_shared(p->i, "d", 0.5, MTF_SCALAR))
MISTAKE(keep_is_no_scalar, mtf_dropout_keep(p->x, "d", p->y, MTF_SCALAR))
MISTAKE(keep_of_another_type,
        mtf_dropout_keep(p->x, "d", mtf_constant(p->g, 1, MTF_SCALAR, MTF_F64), MTF_SCALAR))
MISTAKE(keep_for_no_dim, mtf_dropout_keep(p->x, "d", mtf_constant(p->g, 1, MTF_SCALAR, MTF_F32),
                                          MTF_SHAPE({"z", 2})))
MISTAKE(jitter_below_zero, mtf_multiplicative_jitter(p->x, "j", -0.5))
MISTAKE(jitter_is_nan, mtf_multiplicative_jitter(p->x, "j", (double)NAN))
MISTAKE(jitter_of_integers, mtf_multiplicative_jitter(p->i, "j", 0.5))
MISTAKE(limit_of_zero, mtf_clip_activation_gradient(p->x, 0))
MISTAKE(limit_below_zero, mtf_clip_activation_gradient(p->x, -1))
MISTAKE(limit_is_nan, mtf_clip_activation_gradient(p->x, (double)NAN))
MISTAKE(limit_for_integers, mtf_clip_activation_gradient(p->i, 1))

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const mistake_row rows[] = {
        MISTAKE_ROW(noise_of_no_dim),      MISTAKE_ROW(noise_of_another_size),
        MISTAKE_ROW(noise_of_a_dim_twice), MISTAKE_ROW(rate_above_one),
        MISTAKE_ROW(rate_of_one),          MISTAKE_ROW(rate_below_zero),
        MISTAKE_ROW(rate_is_nan),          MISTAKE_ROW(dropout_of_integers),
        MISTAKE_ROW(keep_is_no_scalar),    MISTAKE_ROW(keep_of_another_type),
        MISTAKE_ROW(keep_for_no_dim),      MISTAKE_ROW(jitter_below_zero),
        MISTAKE_ROW(jitter_is_nan),        MISTAKE_ROW(jitter_of_integers),
        MISTAKE_ROW(limit_of_zero),        MISTAKE_ROW(limit_below_zero),
        MISTAKE_ROW(limit_is_nan),         MISTAKE_ROW(limit_for_integers),
    };
    mistakes_check("noise_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_choices),    cmocka_unit_test(infinite_values),
        cmocka_unit_test(annealed),          cmocka_unit_test(jitter),
        cmocka_unit_test(clipped_gradients), cmocka_unit_test(mistakes_have_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
