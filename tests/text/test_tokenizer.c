/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>

#include "base/mem.h"
#include "support/temp.h"
#include "text/tokenizer.h"

static tokenizer *of(const char *text)
{
    tokenizer *t;
    mtf_err err = {.status = MTF_OK};
    expect_ok(tokenizer_characters("t", text, (int64_t)strlen(text), &t, &err), &err);
    return t;
}

static void characters_are_sorted_code_points(void **state)
{
    (void)state;
    tokenizer *t = of("b\xC3\xA9"
                      "a\n\xF0\x9F\x98\x80"
                      "ab\xE6\xBC\xA2");
    static const uint32_t want[] = {'\n', 'a', 'b', 0xE9, 0x6F22, 0x1F600};
    assert_int_equal(t->vocab, 6);
    assert_memory_equal(t->points, want, sizeof want);
    int32_t ids[16];
    int64_t count, bytes;
    mtf_err err = {.status = MTF_OK};
    static const char text[] = "\xC3\xA9"
                               "ab\xF0\x9F\x98\x80";
    expect_ok(tokenizer_encode(t, "x", text, 8, ids, &count, &err), &err);
    static const int32_t coded[] = {3, 1, 2, 5};
    assert_int_equal(count, 4);
    assert_memory_equal(ids, coded, sizeof coded);
    char *back = tokenizer_decode(t, ids, count, &bytes);
    assert_string_equal(back, text);
    assert_int_equal(bytes, 8);
    mem_free(back);
    tokenizer_free(&t);
    assert_null(t);
    tokenizer_free(&t);
}

static void bytes_are_their_own_tokens(void **state)
{
    (void)state;
    tokenizer *t = tokenizer_bytes();
    uint8_t text[256];
    int32_t ids[256];
    int64_t count, bytes;
    mtf_err err = {.status = MTF_OK};
    for (int i = 0; i < 256; i++)
        text[i] = (uint8_t)i;
    expect_ok(tokenizer_encode(t, "x", text, 256, ids, &count, &err), &err);
    assert_true(t->vocab == 256 && count == 256 && ids[255] == 255);
    char *back = tokenizer_decode(t, ids, count, &bytes);
    assert_int_equal(bytes, 256);
    assert_memory_equal(back, text, 256);
    mem_free(back);
    tokenizer_free(&t);
}

static void ids_outside_become_the_replacement_character(void **state)
{
    (void)state;
    tokenizer *t = of("ab");
    static const int32_t ids[] = {0, 2, -1, 1};
    char *text = tokenizer_decode(t, ids, 4, NULL);
    assert_string_equal(text, "a\xEF\xBF\xBD\xEF\xBF\xBD"
                              "b");
    mem_free(text);
    tokenizer_free(&t);
    t = tokenizer_bytes();
    static const int32_t large[] = {'a', 256};
    text = tokenizer_decode(t, large, 2, NULL);
    assert_string_equal(text, "a\xEF\xBF\xBD");
    mem_free(text);
    tokenizer_free(&t);
}

static void errors_name_character_and_offset(void **state)
{
    (void)state;
    tokenizer *t = of("abc"), *none;
    int32_t ids[16];
    int64_t count;
    mtf_err err = {.status = MTF_OK};
    expect_error(tokenizer_encode(t, "x", "ab\xC3\xA9", 4, ids, &count, &err), MTF_INVALID, &err,
                 "'x': character 'é' (U+00E9) at byte 2 is not in the vocabulary of 3 characters");
    expect_error(tokenizer_encode(t, "x", "a\n", 2, ids, &count, &err), MTF_INVALID, &err,
                 "'x': character U+000A at byte 1 is not in the vocabulary of 3 characters");
    expect_error(tokenizer_encode(t, "x", "a\xC3", 2, ids, &count, &err), MTF_INVALID, &err,
                 "'x': byte 0xc3 at offset 1 is not UTF-8 text");
    expect_error(tokenizer_characters("y", "abcd\xFF", 5, &none, &err), MTF_INVALID, &err,
                 "'y': byte 0xff at offset 4 is not UTF-8 text");
    expect_error(tokenizer_characters("y", "", 0, &none, &err), MTF_INVALID, &err,
                 "'y' is empty: it has no characters to learn");
    assert_null(none);
    tokenizer_free(&t);
}

static void json_and_hash(void **state)
{
    (void)state;
    tokenizer *t = of("b\nc\xF0\x9F\x98\x80"), *back, *other = of("b\nd\xF0\x9F\x98\x80");
    tokenizer *plain = tokenizer_bytes();
    mtf_err err = {.status = MTF_OK};
    char *json = tokenizer_to_json(t), hash[TOKENIZER_HASH_TEXT];
    assert_string_equal(json, "{\"kind\": \"characters\", \"points\": [10, 98, 99, 128512]}");
    expect_ok(tokenizer_from_json("r", json, &back, &err), &err);
    assert_true(tokenizer_hash(back) == tokenizer_hash(t) && back->ids[99] == 2);
    assert_true(tokenizer_hash(other) != tokenizer_hash(t));
    assert_true(tokenizer_hash(plain) != tokenizer_hash(t));
    tokenizer_hash_text(plain, hash);
    assert_string_equal(hash, "768516309cbb13f5");
    tokenizer_free(&back);
    mem_free(json);
    json = tokenizer_to_json(plain);
    assert_string_equal(json, "{\"kind\": \"bytes\"}");
    expect_ok(tokenizer_from_json("r", json, &back, &err), &err);
    assert_true(back->kind == TOKENIZER_BYTES && back->vocab == 256);
    mem_free(json);
    tokenizer_free(&back);
    tokenizer_free(&plain);
    tokenizer_free(&other);
    tokenizer_free(&t);
}

static void damaged_vocabularies(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "[]",
                                        "{",
                                        "{\"kind\": 3}",
                                        "{\"kind\": \"words\"}",
                                        "{\"kind\": \"characters\"}",
                                        "{\"kind\": \"characters\", \"points\": []}",
                                        "{\"kind\": \"characters\", \"points\": [2, 1]}",
                                        "{\"kind\": \"characters\", \"points\": [1, 1]}",
                                        "{\"kind\": \"characters\", \"points\": [-1]}",
                                        "{\"kind\": \"characters\", \"points\": [1114112]}",
                                        "{\"kind\": \"characters\", \"points\": [55296]}",
                                        "{\"kind\": \"characters\", \"points\": [\"a\"]}",
                                        "{\"kind\": \"characters\", \"points\": 7}",
                                        "{\"kind\": \"bytes\", \"points\": [1]}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tokenizer *t;
        mtf_err err = {.status = MTF_OK};
        expect_error(tokenizer_from_json("r", texts[i], &t, &err), MTF_INVALID, &err,
                     "'r': its vocabulary is damaged: no bytes, and no ascending list of code "
                     "points");
        assert_null(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_sorted_code_points),
        cmocka_unit_test(bytes_are_their_own_tokens),
        cmocka_unit_test(ids_outside_become_the_replacement_character),
        cmocka_unit_test(errors_name_character_and_offset),
        cmocka_unit_test(json_and_hash),
        cmocka_unit_test(damaged_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
