/* SPDX-License-Identifier: Apache-2.0 */
#include "train/verify.h"

#include <math.h>
#include <stdio.h>

#include "train/data.h"
#include "train/feeds.h"
#include "train/lm.h"

/* loss_sum, count and the gradients, in f64. */
typedef struct results {
    int n;
    double **value;
    int64_t *size;
} results;

static results results_new(const lm *m)
{
    results r = {.n = m->nvariables + 2};
    r.value = mem_alloc(sizeof *r.value * (size_t)r.n);
    r.size = mem_alloc(sizeof *r.size * (size_t)r.n);
    for (int i = 0; i < r.n; i++) {
        const mtf_shape s = i < 2 ? MTF_SCALAR : mtf_tensor_shape(m->variables[i - 2]);
        r.size[i] = mtf_shape_size(&s);
        r.value[i] = mem_zalloc(sizeof(double) * (size_t)r.size[i]);
    }
    return r;
}

static void results_free(results *r)
{
    for (int i = 0; i < r->n; i++)
        mem_free(r->value[i]);
    mem_free(r->value);
    mem_free(r->size);
    *r = (results){0};
}

static mtf_status compute(const config *c, const data *d, const lm_request *q, int threads, lm **m,
                          results *r, mtf_err *warning, mtf_err *err)
{
    TRY(lm_open(c, q, m, warning, err));
    TRY(lm_start(*m, threads, err));
    TRY(lm_initialise(*m, err));
    *r = results_new(*m);
    token_feed f = token_feed_new(d->train_corpus ? &d->train : NULL, c->model.length, q->vocab);
    const mtf_feed feeds[2] = {token_feed_inputs(&f, (*m)->gradients.inputs),
                               token_feed_targets(&f, (*m)->gradients.targets)};
    const mtf_status st = mtf_run((*m)->session, (*m)->gradients.program, 2, feeds,
                                  (void *const *)r->value, NULL, err);
    token_feed_free(&f);
    return st;
}

static double difference(const double *a, const double *b, int64_t n)
{
    double most = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(a[i] - b[i]), x = fabs(a[i]);
        if (!(d <= most)) most = d; /* NaN counts as the largest */
        if (x > size) size = x;
    }
    return size > 0 ? most / size : most;
}

static void compare(const lm *m, const results *one, const results *many, verify_result *r)
{
    r->ok = true;
    r->relative = -1;
    r->tensors = one->n;
    for (int i = 0; i < one->n; i++) {
        const char *name = i == 0   ? "loss"
                           : i == 1 ? "count"
                                    : mtf_tensor_name(m->variables[i - 2]);
        const double d = difference(one->value[i], many->value[i], one->size[i]);
        if (!(d <= r->relative)) {
            r->relative = d;
            snprintf(r->name, sizeof r->name, "%s", name);
        }
        if (!(d <= r->tolerance) && r->ok) {
            r->ok = false;
            snprintf(r->first, sizeof r->first, "%s", name);
        }
    }
}

mtf_status verify_run(const config *c, const char *mesh, const char *layout, bool strict,
                      int threads, double tolerance, verify_result *r, mtf_err *warning,
                      mtf_err *err)
{
    *r = (verify_result){.tolerance = tolerance};
    data d = {0};
    lm *m[2] = {0};
    results got[2] = {{0}};
    int64_t vocab = 0;
    mtf_status st = c->data.train[0] ? data_open(c, &d, err) : MTF_OK;
    if (st == MTF_OK) st = data_vocab(c, d.tokenizer, &vocab, err);
    lm_request q = {.parts = LM_GRADIENTS, .vocab = vocab, .strict = strict, .dtype = CONFIG_F64};
    q.mesh = mesh;
    q.layout = layout;
    if (st == MTF_OK) st = compute(c, &d, &q, threads, &m[1], &got[1], warning, err);
    q.mesh = q.layout = "";
    if (st == MTF_OK) st = compute(c, &d, &q, threads, &m[0], &got[0], NULL, err);
    if (st == MTF_OK) compare(m[0], &got[0], &got[1], r);
    for (int i = 0; i < 2; i++) {
        results_free(&got[i]);
        lm_close(&m[i]);
    }
    data_close(&d);
    return st;
}
