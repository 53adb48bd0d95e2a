/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local const char *context;
static void (*abort_job)(void);

void check_set_context(const char *what)
{
    context = what;
}

void check_set_abort(void (*fn)(void))
{
    abort_job = fn;
}

void check_failed(const char *file, int line, const char *expr, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "mtf: bug at %s:%d: %s is false: %s%s%s\n", file, line, expr, text,
            context ? "; while running " : "", context ? context : "");
    fflush(stderr);
    if (abort_job) abort_job();
    abort();
}
