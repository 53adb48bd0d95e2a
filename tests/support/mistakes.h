/* SPDX-License-Identifier: Apache-2.0
 * Mistakes, above all in building graphs, and the golden files of their messages. */
#ifndef TESTS_SUPPORT_MISTAKES_H
#define TESTS_SUPPORT_MISTAKES_H

#include <stdio.h>

#include "mtf/mtf.h"

/* The messages of one golden file, a line each. */
typedef struct messages {
    const char *golden;
    char *text;
    size_t size;
    FILE *lines;
} messages;
messages *messages_new(const char *golden);
/* The mistake called `name` gave `status`, which must be MTF_INVALID, and left its message in
 * `err`, which is cleared. */
void messages_add(messages *m, const char *name, mtf_status status, mtf_err *err);
/* Compares them with the golden file, and frees them. */
void messages_check(messages **m);

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
