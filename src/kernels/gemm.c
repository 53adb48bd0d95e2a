/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "kernels/gemm_plan.h"

enum {
    BUCKETS = 256,
    GRAIN_FLOPS = 8000000,     /* a grain's work, where the product has it */
    GRAIN_FLOPS_MIN = 2000000, /* less than this is not worth a hand-over */
    GRAINS_WANTED = 8,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gemm *cache[BUCKETS]; /* plans are never freed */

static uint64_t hash(const gemm_desc *d)
{
    uint64_t h = 0xcbf29ce484222325U;
    const unsigned char *p = (const unsigned char *)d;
    for (size_t i = 0; i < sizeof *d; i++)
        h = (h ^ p[i]) * 0x100000001b3U;
    return h ^ (h >> 32);
}

static mtf_status check_desc(const gemm_desc *d, mtf_err *err)
{
    if (d->dtype == MTF_BOOL)
        return err_set(err, MTF_INVALID,
                       "matrix product: there is no kernel for elements of type %s; use f32, f64, "
                       "bf16 or i32",
                       mtf_dtype_name(d->dtype));
    const int counts[] = {d->nbatch, d->nm, d->nn, d->nk};
    for (int i = 0; i < 4; i++)
        MTF_CHECK(counts[i] >= 0 && counts[i] <= GEMM_MAX_DIMS, "%d dims in group %d", counts[i],
                  i);
    return MTF_OK;
}

/* The used entries of `d`, the rest zero, so that equal products have equal bytes. */
static void copy_used(gemm_desc *to, const gemm_desc *d)
{
    memset(to, 0, sizeof *to);
    to->dtype = d->dtype;
    to->nbatch = d->nbatch;
    to->nm = d->nm;
    to->nn = d->nn;
    to->nk = d->nk;
    memcpy(to->batch, d->batch, sizeof *d->batch * (size_t)d->nbatch);
    memcpy(to->m, d->m, sizeof *d->m * (size_t)d->nm);
    memcpy(to->n, d->n, sizeof *d->n * (size_t)d->nn);
    memcpy(to->k, d->k, sizeof *d->k * (size_t)d->nk);
}

/* Small tasks are run together, as long as enough grains are left to share. */
static int64_t tasks_per_grain(int64_t tasks, int64_t task_flops)
{
    const int64_t flops = task_flops < 1 ? 1 : task_flops;
    const int64_t most = GRAIN_FLOPS / flops, least = GRAIN_FLOPS_MIN / flops;
    int64_t per = tasks / GRAINS_WANTED;
    if (per > most) per = most;
    if (per < least) per = least;
    return per < 1 ? 1 : per;
}

static gemm *make(const gemm_desc *canonical, bool swapped)
{
    gemm *g = mem_zalloc(sizeof *g);
    g->d = *canonical;
    g->swapped = swapped;
    g->batch = gemm_total(g->d.batch, g->d.nbatch);
    g->m = gemm_total(g->d.m, g->d.nm);
    g->n = gemm_total(g->d.n, g->d.nn);
    g->k = gemm_total(g->d.k, g->d.nk);
    const bool empty = g->batch == 0 || g->m == 0 || g->n == 0;
    const bool sums_f32 = mtf_dtype_of_sums(g->d.dtype) == MTF_F32;
    if (empty || g->k == 0 || !sums_f32 || !gemm_library_prepare(g)) gemm_own_prepare(g);
    if (empty) g->tasks = 0;
    g->tasks_per_grain = tasks_per_grain(g->tasks, g->task_flops);
    return g;
}

/* With the lock held. */
static gemm *find_or_make(const gemm_desc *d)
{
    gemm_desc key;
    copy_used(&key, d);
    const bool swapped = gemm_canonicalise(&key);
    gemm **bucket = &cache[hash(&key) % BUCKETS];
    gemm *g = *bucket;
    while (g && (g->swapped != swapped || memcmp(&g->d, &key, sizeof key) != 0))
        g = g->next;
    if (g) return g;
    g = make(&key, swapped);
    g->next = *bucket;
    return *bucket = g;
}

static mtf_status get(const gemm_desc *d, bool ready, const gemm **out, mtf_err *err)
{
    TRY(check_desc(d, err));
    pthread_mutex_lock(&lock);
    gemm *g = find_or_make(d);
    if (ready && !g->built) {
        if (g->build) g->build(g->engine);
        g->built = true;
    }
    pthread_mutex_unlock(&lock);
    *out = g;
    return MTF_OK;
}

mtf_status gemm_get(const gemm_desc *d, const gemm **out, mtf_err *err)
{
    return get(d, true, out, err);
}

mtf_status gemm_plan(const gemm_desc *d, const gemm **out, mtf_err *err)
{
    return get(d, false, out, err);
}

int64_t gemm_workspace(const gemm *g)
{
    return g->work;
}

int64_t gemm_grains(const gemm *g)
{
    return (g->tasks + g->tasks_per_grain - 1) / g->tasks_per_grain;
}

const char *gemm_impl(const gemm *g)
{
    return g->impl;
}

void gemm_run(const gemm *g, const void *a, const void *b, void *c, void *work, int64_t begin,
              int64_t end)
{
    const int64_t first = begin * g->tasks_per_grain;
    int64_t last = end * g->tasks_per_grain;
    if (last > g->tasks) last = g->tasks;
    if (first >= last) return;
    if (g->swapped)
        g->run(g, b, a, c, work, first, last);
    else
        g->run(g, a, b, c, work, first, last);
}
