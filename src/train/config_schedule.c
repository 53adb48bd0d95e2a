/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config_schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/pattern.h"
#include "base/utf8.h"

enum { SHOWN = 160 };

/* ---- the short forms ---- */

static mtf_factor factor(mtf_factor_kind kind, double first, double floor)
{
    return (mtf_factor){.kind = kind, .narguments = 2, .argument = {first, floor}};
}

/* The schedule that one of the four words stands for; false for any other text. */
static bool short_form(const config_train *t, const char *word, mtf_schedule *out)
{
    const double warmup = (double)t->warmup_steps;
    const double floor = t->learning_rate > 0 ? t->min_learning_rate / t->learning_rate : 0;
    mtf_schedule s = {.nfactors = 0};
    if (warmup > 1)
        s.factor[s.nfactors++] =
            (mtf_factor){.kind = MTF_FACTOR_LINEAR_WARMUP, .narguments = 1, .argument = {warmup}};
    if (strcmp(word, "linear") == 0)
        s.factor[s.nfactors++] = factor(MTF_FACTOR_LINEAR, warmup, floor);
    else if (strcmp(word, "cosine") == 0)
        s.factor[s.nfactors++] = factor(MTF_FACTOR_COSINE, warmup, floor);
    else if (strcmp(word, "rsqrt") == 0)
        s.factor[s.nfactors++] = factor(MTF_FACTOR_INVERSE_SQRT, warmup > 1 ? warmup : 1, floor);
    else if (strcmp(word, "constant") != 0)
        return false;
    *out = s;
    return true;
}

/* ---- any form ---- */

/* Factors that are right one by one may be too much together. The highest rate is not looked for:
 * one that is too high ends the run with a message of its own. */
static mtf_status check_rate(const config *c, const char *key, const mtf_schedule *s, mtf_err *err)
{
    const int64_t steps[] = {s->offset + 1, c->train.steps};
    for (int i = 0; i < 2; i++)
        if (!isfinite(mtf_schedule_rate(s, steps[i], c->train.steps)))
            return err_set(err, MTF_INVALID,
                           "%s: the learning rate of step %lld is not finite; lower "
                           "train.learning_rate or a factor",
                           key, (long long)steps[i]);
    return MTF_OK;
}

static mtf_status read_schedule(const config *c, const char *key, const char *text,
                                mtf_schedule *out, mtf_err *err)
{
    mtf_err own = {0};
    if (!short_form(&c->train, text, out)) {
        if (strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text)) {
            char shown[SHOWN];
            return err_set(err, MTF_INVALID,
                           "%s is '%s': expected constant, linear, cosine, rsqrt, or a product of "
                           "factors, such as linear_warmup(1000) * rsqrt(1000)",
                           key, utf8_quote(text, shown, sizeof shown));
        }
        if (mtf_schedule_parse(text, out, &own) != MTF_OK)
            return err_set(err, MTF_INVALID, "%s: %s", key, own.text);
    }
    if (out->nfactors == MTF_MAX_FACTORS)
        return err_set(err, MTF_INVALID, "%s: a product of %d factors; there may be %d", key,
                       out->nfactors, MTF_MAX_FACTORS - 1);
    out->factor[out->nfactors++] = (mtf_factor){
        .kind = MTF_FACTOR_CONSTANT, .narguments = 1, .argument = {c->train.learning_rate}};
    out->offset = c->train.schedule_offset;
    return check_rate(c, key, out, err);
}

mtf_status config_schedule(const config *c, mtf_schedule *out, mtf_err *err)
{
    return read_schedule(c, "train.schedule", c->train.schedule, out, err);
}

/* ---- rules ---- */

mtf_status config_check_pattern(const char *key, const char *text, mtf_err *err)
{
    regex_t regex;
    mtf_err own = {0};
    if (pattern_compile(text, &regex, &own) != MTF_OK)
        return err_set(err, MTF_INVALID, "%s: %s", key, own.text);
    regfree(&regex);
    return MTF_OK;
}

/* A copy of the `n` bytes from `text` without the spaces around them. */
static char *trimmed(arena *mem, const char *text, size_t n)
{
    static const char spaces[] = " \t\r";
    while (n > 0 && strchr(spaces, *text))
        text++, n--;
    while (n > 0 && strchr(spaces, text[n - 1]))
        n--;
    return arena_printf(mem, "%.*s", (int)n, text);
}

static mtf_status read_rule(const config *c, arena *mem, char *text, mtf_rate_rule *rule,
                            mtf_err *err)
{
    static const char key[] = "train.schedule_rules";
    char shown[SHOWN];
    char *arrow = strstr(text, "->");
    for (char *next = arrow; next; next = strstr(next + 2, "->"))
        arrow = next; /* a pattern may have one as well, a schedule none */
    if (!arrow || arrow == text)
        return err_set(err, MTF_INVALID, "%s: expected 'PATTERN -> SCHEDULE' and found '%s'", key,
                       utf8_quote(text, shown, sizeof shown));
    rule->pattern = trimmed(mem, text, (size_t)(arrow - text));
    TRY(config_check_pattern(key, rule->pattern, err));
    return read_schedule(c, key, trimmed(mem, arrow + 2, strlen(arrow + 2)), &rule->schedule, err);
}

int config_rate_rules(const config *c, arena *mem, mtf_rate_rule *rules, mtf_err *err)
{
    int n = 0;
    for (const char *at = c->train.schedule_rules; *at;) {
        const size_t length = strcspn(at, ";\n");
        char *text = trimmed(mem, at, length);
        at += length + (at[length] != '\0');
        if (!*text) continue;
        if (n == MTF_MAX_RATE_RULES) {
            err_set(err, MTF_INVALID, "train.schedule_rules: more than %d rules",
                    (int)MTF_MAX_RATE_RULES);
            return -1;
        }
        if (read_rule(c, mem, text, &rules[n++], err) != MTF_OK) return -1;
    }
    return n;
}

mtf_status config_check_schedules(const config *c, mtf_err *err)
{
    mtf_schedule s;
    mtf_rate_rule rules[MTF_MAX_RATE_RULES];
    const config_train *t = &c->train;
    TRY(config_schedule(c, &s, err));
    if (t->schedule_offset >= t->steps)
        return err_set(err, MTF_INVALID,
                       "train.schedule_offset is %lld and train.steps is %lld: the schedules would "
                       "begin behind the last step; lower the one or raise the other",
                       (long long)t->schedule_offset, (long long)t->steps);
    arena *mem = arena_new();
    const int n = config_rate_rules(c, mem, rules, err);
    arena_free(&mem);
    return n < 0 ? MTF_INVALID : MTF_OK;
}
