/* SPDX-License-Identifier: Apache-2.0
 * UTF-8: strict reading (no overlong forms, no surrogates, nothing above U+10FFFF) and writing. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_POINT = 0x10FFFF };

/* Reads the character at `text`, of which `left` > 0 bytes are there. Returns its bytes (1 to 4),
 * or 0 where it is not UTF-8. */
int utf8_decode(const uint8_t *text, int64_t left, uint32_t *point);

/* Writes a character; returns its bytes (1 to 4). `point` is a valid code point. */
int utf8_encode(uint32_t point, uint8_t out[4]);

/* Returns the offset of the first byte that is not UTF-8, or -1. */
int64_t utf8_check(const void *text, int64_t bytes);

/* Returns a copy, ended by a 0 byte, in which U+FFFD stands for each byte that is not UTF-8. The
 * caller frees it with mem_free. *out_bytes (may be NULL) becomes its length without that 0. */
char *utf8_repair(const void *text, int64_t bytes, int64_t *out_bytes);

/* Copies `text` into `out` of `room` >= 8 bytes for use in a message of one line: control
 * characters and bad bytes become \xNN, and what does not fit becomes "...". Returns `out`. */
char *utf8_quote(const char *text, char *out, size_t room);

#endif
