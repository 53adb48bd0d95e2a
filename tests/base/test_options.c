/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/options.h"
#include "support/temp.h"

enum { FREE = 1 };

typedef struct things {
    bool tied, help;
    int64_t layers, seed;
    double rate, fraction;
    char *file, *mesh;
    int kind;
    option_list set;
} things;

static const char *const kinds[] = {"relu", "gelu", NULL};

static const option_row rows[] = {
    {.key = "model.layers",
     .type = OPTION_INT,
     .standard = "4",
     .min = 1,
     .max = 1000,
     .help = "number of blocks",
     .offset = offsetof(things, layers)},
    {.key = "model.kind",
     .type = OPTION_CHOICE,
     .standard = "gelu",
     .names = kinds,
     .help = "activation",
     .offset = offsetof(things, kind)},
    {.key = "model.tied", .type = OPTION_BOOL, .help = "share", .offset = offsetof(things, tied)},
    {.key = "train.rate",
     .type = OPTION_REAL,
     .standard = "1.0e-3",
     .above = true,
     .real_max = INFINITY,
     .help = "step size",
     .offset = offsetof(things, rate)},
    {.key = "train.fraction",
     .type = OPTION_REAL,
     .standard = "0.1",
     .real_max = 1,
     .below = true,
     .help = "part",
     .offset = offsetof(things, fraction)},
    {.key = "train.seed",
     .type = OPTION_INT,
     .standard = "1",
     .max = INT64_MAX,
     .help = "seed",
     .offset = offsetof(things, seed)},
    {.key = "file",
     .type = OPTION_TEXT,
     .standard = "a b",
     .value = "FILE",
     .help = "the text",
     .offset = offsetof(things, file)},
    {.key = "mesh",
     .type = OPTION_TEXT,
     .help = "processors",
     .flags = FREE,
     .offset = offsetof(things, mesh)},
    {.key = "set", .type = OPTION_LIST, .help = "more", .offset = offsetof(things, set)},
    {.key = "help", .type = OPTION_BOOL, .help = "this", .offset = offsetof(things, help)},
};
static const option_table table = {.rows = rows, .count = 10, .noun = "option"};

static void defaults_and_settings(void **state)
{
    (void)state;
    things v;
    mtf_err err = {.status = MTF_OK};
    options_defaults(&table, &v);
    assert_int_equal(v.layers, 4);
    assert_int_equal(v.kind, 1);
    assert_false(v.tied);
    assert_true(v.rate == 1e-3 && v.fraction == 0.1);
    assert_string_equal(v.file, "a b");
    assert_string_equal(v.mesh, "");
    expect_ok(options_set(&table, &v, "model.layers", "1000", &err), &err);
    expect_ok(options_set(&table, &v, "train.seed", "9223372036854775807", &err), &err);
    expect_ok(options_set(&table, &v, "train.rate", "+2.5E-300", &err), &err);
    expect_ok(options_set(&table, &v, "train.fraction", "-0.0", &err), &err);
    expect_ok(options_set(&table, &v, "model.kind", "relu", &err), &err);
    expect_ok(options_set(&table, &v, "model.tied", "Yes", &err), &err);
    expect_ok(options_set(&table, &v, "file", "é", &err), &err);
    expect_ok(options_set(&table, &v, "set", "x=1", &err), &err);
    expect_ok(options_set(&table, &v, "set", "y=2", &err), &err);
    assert_int_equal(v.layers, 1000);
    assert_true(v.seed == INT64_MAX && v.rate == 2.5e-300 && !signbit(v.fraction));
    assert_true(v.kind == 0 && v.tied);
    assert_string_equal(v.file, "é");
    assert_int_equal(v.set.count, 2);
    assert_string_equal(v.set.items[1], "y=2");
    options_free(&table, &v);
    assert_null(v.file);
    options_free(&table, &v);
}

static void wrong_values_name_key_value_and_kind(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        {"model.layers", "12x", "expected a whole number from 1 to 1000"},
        {"model.layers", "", "expected a whole number from 1 to 1000"},
        {"model.layers", " 4", "expected a whole number from 1 to 1000"},
        {"model.layers", "4 ", "expected a whole number from 1 to 1000"},
        {"model.layers", "1e2", "expected a whole number from 1 to 1000"},
        {"model.layers", "4.0", "expected a whole number from 1 to 1000"},
        {"model.layers", "0x10", "expected a whole number from 1 to 1000"},
        {"model.layers", "--4", "expected a whole number from 1 to 1000"},
        {"model.layers", "0", "expected a whole number from 1 to 1000"},
        {"model.layers", "1001", "expected a whole number from 1 to 1000"},
        {"train.seed", "9223372036854775808", "expected a whole number of at least 0"},
        {"train.seed", "-1", "expected a whole number of at least 0"},
        {"train.rate", "nan", "expected a number above 0"},
        {"train.rate", "inf", "expected a number above 0"},
        {"train.rate", "1e999", "expected a number above 0"},
        {"train.rate", "1e-999", "expected a number above 0"},
        {"train.rate", "0x1p3", "expected a number above 0"},
        {"train.rate", "1,5", "expected a number above 0"},
        {"train.rate", "1.5.2", "expected a number above 0"},
        {"train.rate", ".", "expected a number above 0"},
        {"train.rate", "e5", "expected a number above 0"},
        {"train.rate", "0", "expected a number above 0"},
        {"train.rate", "", "expected a number above 0"},
        {"train.fraction", "1", "expected a number from 0 to below 1"},
        {"train.fraction", "-0.1", "expected a number from 0 to below 1"},
        {"model.kind", "Relu", "expected one of relu, gelu"},
        {"model.tied", "2", "expected true or false"},
        {"model.tied", "", "expected true or false"},
    };
    things v;
    mtf_err err = {.status = MTF_OK};
    options_defaults(&table, &v);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[256];
        snprintf(want, sizeof want, "%s is '%s': %s", cases[i].key, cases[i].value,
                 cases[i].message);
        expect_error(options_set(&table, &v, cases[i].key, cases[i].value, &err), MTF_INVALID, &err,
                     want);
    }
    expect_error(options_set(&table, &v, "file", "a\xff\n", &err), MTF_INVALID, &err,
                 "file is 'a\\xff\\x0a': expected text in UTF-8");
    assert_true(v.layers == 4 && v.rate == 1e-3);
    assert_string_equal(v.file, "a b");
    options_free(&table, &v);
}

static void unknown_keys_name_the_nearest(void **state)
{
    (void)state;
    things v;
    mtf_err err = {.status = MTF_OK};
    options_defaults(&table, &v);
    expect_error(options_set(&table, &v, "model.layrs", "4", &err), MTF_INVALID, &err,
                 "unknown option 'model.layrs'; did you mean 'model.layers'?");
    assert_string_equal(options_nearest(&table, "layers"), "model.layers");
    assert_string_equal(options_nearest(&table, "sede"), "train.seed");
    assert_string_equal(options_nearest(&table, "msh"), "mesh");
    assert_string_equal(options_nearest(&table, "hepl"), "help");
    assert_int_equal(options_distance("", "abc"), 3);
    assert_int_equal(options_distance("abcd", "abdc"), 1);
    assert_int_equal(options_distance("kitten", "sitting"), 3);
    options_free(&table, &v);
}

static mtf_status parse(things *v, option_args *args, mtf_err *err, int argc, char **argv)
{
    options_defaults(&table, v);
    return options_parse(&table, argc, argv, v, args, err);
}

static void command_lines(void **state)
{
    (void)state;
    things v;
    option_args args;
    mtf_err err = {.status = MTF_OK};
    char *good[] = {"one", "--mesh",    "rows:2", "--file=", "--model.tied", "--set",
                    "a=1", "--set=b=2", "-",      "-h",      "--",           "--two"};
    expect_ok(parse(&v, &args, &err, 12, good), &err);
    assert_int_equal(args.count, 3);
    assert_string_equal(args.items[0], "one");
    assert_string_equal(args.items[1], "-");
    assert_string_equal(args.items[2], "--two");
    assert_string_equal(v.mesh, "rows:2");
    assert_string_equal(v.file, "");
    assert_true(v.tied && v.help && v.set.count == 2);
    assert_string_equal(v.set.items[1], "b=2");
    const uint64_t given = 1u << 7 | 1u << 6 | 1u << 2 | 1u << 8 | 1u << 9;
    assert_true(args.given == given);
    options_free(&table, &v);
    mem_free(args.items);

    static const struct {
        char *argv[3];
        int argc;
        const char *message;
    } bad[] = {
        {{"--mehs", "x"}, 2, "unknown option '--mehs'; did you mean '--mesh'?"},
        {{"--hlep"}, 1, "unknown option '--hlep'; did you mean '--help'?"},
        {{"-x"}, 1, "unknown option '-x'; did you mean '--set'?"},
        {{"x", "--mesh"}, 2, "option '--mesh' wants a value after it"},
        {{"--model.layers", "x"},
         2,
         "--model.layers is 'x': expected a whole number from 1 to 1000"},
        {{"--help=maybe"}, 1, "--help is 'maybe': expected true or false"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *argv[3] = {bad[i].argv[0], bad[i].argv[1], bad[i].argv[2]};
        expect_error(parse(&v, &args, &err, bad[i].argc, argv), MTF_INVALID, &err, bad[i].message);
        options_free(&table, &v);
        mem_free(args.items);
    }
}

static char *printed(void (*print)(const option_table *, const void *, FILE *), const void *v)
{
    char *text;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    print(&table, v, f);
    fclose(f);
    return text;
}

static void help(const option_table *t, const void *v, FILE *f)
{
    options_print_help(t, v != NULL, f);
}

static void help_and_yaml(void **state)
{
    (void)state;
    things v;
    mtf_err err = {.status = MTF_OK};
    options_defaults(&table, &v);
    options_set(&table, &v, "file", "a\"\\\n\x7f\xe2\x80\xa8\xc2\x85z: é", &err);
    options_set(&table, &v, "mesh", "off", &err);
    char *text = printed(options_print_yaml, &v);
    assert_string_equal(text, "model:\n  layers: 4\n  kind: gelu\n  tied: false\n"
                              "train:\n  rate: 0.001\n  fraction: 0.1\n  seed: 1\n"
                              "file: \"a\\\"\\\\\\u000A\\u007F\\u2028\\u0085z: é\"\nmesh: \"off\"\n"
                              "help: false\n");
    free(text);
    text = printed(help, NULL);
    assert_non_null(strstr(text, "  model.layers             number of blocks (default: 4)\n"));
    assert_non_null(
        strstr(text, "  model.kind               activation: relu, gelu (default: gelu)"));
    assert_non_null(strstr(text, "  mesh                     processors (default: empty)\n"));
    free(text);
    text = printed(help, &v);
    assert_non_null(strstr(text, "  --file FILE              the text (default: a b)\n"));
    assert_non_null(strstr(text, "  --help                   this\n"));
    assert_non_null(strstr(text, "  --model.layers N         number of blocks (default: 4)\n"));
    free(text);
    options_free(&table, &v);
}

static void copies_and_differences(void **state)
{
    (void)state;
    things a, b;
    mtf_err err = {.status = MTF_OK};
    options_defaults(&table, &a);
    options_set(&table, &a, "train.rate", "0.1", &err);
    a.rate = nextafter(a.rate, 1);
    options_set(&table, &a, "set", "x", &err);
    options_copy(&table, &a, &b);
    assert_true(b.rate == a.rate && b.set.count == 1 && b.file != a.file);
    assert_null(options_difference(&table, &a, &b, 0));
    options_set(&table, &b, "mesh", "rows:2", &err);
    assert_null(options_difference(&table, &a, &b, FREE));
    assert_string_equal(options_difference(&table, &a, &b, 0)->key, "mesh");
    b.rate = nextafter(b.rate, 1);
    const option_row *row = options_difference(&table, &a, &b, FREE);
    assert_string_equal(row->key, "train.rate");
    char *x = options_text(row, &a), *y = options_text(row, &b);
    assert_string_equal(x, "0.10000000000000002");
    assert_string_not_equal(x, y);
    mem_free(x);
    mem_free(y);
    options_free(&table, &a);
    options_free(&table, &b);
}

static void check_number(double v, const char *want)
{
    char text[NUMBER_TEXT];
    double back = -1;
    number_format_real(v, text);
    if (want) assert_string_equal(text, want);
    assert_true(number_parse_real(text, &back) && back == v);
}

static void numbers_restore_exactly(void **state)
{
    (void)state;
    check_number(1, "1.0");
    check_number(-12.5, "-12.5");
    check_number(1e-8, "1.0e-08");
    check_number(1.5e300, "1.5e+300");
    check_number(5e-324, "5.0e-324");
    check_number(1.7976931348623157e308, "1.7976931348623157e+308");
    check_number(100000, "1.0e+05");
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double v;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v)) check_number(v, NULL);
    }
}

static void numbers_are_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    " 1",     "1 ",      "1x",    "nan",   "inf",
                                      "1e",  "+",      "-",       ".",     "0x1p3", "1e309",
                                      "1,5", "1e-400", "-1e-400", "1.0.0", "1e5.0", "--1"};
    double real = 7;
    int64_t whole = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(number_parse_real(bad[i], &real));
        assert_false(number_parse_int(bad[i], &whole));
    }
    assert_false(number_parse_int("9223372036854775808", &whole));
    assert_false(number_parse_int("-9223372036854775809", &whole));
    assert_true(real == 7 && whole == 7);
    assert_true(number_parse_real("0e-999", &real) && real == 0);
    assert_true(number_parse_real(".5", &real) && real == 0.5);
    assert_true(number_parse_real("5.", &real) && real == 5);
    assert_true(number_parse_real("4.9e-324", &real) && real == 5e-324);
    assert_true(number_parse_int("-9223372036854775808", &whole) && whole == INT64_MIN);
    assert_true(number_parse_int("+007", &whole) && whole == 7);
}

static void numbers_under_a_comma_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < 4 && !found; i++)
        found = setlocale(LC_ALL, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0;
    if (!found) skip();
    double v = 0;
    assert_true(number_parse_real("1.0e-3", &v) && v == 1e-3);
    assert_false(number_parse_real("1,5", &v));
    check_number(0.1, "0.1");
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_settings),
        cmocka_unit_test(wrong_values_name_key_value_and_kind),
        cmocka_unit_test(unknown_keys_name_the_nearest),
        cmocka_unit_test(command_lines),
        cmocka_unit_test(help_and_yaml),
        cmocka_unit_test(copies_and_differences),
        cmocka_unit_test(numbers_restore_exactly),
        cmocka_unit_test(numbers_are_read_strictly),
        cmocka_unit_test(numbers_under_a_comma_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
