/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static locale_t plain;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    MTF_CHECK(plain, "the C locale is missing");
}

static locale_t plain_locale(void)
{
    pthread_once(&plain_once, make_plain);
    return plain;
}

bool number_parse_int(const char *text, int64_t *out)
{
    if (!*text || text[strspn(text, "+-0123456789")]) return false;
    char *end;
    errno = 0;
    const long long v = strtoll_l(text, &end, 10, plain_locale());
    if (*end || end == text || errno) return false;
    *out = v;
    return true;
}

bool number_parse_real(const char *text, double *out)
{
    if (!*text || text[strspn(text, "+-.0123456789eE")]) return false;
    char *end;
    errno = 0;
    const double v = strtod_l(text, &end, plain_locale());
    if (*end || end == text || !isfinite(v)) return false;
    if (errno == ERANGE && v == 0) return false;
    *out = v == 0 ? 0 : v;
    return true;
}

/* Puts ".0" where the text has no decimal point: before the exponent or at the end. */
static void add_point(char text[NUMBER_TEXT])
{
    if (strchr(text, '.')) return;
    char *at = text + strcspn(text, "e");
    memmove(at + 2, at, strlen(at) + 1);
    at[0] = '.';
    at[1] = '0';
}

void number_format_real(double v, char text[NUMBER_TEXT])
{
    MTF_CHECK(isfinite(v), "number_format_real of a number that is not finite");
    const locale_t before = uselocale(plain_locale());
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    uselocale(before);
    add_point(text);
}
