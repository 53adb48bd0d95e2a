/* SPDX-License-Identifier: Apache-2.0 */
#include "text/batches.h"

#include "base/check.h"
#include "text/shuffle.h"

static void init(batches *b, const corpus *c, corpus_range range, int64_t length)
{
    MTF_CHECK(length >= 1, "windows of %lld tokens", (long long)length);
    *b = (batches){.c = c, .range = range, .length = length};
    b->windows = (range.count - 1) / length + ((range.count - 1) % length != 0);
}

mtf_status batches_train(batches *b, const corpus *c, corpus_range range, int64_t length,
                         uint64_t seed, mtf_err *err)
{
    if (range.count <= length)
        return err_set(err, MTF_INVALID,
                       "corpus '%s': %lld tokens to train on are too few for model.length %lld, "
                       "which needs %lld; give more text or a smaller length",
                       corpus_path(c), (long long)range.count, (long long)length,
                       (long long)length + 1);
    init(b, c, range, length);
    b->seed = seed;
    b->is_shuffled = true;
    return MTF_OK;
}

mtf_status batches_valid(batches *b, const corpus *c, corpus_range range, int64_t length,
                         mtf_err *err)
{
    if (range.count < 2)
        return err_set(err, MTF_INVALID,
                       "corpus '%s': %lld tokens to validate on are too few, it takes 2; give more "
                       "text or a larger data.valid_fraction",
                       corpus_path(c), (long long)range.count);
    init(b, c, range, length);
    return MTF_OK;
}

/* The window at a position, or -1 after the end. */
static int64_t window_at(const batches *b, int64_t position)
{
    MTF_CHECK(position >= 0, "batch position %lld", (long long)position);
    if (!b->is_shuffled) return position < b->windows ? position : -1;
    const uint64_t epoch = (uint64_t)(position / b->windows);
    return shuffle_index(b->seed, epoch, b->windows, position % b->windows);
}

int64_t batches_real_tokens(const batches *b, int64_t position)
{
    const int64_t w = window_at(b, position);
    if (w < 0) return 0;
    const int64_t left = b->range.count - 1 - w * b->length;
    return left < b->length ? left : b->length;
}

int64_t batches_real_tokens_of(const batches *b, int64_t first, int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += batches_real_tokens(b, first + i);
    return sum;
}

void batches_window(const batches *b, int64_t position, int32_t *inputs, int32_t *targets)
{
    const int64_t real = batches_real_tokens(b, position);
    const int64_t first = b->range.first + (real ? window_at(b, position) * b->length : 0);
    if (real) {
        corpus_tokens(b->c, first, real, inputs);
        corpus_tokens(b->c, first + 1, real, targets);
    }
    for (int64_t i = real; i < b->length; i++) {
        inputs[i] = 0;
        targets[i] = -1;
    }
}
