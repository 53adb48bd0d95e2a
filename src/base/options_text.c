/* SPDX-License-Identifier: Apache-2.0
 * Options as text for people and files: help, YAML, differences, the nearest name. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/options.h"
#include "base/utf8.h"

static const void *field(const option_row *row, const void *values)
{
    return (const char *)values + row->offset;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

int options_distance(const char *a, const char *b)
{
    const int n = (int)strlen(a), m = (int)strlen(b);
    /* Three rows of the table d[i][j], the edits between the first i of a and the first j of b. */
    int *rows = mem_alloc(3 * (size_t)(m + 1) * sizeof *rows);
    int *before = rows, *last = rows + m + 1, *now = rows + 2 * (m + 1);
    for (int j = 0; j <= m; j++)
        now[j] = j;
    for (int i = 1; i <= n; i++) {
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const int differs = a[i - 1] != b[j - 1];
            now[j] = min_int(min_int(last[j], now[j - 1]) + 1, last[j - 1] + differs);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_int(now[j], before[j - 2] + 1);
        }
    }
    const int result = now[m];
    mem_free(rows);
    return result;
}

const char *options_nearest(const option_table *t, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "%s", key); /* a longer one is near to nothing anyway */
    int best = 0, best_distance = 1 << 20;
    for (int i = 0; i < t->count; i++) {
        const char *dot = strchr(t->rows[i].key, '.');
        /* 2 * full: a key whose section was left out loses only to a nearer full one. */
        int d = 2 * options_distance(name, t->rows[i].key);
        if (dot && !strchr(name, '.')) d = min_int(d, 2 * options_distance(name, dot + 1) + 1);
        if (d < best_distance) {
            best_distance = d;
            best = i;
        }
    }
    return t->rows[best].key;
}

char *options_text(const option_row *row, const void *values)
{
    const void *f = field(row, values);
    char text[NUMBER_TEXT];
    switch (row->type) {
    case OPTION_BOOL:
        return mem_strdup(*(const bool *)f ? "true" : "false");
    case OPTION_INT:
        snprintf(text, sizeof text, "%lld", (long long)*(const int64_t *)f);
        return mem_strdup(text);
    case OPTION_REAL:
        number_format_real(*(const double *)f, text);
        return mem_strdup(text);
    case OPTION_CHOICE:
        return mem_strdup(row->names[*(const int *)f]);
    case OPTION_TEXT:
        return mem_strdup(*(char *const *)f);
    case OPTION_LIST:
        break;
    }
    return mem_strdup("");
}

const option_row *options_difference(const option_table *t, const void *a, const void *b,
                                     unsigned skip)
{
    for (int i = 0; i < t->count; i++) {
        const option_row *row = &t->rows[i];
        if (row->flags & skip) continue;
        char *x = options_text(row, a), *y = options_text(row, b);
        const bool differs = strcmp(x, y) != 0;
        mem_free(x);
        mem_free(y);
        if (differs) return row;
    }
    return NULL;
}

static const char *value_word(const option_row *row)
{
    if (row->value) return row->value;
    switch (row->type) {
    case OPTION_BOOL:
        return "";
    case OPTION_INT:
        return "N";
    case OPTION_REAL:
        return "X";
    case OPTION_CHOICE:
        return "NAME";
    case OPTION_TEXT:
    case OPTION_LIST:
        return "TEXT";
    }
    return "";
}

static void print_row(const option_row *row, bool dashes, FILE *out)
{
    char left[80];
    const char *word = dashes ? value_word(row) : "";
    snprintf(left, sizeof left, "%s%s%s%s", dashes ? "--" : "", row->key, *word ? " " : "", word);
    if (strlen(left) > 24) /* a line of its own */
        fprintf(out, "  %s\n  %-24s %s", left, "", row->help);
    else
        fprintf(out, "  %-24s %s", left, row->help);
    for (int i = 0; row->type == OPTION_CHOICE && row->names[i]; i++)
        fprintf(out, "%s%s", i ? ", " : ": ", row->names[i]);
    const bool silent = row->type == OPTION_LIST || (dashes && row->type == OPTION_BOOL);
    const char *standard = row->standard ? row->standard : row->type == OPTION_BOOL ? "false" : "";
    if (!silent) fprintf(out, " (default: %s)", *standard ? standard : "empty");
    fputc('\n', out);
}

void options_print_help(const option_table *t, bool dashes, FILE *out)
{
    for (int i = 0; i < t->count; i++)
        print_row(&t->rows[i], dashes, out);
}

/* Whether YAML readers take the bare text as a string: a path or a name, and no other scalar. */
static bool is_bare(const char *s)
{
    static const char *const taken[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    if (!isalpha((unsigned char)s[0]) && s[0] != '/') return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcasecmp(s, taken[i]) == 0) return false;
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c >= 0x80 || (!isalnum((unsigned char)*c) && !strchr("_./-", *c)))
            return false;
    return true;
}

/* Whether a character may stand in double quotes as it is, without being folded or refused. */
static bool is_quotable(uint32_t p)
{
    if (p < 0x20 || (p >= 0x7F && p <= 0x9F) || p == '"' || p == '\\') return false;
    return p != 0x2028 && p != 0x2029 && p != 0xFEFF && p != 0xFFFE && p != 0xFFFF;
}

static void print_quoted(const char *s, FILE *out)
{
    const int64_t end = (int64_t)strlen(s);
    fputc('"', out);
    for (int64_t i = 0; i < end;) {
        uint32_t p = 0;
        const int n = utf8_decode((const uint8_t *)s + i, end - i, &p);
        if (is_quotable(p)) {
            fwrite(s + i, 1, (size_t)n, out);
        } else if (p == '"' || p == '\\') {
            fprintf(out, "\\%c", (int)p);
        } else {
            fprintf(out, "\\u%04X", (unsigned)p);
        }
        i += n ? n : 1;
    }
    fputc('"', out);
}

void options_print_yaml(const option_table *t, const void *values, FILE *out)
{
    size_t section = 0; /* length of the open section's name with its dot */
    const char *open = "";
    for (int i = 0; i < t->count; i++) {
        const option_row *row = &t->rows[i];
        if (row->type == OPTION_LIST) continue;
        const char *dot = strchr(row->key, '.');
        const size_t n = dot ? (size_t)(dot - row->key) + 1 : 0;
        if (n && (n != section || strncmp(open, row->key, n) != 0))
            fprintf(out, "%.*s:\n", (int)n - 1, row->key);
        section = n;
        open = row->key;
        fprintf(out, "%s%s: ", n ? "  " : "", row->key + n);
        char *text = options_text(row, values);
        if (row->type != OPTION_TEXT || is_bare(text)) {
            fputs(text, out);
        } else {
            print_quoted(text, out);
        }
        fputc('\n', out);
        mem_free(text);
    }
}
