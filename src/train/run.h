/* SPDX-License-Identifier: Apache-2.0
 * A finished (or interrupted) run, opened for evaluation and generation. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "text/tokenizer.h"
#include "train/config.h"
#include "train/lm.h"
#include "train/safetensors.h"

typedef struct run {
    config config;
    tokenizer *tokenizer;
    safetensors *file;
    int64_t step;
    lm *m;
    mtf_err warning; /* a checkpoint that was passed over, else of the layout */
} run;

typedef struct run_options {
    unsigned parts;            /* LM_EVAL, LM_PREDICT */
    const char *mesh, *layout; /* NULL: the run's own */
    int threads;
    bool strict;
} run_options;

/* Opens the newest whole checkpoint of a run folder, builds the model and loads its weights, or
 * with train.ema_decay their averages. Collective. */
mtf_status run_open(const char *path, const run_options *o, run *r, mtf_err *err);
void run_close(run *r);

typedef struct run_eval {
    int64_t tokens, words;
    double loss; /* nats per token */
    double perplexity, perplexity_per_word;
} run_eval;

/* The loss on the validation part of the run's text, or on a whole other file. Collective. */
mtf_status run_evaluate(run *r, const char *file, run_eval *out, mtf_err *err);

typedef struct run_sampling {
    const char *prompt;
    int64_t tokens;     /* to generate */
    double temperature; /* 0: always the likeliest */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
} run_sampling;

/* Prompt and continuation as bytes; *text is freed with mem_free. Collective. */
mtf_status run_generate(run *r, const run_sampling *s, char **text, int64_t *bytes, mtf_err *err);

#endif
