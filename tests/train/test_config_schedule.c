/* SPDX-License-Identifier: Apache-2.0
 * The schedules of a configuration: the four words, products, and rules for some variables. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "support/temp.h"
#include "train/config_schedule.h"

static config config_of(int n, const char *const *settings)
{
    config c;
    mtf_err err = {0};
    config_defaults(&c);
    for (int i = 0; i < n; i++)
        expect_ok(config_set(&c, settings[i], &err), &err);
    return c;
}

static void expect_rate(const char *word, int64_t step, int64_t total, int64_t warmup, double want)
{
    config c = config_of(3, (const char *[]){"train.learning_rate=0.8",
                                             "train.min_learning_rate=0.2", "train.steps=100"});
    c.train.warmup_steps = warmup;
    mtf_err err = {0};
    mtf_schedule s;
    char setting[64];
    snprintf(setting, sizeof setting, "train.schedule=%s", word);
    expect_ok(config_set(&c, setting, &err), &err);
    expect_ok(config_schedule(&c, &s, &err), &err);
    const double got = mtf_schedule_rate(&s, step, total);
    if (!(fabs(got - want) < 1e-15)) fail_msg("step %d: %.17g, not %.17g", (int)step, got, want);
    config_free(&c);
}

static void words(void **state)
{
    (void)state;
    static const char *const all[] = {"constant", "linear", "cosine", "rsqrt"};
    for (int k = 0; k < 4; k++) { /* all warm up alike */
        expect_rate(all[k], 1, 100, 20, 0.04);
        expect_rate(all[k], 20, 100, 20, 0.8);
        expect_rate(all[k], 1, 100, 1, 0.8);
    }
    expect_rate("constant", 1, 100, 0, 0.8);
    expect_rate("constant", 100, 100, 20, 0.8);
    expect_rate("linear", 60, 100, 20, 0.5);
    expect_rate("linear", 40, 100, 20, 0.65);
    expect_rate("linear", 100, 100, 20, 0.2);
    expect_rate("linear", 101, 100, 20, 0.2);
    expect_rate("cosine", 60, 100, 20, 0.5);
    expect_rate("cosine", 40, 100, 20, 0.2 + 0.3 * (1 + sqrt(0.5)));
    expect_rate("cosine", 100, 100, 20, 0.2);
    expect_rate("rsqrt", 45, 100, 20, 0.8 * 2 / 3);
    expect_rate("rsqrt", 4, 100, 0, 0.4);
    expect_rate("rsqrt", 10000, 20000, 4, 0.2);
    expect_rate("linear_warmup(10) * 0.5", 5, 100, 20, 0.2); /* no warm-up of its own */
    expect_rate("noam(16, 0)", 64, 100, 20, 0.1);
    expect_rate("0.5", 64, 100, 20, 0.4);
}

static void a_rate_of_zero(void **state)
{
    (void)state;
    config c = config_of(2, (const char *[]){"train.learning_rate=0", "train.schedule=linear"});
    mtf_schedule s;
    mtf_err err = {0};
    expect_ok(config_schedule(&c, &s, &err), &err);
    assert_true(mtf_schedule_rate(&s, 7, 2000) == 0);
    config_free(&c);
}

static void rules(void **state)
{
    (void)state;
    config c = config_of(
        3, (const char *[]){
               "train.schedule_offset=10", "train.learning_rate=2",
               "train.schedule_rules= norm|bias -> linear_warmup(20)\n\n a->b -> 0.5 ;x->cosine"});
    mtf_rate_rule list[MTF_MAX_RATE_RULES];
    mtf_err err = {0};
    arena *mem = arena_new();
    expect_ok(config_check(&c, &err), &err);
    assert_int_equal(config_rate_rules(&c, mem, list, &err), 3);
    static const char *const patterns[] = {"norm|bias", "a->b", "x"};
    static const double rates[] = {2 * 0.25, 1, 2 * 0.05}; /* cosine has the warm-up of 100 steps */
    for (int k = 0; k < 3; k++) {
        assert_string_equal(list[k].pattern, patterns[k]);
        assert_true(fabs(mtf_schedule_rate(&list[k].schedule, 15, 2000) - rates[k]) < 1e-15);
    }
    expect_ok(config_set(&c, "train.schedule_rules=", &err), &err);
    assert_int_equal(config_rate_rules(&c, mem, list, &err), 0);
    arena_free(&mem);
    config_free(&c);
}

static void wrong_texts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"train.schedule=", "train.schedule is '': expected constant, linear, cosine, rsqrt, or a "
                            "product of factors, such as linear_warmup(1000) * rsqrt(1000)"},
        {"train.schedule=cosin",
         "train.schedule is 'cosin': expected constant, linear, cosine, rsqrt, or a product of "
         "factors, such as linear_warmup(1000) * rsqrt(1000)"},
        {"train.schedule=cosine()*",
         "train.schedule: 'cosine()*': expected a factor, such as linear_warmup(1000), at its end"},
        {"train.schedule=1*1*1*1*1*1*1*1",
         "train.schedule: a product of 8 factors; there may be 7"},
        {"train.schedule=1e308*1e308",
         "train.schedule: the learning rate of step 1 is not finite; lower "
         "train.learning_rate or a factor"},
        {"train.schedule_rules=norm -> 1e200*1e200*linear_decay(0.5)",
         "train.schedule_rules: the learning rate of step 1 is not finite; lower "
         "train.learning_rate or a factor"},
        {"train.schedule_rules=norm",
         "train.schedule_rules: expected 'PATTERN -> SCHEDULE' and found 'norm'"},
        {"train.schedule_rules=-> 3",
         "train.schedule_rules: expected 'PATTERN -> SCHEDULE' and found '-> 3'"},
        {"train.schedule_rules=a -> 1; b -> rsqrt(0)",
         "train.schedule_rules: rsqrt: the warmup is 0; it must be above 0 and at most 1e+15"},
        {"train.schedule_rules=a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->1;a->"
         "1;a->1;a->1;a->1",
         "train.schedule_rules: more than 16 rules"},
        {"train.schedule_rules=norm( -> 1",
         "train.schedule_rules: 'norm(' is no regular expression: Unmatched ( or \\("},
        {"train.exclude_from_weight_decay=[a", /* though the optimizer is adam */
         "train.exclude_from_weight_decay: '[a' is no regular expression: Unmatched [, [^, [:, [., "
         "or [="},
        {"adafactor.exclude_from_parameter_scale=a|(",
         "adafactor.exclude_from_parameter_scale: 'a|(' is no regular expression: Unmatched ( or "
         "\\("},
        {"train.schedule_offset=2000",
         "train.schedule_offset is 2000 and train.steps is 2000: the schedules would begin behind "
         "the last step; lower the one or raise the other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config c = config_of(1, cases[i]);
        mtf_err err = {0};
        expect_error(config_check(&c, &err), MTF_INVALID, &err, cases[i][1]);
        config_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(a_rate_of_zero),
                                       cmocka_unit_test(rules), cmocka_unit_test(wrong_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
