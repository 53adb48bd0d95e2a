/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "support/temp.h"
#include "train/config.h"

static const char example[] =
    "model:  {type: lm, layers: 3, d_model: 64, heads: 2, d_kv: 16, d_ff: 256, length: 32,\n"
    "         dropout: 0.25}\n"
    "data:   {train: input.txt, valid_fraction: 0.2, tokenizer: bytes}   # or valid: other.txt\n"
    "train:  {steps: 20, batch: 6, microbatches: 2, optimizer: adamw, learning_rate: 2.0e-3,\n"
    "         schedule: rsqrt, warmup_steps: 10, clip_norm: 0, seed: 7, eval_every: 0}\n"
    "mesh:   \"rows:2;cols:2\"\n"
    "layout: \"batch:rows;vocab:cols;d_ff:cols;heads:cols\"\n";

static mtf_status parse(config *c, const char *text, mtf_err *err)
{
    config_defaults(c);
    return config_parse(c, "c.yaml", text, strlen(text), err);
}

static void the_example_is_read(void **state)
{
    (void)state;
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    expect_ok(config_read(&c, temp_text("example.yaml", example), &err), &err);
    expect_ok(config_check(&c, &err), &err);
    assert_true(c.model.layers == 3 && c.model.length == 32 && c.model.dropout == 0.25);
    assert_string_equal(c.data.train, "input.txt");
    assert_true(c.data.tokenizer == CONFIG_BYTES && c.data.valid_fraction == 0.2);
    assert_true(c.train.optimizer == CONFIG_ADAMW && strcmp(c.train.schedule, "rsqrt") == 0);
    assert_true(c.train.learning_rate == 2e-3 && c.train.clip_norm == 0 && c.train.eval_every == 0);
    assert_true(c.train.beta2 == 0.999 && c.train.checkpoint_every == 500);
    assert_string_equal(c.mesh, "rows:2;cols:2");
    assert_string_equal(c.layout, "batch:rows;vocab:cols;d_ff:cols;heads:cols");
    config_free(&c);
}

static void empty_texts_are_all_defaults(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "# only a comment\n",
                                        "---\n...\n",
                                        "{}",
                                        "model:\ntrain: {}\nmesh:\nlayout: null\n",
                                        "\xEF\xBB\xBFmesh: \"\"\n"};
    config c, plain;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&plain);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_ok(parse(&c, texts[i], &err), &err);
        assert_null(options_difference(&config_options, &c, &plain, 0));
        config_free(&c);
    }
    expect_ok(config_check(&plain, &err), &err);
    config_free(&plain);
}

static void other_forms_of_the_same(void **state)
{
    (void)state;
    config c;
    mtf_err err = {.status = MTF_OK};
    expect_ok(parse(&c,
                    "model.layers: 7\nmodel:\n  d_ff: \"12\"\n  tied: Yes\ntrain: &t\n"
                    "  seed: &s 5\n  batch: *s\ndata:\n  train: |-\n    a b\n",
                    &err),
              &err);
    assert_true(c.model.layers == 7 && c.model.d_ff == 12 && c.model.tied);
    assert_true(c.train.seed == 5 && c.train.batch == 5);
    assert_string_equal(c.data.train, "a b");
    config_free(&c);
}

static void wrong_files_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"model:\n  layrs: 4\n",
         "c.yaml:2: unknown key 'model.layrs'; did you mean 'model.layers'?"},
        {"modle: {layers: 4}", "c.yaml:1: unknown key 'modle'; did you mean 'model'?"},
        {"\nmseh: x", "c.yaml:2: unknown key 'mseh'; did you mean 'mesh'?"},
        {"layers: 4", "c.yaml:1: unknown key 'layers'; did you mean 'model.layers'?"},
        {"storage_layout: x", "c.yaml:1: unknown key 'storage_layout'; did you mean 'layout'?"},
        {"train:\n  steps: 1\n  batch: 2\n  steps: 3\n",
         "c.yaml:4: key 'train.steps' is given twice, first on line 2"},
        {"model: {layers: 1}\nmesh: a\nmodel: {d_ff: 2}\n",
         "c.yaml:3: key 'model' is given twice, first on line 1"},
        {"model: {layers: 1}\nmodel.layers: 2\n",
         "c.yaml:2: key 'model.layers' is given twice, first on line 1"},
        {"mesh: a\nmesh: b\n", "c.yaml:2: key 'mesh' is given twice, first on line 1"},
        {"train:\n  seed: [1, 2]\n", "c.yaml:2: key 'train.seed' wants a single value, not a list"},
        {"mesh: {rows: 2}\n", "c.yaml:1: key 'mesh' wants a single value, not a mapping"},
        {"model: {layers: {a: 1}}\n",
         "c.yaml:1: key 'model.layers' wants a single value, not a mapping"},
        {"? [a, b]\n: 1\n", "c.yaml:1: a key wants a single value, not a list"},
        {"model: {? {a: 1} : 2}\n", "c.yaml:1: a key wants a single value, not a mapping"},
        {"model: 4\n",
         "c.yaml:1: 'model' holds other keys, such as 'model.type'; write them below it"},
        {"data: [a]\n",
         "c.yaml:1: 'data' holds other keys, such as 'data.train'; write them below it"},
        {"model:\n  layers: many\n",
         "c.yaml:2: model.layers is 'many': expected a whole number from 1 to 100000"},
        {"model:\n  layers:\n",
         "c.yaml:2: model.layers is '': expected a whole number from 1 to 100000"},
        {"train: {learning_rate: .nan}",
         "c.yaml:1: train.learning_rate is '.nan': expected a number of at least 0"},
        {"train: {learning_rate: -1.0}",
         "c.yaml:1: train.learning_rate is '-1.0': expected a number of at least 0"},
        {"model: {dropout: 1.0}",
         "c.yaml:1: model.dropout is '1.0': expected a number from 0 to below 1"},
        {"model: {type: gan}", "c.yaml:1: model.type is 'gan': expected lm"},
        {"train: {optimizer: adamm}",
         "c.yaml:1: train.optimizer is 'adamm': expected one of sgd, momentum, nesterov, "
         "adam, adamw, adafactor"},
        {"mesh: \"a\\0b\"", "c.yaml:1: key 'mesh' holds a zero byte"},
        {"- 1\n- 2\n", "c.yaml:1: a configuration is made of keys and values, such as "
                       "'model: {layers: 4}'"},
        {"hello", "c.yaml:1: a configuration is made of keys and values, such as "
                  "'model: {layers: 4}'"},
        {"mesh: a\nlayout: [\n", "c.yaml:3: broken YAML while parsing a flow node: did not find "
                                 "expected node content"},
        {"mesh: a\n  layout: b\n", "c.yaml:2: broken YAML: mapping values are not allowed in this "
                                   "context"},
        {"mesh:\n\ta: b\n", "c.yaml:2: broken YAML while scanning for the next token: found "
                            "character that cannot start any token"},
        {"mesh: *x\n", "c.yaml:1: broken YAML: found undefined alias"},
        {"mesh: a\n\nx: \x01\n", "c.yaml:3: broken YAML: control characters are not allowed"},
        {"mesh: a\nlayout: \xff\n", "c.yaml:2: byte 0xff at offset 16 is not UTF-8 text"},
        {"mesh: a\n---\nmesh: b\n",
         "c.yaml:3: a second YAML document begins here; a configuration is one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config c;
        mtf_err err = {.status = MTF_OK};
        expect_error(parse(&c, cases[i].text, &err), MTF_INVALID, &err, cases[i].message);
        config_free(&c);
    }
}

static void deep_nesting_is_refused_at_once(void **state)
{
    (void)state;
    enum { N = 500000 };
    char *text = mem_alloc(N);
    memset(text, '[', N);
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    expect_error(config_parse(&c, "c.yaml", text, N, &err), MTF_INVALID, &err,
                 "c.yaml:1: nested more than 16 deep");
    config_free(&c);
    mem_free(text);
}

static void wrong_paths(void **state)
{
    (void)state;
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    expect_error(config_read(&c, temp_path("none.yaml"), &err), MTF_INVALID, &err,
                 "configuration: cannot open 'none.yaml': No such file or directory");
    assert_int_equal(mkdir(temp_path("folder"), 0777), 0);
    expect_error(config_read(&c, temp_path("folder"), &err), MTF_INVALID, &err,
                 "configuration: 'folder' is a folder, not a file");
    expect_error(config_read(&c, "/dev/zero", &err), MTF_INVALID, &err,
                 "configuration: '/dev/zero' is larger than 1048576 bytes");
    expect_error(config_read(&c, temp_text("bad.yaml", "mesh: a\nx: y\n"), &err), MTF_INVALID, &err,
                 "bad.yaml:2: unknown key 'x'; did you mean 'mesh'?");
    config_free(&c);
}

static void a_pipe_is_read_once_and_whole(void **state)
{
    (void)state;
    const char *path = temp_path("pipe");
    assert_int_equal(mkfifo(path, 0666), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int fd = open(path, O_WRONLY);
        for (size_t i = 0; i < sizeof example - 1; i++)
            if (write(fd, example + i, 1) != 1) _exit(1);
        _exit(0);
    }
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    expect_ok(config_read(&c, path, &err), &err);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_string_equal(c.mesh, "rows:2;cols:2");
    config_free(&c);
}

static void overrides(void **state)
{
    (void)state;
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    expect_ok(config_set(&c, "model.d_ff=4096", &err), &err);
    expect_ok(config_set(&c, "data.train=a=b.txt", &err), &err);
    expect_ok(config_set(&c, "layout=", &err), &err);
    assert_int_equal(c.model.d_ff, 4096);
    assert_string_equal(c.data.train, "a=b.txt");
    expect_error(config_set(&c, "model.d_ff", &err), MTF_INVALID, &err,
                 "'model.d_ff' is not of the form key=value");
    expect_error(config_set(&c, "=4", &err), MTF_INVALID, &err,
                 "'=4' is not of the form key=value");
    expect_error(config_set(&c, "model.dff=4", &err), MTF_INVALID, &err,
                 "unknown key 'model.dff'; did you mean 'model.d_ff'?");
    expect_error(config_set(&c, "model.d_ff=4k", &err), MTF_INVALID, &err,
                 "model.d_ff is '4k': expected a whole number from 1 to 1000000000");
    config_free(&c);
}

static void checks_between_keys(void **state)
{
    (void)state;
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    c.train.microbatches = 13;
    expect_error(config_check(&c, &err), MTF_INVALID, &err,
                 "train.microbatches is 13 and train.batch is 12: every microbatch needs a "
                 "sequence; lower microbatches or raise batch");
    c.train.microbatches = 12;
    c.train.min_learning_rate = 0.5;
    expect_error(config_check(&c, &err), MTF_INVALID, &err,
                 "train.min_learning_rate is 0.5 and train.learning_rate is 0.001: the smallest "
                 "may not be above the largest");
    c.train.min_learning_rate = c.train.learning_rate;
    expect_ok(config_check(&c, &err), &err);
    config_free(&c);
}

static void check_text(const char *value)
{
    config c, back;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    config_defaults(&back);
    expect_ok(options_set(&config_options, &c, "data.train", value, &err), &err);
    expect_ok(options_set(&config_options, &c, "mesh", value, &err), &err);
    expect_ok(config_write(&c, temp_path("written.yaml"), &err), &err);
    expect_ok(config_read(&back, temp_path("written.yaml"), &err), &err);
    assert_string_equal(back.data.train, value);
    assert_null(options_difference(&config_options, &c, &back, 0));
    config_free(&c);
    config_free(&back);
}

static void written_texts_read_back(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "a",
                                        "true",
                                        "Null",
                                        "~",
                                        "12",
                                        "1e5",
                                        " a ",
                                        "a: b",
                                        "#x",
                                        "a #b",
                                        "- a",
                                        "[a]",
                                        "{a: b}",
                                        "&a",
                                        "*a",
                                        "!t",
                                        "|",
                                        ">",
                                        "'a'",
                                        "\"a\"",
                                        "%a",
                                        "@a",
                                        "`a",
                                        "a\\n",
                                        "a\nb",
                                        "\n",
                                        "\t",
                                        "\r\n",
                                        "\x01\x7f",
                                        "?",
                                        "? a",
                                        "---",
                                        "...",
                                        "a  b",
                                        "a\n\nb ",
                                        "é 漢字 \xF0\x9F\x98\x80",
                                        "\xC2\x85",
                                        "\xE2\x80\xA8",
                                        "\xEF\xBB\xBF",
                                        "\xEF\xBF\xBE",
                                        "\xC2\xA0x",
                                        "=",
                                        "<<",
                                        "y",
                                        "1:30",
                                        "0x1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(texts[i]);
    char *large = mem_zalloc(20001); /* longer than any line that YAML folds */
    for (int i = 0; i < 20000; i++)
        large[i] = i % 7 ? 'a' : ' ';
    check_text(large);
    mem_free(large);
}

/* Every code point but 0, in pieces, in one text after another. */
static void every_character_reads_back(void **state)
{
    (void)state;
    char text[4 * 256 + 1];
    for (uint32_t p = 1; p <= 0x10FFFF;) {
        size_t used = 0;
        for (int i = 0; i < 256 && p <= 0x10FFFF; p++) {
            if (p >= 0xD800 && p <= 0xDFFF) continue;
            used += (size_t)utf8_encode(p, (uint8_t *)text + used);
            i++;
        }
        text[used] = '\0';
        config c, back;
        mtf_err err = {.status = MTF_OK};
        config_defaults(&c);
        config_defaults(&back);
        options_set(&config_options, &c, "layout", text, &err);
        char *yaml = config_text(&c);
        expect_ok(config_parse(&back, "y", yaml, strlen(yaml), &err), &err);
        assert_string_equal(back.layout, text);
        mem_free(yaml);
        config_free(&c);
        config_free(&back);
        if (p > 0x3000 && p < 0xF000) p += 1024; /* the long plain stretches: samples */
        if (p > 0x10400) p += 8192;
    }
}

static void written_numbers_read_back(void **state)
{
    (void)state;
    config c, back;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    c.train.learning_rate = 0.1 + 0.2;
    c.train.epsilon = 5e-324;
    c.train.clip_norm = 1.7976931348623157e308;
    c.train.seed = INT64_MAX;
    char *text = config_text(&c);
    expect_ok(parse(&back, text, &err), &err);
    assert_null(options_difference(&config_options, &c, &back, 0));
    assert_true(back.train.learning_rate == 0.1 + 0.2 && back.train.epsilon == 5e-324);
    assert_non_null(strstr(text, "  learning_rate: 0.30000000000000004\n"));
    mem_free(text);
    config_free(&back);
    setlocale(LC_ALL, "de_DE.UTF-8"); /* does nothing where there is none */
    text = config_text(&c);
    expect_ok(parse(&back, text, &err), &err);
    setlocale(LC_ALL, "C");
    assert_true(back.train.learning_rate == 0.1 + 0.2);
    assert_non_null(strstr(text, "  learning_rate: 0.30000000000000004\n"));
    mem_free(text);
    config_free(&back);
    config_free(&c);
}

static void writing_to_a_missing_folder(void **state)
{
    (void)state;
    config c;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&c);
    expect_error(config_write(&c, temp_path("no/c.yaml"), &err), MTF_FAILED, &err,
                 "cannot create 'no/c.yaml.tmp': No such file or directory");
    config_free(&c);
}

static void resume_compares_what_changes_numbers(void **state)
{
    (void)state;
    config a, b;
    mtf_err err = {.status = MTF_OK};
    config_defaults(&a);
    config_defaults(&b);
    static const char *const may[] = {
        "mesh=a:2",           "layout=batch:a",           "train.steps=9",
        "train.eval_every=3", "train.checkpoint_every=0", "max_value_bytes=1000",
        "model.recompute=2"};
    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        expect_ok(config_set(&b, may[i], &err), &err);
    expect_ok(config_compare_for_resume(&a, &b, &err), &err);
    expect_ok(config_set(&b, "train.batch=24", &err), &err);
    expect_error(config_compare_for_resume(&a, &b, &err), MTF_INVALID, &err,
                 "train.batch is '12' in the run and '24' now: a resumed run keeps its numbers; "
                 "set it back, or begin a new run in another folder");
    int numbers = 0;
    for (int i = 0; i < config_options.count; i++)
        numbers += !(config_options.rows[i].flags & CONFIG_FREE);
    assert_int_equal(config_options.count - numbers, 7);
    config_free(&a);
    config_free(&b);
}

static void damaged_files_never_crash(void **state)
{
    (void)state;
    uint64_t r = 1;
    for (int i = 0; i < 5000; i++) {
        char text[sizeof example];
        memcpy(text, example, sizeof text);
        for (int k = 0; k < 3; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            text[(r >> 33) % (sizeof text - 1)] = (char)(r >> 25);
        }
        config c;
        mtf_err err = {.status = MTF_OK};
        config_defaults(&c);
        const mtf_status status = config_parse(&c, "x", text, (r >> 40) % sizeof text, &err);
        assert_int_equal(status, err.status);
        assert_null(strchr(err.text, '\n'));
        config_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_read),
        cmocka_unit_test(empty_texts_are_all_defaults),
        cmocka_unit_test(other_forms_of_the_same),
        cmocka_unit_test(wrong_files_name_the_line),
        cmocka_unit_test(deep_nesting_is_refused_at_once),
        cmocka_unit_test(wrong_paths),
        cmocka_unit_test(a_pipe_is_read_once_and_whole),
        cmocka_unit_test(overrides),
        cmocka_unit_test(checks_between_keys),
        cmocka_unit_test(written_texts_read_back),
        cmocka_unit_test(every_character_reads_back),
        cmocka_unit_test(written_numbers_read_back),
        cmocka_unit_test(writing_to_a_missing_folder),
        cmocka_unit_test(resume_compares_what_changes_numbers),
        cmocka_unit_test(damaged_files_never_crash),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
