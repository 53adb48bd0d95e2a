/* SPDX-License-Identifier: Apache-2.0
 * Schedules: values of every factor, products, and the messages for texts that are none. Steps here
 * are those of the formulas; a run counts them from 1. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "mtf/schedule.h"
#include "support/mistakes.h"

static mtf_schedule parse(const char *text)
{
    mtf_schedule s;
    mtf_err err = {0};
    if (mtf_schedule_parse(text, &s, &err) != MTF_OK) fail_msg("%s", err.text);
    return s;
}

static void expect(const char *text, int64_t offset, int64_t step, int64_t total, double want,
                   double tolerance)
{
    mtf_schedule s = parse(text);
    s.offset = offset;
    const double got = mtf_schedule_rate(&s, step, total);
    if (!(fabs(got - want) <= tolerance * fabs(want) + 1e-300))
        fail_msg("%s, offset %d: step %d of %d gives %.17g instead of %.17g", text, (int)offset,
                 (int)step, (int)total, got, want);
}

/* reference 4, the table of schedules: six digits. */
static void reference_values(void **state)
{
    (void)state;
    static const int64_t steps[] = {0, 500, 5000, 10000, 40000, 90000, 95000, 100000};
    static const struct {
        const char *text;
        double want[8];
    } rows[] = {
        {"noam(10000, 0.1)", {.01, .01, .01, .01, .005, .00333333, .00162221, 0}},
        {"rsqrt(10000) * linear_decay(0.1)", {.01, .01, .01, .01, .005, .00333333, .00162221, 0}},
        {"slanted_triangular()",
         {.0003125, .000796875, .00515625, .01, .00677083, .00138889, .000850695, .0003125}},
        {"linear_decay(.1)", {1, 1, 1, 1, 1, 1, .5, 0}},
        {"linear_decay(10000)", {1, 1, 1, 1, 1, 1, .5, 0}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < 8; i++)
            expect(rows[r].text, 0, steps[i], 100000, rows[r].want[i], 4e-6);
    /* the same section, its test of linear_decay_learning_rate */
    expect("linear_decay_learning_rate(.001)", 0, 0, 100, .001, 1e-15);
    expect("linear_decay_learning_rate(.001)", 0, 50, 100, .0005, 1e-15);
    expect("linear_decay_learning_rate(.001)", 0, 100, 100, 0, 0);
    expect("linear_decay_learning_rate(.001, 50)", 0, 40, 100, .001, 1e-15);
    /* Adafactor's own rate; its step s is ours s + 1 */
    static const int64_t s[] = {0, 1, 9, 99, 9999, 99999};
    for (int i = 0; i < 6; i++)
        expect("relative()", 0, s[i] + 1, 1000000, i < 5 ? .01 : .00316228, 2e-6);
    expect("0.05 * relative()", 0, 1, 100, .0005, 1e-15);
}

static void every_factor(void **state)
{
    (void)state;
    expect("0.25", 0, 7, 10, 0.25, 0);
    expect("constant()", 0, 7, 10, 1, 0);
    expect("constant(3e-4)", 0, 7, 10, 3e-4, 0);
    expect("linear_warmup(20)", 0, 1, 100, 0.05, 1e-15);
    expect("linear_warmup(20)", 0, 20, 100, 1, 0);
    expect("linear_warmup(20)", 0, 21, 100, 1, 0);
    expect("linear_warmup(0.5)", 0, 20, 100, 0.4, 1e-15);
    expect("linear_warmup()", 0, 100, 20000, 0.01, 1e-15);
    expect("linear_decay(0.5)", 0, 60, 100, 0.8, 1e-15);
    expect("rsqrt(16)", 0, 3, 100, 0.25, 1e-15);
    expect("rsqrt(16)", 0, 64, 100, 0.125, 1e-15);
    expect("linear()", 0, 25, 100, 0.75, 1e-15);
    expect("linear(20, 0.25)", 0, 20, 100, 1, 0);
    expect("linear(20, 0.25)", 0, 60, 100, 0.625, 1e-15);
    expect("linear(20, 0.25)", 0, 100, 100, 0.25, 1e-15);
    expect("linear(200, 0.25)", 0, 100, 100, 1, 0); /* not begun */
    expect("cosine(20, 0.25)", 0, 60, 100, 0.625, 1e-15);
    expect("cosine(20, 0.25)", 0, 40, 100, 0.25 + 0.375 * (1 + sqrt(0.5)), 1e-15);
    expect("cosine(20, 0.25)", 0, 100, 100, 0.25, 1e-15);
    expect("cosine(20)", 0, 500, 100, 0, 0); /* behind the end: the last value */
    expect("inverse_sqrt(20)", 0, 5, 100, 1, 0);
    expect("inverse_sqrt(20)", 0, 80, 100, 0.5, 1e-15);
    expect("inverse_sqrt(1, 0.3)", 0, 100, 100, 0.3, 0);
    expect("relative(0.5)", 0, 16, 100, 0.25, 1e-15);
    expect("noam(16, 0, 3)", 0, 100, 100, 0.3, 1e-15); /* no decay */
    expect("noam(16, 0.5, 3)", 0, 75, 100, 3 / sqrt(75) * 0.5, 1e-15);
    expect("slanted_triangular(0.5, 2, 1, 10)", 0, 10, 100, 0.5, 1e-15);
    expect("slanted_triangular(0.5, 2, 1, 10)", 0, 60, 100, 1, 1e-15);
    expect("slanted_triangular(0.5, 2, 1)", 0, 75, 100, 0.75, 1e-15);
    expect("slanted_triangular(0.1, 4, 1)", 0, 2, 3, 11. / 12, 1e-15); /* cut: at least 1 step */
    expect("piecewise(1, 10, 0.5, 20, 0.1)", 0, 10, 100, 1, 0);
    expect("piecewise(1, 10, 0.5, 20, 0.1)", 0, 11, 100, 0.5, 0);
    expect("piecewise(1, 10, 0.5, 20, 0.1)", 0, 21, 100, 0.1, 0);
}

static void products_and_offsets(void **state)
{
    (void)state;
    expect("2*linear_warmup( 10 )\n * rsqrt(4)*.5", 0, 5, 100, 0.5 / sqrt(5), 1e-15);
    expect("linear_warmup(10) * linear_decay(0.5)", 100, 105, 200, 0.5, 1e-15);
    expect("linear_warmup(10) * linear_decay(0.5)", 100, 175, 200, 0.5, 1e-15);
    expect("linear_warmup(10)", 100, 40, 200, 0, 0); /* not begun: as at its step 0 */
    expect("rsqrt(25)", 100, 40, 200, 0.2, 1e-15);
    const mtf_schedule none = {.nfactors = 0};
    assert_true(mtf_schedule_rate(&none, 3, 10) == 1);
    const mtf_schedule written = {
        .nfactors = 2,
        .factor = {{.kind = MTF_FACTOR_CONSTANT, .narguments = 1, .argument = {0.5}},
                   {.kind = MTF_FACTOR_NOAM, .narguments = 1, .argument = {16}}}};
    const mtf_schedule read = parse("0.5 * noam(16)");
    for (int step = 0; step <= 100; step++)
        assert_true(mtf_schedule_rate(&written, step, 100) == mtf_schedule_rate(&read, step, 100));
}

static void wrong_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "rsqrt(10) *",
        "rsqrt(10) rsqrt(10)",
        "rsqrt(10",
        "rsqrt 10",
        "rsqrt(, 3)",
        "rsqrt(1e)",
        "1e400",
        "rsqrt(nan)",
        "liner_warmup(3)",
        "@",
        "rsqrt(1, 2)",
        "cosine(1, 2, 3)",
        "cosine(1, 2)",
        "rsqrt(0)",
        "slanted_triangular(1)",
        "-3",
        "piecewise(1, 2)",
        "piecewise(1, 5, 2, 5, 1)",
        "piecewise(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
        "1*1*1*1*1*1*1*1*1",
        "rsqrt(10, )",
        "rsqrt(-1)",
        "linear_warmup(1e300)",
        "piecewise()",
        "piecewise(-1, 2, 3)",
        "piecewise(1, -2, 3)",
    };
    messages *m = messages_new("schedule_errors.txt");
    mtf_err err = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mtf_schedule s = {.nfactors = 3};
        messages_add(m, texts[i], mtf_schedule_parse(texts[i], &s, &err), &err);
        assert_int_equal(s.nfactors, 3);
    }
    mtf_schedule none;
    messages_add(m, "no_text", mtf_schedule_parse(NULL, &none, &err), &err);
    static const struct {
        const char *name;
        mtf_schedule s;
    } built[] = {
        {"too_many_factors", {.nfactors = 9}},
        {"factors_below_zero", {.nfactors = -1}},
        {"offset_below_zero", {.offset = -1}},
        {"no_factor", {.nfactors = 1, .factor = {{.kind = (mtf_factor_kind)99}}}},
        {"arguments_below_zero", {.nfactors = 1, .factor = {{.narguments = -1}}}},
    };
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        messages_add(m, built[i].name, mtf_schedule_check(&built[i].s, &err), &err);
    messages_check(&m);
}

static void damaged_texts_never_crash(void **state)
{
    (void)state;
    static const char whole[] =
        "2 * linear_warmup(100) * piecewise(1, 10, 0.5, 20, 1e-3) * cosine()";
    uint64_t r = 1;
    for (int i = 0; i < 20000; i++) {
        char text[sizeof whole];
        memcpy(text, whole, sizeof text);
        for (int k = 0; k < 2; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            text[(r >> 33) % (sizeof text - 1)] = (char)(r >> 25);
        }
        text[(r >> 40) % sizeof text] = '\0';
        mtf_schedule s;
        mtf_err err = {0};
        const mtf_status status = mtf_schedule_parse(text, &s, &err);
        assert_int_equal(status, err.status);
        assert_null(strchr(err.text, '\n'));
        if (status == MTF_OK) assert_true(mtf_schedule_rate(&s, 7, 50) >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_values), cmocka_unit_test(every_factor),
        cmocka_unit_test(products_and_offsets), cmocka_unit_test(wrong_texts),
        cmocka_unit_test(damaged_texts_never_crash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
