/* SPDX-License-Identifier: Apache-2.0
 * Random cases that another implementation computed: a safetensors file of tests/golden with a
 * `table` that has a row of numbers per case, and tensors of f64 that hold the elements of all
 * cases one after another (tests/golden/random_cases.py writes them). */
#ifndef TESTS_SUPPORT_CASES_H
#define TESTS_SUPPORT_CASES_H

#include <stdint.h>

enum { CASES_MAX_TENSORS = 12 };

typedef struct cases {
    int ncases, ncolumns, ntensors;
    const char *const *names;
    double *table;
    double *data[CASES_MAX_TENSORS];
    int64_t length[CASES_MAX_TENSORS], at[CASES_MAX_TENSORS]; /* where the next case begins */
} cases;

/* Reads the file. Fails the test where its table has not ncases rows of ncolumns. */
cases cases_open(const char *file, int ncases, int ncolumns, int ntensors,
                 const char *const *names);
/* Fails the test where elements are left that no case took. */
void cases_close(cases *c);

const double *cases_row(const cases *c, int index);
/* The next n elements of a tensor, which stay valid until cases_close. */
double *cases_take(cases *c, int tensor, int64_t n);

/* Fails the test unless got is want, each within tolerance * (1 + |want|); `layout` and `name` are
 * for the message. */
void cases_compare(int index, const char *layout, const char *name, const double *got,
                   const double *want, int64_t n, double tolerance);

#endif
