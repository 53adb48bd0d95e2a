/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stored.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "check.h"

safetensors *stored_open(const char *name)
{
    const char *source = getenv("MTF_SOURCE_DIR");
    char path[2048];
    mtf_err err = {0};
    safetensors *file = NULL;
    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
    if (safetensors_open(path, &file, &err) != MTF_OK) fail_msg("%s", err.text);
    return file;
}

void *stored_read(const safetensors *file, const char *name, mtf_dtype type, int64_t *n)
{
    mtf_err err = {0};
    const int at = safetensors_find(file, name);
    if (at < 0) fail_msg("'%s' is not in the golden file", name);
    const safetensors_tensor *t = safetensors_at(file, at);
    assert_int_equal(t->dtype, type);
    void *data = mem_alloc((size_t)t->bytes);
    if (safetensors_read(file, at, 0, data, t->bytes, &err) != MTF_OK) fail_msg("%s", err.text);
    *n = t->bytes / mtf_dtype_size(type);
    return data;
}
