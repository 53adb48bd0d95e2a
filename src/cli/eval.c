/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "mtf/session.h"
#include "train/run.h"

typedef struct options {
    char *data, *mesh, *layout;
    bool strict, json, help;
    int64_t threads;
} options;

static const option_row rows[] = {
    {.key = "data",
     .type = OPTION_TEXT,
     .offset = offsetof(options, data),
     .value = "FILE",
     .help = "a whole text instead of the validation part of the run's"},
    CLI_MESH_ROW(options),
    CLI_LAYOUT_ROW(options),
    CLI_STRICT_ROW(options),
    CLI_THREADS_ROW(options),
    CLI_JSON_ROW(options),
    CLI_HELP_ROW(options),
};
static const option_table table = {
    .rows = rows, .count = sizeof rows / sizeof *rows, .noun = "option"};

static void print(const run *r, const run_eval *e, bool json)
{
    if (!json) {
        if (r->config.train.ema_decay > 0)
            printf("the moving average of the weights (train.ema_decay %g):\n",
                   r->config.train.ema_decay);
        printf("%lld tokens, loss %.6f nats per token, perplexity %.6g\n"
               "%lld words, perplexity %.6g per word\n",
               (long long)e->tokens, e->loss, e->perplexity, (long long)e->words,
               e->perplexity_per_word);
        return;
    }
    json_t *o = json_pack("{s:I, s:f, s:f, s:I, s:f}", "tokens", (json_int_t)e->tokens, "loss",
                          e->loss, "perplexity", e->perplexity, "words", (json_int_t)e->words,
                          "perplexity_per_word", e->perplexity_per_word);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

static int run_eval_command(int argc, char **argv)
{
    options o;
    option_args args;
    int code = 0;
    if (!cli_parse(&command_eval, &table, argc, argv, &o, &args, 1, 1, &code)) return code;
    mtf_err err = {0};
    run r = {0};
    run_eval e;
    const run_options q = {.parts = LM_EVAL,
                           .mesh = cli_given(&table, &args, "mesh") ? o.mesh : NULL,
                           .layout = cli_given(&table, &args, "layout") ? o.layout : NULL,
                           .threads = (int)o.threads,
                           .strict = o.strict};
    mtf_status st = mtf_launch(NULL, NULL, &err);
    if (st == MTF_OK) st = run_open(args.items[0], &q, &r, &err);
    cli_warn(&r.warning);
    if (st == MTF_OK) st = run_evaluate(&r, o.data, &e, &err);
    if (st == MTF_OK && cli_is_root()) print(&r, &e, o.json);
    if (st == MTF_OK) st = cli_flush(&err);
    run_close(&r);
    mem_free(args.items);
    options_free(&table, &o);
    return cli_finish(st, &err);
}

const command command_eval = {
    .name = "eval",
    .arguments = "RUN [OPTIONS]",
    .summary = "perplexity of a run's newest checkpoint, per token and per word",
    .run = run_eval_command,
};
