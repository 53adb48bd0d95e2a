/* SPDX-License-Identifier: Apache-2.0
 * Mistakes in building graphs, and the golden file of their messages. */
#ifndef TESTS_SUPPORT_MISTAKES_H
#define TESTS_SUPPORT_MISTAKES_H

#include "mtf/mtf.h"

/* What the mistakes are made with. */
typedef struct parts {
    mtf_graph *g, *other;
    mtf_tensor *x, *y, *c; /* f32 [a=4 b=6], f32 [b=6], f32 [b=5] */
    mtf_tensor *i, *k;     /* i32 [a=4], bool [a=4] */
    mtf_tensor *d;         /* f64 [a=4 b=6] */
    mtf_tensor *w;         /* a variable, f32 [a=4 b=6] */
    mtf_tensor *foreign;   /* of another graph */
} parts;

/* Makes a mistake with the parts; returns what it gets, which should be NULL. */
typedef mtf_tensor *mistake(parts *p);
typedef struct mistake_row {
    const char *name;
    mistake *make;
} mistake_row;

#define MISTAKE(name, expr)                                                                        \
    static mtf_tensor *name(parts *p)                                                              \
    {                                                                                              \
        return expr;                                                                               \
    }
#define MISTAKE_ROW(name)                                                                          \
    {                                                                                              \
#name, name                                                                                \
    }

/* Each mistake with new parts: it must give NULL and leave a message, one line in the golden file.
 */
void mistakes_check(const char *golden, size_t n, const mistake_row *rows);

#endif
