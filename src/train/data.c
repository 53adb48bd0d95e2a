/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data.h"

static tokenizer_kind kind_of(const config *c)
{
    return c->data.tokenizer == CONFIG_BYTES ? TOKENIZER_BYTES : TOKENIZER_CHARACTERS;
}

mtf_status data_valid_batches(const corpus *c, corpus_range range, int64_t length, batches *b,
                              mtf_err *err)
{
    if (range.first > 0) range = (corpus_range){range.first - 1, range.count + 1};
    return batches_valid(b, c, range, length, err);
}

static mtf_status open_valid(const config *c, data *d, mtf_err *err)
{
    const corpus *from = d->train_corpus;
    if (c->data.valid[0]) {
        TRY(corpus_open_with(c->data.valid, d->tokenizer, &d->valid_corpus, err));
        from = d->valid_corpus;
        d->valid_range = (corpus_range){0, corpus_count(from)};
    }
    d->has_valid = d->valid_range.count > 0;
    if (!d->has_valid) return MTF_OK;
    return data_valid_batches(from, d->valid_range, c->model.length, &d->valid, err);
}

bool data_validates(const config *c)
{
    return c->data.train[0] && (c->data.valid[0] || c->data.valid_fraction > 0);
}

mtf_status data_open(const config *c, data *d, mtf_err *err)
{
    *d = (data){0};
    if (!c->data.train[0])
        return err_set(err, MTF_INVALID,
                       "data.train is empty; name a text file in the configuration or with "
                       "--set data.train=FILE");
    TRY(corpus_open(c->data.train, kind_of(c), &d->train_corpus, err));
    d->tokenizer = corpus_tokenizer(d->train_corpus);
    corpus_range train = {0, corpus_count(d->train_corpus)};
    if (!c->data.valid[0])
        corpus_split(d->train_corpus, c->data.valid_fraction, &train, &d->valid_range);
    TRY(batches_train(&d->train, d->train_corpus, train, c->model.length, (uint64_t)c->train.seed,
                      err));
    return open_valid(c, d, err);
}

void data_close(data *d)
{
    corpus_free(&d->valid_corpus);
    corpus_free(&d->train_corpus);
}

mtf_status data_vocab(const config *c, const tokenizer *t, int64_t *vocab, mtf_err *err)
{
    const int64_t own = t ? t->vocab : 0;
    *vocab = c->model.vocab ? c->model.vocab : own;
    if (*vocab == 0)
        return err_set(err, MTF_INVALID,
                       "model.vocab is 0 and there is no text to take it from; set model.vocab or "
                       "data.train");
    if (*vocab < own)
        return err_set(
            err, MTF_INVALID,
            "model.vocab is %lld and the text has %lld different tokens; set model.vocab "
            "to 0 or at least to that",
            (long long)*vocab, (long long)own);
    return MTF_OK;
}
