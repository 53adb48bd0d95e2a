/* SPDX-License-Identifier: Apache-2.0
 * The struct that reader and writer of safetensors files share. */
#ifndef TRAIN_SAFETENSORS_INTERNAL_H
#define TRAIN_SAFETENSORS_INTERNAL_H

#include <jansson.h>

#include "base/mem.h"
#include "train/safetensors.h"

enum { SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000 };

struct safetensors {
    char *path;
    int fd;
    arena *texts; /* names and metadata */
    safetensors_tensor *tensors;
    int count;
    int *by_name; /* indices in the order of names */
    safetensors_meta *meta;
    int metas;
    int64_t data; /* offset of the first element in the file */
    int64_t size; /* of the whole file */
};

/* How a file names an element type. */
const char *safetensors_dtype_name(mtf_dtype t);

/* An empty struct for `path`. */
safetensors *safetensors_new(const char *path);

/* Fills by_name. */
void safetensors_sort_names(safetensors *s);

/* Sets `bytes` from type and extents. False on overflow. */
bool safetensors_set_bytes(safetensors_tensor *t);

/* Reads the header text into tensors, metadata and offsets, all checked; s->size and s->data are
 * set. */
mtf_status safetensors_parse(safetensors *s, const char *text, size_t bytes, mtf_err *err);

#endif
