/* SPDX-License-Identifier: Apache-2.0 */
#include "train/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { INTERVAL = 2 }; /* seconds between two lines */

double progress_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress *p, int64_t first, int64_t last, bool quiet)
{
    *p = (progress){.quiet = quiet, .first = first, .last = last};
    p->begin = progress_now();
    p->shown = p->begin - INTERVAL;
}

static void print_time(double seconds)
{
    const int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600) fprintf(stderr, "%" PRId64 "h", s / 3600);
    if (s >= 60) fprintf(stderr, "%02" PRId64 "m", s / 60 % 60);
    fprintf(stderr, "%02" PRId64 "s", s % 60);
}

void progress_step(progress *p, int64_t step, double loss, int64_t tokens)
{
    p->tokens += tokens;
    const double now = progress_now(), spent = now - p->begin;
    if (p->quiet || (now - p->shown < INTERVAL && step < p->last)) return;
    p->shown = now;
    const double done = (double)(step - p->first + 1), left = (double)(p->last - step);
    fprintf(stderr, "step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  ", step, p->last, loss,
            (double)p->tokens / (spent > 0 ? spent : 1));
    print_time(left * spent / done);
    fprintf(stderr, " left\n");
}

void progress_note(const progress *p, const char *fmt, ...)
{
    if (p->quiet) return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}
