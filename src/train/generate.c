/* SPDX-License-Identifier: Apache-2.0
 * Generation: one token at a time, from the logits of the last position in the window. Every rank
 * computes the same choice from the same numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/vmath.h"
#include "train/run.h"

typedef struct candidate {
    double p; /* logit, then probability */
    int32_t token;
} candidate;

/* Likeliest first; ties to the lower token. */
static int by_likelihood(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? 1 : -1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* Keeps the candidates that top-k and top-p leave, as probabilities; returns their number. */
static int64_t keep(candidate *c, int64_t n, const run_sampling *s)
{
    qsort(c, (size_t)n, sizeof *c, by_likelihood);
    if (s->top_k > 0 && s->top_k < n) n = s->top_k;
    const double top = c[0].p;
    double sum = 0, mass = 0;
    for (int64_t i = 0; i < n; i++)
        sum += c[i].p = vexp((c[i].p - top) / s->temperature);
    for (int64_t i = 0; i < n; i++) {
        c[i].p /= sum;
        mass += c[i].p;
        if (mass >= s->top_p) return i + 1;
    }
    return n;
}

static int32_t choose(candidate *c, int64_t n, const run_sampling *s, int64_t index)
{
    if (s->temperature == 0) {
        qsort(c, (size_t)n, sizeof *c, by_likelihood);
        return c[0].token;
    }
    n = keep(c, n, s);
    double mass = 0, at = 0;
    for (int64_t i = 0; i < n; i++)
        mass += c[i].p;
    const double u =
        ((double)random_u32(s->seed, random_stream("generate"), 0, (uint64_t)index) + 0.5) /
        4294967296.0 * mass;
    for (int64_t i = 0; i < n; i++) {
        at += c[i].p;
        if (u < at) return c[i].token;
    }
    return c[n - 1].token;
}

typedef struct generator {
    run *r;
    const run_sampling *s;
    int32_t *ids; /* prompt and continuation */
    int64_t count;
    int32_t *window;
    void *logits;
    candidate *c;
} generator;

/* The last tokens that fit the window; positions after them do not matter: the mask is causal. */
static mtf_status next_token(generator *g, int64_t index, mtf_err *err)
{
    const lm *m = g->r->m;
    const int64_t length = m->config->model.length;
    const int64_t first = g->count > length ? g->count - length : 0, have = g->count - first;
    memset(g->window, 0, sizeof *g->window * (size_t)length);
    memcpy(g->window, g->ids + first, sizeof *g->window * (size_t)have);
    const mtf_feed feed = {.placeholder = m->predict.inputs, .data = g->window};
    TRY(mtf_run(m->session, m->predict.program, 1, &feed, &g->logits, NULL, err));
    const int64_t n = g->r->tokenizer->vocab, row = (have - 1) * m->vocab;
    for (int64_t i = 0; i < n; i++) {
        const double logit = m->dtype == MTF_F64 ? ((const double *)g->logits)[row + i]
                                                 : (double)((const float *)g->logits)[row + i];
        if (!isfinite(logit)) return err_set(err, MTF_FAILED, "generation: a logit is not finite");
        g->c[i] = (candidate){logit, (int32_t)i};
    }
    g->ids[g->count++] = choose(g->c, n, g->s, index);
    return MTF_OK;
}

static mtf_status encode_prompt(generator *g, mtf_err *err)
{
    const char *prompt = g->s->prompt;
    const int64_t bytes = (int64_t)strlen(prompt);
    if (bytes)
        return tokenizer_encode(g->r->tokenizer, "--prompt", prompt, bytes, g->ids, &g->count, err);
    /* Without a prompt a text begins as after a line's end, or with the first token. */
    mtf_err ignored = {0};
    if (tokenizer_encode(g->r->tokenizer, "prompt", "\n", 1, g->ids, &g->count, &ignored) !=
        MTF_OK) {
        g->ids[0] = 0;
        g->count = 1;
    }
    return MTF_OK;
}

mtf_status run_generate(run *r, const run_sampling *s, char **text, int64_t *bytes, mtf_err *err)
{
    const lm *m = r->m;
    const size_t logits = (size_t)(m->config->model.length * m->vocab);
    generator g = {.r = r, .s = s};
    g.ids = mem_alloc(sizeof *g.ids * (strlen(s->prompt) + 1 + (size_t)s->tokens));
    g.window = mem_alloc(sizeof *g.window * (size_t)m->config->model.length);
    g.logits = mem_alloc(logits * sizeof(double));
    g.c = mem_alloc(sizeof *g.c * (size_t)r->tokenizer->vocab);
    mtf_status st = encode_prompt(&g, err);
    const int64_t hidden = s->prompt[0] ? 0 : g.count; /* what we put there ourselves */
    for (int64_t i = 0; i < s->tokens && st == MTF_OK; i++)
        st = next_token(&g, i, err);
    if (st == MTF_OK)
        *text = tokenizer_decode(r->tokenizer, g.ids + hidden, g.count - hidden, bytes);
    mem_free(g.ids);
    mem_free(g.window);
    mem_free(g.logits);
    mem_free(g.c);
    return st;
}
