/* SPDX-License-Identifier: Apache-2.0
 * Tensors that another implementation computed: tests/golden/<name>.safetensors. */
#ifndef TESTS_SUPPORT_STORED_H
#define TESTS_SUPPORT_STORED_H

#include "train/safetensors.h"

/* Opens tests/golden/<name>; fails the test. Close with safetensors_close. */
safetensors *stored_open(const char *name);

/* All elements of a tensor; *n is their number. Free with mem_free. Fails the test where there is
 * no such tensor, or where it has not the type. */
void *stored_read(const safetensors *file, const char *name, mtf_dtype type, int64_t *n);

#endif
