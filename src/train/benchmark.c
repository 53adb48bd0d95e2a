/* SPDX-License-Identifier: Apache-2.0 */
#include "train/benchmark.h"

#include <stdlib.h>

#include "base/peak.h"
#include "exec/job.h"
#include "train/data.h"
#include "train/progress.h"
#include "train/step.h"

enum { WARM_UP = 2 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

static mtf_status measure(lm *m, token_feed *f, int64_t steps, benchmark_result *r, mtf_err *err)
{
    double *seconds = mem_alloc(sizeof *seconds * (size_t)steps);
    mtf_status st = MTF_OK;
    for (int64_t i = -WARM_UP; i < steps && st == MTF_OK; i++) {
        step_result got;
        const double before = progress_now();
        st = step_train(m, f, i + WARM_UP, &got, err);
        if (i >= 0) seconds[i] = progress_now() - before;
    }
    if (st == MTF_OK) {
        const double each = median(seconds, steps);
        r->steps = steps;
        r->step_seconds = each;
        r->tokens_per_second = (double)(m->config->train.batch * m->config->model.length) / each;
        r->gflops = lm_model_flops(m) / each / 1e9;
        r->executed_gflops = lm_step_flops(m) * (double)mtf_mesh_processors(m->mesh) / each / 1e9;
    }
    mem_free(seconds);
    return st;
}

static mtf_status build(const config *c, bool strict, data *d, lm **m, mtf_err *warning,
                        mtf_err *err)
{
    int64_t vocab = 0;
    if (c->data.train[0]) TRY(data_open(c, d, err));
    TRY(data_vocab(c, d->tokenizer, &vocab, err));
    const lm_request r = {.parts = LM_TRAIN, .vocab = vocab, .strict = strict, .dtype = -1};
    return lm_open(c, &r, m, warning, err);
}

mtf_status benchmark_run(const config *c, int64_t steps, int threads, bool strict,
                         benchmark_result *r, mtf_err *warning, mtf_err *err)
{
    data d = {0};
    lm *m = NULL;
    *r = (benchmark_result){0};
    mtf_status st = job_agree(build(c, strict, &d, &m, warning, err), err);
    if (st == MTF_OK) st = lm_start(m, threads, err);
    if (st == MTF_OK) st = lm_initialise(m, err);
    if (st == MTF_OK) {
        token_feed f = token_feed_new(d.train_corpus ? &d.train : NULL, c->model.length, m->vocab);
        r->threads = pool_threads(m->session->pool);
        r->peak_gflops =
            peak_flops(m->types.activation, r->threads) * session_processes(m->session);
        st = measure(m, &f, steps, r, err);
        r->share_of_peak = r->gflops / r->peak_gflops;
        token_feed_free(&f);
    }
    lm_close(&m);
    data_close(&d);
    return st;
}
