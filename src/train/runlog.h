/* SPDX-License-Identifier: Apache-2.0
 * The log of a run: log.jsonl, one JSON object per line.
 *
 * Every line is written by one call, so that a run that is killed leaves at most its last line
 * torn. Reals have 17 digits and restore exactly. Keys stand in the order of the structs here. All
 * local: one processor writes. */
#ifndef TRAIN_RUNLOG_H
#define TRAIN_RUNLOG_H

#include "base/err.h"

typedef struct runlog runlog;

/* The first line: {"run": {...}}. */
typedef struct runlog_run {
    const char *version, *mesh, *layout;
    int64_t parameters, seed, threads;
} runlog_run;

/* One training step. */
typedef struct runlog_train {
    int64_t step; /* from 1 */
    double loss;  /* before the update, nats per token */
    double grad_norm, learning_rate;
    int64_t tokens;
    double tokens_per_second, seconds;
} runlog_train;

/* One validation, after step `step`. */
typedef struct runlog_valid {
    int64_t step;
    double valid_loss;
    int64_t valid_tokens;
    double valid_perplexity;
} runlog_valid;

/* What a log holds when it is continued. */
typedef struct runlog_kept {
    int64_t lines;
    int64_t valid_step; /* of the last validation; -1: none */
    double valid_loss;
} runlog_kept;

/* Begins a new, empty log. MTF_FAILED names the path and the reason. */
mtf_status runlog_create(const char *path, runlog **out, mtf_err *err);

/* Goes on with a log after step `step`: keeps run lines and lines up to that step, drops the others
 * and a torn last line, and replaces the file at once. *kept says what is there; a log that is not
 * there is begun anew. MTF_INVALID names file and line of what is no log; nothing is written then.
 */
mtf_status runlog_resume(const char *path, int64_t step, runlog **out, runlog_kept *kept,
                         mtf_err *err);

/* Each adds one line. MTF_FAILED for a number that is not finite ("loss of step 7 is not finite"),
 * with nothing written, and when the disk does not take the line. */
mtf_status runlog_write_run(runlog *log, const runlog_run *run, mtf_err *err);
mtf_status runlog_write_train(runlog *log, const runlog_train *line, mtf_err *err);
mtf_status runlog_write_valid(runlog *log, const runlog_valid *line, mtf_err *err);

/* Makes the lines durable, for example before a checkpoint. */
mtf_status runlog_sync(runlog *log, mtf_err *err);

void runlog_close(runlog **log);

#endif
