/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "mtf/session.h"
#include "train/run.h"

typedef struct options {
    char *prompt, *mesh, *layout;
    bool strict, json, help;
    int64_t threads, tokens, top_k, seed;
    double temperature, top_p;
} options;

static const option_row rows[] = {
    {.key = "prompt",
     .type = OPTION_TEXT,
     .offset = offsetof(options, prompt),
     .value = "TEXT",
     .help = "what the text begins with"},
    {.key = "tokens",
     .type = OPTION_INT,
     .offset = offsetof(options, tokens),
     .min = 1,
     .max = 1000000,
     .standard = "200",
     .value = "N",
     .help = "tokens to generate"},
    {.key = "temperature",
     .type = OPTION_REAL,
     .offset = offsetof(options, temperature),
     .real_min = 0,
     .real_max = 1000,
     .standard = "1.0",
     .help = "0: always the likeliest token; 1: as the model says"},
    {.key = "top-k",
     .type = OPTION_INT,
     .offset = offsetof(options, top_k),
     .min = 0,
     .max = 1000000000,
     .standard = "0",
     .value = "K",
     .help = "choose among the K likeliest tokens; 0: all"},
    {.key = "top-p",
     .type = OPTION_REAL,
     .offset = offsetof(options, top_p),
     .real_min = 0,
     .above = true,
     .real_max = 1,
     .standard = "1.0",
     .help = "choose among the likeliest tokens that hold this share of the probability"},
    {.key = "seed",
     .type = OPTION_INT,
     .offset = offsetof(options, seed),
     .min = 0,
     .max = INT64_MAX,
     .standard = "1",
     .value = "N",
     .help = "of the random choices"},
    CLI_MESH_ROW(options),
    CLI_LAYOUT_ROW(options),
    CLI_STRICT_ROW(options),
    CLI_THREADS_ROW(options),
    CLI_JSON_ROW(options),
    CLI_HELP_ROW(options),
};
static const option_table table = {
    .rows = rows, .count = sizeof rows / sizeof *rows, .noun = "option"};

static void print(const char *text, int64_t bytes, const options *o)
{
    if (!o->json) {
        fwrite(text, 1, (size_t)bytes, stdout);
        putchar('\n');
        return;
    }
    /* JSON is UTF-8; a byte model may have produced anything. */
    char *clean = utf8_repair(text, bytes, NULL);
    json_t *j = json_pack("{s:s, s:I}", "text", clean, "seed", (json_int_t)o->seed);
    json_dumpf(j, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(j);
    mem_free(clean);
}

static int run_generate_command(int argc, char **argv)
{
    options o;
    option_args args;
    int code = 0;
    if (!cli_parse(&command_generate, &table, argc, argv, &o, &args, 1, 1, &code)) return code;
    mtf_err err = {0};
    run r = {0};
    char *text = NULL;
    int64_t bytes = 0;
    const run_options q = {.parts = LM_PREDICT,
                           .mesh = cli_given(&table, &args, "mesh") ? o.mesh : NULL,
                           .layout = cli_given(&table, &args, "layout") ? o.layout : NULL,
                           .threads = (int)o.threads,
                           .strict = o.strict};
    const run_sampling s = {.prompt = o.prompt,
                            .tokens = o.tokens,
                            .temperature = o.temperature,
                            .top_k = o.top_k,
                            .top_p = o.top_p,
                            .seed = (uint64_t)o.seed};
    mtf_status st = mtf_launch(NULL, NULL, &err);
    if (st == MTF_OK) st = run_open(args.items[0], &q, &r, &err);
    cli_warn(&r.warning);
    if (st == MTF_OK) st = run_generate(&r, &s, &text, &bytes, &err);
    if (st == MTF_OK && cli_is_root()) print(text, bytes, &o);
    if (st == MTF_OK) st = cli_flush(&err);
    mem_free(text);
    run_close(&r);
    mem_free(args.items);
    options_free(&table, &o);
    return cli_finish(st, &err);
}

const command command_generate = {
    .name = "generate",
    .arguments = "RUN [OPTIONS]",
    .summary = "continue a text with a run's newest checkpoint",
    .run = run_generate_command,
};
