/* SPDX-License-Identifier: Apache-2.0
 * Token feeds: the blocks of a batch that a processor needs, cut from windows of a corpus, or drawn
 * at random where there is no corpus. */
#ifndef TRAIN_FEEDS_H
#define TRAIN_FEEDS_H

#include "mtf/session.h"
#include "text/batches.h"

/* One batch of windows. */
typedef struct token_feed {
    const batches *b; /* NULL: random tokens below `vocab` */
    int64_t vocab;
    int64_t length;
    int64_t position; /* of the batch's first window, as batches_window counts */
    int32_t *window;  /* room for 2 * length tokens */
} token_feed;

token_feed token_feed_new(const batches *b, int64_t length, int64_t vocab);
void token_feed_free(token_feed *f);

/* The feeds of a pair of placeholders [batch stream_length]. They read `f` when the program runs.
 */
mtf_feed token_feed_inputs(token_feed *f, mtf_tensor *placeholder);
mtf_feed token_feed_targets(token_feed *f, mtf_tensor *placeholder);

#endif
