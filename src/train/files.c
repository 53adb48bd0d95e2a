/* SPDX-License-Identifier: Apache-2.0 */
#include "train/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { PIECE = 1 << 16, MOST = 1 << 30 };

static mtf_status read_all(int fd, const char *path, size_t limit, char **data, size_t *bytes,
                           mtf_err *err)
{
    size_t room = PIECE, used = 0;
    char *buffer = mem_alloc(room + 1);
    for (;;) {
        const ssize_t got = read(fd, buffer + used, room - used);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) break;
        used += got > 0 ? (size_t)got : 0;
        if (got < 0 || used > limit) {
            const int why = errno;
            mem_free(buffer);
            if (got >= 0)
                return err_set(err, MTF_INVALID, "'%s' is larger than %zu bytes", path, limit);
            if (why == EISDIR)
                return err_set(err, MTF_INVALID, "'%s' is a folder, not a file", path);
            return err_set(err, MTF_FAILED, "reading '%s': %s", path, strerror(why));
        }
        if (used == room) buffer = mem_realloc(buffer, (room *= 2) + 1);
    }
    buffer[used] = '\0';
    *data = buffer;
    *bytes = used;
    return MTF_OK;
}

mtf_status file_read(const char *path, size_t limit, char **data, size_t *bytes, mtf_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_set(err, MTF_INVALID, "cannot open '%s': %s", path, strerror(errno));
    const mtf_status status = read_all(fd, path, limit, data, bytes, err);
    close(fd);
    return status;
}

mtf_status file_create(const char *path, int *fd, mtf_err *err)
{
    *fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (*fd >= 0) return MTF_OK;
    return err_set(err, MTF_FAILED, "cannot create '%s': %s", path, strerror(errno));
}

mtf_status file_write(int fd, const char *path, const void *data, size_t bytes, int64_t offset,
                      mtf_err *err)
{
    const char *from = data;
    size_t done = 0;
    while (done < bytes) {
        const size_t piece = bytes - done < MOST ? bytes - done : MOST;
        const ssize_t n = offset < 0 ? write(fd, from + done, piece)
                                     : pwrite(fd, from + done, piece, offset + (int64_t)done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && errno != EINTR) {
            return err_set(err, MTF_FAILED, "writing '%s': %zu bytes: %s", path, bytes,
                           strerror(errno));
        } else if (n == 0) {
            return err_set(err, MTF_FAILED, "writing '%s': only %zu of %zu bytes were taken", path,
                           done, bytes);
        }
    }
    return MTF_OK;
}

mtf_status file_read_at(int fd, const char *path, void *data, size_t bytes, int64_t offset,
                        mtf_err *err)
{
    char *to = data;
    for (size_t done = 0; done < bytes;) {
        const size_t piece = bytes - done < MOST ? bytes - done : MOST;
        const ssize_t n = pread(fd, to + done, piece, offset + (int64_t)done);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno != EINTR)
            return err_set(err, MTF_FAILED, "reading '%s': %zu bytes: %s", path, bytes,
                           strerror(errno));
        if (n == 0)
            return err_set(err, MTF_FAILED, "reading '%s': %zu bytes: the file ends after %zu",
                           path, bytes, done);
    }
    return MTF_OK;
}

/* Pipes and devices cannot be synced; that is no failure. */
static bool sync_fd(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

mtf_status file_close(int fd, const char *path, mtf_err *err)
{
    mtf_status status = MTF_OK;
    if (!sync_fd(fd)) status = err_set(err, MTF_FAILED, "syncing '%s': %s", path, strerror(errno));
    if (close(fd) != 0 && errno != EINTR && status == MTF_OK)
        status = err_set(err, MTF_FAILED, "closing '%s': %s", path, strerror(errno));
    return status;
}

static mtf_status sync_path(const char *path, int flags, mtf_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return err_set(err, MTF_FAILED, "cannot open '%s': %s", path, strerror(errno));
    return file_close(fd, path, err);
}

static mtf_status sync_folder_of(const char *path, mtf_err *err)
{
    char *folder = mem_strdup(path), *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    const mtf_status status = sync_path(slash ? folder : ".", O_DIRECTORY, err);
    mem_free(folder);
    return status;
}

mtf_status file_sync_rename(const char *tmp, const char *path, mtf_err *err)
{
    TRY(sync_path(tmp, 0, err));
    if (rename(tmp, path) != 0)
        return err_set(err, MTF_FAILED, "renaming '%s' to '%s': %s", tmp, path, strerror(errno));
    return sync_folder_of(path, err);
}

mtf_status file_replace(const char *path, const void *data, size_t bytes, mtf_err *err)
{
    const size_t n = strlen(path);
    char *tmp = mem_alloc(n + 5);
    memcpy(tmp, path, n);
    memcpy(tmp + n, ".tmp", 5);
    int fd;
    mtf_status status = file_create(tmp, &fd, err);
    if (status == MTF_OK) {
        status = file_write(fd, tmp, data, bytes, -1, err);
        if (status == MTF_OK) {
            status = file_close(fd, tmp, err);
        } else {
            close(fd);
        }
        if (status == MTF_OK) status = file_sync_rename(tmp, path, err);
        if (status != MTF_OK) unlink(tmp);
    }
    mem_free(tmp);
    return status;
}
