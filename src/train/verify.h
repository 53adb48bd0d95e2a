/* SPDX-License-Identifier: Apache-2.0
 * A layout against one processor: loss and every gradient of the first training step. */
#ifndef TRAIN_VERIFY_H
#define TRAIN_VERIFY_H

#include "train/config.h"

typedef struct verify_result {
    bool ok;
    double tolerance;
    char name[256];  /* the tensor that differs most */
    double relative; /* its largest difference, relative to its largest element */
    char first[256]; /* the first tensor beyond the tolerance; empty where ok */
    int tensors;     /* compared */
} verify_result;

/* Compares in f64. On the configuration's text or, where it names none, on random tokens. Both
 * sides run in this process. MTF_OK with ok = false where they differ. Local. */
mtf_status verify_run(const config *c, const char *mesh, const char *layout, bool strict,
                      int threads, double tolerance, verify_result *r, mtf_err *warning,
                      mtf_err *err);

#endif
