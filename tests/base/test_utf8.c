/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static void every_code_point_makes_the_round_trip(void **state)
{
    (void)state;
    for (uint32_t p = 0; p <= UTF8_MAX_POINT; p++) {
        uint8_t text[4];
        uint32_t back = 0;
        const int n = utf8_encode(p, text);
        const bool surrogate = p >= 0xD800 && p <= 0xDFFF;
        assert_int_equal(utf8_decode(text, n, &back), surrogate ? 0 : n);
        if (!surrogate) assert_int_equal(back, p);
        if (n > 1) assert_int_equal(utf8_decode(text, n - 1, &back), 0);
    }
}

static void bad_bytes_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t at;
    } cases[] = {
        {"", -1},
        {"abc", -1},
        {"\xc3\xa9", -1},
        {"ab\xff", 2},
        {"\x80", 0},
        {"a\xc0\x80", 1},
        {"\xc1\xbf", 0},
        {"\xe0\x80\x80", 0},
        {"\xed\xa0\x80", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf8\x88\x80\x80\x80", 0},
        {"\xe2\x82", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_check(cases[i].text, (int64_t)strlen(cases[i].text)), cases[i].at);
}

static void repair_replaces_each_bad_byte(void **state)
{
    (void)state;
    int64_t n;
    char *s = utf8_repair("a\xff\xe2\x82z\0y", 7, &n);
    assert_int_equal(n, 13);
    assert_memory_equal(s, "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\0y", 14);
    mem_free(s);
}

static void quotes_stay_on_one_line_and_fit(void **state)
{
    (void)state;
    char out[16];
    assert_string_equal(utf8_quote("a\nb", out, sizeof out), "a\\x0ab");
    assert_string_equal(utf8_quote("\x1b[\xff\xc2\x85", out, 32 - 16), "\\x1b[\\xff...");
    assert_string_equal(utf8_quote("0123456789abcdef", out, sizeof out), "0123456789ab...");
    assert_string_equal(utf8_quote("ééééééééé", out, sizeof out), "éééééé...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_makes_the_round_trip),
        cmocka_unit_test(bad_bytes_are_found),
        cmocka_unit_test(repair_replaces_each_bad_byte),
        cmocka_unit_test(quotes_stay_on_one_line_and_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
