/* SPDX-License-Identifier: Apache-2.0
 * A training run from configuration to checkpoint. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "train/config.h"
#include "train/safetensors.h"
#include "train/step.h"

typedef struct trainer_options {
    const char *config_path; /* for the name of the run's folder */
    const char *out;         /* NULL or "": runs/<config>-<time> */
    bool resume, strict, quiet;
    int threads; /* 0: the default */
} trainer_options;

typedef struct trainer_result {
    char out[4096];    /* the run's folder */
    int64_t steps;     /* that the run has made in all */
    double valid_loss; /* the last; NaN where there is none */
    int signal;        /* that ended the run early, or 0 */
} trainer_result;

/* Trains. Everything is checked before anything is written. After a signal the step is finished and
 * saved. Prints progress and warnings to stderr, the run's folder first. Collective. */
mtf_status trainer_run(const config *c, const trainer_options *o, trainer_result *r, mtf_err *err);

/* The newest checkpoint of a run that is whole. A broken one is passed over with a warning in
 * *warning. *file is NULL where there is none. Local. */
mtf_status trainer_find_checkpoint(const char *run, safetensors **file, int64_t *step,
                                   mtf_err *warning, mtf_err *err);

#endif
