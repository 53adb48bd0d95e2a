/* SPDX-License-Identifier: Apache-2.0
 * The reader of products of factors:
 *   product  = factor { "*" factor }
 *   factor   = number | name "(" [ number { "," number } ] ")"  */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "base/options.h"
#include "base/utf8.h"
#include "nn/schedule.h"

enum { SHOWN = 160, WORD = 64 };

typedef struct reader {
    const char *text, *at;
    mtf_err *err;
} reader;

static void skip_space(reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

/* "'linear_warmup(10': expected ',' or ')' at its end" */
static mtf_status expected(const reader *r, const char *what)
{
    char shown[SHOWN], rest[32];
    utf8_quote(r->text, shown, sizeof shown);
    if (!*r->at) return err_set(r->err, MTF_INVALID, "'%s': expected %s at its end", shown, what);
    return err_set(r->err, MTF_INVALID, "'%s': expected %s at character %d, before '%s'", shown,
                   what, (int)(r->at - r->text) + 1, utf8_quote(r->at, rest, sizeof rest));
}

/* The letters of `set` that come next. A word that is too long for `word` is cut: no legal one is.
 */
static void take_word(reader *r, const char *set, char word[WORD])
{
    skip_space(r);
    const size_t n = strspn(r->at, set);
    snprintf(word, WORD, "%.*s", (int)(n < WORD ? n : WORD - 1), r->at);
    r->at += n;
}

static mtf_status read_number(reader *r, double *out)
{
    const char *before = r->at;
    char word[WORD];
    take_word(r, "0123456789.eE+-", word);
    if (number_parse_real(word, out)) return MTF_OK;
    r->at = before;
    skip_space(r);
    return expected(r, "a number");
}

static mtf_status find_kind(const reader *r, const char *name, mtf_factor_kind *out)
{
    int best = 0, distance = 1 << 20;
    for (int k = 0; k < MTF_NUM_FACTOR_KINDS; k++) {
        const int d = options_distance(name, factor_rows[k].name);
        if (d < distance) best = k;
        if (d < distance) distance = d;
    }
    *out = (mtf_factor_kind)best;
    if (distance == 0) return MTF_OK;
    char shown[SHOWN];
    return err_set(r->err, MTF_INVALID, "'%s': unknown factor '%s'; did you mean '%s'?",
                   utf8_quote(r->text, shown, sizeof shown), name, factor_rows[best].name);
}

static mtf_status read_arguments(reader *r, mtf_factor *f)
{
    if (!take(r, '(')) return expected(r, "'(' behind the name of a factor");
    if (take(r, ')')) return MTF_OK;
    do {
        double x = 0;
        TRY(read_number(r, &x));
        if (f->narguments == MTF_MAX_ARGUMENTS)
            return err_set(r->err, MTF_INVALID, "%s has more than %d arguments",
                           factor_rows[f->kind].name, (int)MTF_MAX_ARGUMENTS);
        f->argument[f->narguments++] = x;
    } while (take(r, ','));
    return take(r, ')') ? MTF_OK : expected(r, "',' or ')'");
}

static mtf_status read_factor(reader *r, mtf_factor *f)
{
    char word[WORD];
    skip_space(r);
    if (*r->at && strchr("0123456789.+-", *r->at)) {
        *f = (mtf_factor){.kind = MTF_FACTOR_CONSTANT, .narguments = 1};
        return read_number(r, &f->argument[0]);
    }
    take_word(r, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", word);
    if (!word[0]) return expected(r, "a factor, such as linear_warmup(1000),");
    *f = (mtf_factor){.narguments = 0};
    TRY(find_kind(r, word, &f->kind));
    return read_arguments(r, f);
}

mtf_status mtf_schedule_parse(const char *text, mtf_schedule *out, mtf_err *err)
{
    if (!text) return err_set(err, MTF_INVALID, "the text of the schedule is NULL");
    reader r = {.text = text, .at = text, .err = err};
    mtf_schedule s = {.nfactors = 0};
    do {
        if (s.nfactors == MTF_MAX_FACTORS)
            return err_set(err, MTF_INVALID, "a product of more than %d factors",
                           (int)MTF_MAX_FACTORS);
        TRY(read_factor(&r, &s.factor[s.nfactors++]));
    } while (take(&r, '*'));
    if (*r.at) return expected(&r, "'*' or nothing");
    TRY(mtf_schedule_check(&s, err));
    *out = s;
    return MTF_OK;
}
