/* SPDX-License-Identifier: Apache-2.0
 * Values of small graphs for tests: inputs are written down as numbers, results come as numbers. */
#ifndef TESTS_SUPPORT_EVAL_H
#define TESTS_SUPPORT_EVAL_H

#include "mtf/mtf.h"

enum { EVAL_MAX_FEEDS = 8 };

typedef struct eval {
    mtf_graph *g;
    int nfeeds;
    mtf_feed feed[EVAL_MAX_FEEDS];
} eval;

eval eval_open(void);
void eval_close(eval *e);

/* A placeholder of `shape` with these values, row-major, one per element. */
mtf_tensor *eval_input(eval *e, mtf_shape shape, mtf_dtype type, const double *values);

/* The values of `t`, of any type, as doubles into out[elements]. Fails the test on an error. */
void eval_run(eval *e, const char *mesh, const char *layout, mtf_tensor *t, double *out);

/* Fails the test unless t has exactly `n` elements and, on one processor, these values: within
 * tolerance * (1 + |value|), NaN where a NaN is expected, infinities equal. */
void eval_expect(eval *e, mtf_tensor *t, int n, const double *want, double tolerance);
/* The same under a layout. */
void eval_expect_on(eval *e, const char *mesh, const char *layout, mtf_tensor *t, int n,
                    const double *want, double tolerance);

/* Values written in place: EXPECT(&e, t, 1e-6, 1, 2, 3). */
#define EXPECT(e, t, tolerance, ...)                                                               \
    eval_expect(e, t, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                     \
                (double[]){__VA_ARGS__}, tolerance)
#define EXPECT_ON(e, mesh, layout, t, tolerance, ...)                                              \
    eval_expect_on(e, mesh, layout, t, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),    \
                   (double[]){__VA_ARGS__}, tolerance)
#define INPUT(e, shape, type, ...) eval_input(e, shape, type, (double[]){__VA_ARGS__})

/* The gradient of sum(y) with respect to x, or NULL where there is none. */
mtf_tensor *eval_gradient(mtf_tensor *y, mtf_tensor *x);

#endif
