/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "support/temp.h"
#include "train/runlog.h"

static const runlog_run run = {.version = "0.1.0",
                               .mesh = "rows:2",
                               .layout = "batch:rows",
                               .parameters = 1234567890123,
                               .seed = 1,
                               .threads = 2};

static runlog *created(void)
{
    runlog *log;
    mtf_err err = {.status = MTF_OK};
    expect_ok(runlog_create(temp_path("log.jsonl"), &log, &err), &err);
    expect_ok(runlog_write_run(log, &run, &err), &err);
    return log;
}

static void write_steps(runlog *log, int64_t first, int64_t last)
{
    mtf_err err = {.status = MTF_OK};
    for (int64_t s = first; s <= last; s++) {
        const runlog_train t = {.step = s,
                                .loss = 0.1,
                                .grad_norm = 2,
                                .learning_rate = 1e-3,
                                .tokens = 768,
                                .tokens_per_second = 1e5,
                                .seconds = 0.25};
        expect_ok(runlog_write_train(log, &t, &err), &err);
        const runlog_valid v = {
            .step = s, .valid_loss = 0.5, .valid_tokens = 10, .valid_perplexity = 1.5};
        if (s % 2 == 0) expect_ok(runlog_write_valid(log, &v, &err), &err);
    }
}

#define RUN                                                                                        \
    "{\"run\": {\"version\": \"0.1.0\", \"mesh\": \"rows:2\", \"layout\": \"batch:rows\", "        \
    "\"parameters\": 1234567890123, \"seed\": 1, \"threads\": 2}}\n"
#define TRAIN(step)                                                                                \
    "{\"step\": " step ", \"loss\": 0.10000000000000001, \"grad_norm\": 2.0, "                     \
    "\"learning_rate\": 0.001, \"tokens\": 768, \"tokens_per_second\": 100000.0, "                 \
    "\"seconds\": 0.25}\n"
#define VALID(step)                                                                                \
    "{\"step\": " step ", \"valid_loss\": 0.5, \"valid_tokens\": 10, \"valid_perplexity\": 1.5}\n"

static void expect_file(const char *want)
{
    char *text = temp_read(temp_path("log.jsonl"), NULL);
    assert_string_equal(text, want);
    mem_free(text);
}

static void lines_are_as_agreed(void **state)
{
    (void)state;
    runlog *log = created();
    write_steps(log, 1, 2);
    mtf_err err = {.status = MTF_OK};
    expect_ok(runlog_sync(log, &err), &err);
    runlog_close(&log);
    assert_null(log);
    runlog_close(&log);
    expect_file(RUN TRAIN("1") TRAIN("2") VALID("2"));
}

static void resuming_removes_later_lines(void **state)
{
    (void)state;
    runlog *log = created();
    write_steps(log, 1, 5);
    runlog_close(&log);
    mtf_err err = {.status = MTF_OK};
    runlog_kept kept = {0};
    expect_ok(runlog_resume(temp_path("log.jsonl"), 2, &log, &kept, &err), &err);
    assert_int_equal(kept.lines, 4);
    assert_int_equal(kept.valid_step, 2);
    expect_file(RUN TRAIN("1") TRAIN("2") VALID("2"));
    expect_ok(runlog_write_run(log, &run, &err), &err);
    write_steps(log, 3, 3);
    runlog_close(&log);
    expect_file(RUN TRAIN("1") TRAIN("2") VALID("2") RUN TRAIN("3"));
    expect_ok(runlog_resume(temp_path("log.jsonl"), 0, &log, &kept, &err), &err);
    runlog_close(&log);
    assert_int_equal(kept.lines, 2);
    expect_file(RUN RUN);
    struct stat info;
    assert_int_equal(stat(temp_path("log.jsonl.tmp"), &info), -1);
}

static void a_torn_last_line_is_dropped(void **state)
{
    (void)state;
    static const char whole[] = RUN TRAIN("1") TRAIN("2");
    const size_t first = strlen(RUN), second = first + strlen(TRAIN("1"));
    for (size_t cut = 0; cut < sizeof whole; cut++) {
        runlog *log;
        runlog_kept kept = {0};
        mtf_err err = {.status = MTF_OK};
        const char *path = temp_write("log.jsonl", whole, cut);
        expect_ok(runlog_resume(path, 100, &log, &kept, &err), &err);
        runlog_close(&log);
        const int64_t want = cut < first ? 0 : cut < second ? 1 : cut < sizeof whole - 1 ? 2 : 3;
        assert_int_equal(kept.lines, want);
        size_t bytes;
        mem_free(temp_read(path, &bytes));
        const size_t ends[] = {0, first, second, sizeof whole - 1};
        assert_int_equal(bytes, ends[want]);
    }
}

static void a_missing_log_is_begun(void **state)
{
    (void)state;
    runlog *log;
    runlog_kept kept = {0};
    mtf_err err = {.status = MTF_OK};
    expect_ok(runlog_resume(temp_path("new.jsonl"), 5, &log, &kept, &err), &err);
    assert_int_equal(kept.lines, 0);
    assert_int_equal(kept.valid_step, -1);
    runlog_close(&log);
}

static void errors(void **state)
{
    (void)state;
    runlog *log;
    runlog_kept kept = {0};
    mtf_err err = {.status = MTF_OK};
    expect_error(runlog_create(temp_path("no/log.jsonl"), &log, &err), MTF_FAILED, &err,
                 "cannot write the log 'no/log.jsonl': No such file or directory");
    assert_null(log);
    static const char *const broken[] = {RUN "hello\n" TRAIN("1"), RUN "{\"step\": 1.5}\n",
                                         RUN "{}\n", RUN "\n", RUN "[1]\n"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const char *path = temp_text("bad.jsonl", broken[i]);
        expect_error(runlog_resume(path, 9, &log, &kept, &err), MTF_INVALID, &err,
                     "bad.jsonl:2: not a line of a training log");
        assert_null(log);
        char *after = temp_read(path, NULL);
        assert_string_equal(after, broken[i]);
        mem_free(after);
    }
    char want[80];
    snprintf(want, sizeof want, "writing '/dev/full': %zu bytes: No space left on device",
             strlen(RUN));
    expect_ok(runlog_create("/dev/full", &log, &err), &err);
    expect_error(runlog_write_run(log, &run, &err), MTF_FAILED, &err, want);
    runlog_close(&log);
}

static void numbers_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    runlog *log = created();
    mtf_err err = {.status = MTF_OK};
    runlog_train t = {.step = 7, .loss = NAN, .grad_norm = INFINITY};
    expect_error(runlog_write_train(log, &t, &err), MTF_FAILED, &err,
                 "loss of step 7 is not finite");
    t.loss = 1;
    expect_error(runlog_write_train(log, &t, &err), MTF_FAILED, &err,
                 "grad_norm of step 7 is not finite");
    const runlog_valid v = {.step = 8, .valid_perplexity = INFINITY};
    expect_error(runlog_write_valid(log, &v, &err), MTF_FAILED, &err,
                 "valid_perplexity of step 8 is not finite");
    runlog_close(&log);
    expect_file(RUN);
}

static void numbers_restore_under_any_locale(void **state)
{
    (void)state;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* does nothing where there is none */
    runlog *log = created();
    mtf_err err = {.status = MTF_OK};
    const runlog_train t = {.step = INT64_MAX,
                            .loss = 0.1 + 0.2,
                            .grad_norm = 5e-324,
                            .learning_rate = 1.7976931348623157e308,
                            .seconds = 1.0 / 3};
    expect_ok(runlog_write_train(log, &t, &err), &err);
    runlog_close(&log);
    setlocale(LC_ALL, "C");
    char *text = temp_read(temp_path("log.jsonl"), NULL);
    json_t *root = json_loads(text + strlen(RUN), 0, NULL);
    assert_non_null(root);
    assert_true(json_integer_value(json_object_get(root, "step")) == INT64_MAX);
    assert_true(json_real_value(json_object_get(root, "loss")) == t.loss);
    assert_true(json_real_value(json_object_get(root, "grad_norm")) == t.grad_norm);
    assert_true(json_real_value(json_object_get(root, "learning_rate")) == t.learning_rate);
    assert_true(json_real_value(json_object_get(root, "seconds")) == t.seconds);
    json_decref(root);
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_as_agreed),
        cmocka_unit_test(resuming_removes_later_lines),
        cmocka_unit_test(a_torn_last_line_is_dropped),
        cmocka_unit_test(a_missing_log_is_begun),
        cmocka_unit_test(errors),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused),
        cmocka_unit_test(numbers_restore_under_any_locale),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
