/* SPDX-License-Identifier: Apache-2.0 */
#include "train/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEPT = 2, MAX_CHECKPOINTS = 4096 };

void rundir_file(const char *path, const char *name, char out[RUNDIR_PATH])
{
    snprintf(out, RUNDIR_PATH, "%s/%s", path, name);
}

void rundir_checkpoint(const char *path, int64_t step, char out[RUNDIR_PATH])
{
    snprintf(out, RUNDIR_PATH, "%s/checkpoint-%" PRId64 ".safetensors", path, step);
}

bool rundir_is_run(const char *path)
{
    char file[RUNDIR_PATH];
    struct stat st;
    rundir_file(path, "config.yaml", file);
    return stat(file, &st) == 0;
}

static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    if (!d) return false;
    int entries = 0;
    for (const struct dirent *e; (e = readdir(d));)
        entries += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return entries == 0;
}

/* The nearest folder above that exists must be a folder that we may write to. */
static mtf_status check_parent(const char *path, mtf_err *err)
{
    char up[RUNDIR_PATH];
    snprintf(up, sizeof up, "%s", path);
    struct stat st;
    for (;;) {
        char *slash = strrchr(up, '/');
        if (!slash)
            snprintf(up, sizeof up, ".");
        else if (slash == up)
            snprintf(up, sizeof up, "/");
        else
            *slash = '\0';
        if (stat(up, &st) == 0) break;
        if (errno == ENOTDIR) continue;
        if (errno != ENOENT || strcmp(up, ".") == 0 || strcmp(up, "/") == 0)
            return err_set(err, MTF_INVALID, "output folder '%s': %s: %s", path, up,
                           strerror(errno));
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, MTF_INVALID, "output folder '%s' cannot be made: '%s' is a file", path,
                       up);
    if (access(up, W_OK) != 0)
        return err_set(err, MTF_INVALID, "output folder '%s' cannot be made: no permission in '%s'",
                       path, up);
    return MTF_OK;
}

mtf_status rundir_check_new(const char *path, mtf_err *err)
{
    struct stat st;
    if (strlen(path) > RUNDIR_PATH - 64)
        return err_set(err, MTF_INVALID, "output folder: the path is longer than %d characters",
                       RUNDIR_PATH - 64);
    if (stat(path, &st) != 0) return check_parent(path, err);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, MTF_INVALID, "output folder '%s' is a file; name another", path);
    if (rundir_is_run(path))
        return err_set(err, MTF_INVALID,
                       "output folder '%s' holds a run; continue it with --resume or name another",
                       path);
    if (!is_empty(path))
        return err_set(err, MTF_INVALID, "output folder '%s' is not empty; name another", path);
    if (access(path, W_OK) != 0)
        return err_set(err, MTF_INVALID, "output folder '%s': no permission to write", path);
    return MTF_OK;
}

mtf_status rundir_make(const char *path, mtf_err *err)
{
    char part[RUNDIR_PATH];
    snprintf(part, sizeof part, "%s", path);
    for (char *c = part + 1;; c++) {
        if (*c != '/' && *c != '\0') continue;
        const char keep = *c;
        *c = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return err_set(err, MTF_FAILED, "making folder '%s': %s", part, strerror(errno));
        *c = keep;
        if (!keep) return MTF_OK;
    }
}

void rundir_default(const char *config_path, char out[RUNDIR_PATH])
{
    const char *slash = strrchr(config_path, '/'), *base = slash ? slash + 1 : config_path;
    const char *dot = strrchr(base, '.');
    const int length = dot && dot > base ? (int)(dot - base) : (int)strlen(base);
    char stamp[32];
    const time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    struct stat st;
    snprintf(out, RUNDIR_PATH, "runs/%.*s-%s", length > 200 ? 200 : length, base, stamp);
    for (int i = 2; stat(out, &st) == 0; i++)
        snprintf(out, RUNDIR_PATH, "runs/%.*s-%s-%d", length > 200 ? 200 : length, base, stamp, i);
}

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The step in "checkpoint-<step>.safetensors", or -1. */
static int64_t step_of(const char *name)
{
    static const char head[] = "checkpoint-", tail[] = ".safetensors";
    if (strncmp(name, head, sizeof head - 1) != 0) return -1;
    char *end = NULL;
    const char *digits = name + sizeof head - 1;
    if (*digits < '0' || *digits > '9') return -1;
    const long long step = strtoll(digits, &end, 10);
    return strcmp(end, tail) == 0 ? step : -1;
}

int rundir_checkpoints(const char *path, int64_t *steps, int room)
{
    DIR *d = opendir(path);
    if (!d) return 0;
    int64_t all[MAX_CHECKPOINTS];
    int n = 0;
    for (const struct dirent *e; (e = readdir(d)) && n < MAX_CHECKPOINTS;) {
        const int64_t step = step_of(e->d_name);
        if (step >= 0) all[n++] = step;
    }
    closedir(d);
    qsort(all, (size_t)n, sizeof *all, newest_first);
    if (n > room) n = room;
    memcpy(steps, all, sizeof *all * (size_t)n);
    return n;
}

static void remove_temporary(const char *path)
{
    DIR *d = opendir(path);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        char file[RUNDIR_PATH];
        if (n < 5 || strcmp(e->d_name + n - 4, ".tmp") != 0) continue;
        if (strncmp(e->d_name, "checkpoint-", 11) != 0) continue;
        rundir_file(path, e->d_name, file);
        unlink(file);
    }
    closedir(d);
}

void rundir_tidy(const char *path)
{
    int64_t steps[MAX_CHECKPOINTS];
    const int n = rundir_checkpoints(path, steps, MAX_CHECKPOINTS);
    for (int i = KEPT; i < n; i++) {
        char file[RUNDIR_PATH];
        rundir_checkpoint(path, steps[i], file);
        unlink(file);
    }
    remove_temporary(path);
}
