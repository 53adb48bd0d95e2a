/* SPDX-License-Identifier: Apache-2.0
 * The folder of a run: config.yaml, log.jsonl, checkpoint-<step>.safetensors. All local; the root
 * process writes. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "base/err.h"

enum { RUNDIR_PATH = 4096 };

/* Is `path` free for a new run: not there, or an empty folder? MTF_INVALID where it holds a run
 * (use --resume) or anything else, or where it cannot be made. Makes nothing. */
mtf_status rundir_check_new(const char *path, mtf_err *err);

/* Makes the folder and those above it. MTF_FAILED names the path and the reason. */
mtf_status rundir_make(const char *path, mtf_err *err);

/* Does the folder hold a run (config.yaml)? */
bool rundir_is_run(const char *path);

/* runs/<name of the configuration>-<time>, free at this moment. */
void rundir_default(const char *config_path, char out[RUNDIR_PATH]);

/* path/name, and path/checkpoint-<step>.safetensors. */
void rundir_file(const char *path, const char *name, char out[RUNDIR_PATH]);
void rundir_checkpoint(const char *path, int64_t step, char out[RUNDIR_PATH]);

/* Steps of the checkpoints that are there, newest first, at most `room`; returns their number. */
int rundir_checkpoints(const char *path, int64_t *steps, int room);

/* Removes all checkpoints but the newest two, and temporary files that a killed run left. */
void rundir_tidy(const char *path);

#endif
