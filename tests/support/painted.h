/* SPDX-License-Identifier: Apache-2.0
 * The memory of a session, replaced by painted blocks with guards on both sides, to see how far it
 * is written. A byte that is written with what was painted does not show: run twice, with paints
 * that differ in every bit, or look at more than one byte. */
#ifndef TESTS_SUPPORT_PAINTED_H
#define TESTS_SUPPORT_PAINTED_H

#include "exec/session.h"

enum { PAINTED_MOST = 8, PAINTED_GUARD = 4096, PAINTED_ALIGN = 64 };

typedef struct painted_block {
    char *whole; /* guard, bytes, guard */
    int64_t bytes;
} painted_block;

/* All memory of a session: per hosted processor, and per worker. */
typedef struct painted {
    int n, workers, paint;
    painted_block memory[PAINTED_MOST], scratch[PAINTED_MOST], work[PAINTED_MOST];
} painted;

painted painted_new(mtf_session *s, int paint);
/* The session then has no memory and can only be freed. */
void painted_free(mtf_session *s, painted *p);

/* Paints the slabs again, after the initial program. */
void painted_slabs(const mtf_session *s, painted *p);

/* One more than the last byte from `from` on that is not as painted, rounded up to 64, the most of
 * n blocks; 0: none. */
int64_t painted_most(const painted_block *b, int n, int64_t from, int paint);

/* What was written outside: bytes of all guards that are not as painted. */
int64_t painted_outside(const painted *p);

#endif
