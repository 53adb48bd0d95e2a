/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "mtf/session.h"
#include "train/benchmark.h"
#include "train/trainer.h"

typedef struct options {
    option_list set;
    char *mesh, *layout, *out;
    bool strict, resume, json, quiet, help;
    int64_t threads, benchmark;
} options;

static const option_row rows[] = {
    CLI_SET_ROW(options),
    CLI_MESH_ROW(options),
    CLI_LAYOUT_ROW(options),
    CLI_STRICT_ROW(options),
    CLI_THREADS_ROW(options),
    {.key = "out",
     .type = OPTION_TEXT,
     .offset = offsetof(options, out),
     .value = "RUN",
     .help = "folder of the run; without it runs/<config>-<time>"},
    {.key = "resume",
     .type = OPTION_BOOL,
     .offset = offsetof(options, resume),
     .help = "continue the run in --out from its newest whole checkpoint"},
    {.key = "benchmark",
     .type = OPTION_INT,
     .offset = offsetof(options, benchmark),
     .min = 0,
     .max = 1000000,
     .standard = "0",
     .value = "N",
     .help = "measure N steps, print their speed and write nothing"},
    CLI_JSON_ROW(options),
    CLI_QUIET_ROW(options),
    CLI_HELP_ROW(options),
};
static const option_table table = {
    .rows = rows, .count = sizeof rows / sizeof *rows, .noun = "option"};

static void print_benchmark(const benchmark_result *b, bool json)
{
    if (!json) {
        printf("%lld steps on %d threads, %.4f s per step (median)\n"
               "%.1f tokens/s\n%.2f GFLOP/s of the model, %.2f %% of the %.2f GFLOP/s peak\n"
               "%.2f GFLOP/s executed\n",
               (long long)b->steps, b->threads, b->step_seconds, b->tokens_per_second, b->gflops,
               100 * b->share_of_peak, b->peak_gflops, b->executed_gflops);
        return;
    }
    json_t *o =
        json_pack("{s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "steps", (json_int_t)b->steps,
                  "threads", b->threads, "step_seconds", b->step_seconds, "tokens_per_second",
                  b->tokens_per_second, "gflops", b->gflops, "peak_gflops", b->peak_gflops,
                  "share_of_peak", b->share_of_peak, "executed_gflops", b->executed_gflops);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

static mtf_status benchmark(const config *c, const options *o, mtf_err *err)
{
    benchmark_result b;
    mtf_err warning = {0};
    const mtf_status st =
        benchmark_run(c, o->benchmark, (int)o->threads, o->strict, &b, &warning, err);
    cli_warn(&warning);
    TRY(st);
    if (cli_is_root()) print_benchmark(&b, o->json);
    return cli_flush(err);
}

static void print_result(const trainer_result *r, bool json)
{
    if (!json) {
        printf("%s\n", r->out);
        return;
    }
    json_t *o = json_pack("{s:s, s:I}", "out", r->out, "steps", (json_int_t)r->steps);
    if (r->valid_loss == r->valid_loss)
        json_object_set_new(o, "valid_loss", json_real(r->valid_loss));
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

static mtf_status train(const config *c, const char *path, const options *o, int *signal,
                        mtf_err *err)
{
    const trainer_options t = {.config_path = path,
                               .out = o->out,
                               .resume = o->resume,
                               .strict = o->strict,
                               .quiet = o->quiet,
                               .threads = (int)o->threads};
    trainer_result r;
    TRY(trainer_run(c, &t, &r, err));
    *signal = r.signal;
    if (cli_is_root()) print_result(&r, o->json);
    return cli_flush(err);
}

static int run(int argc, char **argv)
{
    options o;
    option_args args;
    int code = 0, signal = 0;
    if (!cli_parse(&command_train, &table, argc, argv, &o, &args, 1, 1, &code)) return code;
    mtf_err err = {0};
    config c;
    config_defaults(&c);
    const char *mesh = cli_given(&table, &args, "mesh") ? o.mesh : NULL;
    const char *layout = cli_given(&table, &args, "layout") ? o.layout : NULL;
    mtf_status st = mtf_launch(NULL, NULL, &err);
    if (st == MTF_OK) st = cli_config(args.items[0], &o.set, mesh, layout, &c, &err);
    if (st == MTF_OK && o.resume && !o.out[0])
        st = err_set(&err, MTF_INVALID, "--resume needs the run's folder: add --out RUN");
    if (st == MTF_OK)
        st = o.benchmark ? benchmark(&c, &o, &err) : train(&c, args.items[0], &o, &signal, &err);
    config_free(&c);
    mem_free(args.items);
    options_free(&table, &o);
    code = cli_finish(st, &err);
    return code == 0 && signal ? 128 + signal : code;
}

const command command_train = {
    .name = "train",
    .arguments = "CONFIG.yaml [OPTIONS]",
    .summary = "train a model; prints the folder of the run",
    .run = run,
};
