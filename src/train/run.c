/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run.h"

#include <string.h>

#include "exec/job.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/rundir.h"
#include "train/step.h"
#include "train/trainer.h"

static mtf_status open_files(const char *path, run *r, mtf_err *err)
{
    char file[RUNDIR_PATH];
    if (!rundir_is_run(path))
        return err_set(err, MTF_INVALID, "'%s' is no folder of a run: it has no config.yaml", path);
    rundir_file(path, "config.yaml", file);
    TRY(config_read(&r->config, file, err));
    TRY(trainer_find_checkpoint(path, &r->file, &r->step, &r->warning, err));
    if (!r->file)
        return err_set(err, MTF_INVALID, "run '%s' has no checkpoint yet; train it first", path);
    const char *vocabulary = safetensors_value(r->file, "vocabulary");
    if (!vocabulary)
        return err_set(err, MTF_INVALID, "the checkpoint of '%s' has no vocabulary", path);
    return tokenizer_from_json(path, vocabulary, &r->tokenizer, err);
}

static mtf_status build(const char *path, const run_options *o, run *r, mtf_err *err)
{
    TRY(open_files(path, r, err));
    const lm_request q = {.parts = o->parts,
                          .vocab =
                              r->config.model.vocab ? r->config.model.vocab : r->tokenizer->vocab,
                          .strict = o->strict,
                          .mesh = o->mesh,
                          .layout = o->layout,
                          .dtype = -1};
    return lm_open(&r->config, &q, &r->m, &r->warning, err);
}

mtf_status run_open(const char *path, const run_options *o, run *r, mtf_err *err)
{
    *r = (run){0};
    config_defaults(&r->config);
    TRY(job_agree(build(path, o, r, err), err));
    TRY(lm_start(r->m, o->threads, err));
    const checkpoint c = {.count = r->m->nvariables,
                          .variables = r->m->variables,
                          .suffix = r->config.train.ema_decay > 0 ? "/average" : NULL};
    return checkpoint_read(r->m->session, &c, r->file, false, err);
}

void run_close(run *r)
{
    lm_close(&r->m);
    safetensors_close(&r->file);
    tokenizer_free(&r->tokenizer);
    config_free(&r->config);
}

/* ---- evaluation ---- */

static mtf_status choose_text(run *r, const char *file, corpus **c, corpus_range *range, batches *b,
                              mtf_err *err)
{
    const config *k = &r->config;
    const char *path = file && *file ? file : k->data.valid[0] ? k->data.valid : k->data.train;
    corpus_range train = {0};
    TRY(corpus_open_with(path, r->tokenizer, c, err));
    if ((file && *file) || k->data.valid[0])
        *range = (corpus_range){0, corpus_count(*c)};
    else
        corpus_split(*c, k->data.valid_fraction, &train, range);
    if (range->count == 0)
        return err_set(err, MTF_INVALID,
                       "'%s' leaves nothing to evaluate on; name a text with --data", path);
    return data_valid_batches(*c, *range, k->model.length, b, err);
}

mtf_status run_evaluate(run *r, const char *file, run_eval *out, mtf_err *err)
{
    corpus *c = NULL;
    corpus_range range = {0};
    batches b;
    step_valid v = {0};
    mtf_status st = job_agree(choose_text(r, file, &c, &range, &b, err), err);
    if (st == MTF_OK) st = step_validate(r->m, &b, &v, err);
    if (st == MTF_OK) {
        *out = (run_eval){.tokens = v.tokens, .words = corpus_words(c, range), .loss = v.loss};
        out->perplexity = step_perplexity(v.loss);
        out->perplexity_per_word =
            out->words ? step_perplexity(v.loss_sum / (double)out->words) : 0;
    }
    corpus_free(&c);
    return st;
}
