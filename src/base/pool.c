/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"

/* How often a waiting thread looks before it sleeps: about 20 microseconds, longer than the gap
 * between two kernels and far shorter than a scheduler slice that a peer may need. */
enum { SPINS = 2000 };

struct pool {
    int threads;
    pthread_t *workers;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    atomic_uint round; /* counts calls of pool_for; a worker runs each round once */
    atomic_int busy;   /* workers that have not finished the round */
    atomic_bool stop;
    pool_fn *fn;
    void *ctx;
    int64_t n, chunk;
    _Alignas(64) atomic_llong next; /* the first grain that nobody has taken */
};

typedef struct start {
    pool *p;
    int worker;
} start;

static _Thread_local int this_worker = -1; /* -1 outside of a grain */

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void take_grains(pool *p, int worker)
{
    this_worker = worker;
    for (;;) {
        const int64_t begin = atomic_fetch_add(&p->next, p->chunk);
        if (begin >= p->n) break;
        const int64_t end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
        p->fn(p->ctx, begin, end, worker);
    }
    this_worker = -1;
}

static void wait_for_round(pool *p, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&p->round) != seen || atomic_load(&p->stop)) return;
        pause_cpu();
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->round) == seen && !atomic_load(&p->stop))
        pthread_cond_wait(&p->wake, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg)
{
    start s = *(start *)arg;
    mem_free(arg);
    for (unsigned seen = 0;;) {
        wait_for_round(s.p, seen);
        if (atomic_load(&s.p->stop)) return NULL;
        seen = atomic_load(&s.p->round);
        take_grains(s.p, s.worker);
        if (atomic_fetch_sub(&s.p->busy, 1) == 1) {
            pthread_mutex_lock(&s.p->lock);
            pthread_cond_signal(&s.p->done);
            pthread_mutex_unlock(&s.p->lock);
        }
    }
}

pool *pool_new(int threads)
{
    MTF_CHECK(threads >= 1, "a pool needs at least one thread, not %d", threads);
    pool *p = mem_aligned(sizeof *p);
    p->threads = threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    p->workers = mem_zalloc(sizeof *p->workers * (size_t)threads);
    for (int i = 1; i < threads; i++) {
        start *s = mem_alloc(sizeof *s);
        *s = (start){.p = p, .worker = i};
        const int rc = pthread_create(&p->workers[i], NULL, work, s);
        MTF_CHECK(rc == 0, "the system refused thread %d of %d", i + 1, threads);
    }
    return p;
}

void pool_free(pool **handle)
{
    pool *p = *handle;
    if (!p) return;
    atomic_store(&p->stop, true);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->workers);
    mem_free(p);
    *handle = NULL;
}

int pool_threads(const pool *p)
{
    return p ? p->threads : 1;
}

static void wait_until_done(pool *p)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&p->busy) == 0) return;
        pause_cpu();
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->busy) != 0)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void pool_for(pool *p, int64_t n, int64_t chunk, pool_fn *fn, void *ctx)
{
    if (n <= 0) return;
    if (chunk < 1) chunk = 1;
    if (!p || p->threads == 1 || this_worker >= 0 || n <= chunk) {
        const int before = this_worker;
        this_worker = before < 0 ? 0 : before;
        fn(ctx, 0, n, this_worker);
        this_worker = before;
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    p->chunk = chunk;
    atomic_store(&p->next, 0);
    atomic_store(&p->busy, p->threads - 1);
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->round, 1);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    take_grains(p, 0);
    wait_until_done(p);
}

int pool_default_threads(void)
{
    const char *omp = getenv("OMP_NUM_THREADS");
    if (omp) {
        const int n = atoi(omp);
        if (n >= 1 && n <= 4096) return n;
    }
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int n = CPU_COUNT(&set);
        if (n >= 1) return n;
    }
    return 1;
}
