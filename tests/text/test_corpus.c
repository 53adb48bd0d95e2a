/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "support/temp.h"
#include "text/corpus.h"

static corpus *opened(const char *path, tokenizer_kind kind)
{
    corpus *c;
    mtf_err err = {.status = MTF_OK};
    expect_ok(corpus_open(path, kind, &c, &err), &err);
    return c;
}

static void bytes_and_ascii_characters(void **state)
{
    (void)state;
    corpus *c = opened(temp_text("ascii.txt", "hello\nworld"), TOKENIZER_BYTES);
    int32_t ids[11];
    assert_int_equal(corpus_count(c), 11);
    corpus_tokens(c, 0, 11, ids);
    assert_true(ids[0] == 'h' && ids[10] == 'd' && corpus_token(c, 5) == '\n');
    corpus_free(&c);
    assert_null(c);
    c = opened(temp_path("ascii.txt"), TOKENIZER_CHARACTERS);
    assert_int_equal(corpus_tokenizer(c)->vocab, 8);
    corpus_tokens(c, 1, 10, ids);
    static const int32_t want[] = {2, 4, 4, 5, 0, 7, 5, 6, 4, 1};
    assert_memory_equal(ids, want, sizeof want);
    corpus_free(&c);
    corpus_free(&c);
}

static void other_characters(void **state)
{
    (void)state;
    corpus *c = opened(temp_text("utf8.txt", "aé漢aé\xF0\x9F\x98\x80"), TOKENIZER_CHARACTERS);
    static const int32_t want[] = {0, 1, 2, 0, 1, 3};
    int32_t ids[6];
    assert_int_equal(corpus_count(c), 6);
    corpus_tokens(c, 0, 6, ids);
    assert_memory_equal(ids, want, sizeof want);
    corpus_free(&c);
}

/* More characters than 16 bits can number. */
static void very_many_characters(void **state)
{
    (void)state;
    enum { FIRST = 0x10000, N = 70000 };
    uint8_t *text = mem_alloc(4 * N);
    for (int i = 0; i < N; i++)
        utf8_encode((uint32_t)(FIRST + N - 1 - i), text + 4 * i);
    corpus *c = opened(temp_write("many.txt", text, 4 * N), TOKENIZER_CHARACTERS);
    assert_int_equal(corpus_count(c), N);
    assert_int_equal(corpus_tokenizer(c)->vocab, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(corpus_token(c, i), N - 1 - i);
    corpus_free(&c);
    mem_free(text);
}

static void a_second_file_with_the_same_vocabulary(void **state)
{
    (void)state;
    corpus *c = opened(temp_text("one.txt", "abcé"), TOKENIZER_CHARACTERS), *second;
    mtf_err err = {.status = MTF_OK};
    const tokenizer *t = corpus_tokenizer(c);
    expect_ok(corpus_open_with(temp_text("two.txt", "cé"), t, &second, &err), &err);
    assert_true(corpus_count(second) == 2 && corpus_token(second, 0) == 2);
    assert_int_equal(corpus_token(second, 1), 3);
    corpus_free(&second);
    expect_ok(corpus_open_with(temp_text("three.txt", "cab"), t, &second, &err), &err);
    assert_int_equal(corpus_token(second, 0), 2);
    corpus_free(&second);
    expect_error(corpus_open_with(temp_text("four.txt", "ab dé"), t, &second, &err), MTF_INVALID,
                 &err,
                 "'four.txt': character ' ' (U+0020) at byte 2 is not in the vocabulary of 4 "
                 "characters");
    assert_null(second);
    corpus_free(&c);
}

static void expect_refused(const char *path, const char *message)
{
    corpus *c;
    mtf_err err = {.status = MTF_OK};
    expect_error(corpus_open(path, TOKENIZER_CHARACTERS, &c, &err), MTF_INVALID, &err, message);
    assert_null(c);
}

static void what_is_no_corpus(void **state)
{
    (void)state;
    expect_refused(temp_path("none.txt"),
                   "cannot open corpus 'none.txt': No such file or directory");
    assert_int_equal(mkdir(temp_path("folder"), 0777), 0);
    expect_refused(temp_path("folder"), "corpus 'folder' is a folder; give a text file");
    expect_refused(temp_text("empty.txt", ""), "corpus 'empty.txt' is empty");
    assert_int_equal(mkfifo(temp_path("pipe"), 0666), 0);
    expect_refused(temp_path("pipe"), "corpus 'pipe' is a pipe or a device; it is read by "
                                      "position, so save it as a regular file");
    expect_refused("/dev/null", "corpus '/dev/null' is a pipe or a device; it is read by position, "
                                "so save it as a regular file");
    expect_refused(temp_text("latin.txt", "caf\xE9 au lait"),
                   "'latin.txt': byte 0xe9 at offset 3 is not UTF-8 text");
    const char *path = temp_text("secret.txt", "x");
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(temp_path("."), 0755), 0);
    if (geteuid() == 0 && seteuid(65534) != 0) skip();
    expect_refused(path, "cannot open corpus 'secret.txt': Permission denied");
    if (getuid() == 0) assert_int_equal(seteuid(0), 0);
}

static void beyond_two_to_the_31(void **state)
{
    (void)state;
    const int64_t size = (INT64_C(1) << 31) + 100;
    const char *path = temp_path("large.txt");
    const int fd = open(path, O_RDWR | O_CREAT, 0666);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(pwrite(fd, "end", 3, size - 3), 3);
    assert_int_equal(pwrite(fd, "z", 1, INT64_C(1) << 31), 1);
    close(fd);
    corpus *c = opened(path, TOKENIZER_BYTES);
    int32_t ids[4];
    assert_true(corpus_count(c) == size);
    corpus_tokens(c, size - 4, 4, ids);
    assert_true(ids[0] == 0 && ids[1] == 'e' && ids[3] == 'd');
    assert_int_equal(corpus_token(c, INT64_C(1) << 31), 'z');
    corpus_range train, valid;
    corpus_split(c, 0.5, &train, &valid);
    assert_true(valid.count == size / 2 && valid.first + valid.count == size);
    corpus_free(&c);
    unlink(path);
}

static void splits_and_words(void **state)
{
    (void)state;
    corpus *c = opened(temp_text("words.txt", "  to be, or\tnot\n\nto be\n "), TOKENIZER_BYTES);
    const int64_t n = corpus_count(c);
    assert_int_equal(corpus_words(c, (corpus_range){0, n}), 6);
    assert_int_equal(corpus_words(c, (corpus_range){3, 7}), 3); /* "o be, o" */
    assert_int_equal(corpus_words(c, (corpus_range){0, 2}), 0);
    assert_int_equal(corpus_words(c, (corpus_range){5, 0}), 0);
    corpus_range train, valid;
    corpus_split(c, 0.1, &train, &valid);
    assert_true(n == 24 && valid.count == 2 && train.count == 22 && train.first == 0);
    assert_int_equal(valid.first, 22);
    corpus_split(c, 0, &train, &valid);
    assert_true(train.count == n && valid.count == 0);
    corpus_free(&c);
    c = opened(temp_text("words2.txt", "é à\xC2\xA0z b"), TOKENIZER_CHARACTERS);
    assert_int_equal(corpus_words(c, (corpus_range){0, corpus_count(c)}), 3);
    corpus_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_ascii_characters),
        cmocka_unit_test(other_characters),
        cmocka_unit_test(very_many_characters),
        cmocka_unit_test(a_second_file_with_the_same_vocabulary),
        cmocka_unit_test(what_is_no_corpus),
        cmocka_unit_test(beyond_two_to_the_31),
        cmocka_unit_test(splits_and_words),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
