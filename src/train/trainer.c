/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "exec/job.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/files.h"
#include "train/progress.h"
#include "train/rundir.h"
#include "train/runlog.h"
#include "train/signals.h"

typedef struct trainer {
    const config *c;
    const trainer_options *o;
    data data;
    lm *m;
    token_feed feed;
    safetensors *from; /* the checkpoint that the run continues from, or NULL */
    int64_t start;     /* steps that were made before */
    char out[RUNDIR_PATH];
    runlog *log; /* root only */
    progress progress;
    bool root;
    int64_t valid_step; /* of the last validation in the log; -1: none */
    double valid_loss;
} trainer;

/* ---- before anything is written ---- */

mtf_status trainer_find_checkpoint(const char *run, safetensors **file, int64_t *step,
                                   mtf_err *warning, mtf_err *err)
{
    int64_t steps[64];
    const int n = rundir_checkpoints(run, steps, 64);
    *file = NULL;
    for (int i = 0; i < n; i++) {
        char path[RUNDIR_PATH];
        mtf_err broken = {0};
        rundir_checkpoint(run, steps[i], path);
        const mtf_status st = safetensors_open(path, file, &broken);
        if (st == MTF_OK) {
            *step = steps[i];
            return MTF_OK;
        }
        if (i + 1 == n) return err_set(err, st, "%s", broken.text);
        err_set(warning, st, "%s; going back to the checkpoint before", broken.text);
    }
    return MTF_OK;
}

static mtf_status check_vocabulary(const trainer *t, mtf_err *err)
{
    char now[TOKENIZER_HASH_TEXT];
    tokenizer_hash_text(t->data.tokenizer, now);
    const char *before = safetensors_value(t->from, "vocabulary_hash");
    if (before && strcmp(before, now) == 0) return MTF_OK;
    return err_set(
        err, MTF_INVALID,
        "the text of data.train has another vocabulary (hash %s) than the checkpoint (%s); "
        "continue with the text that the run began with",
        now, before ? before : "none");
}

static mtf_status prepare_resume(trainer *t, mtf_err *warning, mtf_err *err)
{
    char path[RUNDIR_PATH];
    if (!rundir_is_run(t->out)) return rundir_check_new(t->out, err);
    rundir_file(t->out, "config.yaml", path);
    config before;
    config_defaults(&before);
    mtf_status st = config_read(&before, path, err);
    if (st == MTF_OK) st = config_compare_for_resume(&before, t->c, err);
    config_free(&before);
    TRY(st);
    TRY(trainer_find_checkpoint(t->out, &t->from, &t->start, warning, err));
    return t->from ? check_vocabulary(t, err) : MTF_OK;
}

static void warn(const trainer *t, mtf_err *warning)
{
    if (warning->status != MTF_OK && t->root) fprintf(stderr, "mtf: warning: %s\n", warning->text);
    *warning = (mtf_err){0};
}

static mtf_status choose_out(trainer *t, mtf_err *warning, mtf_err *err)
{
    if (t->o->out && t->o->out[0])
        snprintf(t->out, sizeof t->out, "%s", t->o->out);
    else
        rundir_default(t->o->config_path, t->out);
    if (t->o->resume) return prepare_resume(t, warning, err);
    return rundir_check_new(t->out, err);
}

static mtf_status check_all(trainer *t, mtf_err *err)
{
    mtf_err warning = {0};
    int64_t vocab = 0;
    TRY(data_open(t->c, &t->data, err));
    TRY(data_vocab(t->c, t->data.tokenizer, &vocab, err));
    TRY(choose_out(t, &warning, err));
    warn(t, &warning);
    const lm_request r = {.parts = LM_TRAIN | (t->data.has_valid ? LM_EVAL : 0),
                          .vocab = vocab,
                          .strict = t->o->strict,
                          .dtype = -1};
    TRY(lm_open(t->c, &r, &t->m, &warning, err));
    warn(t, &warning);
    return MTF_OK;
}

/* ---- checkpoints ---- */

static checkpoint describe_checkpoint(const trainer *t, const safetensors_meta *meta, int metas)
{
    return (checkpoint){
        .count = t->m->nsaved, .variables = t->m->saved, .meta = meta, .metas = metas};
}

static mtf_status save(trainer *t, int64_t step, mtf_err *err)
{
    char path[RUNDIR_PATH], step_text[32], position[32], hash[TOKENIZER_HASH_TEXT];
    rundir_checkpoint(t->out, step, path);
    snprintf(step_text, sizeof step_text, "%" PRId64, step);
    snprintf(position, sizeof position, "%" PRId64, step * t->c->train.batch);
    tokenizer_hash_text(t->data.tokenizer, hash);
    char *yaml = config_text(t->c), *vocabulary = tokenizer_to_json(t->data.tokenizer);
    const safetensors_meta meta[] = {{"format", "mtf"},        {"version", version_text()},
                                     {"step", step_text},      {"position", position},
                                     {"config", yaml},         {"vocabulary", vocabulary},
                                     {"vocabulary_hash", hash}};
    const checkpoint c = describe_checkpoint(t, meta, sizeof meta / sizeof *meta);
    mtf_status st = t->log ? runlog_sync(t->log, err) : MTF_OK;
    st = comm_agree(t->m->session->comm, st, err);
    if (st == MTF_OK) {
        st = checkpoint_write(t->m->session, &c, path, err);
        if (st != MTF_OK) err_prefix(err, "step %" PRId64 ": ", step);
    }
    if (st == MTF_OK && t->root) rundir_tidy(t->out);
    mem_free(yaml);
    mem_free(vocabulary);
    return st;
}

static mtf_status load(trainer *t, mtf_err *err)
{
    const checkpoint c = describe_checkpoint(t, NULL, 0);
    TRY(checkpoint_read(t->m->session, &c, t->from, true, err));
    safetensors_close(&t->from);
    t->m->resumed_at = t->start;
    return MTF_OK;
}

/* ---- the run's folder ---- */

static mtf_status write_run_line(trainer *t, mtf_err *err)
{
    const runlog_run line = {.version = version_text(),
                             .mesh = mtf_mesh_text(t->m->mesh),
                             .layout = mtf_layout_text(t->m->layout),
                             .parameters = t->m->parameters,
                             .seed = t->c->train.seed,
                             .threads = pool_threads(t->m->session->pool)};
    return runlog_write_run(t->log, &line, err);
}

static mtf_status open_log(trainer *t, runlog_kept *kept, mtf_err *err)
{
    char path[RUNDIR_PATH];
    rundir_file(t->out, "log.jsonl", path);
    if (t->o->resume) return runlog_resume(path, t->start, &t->log, kept, err);
    return runlog_create(path, &t->log, err);
}

/* The configuration goes first into a new folder, which then counts as a run; a folder that holds
 * one is left as it is where its log is broken. */
static mtf_status open_folder(trainer *t, runlog_kept *kept, mtf_err *err)
{
    char path[RUNDIR_PATH];
    const bool is_run = rundir_is_run(t->out);
    TRY(rundir_make(t->out, err));
    if (is_run) TRY(open_log(t, kept, err));
    rundir_file(t->out, "config.yaml", path);
    TRY(config_write(t->c, path, err));
    if (!t->log) TRY(open_log(t, kept, err));
    rundir_tidy(t->out);
    return kept->lines ? MTF_OK : write_run_line(t, err);
}

static mtf_status begin(trainer *t, mtf_err *err)
{
    TRY(lm_start(t->m, t->o->threads, err));
    comm *c = t->m->session->comm;
    t->root = comm_is_root(c);
    /* The default name has a time in it: all ranks take the root's. */
    comm_broadcast(c, t->out, sizeof t->out);
    if (t->from)
        TRY(load(t, err));
    else
        TRY(lm_initialise(t->m, err));
    runlog_kept kept = {.valid_step = -1};
    mtf_status st = t->root ? open_folder(t, &kept, err) : MTF_OK;
    TRY(comm_agree(c, st, err));
    comm_broadcast(c, &kept, sizeof kept);
    t->valid_step = kept.valid_step;
    if (t->valid_step >= 0) t->valid_loss = kept.valid_loss;
    progress_begin(&t->progress, t->start + 1, t->c->train.steps, t->o->quiet || !t->root);
    progress_note(&t->progress, "run %s: %" PRId64 " parameters, mesh '%s', layout '%s'", t->out,
                  t->m->parameters, mtf_mesh_text(t->m->mesh), mtf_layout_text(t->m->layout));
    const mtf_memory plan = mtf_session_memory(t->m->session);
    progress_note(&t->progress,
                  "memory per processor: %.1f MB of state, %.1f MB of values, %.1f MB of buffers; "
                  "%.1f MB of workspace in a process",
                  (double)plan.state / 1e6, (double)plan.slab / 1e6, (double)plan.scratch / 1e6,
                  (double)plan.workers / 1e6);
    if (t->m->swap)
        progress_note(&t->progress,
                      "validation, eval and generate take the moving average of the weights "
                      "(train.ema_decay %g)",
                      t->c->train.ema_decay);
    if (t->o->resume)
        progress_note(&t->progress,
                      t->start ? "continuing after step %" PRId64
                               : "no checkpoint: starting at step %" PRId64,
                      t->start);
    return MTF_OK;
}

/* ---- the loop ---- */

static mtf_status validate(trainer *t, int64_t step, mtf_err *err)
{
    if (!t->data.has_valid || t->valid_step == step) return MTF_OK;
    step_valid v;
    const mtf_status found = step_validate(t->m, &t->data.valid, &v, err);
    if (found != MTF_OK) err_prefix(err, "step %" PRId64 ": ", step);
    TRY(found);
    t->valid_step = step;
    t->valid_loss = v.loss;
    progress_note(&t->progress, "step %" PRId64 "  validation loss %.4f  perplexity %.6g", step,
                  v.loss, step_perplexity(v.loss));
    const runlog_valid line = {.step = step,
                               .valid_loss = v.loss,
                               .valid_tokens = v.tokens,
                               .valid_perplexity = step_perplexity(v.loss)};
    const mtf_status st = t->log ? runlog_write_valid(t->log, &line, err) : MTF_OK;
    return comm_agree(t->m->session->comm, st, err);
}

static mtf_status one_step(trainer *t, int64_t index, mtf_err *err)
{
    const double before = progress_now();
    step_result r;
    TRY(step_train(t->m, &t->feed, index, &r, err));
    const double seconds = progress_now() - before;
    progress_step(&t->progress, index + 1, r.loss, r.tokens);
    if (!t->log) return MTF_OK;
    const runlog_train line = {.step = index + 1,
                               .loss = r.loss,
                               .grad_norm = r.grad_norm,
                               .learning_rate = r.learning_rate,
                               .tokens = r.tokens,
                               .tokens_per_second = (double)r.tokens / seconds,
                               .seconds = seconds};
    return runlog_write_train(t->log, &line, err);
}

static bool due(int64_t every, int64_t step, int64_t last)
{
    return step == last || (every > 0 && step % every == 0);
}

static mtf_status loop(trainer *t, trainer_result *r, mtf_err *err)
{
    comm *c = t->m->session->comm;
    const int64_t last = t->c->train.steps;
    r->steps = t->start;
    /* A signal leaves out the validation that was due after its step. */
    if (t->start > 0 && due(t->c->train.eval_every, t->start, last))
        TRY(validate(t, t->start, err));
    for (int64_t index = t->start; index < last; index++) {
        const int64_t step = index + 1;
        mtf_status st = one_step(t, index, err);
        TRY(comm_agree(c, st, err));
        r->steps = step;
        r->signal = comm_any(c, signals_pending());
        if (due(t->c->train.eval_every, step, last) && !r->signal) TRY(validate(t, step, err));
        if (due(t->c->train.checkpoint_every, step, last) || r->signal) TRY(save(t, step, err));
        if (r->signal) return MTF_OK;
    }
    return MTF_OK;
}

static mtf_status run(trainer *t, trainer_result *r, mtf_err *err)
{
    TRY(job_agree(check_all(t, err), err));
    TRY(begin(t, err));
    t->feed = token_feed_new(&t->data.train, t->c->model.length, t->m->vocab);
    if (t->start >= t->c->train.steps) {
        progress_note(&t->progress, "the run has all of its %" PRId64 " steps already",
                      t->c->train.steps);
        r->steps = t->start;
        return validate(t, t->start, err);
    }
    return loop(t, r, err);
}

mtf_status trainer_run(const config *c, const trainer_options *o, trainer_result *r, mtf_err *err)
{
    trainer t = {.c = c, .o = o, .root = true, .valid_loss = NAN};
    *r = (trainer_result){0};
    int ranks = 1, rank = 0;
    TRY(mtf_launch(&ranks, &rank, err));
    t.root = rank == 0;
    signals_install();
    const mtf_status st = run(&t, r, err);
    snprintf(r->out, sizeof r->out, "%s", t.out);
    r->valid_loss = t.valid_loss;
    token_feed_free(&t.feed);
    runlog_close(&t.log);
    safetensors_close(&t.from);
    lm_close(&t.m);
    data_close(&t.data);
    return st;
}
