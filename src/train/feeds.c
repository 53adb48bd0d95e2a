/* SPDX-License-Identifier: Apache-2.0 */
#include "train/feeds.h"

#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "text/shuffle.h"

token_feed token_feed_new(const batches *b, int64_t length, int64_t vocab)
{
    return (token_feed){.b = b,
                        .vocab = vocab,
                        .length = length,
                        .window = mem_zalloc(sizeof(int32_t) * 2 * (size_t)length)};
}

void token_feed_free(token_feed *f)
{
    mem_free(f->window);
    f->window = NULL;
}

static void random_window(const token_feed *f, int64_t position)
{
    const uint64_t n = (uint64_t)f->length, at = (uint64_t)position * n;
    for (uint64_t i = 0; i < n; i++) {
        f->window[i] = (int32_t)(shuffle_mix(at + i) % (uint64_t)f->vocab);
        f->window[n + i] = (int32_t)(shuffle_mix(at + i + 1) % (uint64_t)f->vocab);
    }
}

/* Rows offset[0] .. of the batch, columns offset[1] .. of inputs (part 0) or targets (part 1). */
static void fill(const token_feed *f, int part, const int64_t *offset, const int64_t *extent,
                 int32_t *block)
{
    for (int64_t r = 0; r < extent[0]; r++) {
        const int64_t position = f->position + offset[0] + r;
        if (!f->b) {
            random_window(f, position);
        } else {
            batches b = *f->b;
            if (FAULT(FAULT_SHUFFLE_RANK)) b.seed += (uint64_t)offset[0];
            batches_window(&b, position, f->window, f->window + f->length);
        }
        memcpy(block + r * extent[1], f->window + part * f->length + offset[1],
               sizeof *block * (size_t)extent[1]);
    }
}

static mtf_status fill_inputs(void *ctx, const int64_t *offset, const int64_t *extent, void *block,
                              mtf_err *err)
{
    (void)err;
    fill(ctx, 0, offset, extent, block);
    return MTF_OK;
}

static mtf_status fill_targets(void *ctx, const int64_t *offset, const int64_t *extent, void *block,
                               mtf_err *err)
{
    (void)err;
    fill(ctx, 1, offset, extent, block);
    return MTF_OK;
}

mtf_feed token_feed_inputs(token_feed *f, mtf_tensor *placeholder)
{
    return (mtf_feed){.placeholder = placeholder, .fn = fill_inputs, .ctx = f};
}

mtf_feed token_feed_targets(token_feed *f, mtf_tensor *placeholder)
{
    return (mtf_feed){.placeholder = placeholder, .fn = fill_targets, .ctx = f};
}
