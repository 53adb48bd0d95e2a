/* SPDX-License-Identifier: Apache-2.0
 * A corpus: the tokens of one text file, read by position.
 *
 * The file is mapped, so its size may exceed memory; bytes and ASCII characters are read straight
 * from the map, other characters through an array of two or four bytes a token. The file must not
 * change while it is open. All local; a token is the same on every processor. */
#ifndef TEXT_CORPUS_H
#define TEXT_CORPUS_H

#include "text/tokenizer.h"

typedef struct corpus corpus;

/* A part of a corpus: tokens [first, first + count). */
typedef struct corpus_range {
    int64_t first, count;
} corpus_range;

/* Opens a file. Its vocabulary is that of `kind` over the whole file. MTF_INVALID for a missing
 * file, a folder, a pipe or device, an empty file, and for text that is not UTF-8. */
mtf_status corpus_open(const char *path, tokenizer_kind kind, corpus **out, mtf_err *err);

/* As corpus_open with a given vocabulary, which must outlive the corpus. MTF_INVALID also for a
 * character that is not in it. */
mtf_status corpus_open_with(const char *path, const tokenizer *t, corpus **out, mtf_err *err);

void corpus_free(corpus **c);

int64_t corpus_count(const corpus *c); /* tokens of the whole file */
const char *corpus_path(const corpus *c);
const tokenizer *corpus_tokenizer(const corpus *c); /* borrowed */

/* Token `i`, and tokens [first, first + n), which must be in the corpus. */
int32_t corpus_token(const corpus *c, int64_t i);
void corpus_tokens(const corpus *c, int64_t first, int64_t n, int32_t *out);

/* Words that begin in the range: runs of anything but ASCII white space. A run that is cut by the
 * start of the range counts. */
int64_t corpus_words(const corpus *c, corpus_range range);

/* The last floor(count * fraction) tokens are for validation, the others for training. */
void corpus_split(const corpus *c, double fraction, corpus_range *train, corpus_range *valid);

#endif
