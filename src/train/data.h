/* SPDX-License-Identifier: Apache-2.0
 * The data of a configuration: corpora, vocabulary, windows for training and validation. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "text/batches.h"
#include "train/config.h"

typedef struct data {
    corpus *train_corpus, *valid_corpus; /* the second is NULL where the first is split */
    const tokenizer *tokenizer;          /* borrowed from the corpus */
    batches train, valid;
    corpus_range valid_range; /* the tokens that are predicted */
    bool has_valid;           /* is there anything to validate on */
} data;

/* Does a run of this configuration validate, if its texts are long enough? */
bool data_validates(const config *c);

/* Opens what the configuration names. MTF_INVALID for a missing or unusable file and for texts that
 * are shorter than a window. Local. */
mtf_status data_open(const config *c, data *d, mtf_err *err);
void data_close(data *d);

/* Windows over a validation range in which every token is predicted once: the first one too, from
 * the token before it, where there is one. */
mtf_status data_valid_batches(const corpus *c, corpus_range range, int64_t length, batches *b,
                              mtf_err *err);

/* Size of the vocabulary for the model: model.vocab, or the tokenizer's where that is 0.
 * MTF_INVALID where model.vocab is smaller than the tokenizer's, or 0 without a corpus. `t` may be
 * NULL. */
mtf_status data_vocab(const config *c, const tokenizer *t, int64_t *vocab, mtf_err *err);

#endif
