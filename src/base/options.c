/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"

enum { SHOWN = 160 }; /* bytes of a value that a message shows */

static void *field(const option_row *row, void *values)
{
    return (char *)values + row->offset;
}

static const void *const_field(const option_row *row, const void *values)
{
    return (const char *)values + row->offset;
}

/* "0", "0.5", "1.0e-08" without the ".0" of a whole number. */
static const char *bound(double v, char text[NUMBER_TEXT])
{
    number_format_real(v, text);
    const size_t n = strlen(text);
    if (n > 2 && strcmp(text + n - 2, ".0") == 0) text[n - 2] = '\0';
    return text;
}

static void describe_real(const option_row *row, char *out, size_t room)
{
    char lo[NUMBER_TEXT], hi[NUMBER_TEXT];
    const char *from = row->above ? "above" : isinf(row->real_max) ? "of at least" : "from";
    bound(row->real_min, lo);
    if (isinf(row->real_max)) {
        snprintf(out, room, "a number %s %s", from, lo);
    } else {
        snprintf(out, room, "a number %s %s %s %s", from, lo, row->below ? "to below" : "to",
                 bound(row->real_max, hi));
    }
}

static void describe_names(const option_row *row, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, row->names[1] ? "one of " : "");
    for (int i = 0; row->names[i] && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? ", " : "", row->names[i]);
}

/* What a row takes, for messages. */
static void describe(const option_row *row, char *out, size_t room)
{
    switch (row->type) {
    case OPTION_BOOL:
        snprintf(out, room, "true or false");
        break;
    case OPTION_INT:
        if (row->max == INT64_MAX) {
            snprintf(out, room, "a whole number of at least %lld", (long long)row->min);
        } else {
            snprintf(out, room, "a whole number from %lld to %lld", (long long)row->min,
                     (long long)row->max);
        }
        break;
    case OPTION_REAL:
        describe_real(row, out, room);
        break;
    case OPTION_CHOICE:
        describe_names(row, out, room);
        break;
    case OPTION_TEXT:
    case OPTION_LIST:
        snprintf(out, room, "text in UTF-8");
        break;
    }
}

static bool set_bool(bool *out, const char *text)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; i < 6; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *out = i % 2;
            return true;
        }
    }
    return false;
}

static bool set_int(const option_row *row, int64_t *out, const char *text)
{
    int64_t v;
    if (!number_parse_int(text, &v) || v < row->min || v > row->max) return false;
    *out = v;
    return true;
}

static bool set_real(const option_row *row, double *out, const char *text)
{
    double v;
    if (!number_parse_real(text, &v)) return false;
    if (row->above ? v <= row->real_min : v < row->real_min) return false;
    if (row->below ? v >= row->real_max : v > row->real_max) return false;
    *out = v;
    return true;
}

static bool set_choice(const option_row *row, int *out, const char *text)
{
    for (int i = 0; row->names[i]; i++) {
        if (strcmp(text, row->names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool set_text(char **out, const char *text)
{
    if (utf8_check(text, (int64_t)strlen(text)) >= 0) return false;
    char *copy = mem_strdup(text); /* before the free: the text may be the old value itself */
    mem_free(*out);
    *out = copy;
    return true;
}

static bool add_text(option_list *list, const char *text)
{
    if (utf8_check(text, (int64_t)strlen(text)) >= 0) return false;
    mem_grow((void **)&list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = mem_strdup(text);
    return true;
}

static bool set_value(const option_row *row, void *values, const char *text)
{
    void *f = field(row, values);
    switch (row->type) {
    case OPTION_BOOL:
        return set_bool(f, text);
    case OPTION_INT:
        return set_int(row, f, text);
    case OPTION_REAL:
        return set_real(row, f, text);
    case OPTION_CHOICE:
        return set_choice(row, f, text);
    case OPTION_TEXT:
        return set_text(f, text);
    case OPTION_LIST:
        return add_text(f, text);
    }
    return false;
}

static mtf_status set_named(const option_row *row, const char *prefix, void *values,
                            const char *text, mtf_err *err)
{
    if (set_value(row, values, text)) return MTF_OK;
    char kind[512], shown[SHOWN];
    describe(row, kind, sizeof kind);
    return err_set(err, MTF_INVALID, "%s%s is '%s': expected %s", prefix, row->key,
                   utf8_quote(text, shown, sizeof shown), kind);
}

void options_defaults(const option_table *t, void *values)
{
    for (int i = 0; i < t->count; i++) {
        const option_row *row = &t->rows[i];
        void *f = field(row, values);
        if (row->type == OPTION_LIST) {
            *(option_list *)f = (option_list){.count = 0};
            continue;
        }
        if (row->type == OPTION_TEXT) *(char **)f = NULL;
        const char *text = row->standard ? row->standard : row->type == OPTION_BOOL ? "false" : "";
        MTF_CHECK(set_value(row, values, text), "default '%s' of '%s'", text, row->key);
    }
}

void options_free(const option_table *t, void *values)
{
    for (int i = 0; i < t->count; i++) {
        void *f = field(&t->rows[i], values);
        if (t->rows[i].type == OPTION_TEXT) {
            mem_free(*(char **)f);
            *(char **)f = NULL;
        } else if (t->rows[i].type == OPTION_LIST) {
            option_list *list = f;
            for (int64_t k = 0; k < list->count; k++)
                mem_free(list->items[k]);
            mem_free(list->items);
            *list = (option_list){.count = 0};
        }
    }
}

void options_copy(const option_table *t, const void *from, void *to)
{
    options_defaults(t, to);
    for (int i = 0; i < t->count; i++) {
        const option_row *row = &t->rows[i];
        if (row->type == OPTION_LIST) {
            const option_list *list = const_field(row, from);
            for (int64_t k = 0; k < list->count; k++)
                add_text(field(row, to), list->items[k]);
            continue;
        }
        char *text = options_text(row, from);
        MTF_CHECK(set_value(row, to, text), "'%s' is '%s'", row->key, text);
        mem_free(text);
    }
}

const option_row *options_find(const option_table *t, const char *key)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].key, key) == 0) return &t->rows[i];
    return NULL;
}

mtf_status options_set_row(const option_row *row, void *values, const char *text, mtf_err *err)
{
    return set_named(row, "", values, text, err);
}

mtf_status options_set(const option_table *t, void *values, const char *key, const char *text,
                       mtf_err *err)
{
    const option_row *row = options_find(t, key);
    char shown[SHOWN];
    if (row) return options_set_row(row, values, text, err);
    return err_set(err, MTF_INVALID, "unknown %s '%s'; did you mean '%s'?", t->noun,
                   utf8_quote(key, shown, sizeof shown), options_nearest(t, key));
}

/* Handles argv[i], which begins with "--"; returns the arguments used, or 0 on failure. */
static int parse_one(const option_table *t, int argc, char *const *argv, int i, void *values,
                     option_args *args, mtf_err *err)
{
    const char *name = argv[i] + 2, *equals = strchr(name, '=');
    char *key = mem_strdup(name), shown[SHOWN];
    if (equals) key[equals - name] = '\0';
    const option_row *row = options_find(t, key);
    const char *value = equals ? equals + 1 : NULL;
    int used = 1;
    if (!row) {
        err_set(err, MTF_INVALID, "unknown %s '--%s'; did you mean '--%s'?", t->noun,
                utf8_quote(key, shown, sizeof shown), options_nearest(t, key));
        used = 0;
    } else if (!value && row->type == OPTION_BOOL) {
        value = "true";
    } else if (!value && i + 1 < argc) {
        value = argv[i + 1];
        used = 2;
    } else if (!value) {
        err_set(err, MTF_INVALID, "%s '--%s' wants a value after it", t->noun, row->key);
        used = 0;
    }
    mem_free(key);
    if (used == 0 || set_named(row, "--", values, value, err) != MTF_OK) return 0;
    args->given |= UINT64_C(1) << (row - t->rows);
    return used;
}

mtf_status options_parse(const option_table *t, int argc, char *const *argv, void *values,
                         option_args *args, mtf_err *err)
{
    MTF_CHECK(t->count <= 64, "a command line of %d options", t->count);
    *args = (option_args){.items = mem_alloc(((size_t)argc + 1) * sizeof *args->items)};
    static char help[] = "--help";
    for (int i = 0, is_open = 1; i < argc;) {
        if (is_open && strcmp(argv[i], "--") == 0) {
            is_open = 0;
            i++;
        } else if (is_open && strcmp(argv[i], "-h") == 0) {
            char *const one[] = {help};
            if (!parse_one(t, 1, one, 0, values, args, err)) return MTF_INVALID;
            i++;
        } else if (is_open && argv[i][0] == '-' && argv[i][1] == '-') {
            const int used = parse_one(t, argc, argv, i, values, args, err);
            if (used == 0) return MTF_INVALID;
            i += used;
        } else if (is_open && argv[i][0] == '-' && argv[i][1]) {
            char shown[SHOWN];
            return err_set(err, MTF_INVALID, "unknown %s '%s'; did you mean '--%s'?", t->noun,
                           utf8_quote(argv[i], shown, sizeof shown),
                           options_nearest(t, argv[i] + 1));
        } else {
            args->items[args->count++] = argv[i++];
        }
    }
    return MTF_OK;
}
