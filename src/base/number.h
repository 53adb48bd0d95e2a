/* SPDX-License-Identifier: Apache-2.0
 * Numbers as text, the same under every locale: the decimal point is always '.'.
 *
 * Reading takes the whole text or nothing: no spaces, no rest, no "nan", "inf" or hexadecimal. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

enum { NUMBER_TEXT = 40 }; /* room for any number as text */

/* Reads a decimal whole number. False (and *out as it was) where `text` is none or overflows. */
bool number_parse_int(const char *text, int64_t *out);

/* Reads a finite decimal number. False (and *out as it was) where `text` is none, overflows, or is
 * so small that it would become 0. A negative zero becomes 0. */
bool number_parse_real(const char *text, double *out);

/* Writes the shortest text that number_parse_real reads back as exactly `v`, which is finite. It
 * always has a decimal point ("1.0e-08"), so that every YAML and JSON reader sees a real number. */
void number_format_real(double v, char text[NUMBER_TEXT]);

#endif
