/* SPDX-License-Identifier: Apache-2.0
 * Tokenizers: text to whole numbers and back.
 *
 * bytes: token = byte, 256 of them. characters: the Unicode code points of a text, sorted; token
 * = place in that order. The vocabulary is a function of the text alone. All local. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "base/err.h"

typedef enum tokenizer_kind { TOKENIZER_BYTES, TOKENIZER_CHARACTERS } tokenizer_kind;

enum { TOKENIZER_HASH_TEXT = 17 };

typedef struct tokenizer {
    tokenizer_kind kind;
    int32_t vocab;    /* number of tokens */
    uint32_t *points; /* characters: the code point of each token, ascending; bytes: NULL */
    int32_t *ids;     /* characters: token of code points 0 .. points[vocab - 1], -1: none */
} tokenizer;

/* "bytes" or "characters"; static. */
const char *tokenizer_kind_name(tokenizer_kind kind);

tokenizer *tokenizer_bytes(void);

/* The characters of a text. `name` is the file, for messages. MTF_INVALID for an empty text, and
 * for one that is not UTF-8, with the offset of the byte. */
mtf_status tokenizer_characters(const char *name, const void *text, int64_t bytes, tokenizer **out,
                                mtf_err *err);

void tokenizer_free(tokenizer **t);

/* Reads the token at text[at], at < bytes. Returns the bytes that it takes, or 0 with the message
 * of tokenizer_encode. */
int tokenizer_next(const tokenizer *t, const char *name, const void *text, int64_t bytes,
                   int64_t at, int32_t *id, mtf_err *err);

/* Encodes UTF-8 (or bytes) into at most `bytes` ids; *count becomes their number. MTF_INVALID names
 * the character that is not in the vocabulary, or the byte that is not UTF-8, and its offset. */
mtf_status tokenizer_encode(const tokenizer *t, const char *name, const void *text, int64_t bytes,
                            int32_t *ids, int64_t *count, mtf_err *err);

/* Decodes; an id outside the vocabulary becomes U+FFFD. The result ends with a 0 byte, *bytes (may
 * be NULL) is its length, mem_free frees it. Bytes need not be UTF-8: see utf8_repair. */
char *tokenizer_decode(const tokenizer *t, const int32_t *ids, int64_t count, int64_t *bytes);

/* A hash of kind and vocabulary, for checkpoints, and its 16 hexadecimal digits. */
uint64_t tokenizer_hash(const tokenizer *t);
void tokenizer_hash_text(const tokenizer *t, char text[TOKENIZER_HASH_TEXT]);

/* One line of JSON: {"kind": "characters", "points": [10, 32, ...]}; free with mem_free. */
char *tokenizer_to_json(const tokenizer *t);

/* The reverse. `name` is where the text comes from, for messages. MTF_INVALID for anything that
 * tokenizer_to_json does not write. */
mtf_status tokenizer_from_json(const char *name, const char *json, tokenizer **out, mtf_err *err);

/* How a message shows a character: "'é' (U+00E9)", or "U+000A" for one that does not print. */
char *tokenizer_describe(uint32_t point, char text[24]);

#endif
