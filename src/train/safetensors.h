/* SPDX-License-Identifier: Apache-2.0
 * safetensors files: named tensors with a JSON header, which other tools read and write as well.
 *
 * A file is 8 bytes with the header's length (little-endian), the header, and the elements of all
 * tensors without holes. Several processes may write ranges of one file: the root creates it, then
 * the others open it for writing. All calls are local. This file knows nothing of layouts. */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include "base/err.h"
#include "base/kernel.h"

typedef struct safetensors_tensor {
    const char *name; /* in a file: owned by it */
    mtf_dtype dtype;
    int rank;
    int64_t extents[KERNEL_MAX_RANK];
    int64_t bytes;  /* set by create and open */
    int64_t offset; /* in the file; set by create and open */
} safetensors_tensor;

typedef struct safetensors_meta {
    const char *key, *value; /* UTF-8 */
} safetensors_meta;

typedef struct safetensors safetensors;

/* Creates the file `path` with its header and its full size, to be written. Tensors keep their
 * index; in the file those with larger elements come first, so that all are aligned. MTF_FAILED
 * with the file's name when the disk does not take it; then nothing stays behind. */
mtf_status safetensors_create(const char *path, const safetensors_tensor *tensors, int count,
                              const safetensors_meta *meta, int metas, safetensors **out,
                              mtf_err *err);

/* Opens a file for reading. Everything is checked first: MTF_INVALID names the file, the tensor
 * and what is wrong with it. */
mtf_status safetensors_open(const char *path, safetensors **out, mtf_err *err);

/* Opens a file that another process has created with safetensors_create for writing. Tensors are
 * then in the order of the file: find them by name. */
mtf_status safetensors_open_write(const char *path, safetensors **out, mtf_err *err);

int safetensors_count(const safetensors *s);
const safetensors_tensor *safetensors_at(const safetensors *s, int index);
int safetensors_find(const safetensors *s, const char *name);         /* -1: not there */
const char *safetensors_value(const safetensors *s, const char *key); /* of the metadata, or NULL */

/* Writes or reads `bytes` bytes from byte `offset` of tensor `index`, a range inside it.
 * MTF_FAILED names the file, the bytes and the reason. */
mtf_status safetensors_write(safetensors *s, int index, int64_t offset, const void *data,
                             int64_t bytes, mtf_err *err);
mtf_status safetensors_read(const safetensors *s, int index, int64_t offset, void *data,
                            int64_t bytes, mtf_err *err);

/* Makes what this process has written durable, closes and frees. The caller renames. */
mtf_status safetensors_finish(safetensors **s, mtf_err *err);

/* Closes and frees without that. */
void safetensors_close(safetensors **s);

#endif
