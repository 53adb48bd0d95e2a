/* SPDX-License-Identifier: Apache-2.0
 * A folder of its own for each test program, and small files in it. */
#ifndef TESTS_SUPPORT_TEMP_H
#define TESTS_SUPPORT_TEMP_H

#include <stddef.h>

#include "mtf/types.h"

/* cmocka group setup and teardown: makes the folder, removes it with all that is in it. */
int temp_setup(void **state);
int temp_teardown(void **state);

/* The path of `name` in the folder; one of the last eight strings stays valid. */
const char *temp_path(const char *name);

/* Writes a file in the folder and returns its path, as temp_path. */
const char *temp_write(const char *name, const void *data, size_t bytes);
const char *temp_text(const char *name, const char *text);

/* The whole file with a 0 byte after it; free with mem_free. *bytes may be NULL. */
char *temp_read(const char *path, size_t *bytes);

/* Fails the test unless `status` and err->status are `want` and the message, with the folder's
 * path and its slash left out, is `text`; then empties `err`. */
void expect_error(mtf_status status, mtf_status want, mtf_err *err, const char *text);

/* Fails the test with the message unless status is MTF_OK. */
void expect_ok(mtf_status status, const mtf_err *err);

#endif
