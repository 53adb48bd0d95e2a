/* SPDX-License-Identifier: Apache-2.0
 * Files, ranges and the writer. safetensors_header.c checks what others wrote. */
#include "train/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "train/files.h"
#include "train/safetensors_internal.h"

static const char *const dtype_names[MTF_NUM_DTYPES] = {[MTF_F32] = "F32",
                                                        [MTF_F64] = "F64",
                                                        [MTF_I32] = "I32",
                                                        [MTF_BOOL] = "BOOL",
                                                        [MTF_BF16] = "BF16"};

const char *safetensors_dtype_name(mtf_dtype t)
{
    return dtype_names[t];
}

safetensors *safetensors_new(const char *path)
{
    safetensors *s = mem_zalloc(sizeof *s);
    s->path = mem_strdup(path);
    s->fd = -1;
    s->texts = arena_new();
    return s;
}

void safetensors_close(safetensors **s)
{
    if (!*s) return;
    if ((*s)->fd >= 0) close((*s)->fd);
    arena_free(&(*s)->texts);
    mem_free((*s)->tensors);
    mem_free((*s)->by_name);
    mem_free((*s)->meta);
    mem_free((*s)->path);
    mem_free(*s);
    *s = NULL;
}

static int compare_names(const void *a, const void *b, void *tensors)
{
    const safetensors_tensor *t = tensors;
    return strcmp(t[*(const int *)a].name, t[*(const int *)b].name);
}

void safetensors_sort_names(safetensors *s)
{
    s->by_name = mem_alloc((size_t)s->count * sizeof *s->by_name);
    for (int i = 0; i < s->count; i++)
        s->by_name[i] = i;
    qsort_r(s->by_name, (size_t)s->count, sizeof *s->by_name, compare_names, s->tensors);
}

bool safetensors_set_bytes(safetensors_tensor *t)
{
    t->bytes = mtf_dtype_size(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->bytes, t->extents[i], &t->bytes)) return false;
    return true;
}

int safetensors_count(const safetensors *s)
{
    return s->count;
}

const safetensors_tensor *safetensors_at(const safetensors *s, int index)
{
    MTF_CHECK(index >= 0 && index < s->count, "tensor %d of %d", index, s->count);
    return &s->tensors[index];
}

int safetensors_find(const safetensors *s, const char *name)
{
    for (int lo = 0, hi = s->count; lo < hi;) {
        const int mid = lo + (hi - lo) / 2, index = s->by_name[mid];
        const int order = strcmp(name, s->tensors[index].name);
        if (order == 0) return index;
        if (order < 0) hi = mid;
        if (order > 0) lo = mid + 1;
    }
    return -1;
}

const char *safetensors_value(const safetensors *s, const char *key)
{
    for (int i = 0; i < s->metas; i++)
        if (strcmp(s->meta[i].key, key) == 0) return s->meta[i].value;
    return NULL;
}

/* Copies what the caller gave and assigns offsets relative to the data: large elements first. */
static mtf_status place(safetensors *s, const safetensors_tensor *tensors, int count, int64_t *end,
                        mtf_err *err)
{
    s->count = count;
    s->tensors = mem_alloc((size_t)count * sizeof *s->tensors);
    *end = 0;
    for (int i = 0; i < count; i++) {
        safetensors_tensor *t = &s->tensors[i];
        *t = tensors[i];
        t->name = arena_strdup(s->texts, tensors[i].name);
        MTF_CHECK(t->rank >= 0 && t->rank <= KERNEL_MAX_RANK, "tensor '%s' has rank %d", t->name,
                  t->rank);
        if (!safetensors_set_bytes(t))
            return err_set(err, MTF_INVALID, "'%s': tensor '%s' has too many bytes", s->path,
                           t->name);
    }
    for (int64_t element = 8; element >= 1; element /= 2) {
        for (int i = 0; i < count; i++) {
            safetensors_tensor *t = &s->tensors[i];
            if (mtf_dtype_size(t->dtype) != element) continue;
            t->offset = *end;
            if (__builtin_add_overflow(*end, t->bytes, end) || *end > INT64_MAX / 2)
                return err_set(err, MTF_INVALID, "'%s': the tensors have too many bytes", s->path);
        }
    }
    return MTF_OK;
}

static json_t *describe(const safetensors_tensor *t)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->extents[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_names[t->dtype], "shape", shape,
                     "data_offsets", (json_int_t)t->offset, (json_int_t)(t->offset + t->bytes));
}

/* In the order of the data, as other readers like it. Names and metadata must be UTF-8. */
static json_t *header_of(const safetensors *s, const safetensors_meta *meta, int metas)
{
    json_t *root = json_object(), *notes = json_object();
    for (int i = 0; i < metas; i++)
        MTF_CHECK(json_object_set_new(notes, meta[i].key, json_string(meta[i].value)) == 0,
                  "metadata '%s' is not UTF-8", meta[i].key);
    json_object_set_new(root, "__metadata__", notes);
    for (int64_t element = 8; element >= 1; element /= 2)
        for (int i = 0; i < s->count; i++)
            if (mtf_dtype_size(s->tensors[i].dtype) == element)
                MTF_CHECK(json_object_set_new(root, s->tensors[i].name, describe(&s->tensors[i])) ==
                              0,
                          "tensor name '%s' is not UTF-8", s->tensors[i].name);
    MTF_CHECK(json_object_size(root) == (size_t)s->count + 1, "two tensors have one name in '%s'",
              s->path);
    return root;
}

/* Reserves the space, so that a full disk is found now. Where that is not supported, only the size
 * is set. */
static mtf_status reserve(const safetensors *s, mtf_err *err)
{
    int result;
    do {
        result = fallocate(s->fd, 0, 0, s->size);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return MTF_OK;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
        if (ftruncate(s->fd, s->size) == 0) return MTF_OK;
    return err_set(err, MTF_FAILED, "writing '%s': %lld bytes: %s", s->path, (long long)s->size,
                   strerror(errno));
}

/* Writes the header: its length, and spaces up to a multiple of 8 so that the data is aligned. */
static mtf_status write_header(safetensors *s, json_t *root, int64_t data_bytes, mtf_err *err)
{
    char *json = json_dumps(root, JSON_COMPACT);
    MTF_CHECK(json, "out of memory for the header of '%s'", s->path);
    const size_t n = strlen(json), padded = (n + 7) / 8 * 8;
    MTF_CHECK(padded <= SAFETENSORS_MAX_HEADER, "the header of '%s' has %zu bytes", s->path, n);
    uint8_t *out = mem_alloc(8 + padded);
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)((uint64_t)padded >> 8 * i);
    memcpy(out + 8, json, n);
    memset(out + 8 + n, ' ', padded - n);
    free(json);
    s->data = (int64_t)(8 + padded);
    s->size = s->data + data_bytes;
    mtf_status status = file_write(s->fd, s->path, out, 8 + padded, -1, err);
    mem_free(out);
    if (status == MTF_OK) status = reserve(s, err);
    return status;
}

/* Removes a file that could not be made, but never a device that stood at its path. */
static void remove_file(const safetensors *s)
{
    struct stat info;
    if (s->fd >= 0 && fstat(s->fd, &info) == 0 && S_ISREG(info.st_mode)) unlink(s->path);
}

mtf_status safetensors_create(const char *path, const safetensors_tensor *tensors, int count,
                              const safetensors_meta *meta, int metas, safetensors **out,
                              mtf_err *err)
{
    *out = NULL;
    safetensors *s = safetensors_new(path);
    int64_t data_bytes;
    mtf_status status = place(s, tensors, count, &data_bytes, err);
    if (status == MTF_OK) status = file_create(path, &s->fd, err);
    if (status == MTF_OK) {
        json_t *root = header_of(s, meta, metas);
        status = write_header(s, root, data_bytes, err);
        json_decref(root);
    }
    if (status != MTF_OK) {
        remove_file(s);
        safetensors_close(&s);
        return status;
    }
    for (int i = 0; i < count; i++)
        s->tensors[i].offset += s->data;
    safetensors_sort_names(s);
    *out = s;
    return MTF_OK;
}

static const safetensors_tensor *range(const safetensors *s, int index, int64_t offset,
                                       int64_t bytes)
{
    const safetensors_tensor *t = safetensors_at(s, index);
    MTF_CHECK(offset >= 0 && bytes >= 0 && offset <= t->bytes - bytes,
              "bytes %lld+%lld of tensor '%s' with %lld", (long long)offset, (long long)bytes,
              t->name, (long long)t->bytes);
    return t;
}

mtf_status safetensors_write(safetensors *s, int index, int64_t offset, const void *data,
                             int64_t bytes, mtf_err *err)
{
    const safetensors_tensor *t = range(s, index, offset, bytes);
    return file_write(s->fd, s->path, data, (size_t)bytes, t->offset + offset, err);
}

mtf_status safetensors_read(const safetensors *s, int index, int64_t offset, void *data,
                            int64_t bytes, mtf_err *err)
{
    const safetensors_tensor *t = range(s, index, offset, bytes);
    return file_read_at(s->fd, s->path, data, (size_t)bytes, t->offset + offset, err);
}

mtf_status safetensors_finish(safetensors **s, mtf_err *err)
{
    const int fd = (*s)->fd;
    (*s)->fd = -1;
    const mtf_status status = file_close(fd, (*s)->path, err);
    safetensors_close(s);
    return status;
}
