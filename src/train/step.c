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

static double learning_rate(const config *c, int64_t step)
{
    static const mtf_schedule kinds[] = {[CONFIG_CONSTANT] = MTF_SCHEDULE_CONSTANT,
                                         [CONFIG_LINEAR] = MTF_SCHEDULE_LINEAR,
                                         [CONFIG_COSINE] = MTF_SCHEDULE_COSINE,
                                         [CONFIG_RSQRT] = MTF_SCHEDULE_RSQRT};
    return mtf_learning_rate(kinds[c->train.schedule], step, c->train.steps, c->train.warmup_steps,
                             c->train.learning_rate, c->train.min_learning_rate);
}

/* The scalars of a step: learning rate and Adam's corrections. */
typedef struct scalars {
    scalar value[3];
    mtf_feed feed[3];
    int n;
} scalars;

static void add_scalar(const lm *m, scalars *s, mtf_tensor *placeholder, double x)
{
    if (!placeholder) return;
    s->value[s->n] = as_scalar(m, x);
    s->feed[s->n] = (mtf_feed){.placeholder = placeholder, .data = &s->value[s->n]};
    s->n++;
}

static void make_scalars(const lm *m, int64_t index, double rate, scalars *s)
{
    const config_train *c = &m->config->train;
    s->n = 0;
    add_scalar(m, s, m->optimizer->rate, rate);
    add_scalar(m, s, m->optimizer->correction[0], mtf_adam_correction(c->beta1, index + 1));
    add_scalar(m, s, m->optimizer->correction[1], mtf_adam_correction(c->beta2, index + 1));
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
    mtf_feed feeds[5] = {token_feed_inputs(f, b->inputs), token_feed_targets(f, b->targets)};
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
    out->learning_rate = learning_rate(m->config, index + 1);
    make_scalars(m, index, out->learning_rate, &s);
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

mtf_status step_validate(lm *m, const batches *b, step_valid *out, mtf_err *err)
{
    token_feed f = token_feed_new(b, m->config->model.length, m->vocab);
    *out = (step_valid){0};
    double tokens = 0;
    mtf_status st = MTF_OK;
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
    out->tokens = (int64_t)tokens;
    out->loss = out->loss_sum / (tokens > 0 ? tokens : 1);
    if (st == MTF_OK && !isfinite(out->loss))
        return err_set(err, MTF_FAILED,
                       "the validation loss is not finite: the model has diverged. Lower "
                       "train.learning_rate, raise train.warmup_steps or set train.clip_norm");
    return st;
}
