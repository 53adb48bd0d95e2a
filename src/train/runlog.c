/* SPDX-License-Identifier: Apache-2.0 */
#include "train/runlog.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "train/files.h"

enum { FORMAT = JSON_REAL_PRECISION(17) };

struct runlog {
    char *path;
    int fd;
};

static mtf_status open_log(const char *path, int flags, runlog **out, mtf_err *err)
{
    *out = NULL;
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return err_set(err, MTF_FAILED, "cannot write the log '%s': %s", path, strerror(errno));
    *out = mem_zalloc(sizeof **out);
    **out = (runlog){.path = mem_strdup(path), .fd = fd};
    return MTF_OK;
}

mtf_status runlog_create(const char *path, runlog **out, mtf_err *err)
{
    return open_log(path, O_TRUNC, out, err);
}

void runlog_close(runlog **log)
{
    if (!*log) return;
    close((*log)->fd);
    mem_free((*log)->path);
    mem_free(*log);
    *log = NULL;
}

mtf_status runlog_sync(runlog *log, mtf_err *err)
{
    if (fsync(log->fd) == 0 || errno == EINVAL || errno == ENOTSUP) return MTF_OK;
    return err_set(err, MTF_FAILED, "syncing '%s': %s", log->path, strerror(errno));
}

/* A line that is being made. The first number that is not finite is remembered by name. */
typedef struct line {
    json_t *object;
    const char *bad;
} line;

static void add_int(line *l, const char *key, int64_t v)
{
    json_object_set_new(l->object, key, json_integer(v));
}

static void add_real(line *l, const char *key, double v)
{
    if (!isfinite(v) && !l->bad) l->bad = key;
    if (isfinite(v)) json_object_set_new(l->object, key, json_real(v));
}

static void add_text(line *l, const char *key, const char *text)
{
    json_t *value = json_string(text);
    MTF_CHECK(value, "'%s' is not UTF-8", key);
    json_object_set_new(l->object, key, value);
}

/* Writes `object`, which is released, as one line. */
static mtf_status write_object(runlog *log, json_t *object, mtf_err *err)
{
    char *text = json_dumps(object, FORMAT);
    json_decref(object);
    MTF_CHECK(text, "no memory for a line of '%s'", log->path);
    const size_t n = strlen(text);
    text[n] = '\n'; /* in place of the 0 byte: the line goes out by one call */
    const mtf_status status = file_write(log->fd, log->path, text, n + 1, -1, err);
    free(text);
    return status;
}

static mtf_status write_step(runlog *log, line *l, int64_t step, mtf_err *err)
{
    if (!l->bad) return write_object(log, l->object, err);
    json_decref(l->object);
    return err_set(err, MTF_FAILED, "%s of step %lld is not finite", l->bad, (long long)step);
}

mtf_status runlog_write_run(runlog *log, const runlog_run *run, mtf_err *err)
{
    line l = {.object = json_object()};
    add_text(&l, "version", run->version);
    add_text(&l, "mesh", run->mesh);
    add_text(&l, "layout", run->layout);
    add_int(&l, "parameters", run->parameters);
    add_int(&l, "seed", run->seed);
    add_int(&l, "threads", run->threads);
    return write_object(log, json_pack("{s:o}", "run", l.object), err);
}

mtf_status runlog_write_train(runlog *log, const runlog_train *t, mtf_err *err)
{
    line l = {.object = json_object()};
    add_int(&l, "step", t->step);
    add_real(&l, "loss", t->loss);
    add_real(&l, "grad_norm", t->grad_norm);
    add_real(&l, "learning_rate", t->learning_rate);
    add_int(&l, "tokens", t->tokens);
    add_real(&l, "tokens_per_second", t->tokens_per_second);
    add_real(&l, "seconds", t->seconds);
    return write_step(log, &l, t->step, err);
}

mtf_status runlog_write_valid(runlog *log, const runlog_valid *v, mtf_err *err)
{
    line l = {.object = json_object()};
    add_int(&l, "step", v->step);
    add_real(&l, "valid_loss", v->valid_loss);
    add_int(&l, "valid_tokens", v->valid_tokens);
    add_real(&l, "valid_perplexity", v->valid_perplexity);
    return write_step(log, &l, v->step, err);
}

/* Whether a line is kept when training goes on after `step`, which it then tells `kept`. */
static mtf_status judge(const char *path, int64_t number, const char *text, size_t bytes,
                        int64_t step, bool *keep, runlog_kept *kept, mtf_err *err)
{
    json_t *root = json_loadb(text, bytes, 0, NULL);
    const json_t *at = json_object_get(root, "step"), *loss = json_object_get(root, "valid_loss");
    const bool is_run = json_object_get(root, "run") != NULL, is_step = json_is_integer(at);
    *keep = is_run || (is_step && json_integer_value(at) <= step);
    if (*keep) kept->lines++;
    if (*keep && is_step && json_is_number(loss)) {
        kept->valid_step = json_integer_value(at);
        kept->valid_loss = json_number_value(loss);
    }
    json_decref(root);
    if (is_run || is_step) return MTF_OK;
    return err_set(err, MTF_INVALID, "%s:%lld: not a line of a training log", path,
                   (long long)number);
}

/* Moves the lines to keep to the front of `text`; a last line without its end is dropped. */
static mtf_status keep_lines(const char *path, char *text, size_t bytes, int64_t step, size_t *left,
                             runlog_kept *kept, mtf_err *err)
{
    int64_t number = 0;
    *left = 0;
    for (size_t i = 0; i < bytes;) {
        const char *end = memchr(text + i, '\n', bytes - i);
        if (!end) break;
        const size_t n = (size_t)(end - (text + i)) + 1;
        bool keep;
        TRY(judge(path, ++number, text + i, n, step, &keep, kept, err));
        if (keep) {
            memmove(text + *left, text + i, n);
            *left += n;
        }
        i += n;
    }
    return MTF_OK;
}

mtf_status runlog_resume(const char *path, int64_t step, runlog **out, runlog_kept *kept,
                         mtf_err *err)
{
    *out = NULL;
    *kept = (runlog_kept){.valid_step = -1};
    if (access(path, F_OK) != 0 && errno == ENOENT) return runlog_create(path, out, err);
    char *text;
    size_t bytes, left;
    TRY(file_read(path, SIZE_MAX / 4, &text, &bytes, err));
    mtf_status status = keep_lines(path, text, bytes, step, &left, kept, err);
    if (status == MTF_OK && left != bytes) status = file_replace(path, text, left, err);
    mem_free(text);
    if (status == MTF_OK) status = open_log(path, 0, out, err);
    return status;
}
