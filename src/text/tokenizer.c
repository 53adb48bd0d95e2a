/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { NUM_BYTES = 256, NUM_POINTS = UTF8_MAX_POINT + 1 };

static const char *const kinds[] = {
    [TOKENIZER_BYTES] = "bytes", [TOKENIZER_CHARACTERS] = "characters"};

const char *tokenizer_kind_name(tokenizer_kind kind)
{
    return kinds[kind];
}

tokenizer *tokenizer_bytes(void)
{
    tokenizer *t = mem_zalloc(sizeof *t);
    t->kind = TOKENIZER_BYTES;
    t->vocab = NUM_BYTES;
    return t;
}

/* Takes `points`, which are ascending and at least one. */
static tokenizer *from_points(uint32_t *points, int32_t count)
{
    tokenizer *t = mem_zalloc(sizeof *t);
    *t = (tokenizer){.kind = TOKENIZER_CHARACTERS, .vocab = count, .points = points};
    const size_t room = (size_t)points[count - 1] + 1;
    t->ids = mem_alloc(room * sizeof *t->ids);
    memset(t->ids, 0xFF, room * sizeof *t->ids);
    for (int32_t i = 0; i < count; i++)
        t->ids[points[i]] = i;
    return t;
}

static mtf_status not_utf8(const char *name, const uint8_t *text, int64_t at, mtf_err *err)
{
    return err_set(err, MTF_INVALID, "'%s': byte 0x%02x at offset %lld is not UTF-8 text", name,
                   text[at], (long long)at);
}

mtf_status tokenizer_characters(const char *name, const void *text, int64_t bytes, tokenizer **out,
                                mtf_err *err)
{
    const uint8_t *s = text;
    *out = NULL;
    if (bytes == 0)
        return err_set(err, MTF_INVALID, "'%s' is empty: it has no characters to learn", name);
    uint8_t *seen = mem_zalloc(NUM_POINTS);
    uint32_t point = 0;
    for (int64_t i = 0; i < bytes;) {
        const int n = utf8_decode(s + i, bytes - i, &point);
        if (n == 0) {
            mem_free(seen);
            return not_utf8(name, s, i, err);
        }
        seen[point] = 1;
        i += n;
    }
    int32_t count = 0;
    for (uint32_t p = 0; p < NUM_POINTS; p++)
        count += seen[p];
    uint32_t *points = mem_alloc((size_t)count * sizeof *points);
    for (uint32_t p = 0, k = 0; p < NUM_POINTS; p++)
        if (seen[p]) points[k++] = p;
    mem_free(seen);
    *out = from_points(points, count);
    return MTF_OK;
}

void tokenizer_free(tokenizer **t)
{
    if (!*t) return;
    mem_free((*t)->points);
    mem_free((*t)->ids);
    mem_free(*t);
    *t = NULL;
}

char *tokenizer_describe(uint32_t point, char text[24])
{
    uint8_t utf8[5] = {0};
    if (point < 0x20 || (point >= 0x7F && point < 0xA0)) {
        snprintf(text, 24, "U+%04X", (unsigned)point);
    } else {
        utf8_encode(point, utf8);
        snprintf(text, 24, "'%s' (U+%04X)", (const char *)utf8, (unsigned)point);
    }
    return text;
}

int tokenizer_next(const tokenizer *t, const char *name, const void *text, int64_t bytes,
                   int64_t at, int32_t *id, mtf_err *err)
{
    const uint8_t *s = text;
    if (t->kind == TOKENIZER_BYTES) {
        *id = s[at];
        return 1;
    }
    uint32_t point = 0;
    const int n = utf8_decode(s + at, bytes - at, &point);
    if (n == 0) {
        not_utf8(name, s, at, err);
        return 0;
    }
    *id = point <= t->points[t->vocab - 1] ? t->ids[point] : -1;
    if (*id >= 0) return n;
    char shown[24];
    err_set(err, MTF_INVALID,
            "'%s': character %s at byte %lld is not in the vocabulary of %d characters", name,
            tokenizer_describe(point, shown), (long long)at, (int)t->vocab);
    return 0;
}

mtf_status tokenizer_encode(const tokenizer *t, const char *name, const void *text, int64_t bytes,
                            int32_t *ids, int64_t *count, mtf_err *err)
{
    int64_t used = 0;
    *count = 0;
    for (int64_t i = 0; i < bytes;) {
        const int n = tokenizer_next(t, name, text, bytes, i, &ids[used++], err);
        if (n == 0) return MTF_INVALID;
        i += n;
    }
    *count = used;
    return MTF_OK;
}

char *tokenizer_decode(const tokenizer *t, const int32_t *ids, int64_t count, int64_t *bytes)
{
    uint8_t *out = mem_alloc((size_t)count * 4 + 1);
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t id = ids[i];
        const bool known = id >= 0 && id < t->vocab;
        if (known && t->kind == TOKENIZER_BYTES) {
            out[used++] = (uint8_t)id;
        } else {
            used += utf8_encode(known ? t->points[id] : 0xFFFD, out + used);
        }
    }
    out[used] = '\0';
    if (bytes) *bytes = used;
    return (char *)out;
}

/* FNV-1a over the kind and the code points, four bytes each, lowest first. */
uint64_t tokenizer_hash(const tokenizer *t)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int32_t i = -1; i < t->vocab; i++) {
        const uint32_t word = i < 0 ? (uint32_t)t->kind : t->points ? t->points[i] : (uint32_t)i;
        for (int k = 0; k < 32; k += 8)
            h = (h ^ (word >> k & 0xFF)) * UINT64_C(0x100000001b3);
    }
    return h;
}

void tokenizer_hash_text(const tokenizer *t, char text[TOKENIZER_HASH_TEXT])
{
    snprintf(text, TOKENIZER_HASH_TEXT, "%016llx", (unsigned long long)tokenizer_hash(t));
}

char *tokenizer_to_json(const tokenizer *t)
{
    json_t *root = json_object();
    json_object_set_new(root, "kind", json_string(kinds[t->kind]));
    if (t->points) {
        json_t *points = json_array();
        for (int32_t i = 0; i < t->vocab; i++)
            json_array_append_new(points, json_integer(t->points[i]));
        json_object_set_new(root, "points", points);
    }
    char *text = json_dumps(root, 0);
    MTF_CHECK(text, "out of memory for a vocabulary");
    char *copy = mem_strdup(text);
    free(text);
    json_decref(root);
    return copy;
}

/* The ascending code points of a JSON list, or NULL. */
static uint32_t *points_of(const json_t *list, int32_t *count)
{
    const size_t n = json_array_size(list);
    if (n == 0 || n > NUM_POINTS) return NULL;
    uint32_t *points = mem_alloc(n * sizeof *points);
    json_int_t last = -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t p = json_integer_value(item);
        if (!json_is_integer(item) || p <= last || p > UTF8_MAX_POINT ||
            (p >= 0xD800 && p <= 0xDFFF)) {
            mem_free(points);
            return NULL;
        }
        points[i] = (uint32_t)(last = p);
    }
    *count = (int32_t)n;
    return points;
}

mtf_status tokenizer_from_json(const char *name, const char *json, tokenizer **out, mtf_err *err)
{
    *out = NULL;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    const json_t *kind = json_object_get(root, "kind"), *list = json_object_get(root, "points");
    const char *word = json_is_string(kind) ? json_string_value(kind) : "";
    if (strcmp(word, kinds[TOKENIZER_BYTES]) == 0 && !list) *out = tokenizer_bytes();
    if (strcmp(word, kinds[TOKENIZER_CHARACTERS]) == 0) {
        int32_t count = 0;
        uint32_t *points = points_of(list, &count);
        if (points) *out = from_points(points, count);
    }
    json_decref(root);
    if (*out) return MTF_OK;
    return err_set(err, MTF_INVALID,
                   "'%s': its vocabulary is damaged: no bytes, and no ascending "
                   "list of code points",
                   name);
}
