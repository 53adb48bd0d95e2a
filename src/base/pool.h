/* SPDX-License-Identifier: Apache-2.0
 * One pool of worker threads. The caller of pool_for is worker 0 and takes part.
 *
 * Work is given as a range of grains. Which worker runs which grain is not fixed, so a grain's
 * result may never depend on the worker; grains may never depend on the number of threads. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdint.h>

typedef struct pool pool;

/* Runs grains [begin, end) on worker `worker` (0 .. threads-1). */
typedef void pool_fn(void *ctx, int64_t begin, int64_t end, int worker);

/* A pool of `threads` workers (1: no thread is started). */
pool *pool_new(int threads);
void pool_free(pool **p);
int pool_threads(const pool *p);

/* Runs all grains [0, n), `chunk` at a time, and returns when all are done. One caller at a time.
 * A call from inside a grain runs its grains on the worker it comes from. p may be NULL. */
void pool_for(pool *p, int64_t n, int64_t chunk, pool_fn *fn, void *ctx);

/* Threads to use by default: OMP_NUM_THREADS, else the affinity mask. */
int pool_default_threads(void);

#endif
