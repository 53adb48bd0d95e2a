/* SPDX-License-Identifier: Apache-2.0
 * Opening safetensors files that anyone may have written: nothing is believed unchecked. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "train/files.h"
#include "train/safetensors_internal.h"

enum { SHOWN = 120 };

__attribute__((format(printf, 4, 5))) static mtf_status
wrong(const safetensors *s, const char *tensor, mtf_err *err, const char *fmt, ...)
{
    char what[512], shown[SHOWN];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (!tensor) return err_set(err, MTF_INVALID, "'%s': %s", s->path, what);
    return err_set(err, MTF_INVALID, "'%s': tensor '%s' %s", s->path,
                   utf8_quote(tensor, shown, sizeof shown), what);
}

static mtf_status parse_dtype(const safetensors *s, safetensors_tensor *t, const json_t *value,
                              mtf_err *err)
{
    if (!json_is_string(value)) return wrong(s, t->name, err, "has no dtype");
    const char *text = json_string_value(value);
    for (int d = 0; d < MTF_NUM_DTYPES; d++) {
        if (strcmp(text, safetensors_dtype_name((mtf_dtype)d)) == 0) {
            t->dtype = (mtf_dtype)d;
            return MTF_OK;
        }
    }
    char shown[32];
    return wrong(s, t->name, err, "has dtype '%s'; only F32, F64, BF16, I32 and BOOL can be read",
                 utf8_quote(text, shown, sizeof shown));
}

static mtf_status parse_shape(const safetensors *s, safetensors_tensor *t, const json_t *value,
                              mtf_err *err)
{
    if (!json_is_array(value)) return wrong(s, t->name, err, "has no shape");
    const size_t rank = json_array_size(value);
    if (rank > KERNEL_MAX_RANK)
        return wrong(s, t->name, err, "has %zu dims; at most %d can be read", rank,
                     (int)KERNEL_MAX_RANK);
    t->rank = (int)rank;
    for (int i = 0; i < t->rank; i++) {
        const json_t *item = json_array_get(value, (size_t)i);
        t->extents[i] = json_integer_value(item);
        if (!json_is_integer(item) || t->extents[i] < 0)
            return wrong(s, t->name, err, "has a shape that is no list of whole numbers from 0 on");
    }
    if (!safetensors_set_bytes(t)) return wrong(s, t->name, err, "has a shape that is too large");
    return MTF_OK;
}

static mtf_status parse_offsets(const safetensors *s, safetensors_tensor *t, const json_t *value,
                                mtf_err *err)
{
    const json_t *b = json_array_get(value, 0), *e = json_array_get(value, 1);
    if (!json_is_array(value) || json_array_size(value) != 2 || !json_is_integer(b) ||
        !json_is_integer(e))
        return wrong(s, t->name, err, "has no data_offsets of two whole numbers");
    const int64_t begin = json_integer_value(b), end = json_integer_value(e);
    if (begin < 0 || end < begin)
        return wrong(s, t->name, err, "has data_offsets %lld to %lld", (long long)begin,
                     (long long)end);
    if (end > s->size - s->data)
        return wrong(s, t->name, err,
                     "ends at byte %lld of the data, but the file holds only %lld; it is truncated",
                     (long long)end, (long long)(s->size - s->data));
    if (end - begin != t->bytes)
        return wrong(s, t->name, err, "has %lld bytes, but its shape and dtype take %lld",
                     (long long)(end - begin), (long long)t->bytes);
    t->offset = begin;
    return MTF_OK;
}

static mtf_status parse_tensor(safetensors *s, const char *name, const json_t *value, mtf_err *err)
{
    safetensors_tensor *t = &s->tensors[s->count];
    *t = (safetensors_tensor){.name = arena_strdup(s->texts, name)};
    if (!json_is_object(value)) return wrong(s, name, err, "is not described by an object");
    TRY(parse_dtype(s, t, json_object_get(value, "dtype"), err));
    TRY(parse_shape(s, t, json_object_get(value, "shape"), err));
    TRY(parse_offsets(s, t, json_object_get(value, "data_offsets"), err));
    s->count++;
    return MTF_OK;
}

static mtf_status parse_meta(safetensors *s, json_t *object, mtf_err *err)
{
    if (!json_is_object(object)) return wrong(s, NULL, err, "__metadata__ is not an object");
    s->meta = mem_alloc(json_object_size(object) * sizeof *s->meta);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char shown[SHOWN];
        if (!json_is_string(value))
            return wrong(s, NULL, err, "metadata '%s' is not a text",
                         utf8_quote(key, shown, sizeof shown));
        s->meta[s->metas++] =
            (safetensors_meta){.key = arena_strdup(s->texts, key),
                               .value = arena_strdup(s->texts, json_string_value(value))};
    }
    return MTF_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const safetensors_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The tensors must cover the data without holes; leaves them in that order, offsets in the file. */
static mtf_status check_cover(safetensors *s, mtf_err *err)
{
    qsort(s->tensors, (size_t)s->count, sizeof *s->tensors, compare_offsets);
    int64_t end = 0;
    for (int i = 0; i < s->count; i++) {
        safetensors_tensor *t = &s->tensors[i];
        if (t->offset < end) return wrong(s, t->name, err, "overlaps tensor '%.60s'", t[-1].name);
        if (t->offset > end)
            return wrong(s, t->name, err,
                         "begins at byte %lld of the data; bytes from %lld on "
                         "belong to no tensor",
                         (long long)t->offset, (long long)end);
        end = t->offset + t->bytes;
        t->offset += s->data;
    }
    if (end != s->size - s->data)
        return wrong(s, NULL, err, "the last %lld bytes belong to no tensor",
                     (long long)(s->size - s->data - end));
    return MTF_OK;
}

static mtf_status parse_root(safetensors *s, json_t *root, mtf_err *err)
{
    if (!json_is_object(root)) return wrong(s, NULL, err, "the header is not a JSON object");
    s->tensors = mem_alloc(json_object_size(root) * sizeof *s->tensors);
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "__metadata__") == 0) {
            TRY(parse_meta(s, value, err));
        } else {
            TRY(parse_tensor(s, key, value, err));
        }
    }
    TRY(check_cover(s, err));
    safetensors_sort_names(s);
    return MTF_OK;
}

mtf_status safetensors_parse(safetensors *s, const char *text, size_t bytes, mtf_err *err)
{
    json_error_t problem;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    char shown[JSON_ERROR_TEXT_LENGTH];
    if (!root)
        return wrong(s, NULL, err, "the header is broken JSON: %s",
                     utf8_quote(problem.text, shown, sizeof shown));
    const mtf_status status = parse_root(s, root, err);
    json_decref(root);
    return status;
}

static mtf_status read_header(safetensors *s, mtf_err *err)
{
    struct stat info;
    if (fstat(s->fd, &info) != 0)
        return err_set(err, MTF_FAILED, "'%s': %s", s->path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return wrong(s, NULL, err, "a folder, not a file");
    if (!S_ISREG(info.st_mode)) return wrong(s, NULL, err, "not a regular file");
    s->size = info.st_size;
    if (s->size < 8)
        return wrong(s, NULL, err, "%lld bytes are too few for a safetensors file",
                     (long long)s->size);
    uint8_t raw[8];
    TRY(file_read_at(s->fd, s->path, raw, 8, 0, err));
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)raw[i] << 8 * i;
    if (n > SAFETENSORS_MAX_HEADER)
        return wrong(s, NULL, err, "a header of %llu bytes: this is no safetensors file",
                     (unsigned long long)n);
    s->data = 8 + (int64_t)n;
    if (s->data > s->size)
        return wrong(s, NULL, err,
                     "the header has %llu bytes, but the file ends after %lld; it is "
                     "truncated",
                     (unsigned long long)n, (long long)(s->size - 8));
    char *text = mem_alloc((size_t)n);
    mtf_status status = file_read_at(s->fd, s->path, text, (size_t)n, 8, err);
    if (status == MTF_OK) status = safetensors_parse(s, text, (size_t)n, err);
    mem_free(text);
    return status;
}

static mtf_status open_file(const char *path, int flags, safetensors **out, mtf_err *err)
{
    *out = NULL;
    safetensors *s = safetensors_new(path);
    mtf_status status = MTF_OK;
    s->fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0)
        status = err_set(err, MTF_INVALID, "cannot open '%s': %s", path, strerror(errno));
    if (status == MTF_OK) status = read_header(s, err);
    if (status == MTF_OK) {
        *out = s;
    } else {
        safetensors_close(&s);
    }
    return status;
}

mtf_status safetensors_open(const char *path, safetensors **out, mtf_err *err)
{
    return open_file(path, O_RDONLY, out, err);
}

mtf_status safetensors_open_write(const char *path, safetensors **out, mtf_err *err)
{
    return open_file(path, O_RDWR, out, err);
}
