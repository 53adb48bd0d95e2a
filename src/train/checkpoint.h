/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: all variables of a session in one safetensors file, each in its master type, with no
 * trace of a layout.
 *
 * For writing, every tensor is cut evenly along its flat index, one range per process, and each
 * process writes its ranges; reading is the reverse. A file appears under its name only when it is
 * whole and durable. All functions that take a session are collective. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "exec/session.h"
#include "train/safetensors.h"

/* The variables that a checkpoint holds, and what else it says. */
typedef struct checkpoint {
    int count;
    mtf_tensor *const *variables;
    const char *suffix; /* for reading: what the file has behind the names of the variables, such as
                           "/average" to read a slot instead; NULL: nothing */
    int metas;
    const safetensors_meta *meta;
} checkpoint;

/* Writes `path` by way of `path`.tmp. MTF_FAILED, with the old file untouched and no .tmp left,
 * when the disk does not take it. */
mtf_status checkpoint_write(mtf_session *s, const checkpoint *c, const char *path, mtf_err *err);

/* Reads all `c->variables` into the session. MTF_INVALID where one is missing or has another shape
 * or type than its master type, and, with `exact`, where the file holds a tensor that is not asked
 * for. */
mtf_status checkpoint_read(mtf_session *s, const checkpoint *c, const safetensors *file, bool exact,
                           mtf_err *err);

#endif
