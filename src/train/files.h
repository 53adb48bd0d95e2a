/* SPDX-License-Identifier: Apache-2.0
 * Whole files: reading at once, and writing so that a reader sees the old or the new one, never a
 * half. All local. A wrong path is MTF_INVALID; a disk that fails is MTF_FAILED. */
#ifndef TRAIN_FILES_H
#define TRAIN_FILES_H

#include <stddef.h>

#include "base/err.h"

/* Reads a file or a pipe to its end, once. *data gets a 0 byte after its *bytes and is freed with
 * mem_free. MTF_INVALID for a missing file, a folder, or more than `limit` bytes. */
mtf_status file_read(const char *path, size_t limit, char **data, size_t *bytes, mtf_err *err);

/* Opens a file for writing, empty. MTF_FAILED names the path and the reason. */
mtf_status file_create(const char *path, int *fd, mtf_err *err);

/* Writes all bytes at the end (offset < 0) or at an offset. SIGXFSZ should be ignored, so that a
 * file size limit is an error like a full disk: "writing 'x': 10 bytes: No space left on device".
 */
mtf_status file_write(int fd, const char *path, const void *data, size_t bytes, int64_t offset,
                      mtf_err *err);

/* Reads exactly these bytes. MTF_FAILED also where the file ends before. */
mtf_status file_read_at(int fd, const char *path, void *data, size_t bytes, int64_t offset,
                        mtf_err *err);

/* Makes what was written to `fd` durable, and closes it in every case. */
mtf_status file_close(int fd, const char *path, mtf_err *err);

/* Renames `tmp`, which is synced first, to `path` in the same folder, and syncs the folder. */
mtf_status file_sync_rename(const char *tmp, const char *path, mtf_err *err);

/* Replaces or creates `path` with these bytes by way of `path`.tmp. */
mtf_status file_replace(const char *path, const void *data, size_t bytes, mtf_err *err);

#endif
