/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step.h"

#include <float.h>
#include <math.h>

#include "base/fault.h"

/* A scalar fetch, of either floating-point type. */
typedef union scalar {
    float f32;
    double f64;
} scalar;

static bool is_f64(const lm *m)
{
    return m->dtype == MTF_F64;
}

static double number(const lm *m, scalar s)
{
    return is_f64(m) ? s.f64 : (double)s.f32;
}

static scalar as_scalar(const lm *m, double x)
{
    return is_f64(m) ? (scalar){.f64 = x} : (scalar){.f32 = (float)x};
}

/* The scalars of a step: learning rates and corrections. */
typedef struct scalars {
    double learning_rate;
    scalar value[MTF_MAX_STEP_SCALARS];
    mtf_feed feed[MTF_MAX_STEP_SCALARS];
    int n;
} scalars;

static void make_scalars(const lm *m, int64_t index, scalars *s)
{
    mtf_step_scalar list[MTF_MAX_STEP_SCALARS];
    s->n = mtf_optimizer_scalars(m->optimizer, index + 1, m->config->train.steps, list);
    s->learning_rate = list[0].value;
    for (int i = 0; i < s->n; i++) {
        s->value[i] = as_scalar(m, list[i].value);
        s->feed[i] = (mtf_feed){.placeholder = list[i].placeholder, .data = &s->value[i]};
    }
}

/* Dropout goes on where the run left off: its step is the run's, not this call's. */
static uint64_t random_step(const lm *m, int64_t index)
{
    return (uint64_t)(FAULT(FAULT_RESUME_STEP) ? index - m->resumed_at : index);
}

static int64_t first_window(const lm *m, int64_t index)
{
    if (FAULT(FAULT_RESUME_POSITION)) index -= m->resumed_at;
    return index * m->config->train.batch;
}

/* The whole batch in one program. */
static mtf_status run_whole(lm *m, token_feed *f, int64_t index, const scalars *s, scalar *got,
                            mtf_err *err)
{
    const lm_batch *b = &m->micro[0];
    mtf_feed feeds[2 + MTF_MAX_STEP_SCALARS] = {token_feed_inputs(f, b->inputs),
                                                token_feed_targets(f, b->targets)};
    for (int i = 0; i < s->n; i++)
        feeds[2 + i] = s->feed[i];
    const mtf_run_values values = {.step = random_step(m, index)};
    return mtf_run(m->session, b->program, 2 + s->n, feeds, (void *[]){got, got + 1, got + 2},
                   &values, err);
}

/* Microbatches add to the accumulators; the last program applies them. */
static mtf_status run_parts(lm *m, token_feed *f, int64_t index, const scalars *s, scalar *got,
                            mtf_err *err)
{
    const int64_t position = f->position;
    for (int64_t i = 0; i < m->config->train.microbatches; i++) {
        int64_t first = 0;
        const int64_t size = lm_microbatch(m, i, &first);
        const lm_batch *b = size == m->micro[0].size ? &m->micro[0] : &m->micro[1];
        f->position = position + first;
        const mtf_feed feeds[2] = {token_feed_inputs(f, b->inputs),
                                   token_feed_targets(f, b->targets)};
        const mtf_run_values values = {.step = random_step(m, index), .batch_offset = first};
        TRY(mtf_run(m->session, b->program, 2, feeds, NULL, &values, err));
    }
    f->position = position;
    return mtf_run(m->session, m->apply, s->n, s->feed, (void *[]){got, got + 1, got + 2}, NULL,
                   err);
}

mtf_status step_train(lm *m, token_feed *f, int64_t index, step_result *out, mtf_err *err)
{
    scalars s;
    scalar got[3];
    make_scalars(m, index, &s);
    out->learning_rate = s.learning_rate;
    f->position = first_window(m, index);
    TRY(m->apply ? run_parts(m, f, index, &s, got, err) : run_whole(m, f, index, &s, got, err));
    const double count = number(m, got[1]);
    out->tokens = (int64_t)count;
    out->loss = number(m, got[0]) / (count > 0 ? count : 1);
    out->grad_norm = number(m, got[2]);
    if (isfinite(out->loss) && isfinite(out->grad_norm)) return MTF_OK;
    return err_set(err, MTF_FAILED,
                   "step %lld: the %s is not finite; the last checkpoint is kept. Lower "
                   "train.learning_rate, raise train.warmup_steps or set train.clip_norm",
                   (long long)(index + 1), isfinite(out->loss) ? "gradient" : "loss");
}

double step_perplexity(double nats)
{
    return fmin(exp(nats), DBL_MAX);
}

/* Weights for their averages, and back. */
static mtf_status swap_averages(lm *m, mtf_err *err)
{
    return m->swap ? mtf_run(m->session, m->swap, 0, NULL, NULL, NULL, err) : MTF_OK;
}

mtf_status step_validate(lm *m, const batches *b, step_valid *out, mtf_err *err)
{
    token_feed f = token_feed_new(b, m->config->model.length, m->vocab);
    *out = (step_valid){0};
    double tokens = 0;
    mtf_status st = swap_averages(m, err);
    for (int64_t w = 0; w < b->windows && st == MTF_OK; w += m->eval.size) {
        scalar got[2];
        f.position = w;
        const mtf_feed feeds[2] = {token_feed_inputs(&f, m->eval.inputs),
                                   token_feed_targets(&f, m->eval.targets)};
        st = mtf_run(m->session, m->eval.program, 2, feeds, (void *[]){got, got + 1}, NULL, err);
        out->loss_sum += number(m, got[0]);
        tokens += number(m, got[1]);
    }
    token_feed_free(&f);
    if (st == MTF_OK) st = swap_averages(m, err);
    out->tokens = (int64_t)tokens;
    out->loss = out->loss_sum / (tokens > 0 ? tokens : 1);
    if (st == MTF_OK && !isfinite(out->loss))
        return err_set(err, MTF_FAILED,
                       "the validation loss is not finite: the model has diverged. Lower "
                       "train.learning_rate, raise train.warmup_steps or set train.clip_norm");
    return st;
}
