/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "mtf/session.h"
#include "train/verify.h"

typedef struct options {
    option_list set;
    char *mesh, *layout;
    bool strict, json, help;
    int64_t threads;
    double tolerance;
} options;

static const option_row rows[] = {
    CLI_SET_ROW(options),
    CLI_MESH_ROW(options),
    CLI_LAYOUT_ROW(options),
    CLI_STRICT_ROW(options),
    CLI_THREADS_ROW(options),
    {.key = "tolerance",
     .type = OPTION_REAL,
     .offset = offsetof(options, tolerance),
     .real_min = 0,
     .above = true,
     .real_max = 1,
     .standard = "1.0e-9",
     .help = "largest difference of a tensor, relative to its largest element"},
    CLI_JSON_ROW(options),
    CLI_HELP_ROW(options),
};
static const option_table table = {
    .rows = rows, .count = sizeof rows / sizeof *rows, .noun = "option"};

static void print(const verify_result *r, bool json)
{
    if (!json) {
        printf(
            "%d tensors compared with one processor in f64\nlargest difference: %s, %.3g relative "
            "(tolerance %.3g)\n%s\n",
            r->tensors, r->name, r->relative, r->tolerance,
            r->ok ? "the layout gives the same numbers" : "the layout DIFFERS");
        return;
    }
    /* JSON has no NaN: a result that is not a number counts as infinitely far, shown as 1e308. */
    const double relative = isfinite(r->relative) ? r->relative : 1e308;
    json_t *o = json_pack("{s:b, s:f, s:{s:s, s:f}}", "ok", r->ok, "tolerance", r->tolerance,
                          "worst", "name", r->name, "relative", relative);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

static int run(int argc, char **argv)
{
    options o;
    option_args args;
    int code = 0;
    if (!cli_parse(&command_verify, &table, argc, argv, &o, &args, 1, 1, &code)) return code;
    mtf_err err = {0}, warning = {0};
    config c;
    verify_result r = {0};
    config_defaults(&c);
    const char *mesh = cli_given(&table, &args, "mesh") ? o.mesh : NULL;
    const char *layout = cli_given(&table, &args, "layout") ? o.layout : NULL;
    int ranks = 1;
    mtf_status st = mtf_launch(&ranks, NULL, &err);
    if (st == MTF_OK && ranks > 1)
        st =
            err_set(&err, MTF_INVALID, "verify compares inside one process; run it without mpirun");
    if (st == MTF_OK) st = cli_config(args.items[0], &o.set, mesh, layout, &c, &err);
    if (st == MTF_OK && !c.mesh[0])
        st = err_set(&err, MTF_INVALID,
                     "verify needs a mesh to compare with one processor; add --mesh MESH");
    if (st == MTF_OK)
        st = verify_run(&c, c.mesh, c.layout, o.strict, (int)o.threads, o.tolerance, &r, &warning,
                        &err);
    if (st == MTF_OK) {
        cli_warn(&warning);
        print(&r, o.json);
        st = cli_flush(&err);
    }
    if (st == MTF_OK && !r.ok)
        st = err_set(&err, MTF_FAILED,
                     "the layout differs from one processor: first in '%s', most in '%s' (%.3g "
                     "relative, tolerance %.3g)",
                     r.first, r.name, r.relative, r.tolerance);
    config_free(&c);
    mem_free(args.items);
    options_free(&table, &o);
    return cli_finish(st, &err);
}

const command command_verify = {
    .name = "verify",
    .arguments = "CONFIG.yaml --mesh MESH --layout LAYOUT [OPTIONS]",
    .summary = "compare a layout with one processor, tensor by tensor",
    .run = run,
};
