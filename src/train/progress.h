/* SPDX-License-Identifier: Apache-2.0
 * Progress of long work on stderr: plain lines, every few seconds, by the root process alone. */
#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool quiet;
    int64_t first, last; /* steps of this call: first .. last */
    double begin, shown; /* seconds */
    int64_t tokens;      /* since `begin` */
} progress;

/* Seconds of a clock that never goes back. */
double progress_now(void);

void progress_begin(progress *p, int64_t first, int64_t last, bool quiet);
/* Step `step` is done: prints a line where one is due. */
void progress_step(progress *p, int64_t step, double loss, int64_t tokens);
__attribute__((format(printf, 2, 3))) void progress_note(const progress *p, const char *fmt, ...);

#endif
