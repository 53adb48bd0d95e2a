/* SPDX-License-Identifier: Apache-2.0
 * The table of a schedule's factors: what evaluation, checks, the reader and the help share. */
#ifndef NN_SCHEDULE_H
#define NN_SCHEDULE_H

#include <stdio.h>

#include "mtf/schedule.h"

enum { MOST_NAMED = 4 };

/* An argument: its default and the numbers that it may be, `low` to `high`. */
typedef struct factor_argument {
    const char *name;
    double standard, low, high;
    bool above, below; /* low, high themselves are not allowed */
} factor_argument;

typedef struct factor_row {
    const char *name, *help;
    int narguments; /* -1: value, step, value, ..: any odd number from 3 on, steps rising */
    factor_argument argument[MOST_NAMED];
    /* The factor at step s of T >= 1, both less the offset; `a` holds `n` arguments. */
    double (*value)(const double *a, int n, double s, double T);
} factor_row;

extern const factor_row factor_rows[MTF_NUM_FACTOR_KINDS];

/* One line per factor: how it is written and what it is. */
void schedule_print_factors(FILE *f);

#endif
