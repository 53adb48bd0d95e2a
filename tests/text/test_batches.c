/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "support/temp.h"
#include "text/batches.h"
#include "text/shuffle.h"

/* Every index once, for many sizes, seeds and epochs. */
static void shuffles_are_permutations(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 1100; n += n < 70 ? 1 : 103) {
        bool *seen = mem_alloc((size_t)n);
        for (uint64_t key = 0; key < 8; key++) {
            memset(seen, 0, (size_t)n);
            for (int64_t i = 0; i < n; i++) {
                const int64_t k = shuffle_index(key / 2, key, n, i);
                assert_true(k >= 0 && k < n && !seen[k]);
                seen[k] = true;
            }
        }
        mem_free(seen);
    }
}

/* Each index is about as often at each place, and pairs of neighbours do not stay together. */
static void shuffles_are_even(void **state)
{
    (void)state;
    enum { TRIES = 20000 };
    static const int sizes[] = {2, 3, 4, 5, 8, 13};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int n = sizes[s];
        int at[13][13] = {{0}}, pairs = 0;
        for (int t = 0; t < TRIES; t++) {
            for (int i = 0; i < n; i++) {
                const int64_t k = shuffle_index(42, (uint64_t)t, n, i);
                at[i][k]++;
                if (i > 0 && k == shuffle_index(42, (uint64_t)t, n, i - 1) + 1) pairs++;
            }
        }
        const double want = (double)TRIES / n, slack = 5 * sqrt(want);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                assert_true(fabs(at[i][k] - want) < slack);
        /* n - 1 neighbours, each followed by its successor with chance 1 / n. */
        const double expected = (double)TRIES * (n - 1) / n;
        assert_true(fabs(pairs - expected) < 6 * sqrt(expected));
    }
}

static void shuffles_of_large_ranges(void **state)
{
    (void)state;
    const int64_t n = INT64_MAX;
    assert_true(shuffle_index(1, 0, n, 5) != shuffle_index(1, 1, n, 5));
    assert_true(shuffle_index(1, 0, n, 5) != shuffle_index(2, 0, n, 5));
    double sum = 0;
    for (int64_t i = 0; i < 10000; i++)
        sum += (double)shuffle_index(3, 0, n, n - 1 - i) / (double)n;
    assert_true(fabs(sum / 10000 - 0.5) < 0.02);
    /* The order of the data is part of what a seed means: these values may never change. */
    assert_int_equal(shuffle_index(1, 0, 1000, 0), 834);
    assert_int_equal(shuffle_index(1, 1, 1000, 999), 727);
}

static corpus *counting_corpus(int n)
{
    char text[256];
    for (int i = 0; i < n; i++)
        text[i] = (char)i;
    corpus *c;
    mtf_err err = {.status = MTF_OK};
    const char *path = temp_write("count.txt", text, (size_t)n);
    expect_ok(corpus_open(path, TOKENIZER_BYTES, &c, &err), &err);
    return c;
}

/* In `positions` windows, the token after the first is a target `times` times, in its context. */
static void check_epoch(const batches *b, int64_t first, int64_t positions, int times)
{
    int seen[256] = {0};
    int64_t real = 0;
    for (int64_t p = first; p < first + positions; p++) {
        int32_t in[64], out[64];
        memset(in, 0x55, sizeof in);
        memset(out, 0x55, sizeof out);
        batches_window(b, p, in, out);
        for (int64_t i = 0; i < b->length; i++) {
            const bool is_real = i < batches_real_tokens(b, p);
            assert_int_equal(out[i] >= 0, is_real);
            if (is_real) {
                assert_int_equal(out[i], in[i] + 1);
                assert_true(i == 0 || in[i] == in[i - 1] + 1);
                seen[out[i]]++;
            } else {
                assert_true(in[i] == 0 && out[i] == -1);
            }
        }
        real += batches_real_tokens(b, p);
    }
    assert_int_equal(real, times * (b->range.count - 1));
    assert_int_equal(batches_real_tokens_of(b, first, positions), real);
    for (int64_t i = 0; i < 256; i++) {
        const bool inside = i > b->range.first && i < b->range.first + b->range.count;
        assert_int_equal(seen[i], inside ? times : 0);
    }
}

static void every_token_is_predicted_once_in_an_epoch(void **state)
{
    (void)state;
    corpus *c = counting_corpus(200);
    mtf_err err = {.status = MTF_OK};
    for (int64_t n = 2; n <= 200; n++) {
        for (int64_t length = 1; length < 20; length++) {
            batches b;
            const corpus_range range = {.first = 200 - n, .count = n};
            expect_ok(batches_valid(&b, c, range, length, &err), &err);
            assert_int_equal(b.windows, (n - 1 + length - 1) / length);
            check_epoch(&b, 0, b.windows + 3, 1);
            if (n <= length) continue;
            expect_ok(batches_train(&b, c, range, length, 9, &err), &err);
            check_epoch(&b, 0, b.windows, 1);
            check_epoch(&b, 5 * b.windows, 2 * b.windows, 2);
        }
    }
    corpus_free(&c);
}

static void epochs_and_seeds_have_orders_of_their_own(void **state)
{
    (void)state;
    corpus *c = counting_corpus(200);
    mtf_err err = {.status = MTF_OK};
    batches a, b;
    expect_ok(batches_train(&a, c, (corpus_range){0, 200}, 4, 1, &err), &err);
    expect_ok(batches_train(&b, c, (corpus_range){0, 200}, 4, 2, &err), &err);
    int same_epoch = 0, same_seed = 0, in_order = 0;
    for (int64_t p = 0; p < a.windows; p++) {
        int32_t x[4], y[4], z[4], t[4];
        batches_window(&a, p, x, t);
        batches_window(&a, p + a.windows, y, t);
        batches_window(&b, p, z, t);
        same_epoch += x[0] == y[0];
        same_seed += x[0] == z[0];
        in_order += x[0] == 4 * p;
    }
    assert_true(same_epoch < 8 && same_seed < 8 && in_order < 8);
    corpus_free(&c);
}

static void validation_is_in_order(void **state)
{
    (void)state;
    corpus *c = counting_corpus(10);
    mtf_err err = {.status = MTF_OK};
    batches b;
    int32_t in[4], out[4];
    expect_ok(batches_valid(&b, c, (corpus_range){3, 7}, 4, &err), &err);
    batches_window(&b, 0, in, out);
    assert_memory_equal(in, ((int32_t[]){3, 4, 5, 6}), sizeof in);
    assert_memory_equal(out, ((int32_t[]){4, 5, 6, 7}), sizeof out);
    batches_window(&b, 1, in, out);
    assert_memory_equal(in, ((int32_t[]){7, 8, 0, 0}), sizeof in);
    assert_memory_equal(out, ((int32_t[]){8, 9, -1, -1}), sizeof out);
    corpus_free(&c);
}

static void too_short_texts(void **state)
{
    (void)state;
    corpus *c = counting_corpus(10);
    mtf_err err = {.status = MTF_OK};
    batches b;
    expect_error(batches_train(&b, c, (corpus_range){0, 8}, 8, 1, &err), MTF_INVALID, &err,
                 "corpus 'count.txt': 8 tokens to train on are too few for model.length 8, which "
                 "needs 9; give more text or a smaller length");
    expect_ok(batches_train(&b, c, (corpus_range){0, 9}, 8, 1, &err), &err);
    expect_error(batches_valid(&b, c, (corpus_range){9, 1}, 8, &err), MTF_INVALID, &err,
                 "corpus 'count.txt': 1 tokens to validate on are too few, it takes 2; give more "
                 "text or a larger data.valid_fraction");
    corpus_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffles_are_permutations),
        cmocka_unit_test(shuffles_are_even),
        cmocka_unit_test(shuffles_of_large_ranges),
        cmocka_unit_test(every_token_is_predicted_once_in_an_epoch),
        cmocka_unit_test(epochs_and_seeds_have_orders_of_their_own),
        cmocka_unit_test(validation_is_in_order),
        cmocka_unit_test(too_short_texts),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
