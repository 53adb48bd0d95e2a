/* SPDX-License-Identifier: Apache-2.0
 * explain: the SPMD program of a training step. Compiles, runs nothing. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "mtf/session.h"
#include "train/data.h"
#include "train/lm.h"

typedef struct options {
    option_list set;
    char *mesh, *layout;
    int64_t threads;
    bool strict, json, help, program;
} options;

static const option_row rows[] = {
    CLI_SET_ROW(options),
    CLI_MESH_ROW(options),
    CLI_LAYOUT_ROW(options),
    CLI_STRICT_ROW(options),
    CLI_THREADS_ROW(options),
    {.key = "program",
     .type = OPTION_BOOL,
     .offset = offsetof(options, program),
     .help = "print the program itself, value by value"},
    CLI_JSON_ROW(options),
    CLI_HELP_ROW(options),
};
static const option_table table = {
    .rows = rows, .count = sizeof rows / sizeof *rows, .noun = "option"};

/* The programs that a training step runs, each as often as the step does. */
typedef struct step_programs {
    const mtf_program **program;
    int64_t n;
} step_programs;

static step_programs programs_of(const lm *m)
{
    const int64_t k = m->apply ? m->config->train.microbatches : 0;
    step_programs s = {.program = mem_alloc(sizeof *s.program * (size_t)(k + 1))};
    for (int64_t i = 0, first; i < k; i++) {
        const bool small = lm_microbatch(m, i, &first) == m->micro[0].size;
        s.program[s.n++] = m->micro[small ? 0 : 1].program;
    }
    s.program[s.n++] = m->apply ? m->apply : m->micro[0].program;
    return s;
}

static mtf_totals add_totals(const step_programs *s)
{
    mtf_totals sum = {0};
    for (int64_t i = 0; i < s->n; i++) {
        const mtf_totals t = mtf_program_totals(s->program[i]);
        sum.flops += t.flops;
        sum.sent_bytes += t.sent_bytes;
        sum.instructions += t.instructions;
    }
    return sum;
}

static json_t *instructions(const step_programs *s)
{
    json_t *all = json_array();
    for (int64_t i = 0; i < s->n; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        mtf_program_json(s->program[i], f);
        fclose(f);
        json_t *list = json_loads(text, 0, NULL);
        json_array_extend(all, list);
        json_decref(list);
        free(text);
    }
    return all;
}

/* Of one processor that is a process of its own. */
static int64_t all_bytes(const mtf_memory *m)
{
    return m->state + m->slab + m->scratch + m->workers;
}

static void print_json(const lm *m, const mtf_memory *memory, const step_programs *s)
{
    const mtf_totals t = add_totals(s);
    json_t *o =
        json_pack("{s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:o}", "mesh",
                  mtf_mesh_text(m->mesh), "layout", mtf_layout_text(m->layout), "processors",
                  (json_int_t)mtf_mesh_processors(m->mesh), "parameters", (json_int_t)m->parameters,
                  "flops_per_processor", t.flops, "peak_bytes", (json_int_t)all_bytes(memory),
                  "state_bytes", (json_int_t)memory->state, "value_bytes", (json_int_t)memory->slab,
                  "buffer_bytes", (json_int_t)memory->scratch, "workspace_bytes",
                  (json_int_t)memory->workers, "instructions", instructions(s));
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

static void print_row(const json_t *row)
{
    char axes[200] = ""; /* longer ones are cut */
    size_t i;
    json_t *axis;
    json_array_foreach(json_object_get(row, "axes"), i, axis)
    {
        const size_t used = strlen(axes);
        snprintf(axes + used, sizeof axes - used, "%s%s", i ? "+" : "", json_string_value(axis));
    }
    printf("%-15s %-12s %14lld %14.0f %16.0f  %s\n", json_string_value(json_object_get(row, "op")),
           axes, (long long)json_integer_value(json_object_get(row, "elements")),
           json_number_value(json_object_get(row, "bytes")),
           json_number_value(json_object_get(row, "flops")),
           json_string_value(json_object_get(row, "name")));
}

static void print_memory(const lm *m, const mtf_memory *memory, int threads)
{
    const struct {
        const char *what;
        int64_t bytes;
    } parts[] = {{"state: parameters, optimizer slots, accumulators", memory->state},
                 {"values", memory->slab},
                 {"collective and exchange buffers", memory->scratch},
                 {"kernel workspace", memory->workers},
                 {"peak in all", all_bytes(memory)}};
    printf("memory of one processor (the largest) in a process of its own with %d thread%s:\n",
           threads, threads == 1 ? "" : "s");
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        printf("%16lld  %s\n", (long long)parts[k].bytes, parts[k].what);
    const int64_t processors = mtf_mesh_processors(m->mesh);
    if (processors > 1)
        printf("one process that hosts all %lld processors needs %.4g MB, and no buffers\n",
               (long long)processors,
               ((double)(memory->state + memory->slab) * (double)processors +
                (double)memory->workers) /
                   1e6);
    putchar('\n');
}

static void print_text(const lm *m, const mtf_memory *memory, int threads, const step_programs *s,
                       bool program)
{
    const mtf_totals t = add_totals(s);
    printf("mesh '%s', layout '%s': %lld processors\n%lld parameters\n", mtf_mesh_text(m->mesh),
           mtf_layout_text(m->layout), (long long)mtf_mesh_processors(m->mesh),
           (long long)m->parameters);
    printf("one training step, per processor (the largest): %lld instructions, %.4g GFLOP, %.4g MB "
           "sent, %.4g MB of memory at most, %.4g MB of it state\n\n",
           (long long)t.instructions, t.flops / 1e9, t.sent_bytes / 1e6,
           (double)all_bytes(memory) / 1e6, (double)memory->state / 1e6);
    print_memory(m, memory, threads);
    if (program) {
        for (int64_t i = 0; i < s->n; i++)
            mtf_program_print(s->program[i], stdout);
        return;
    }
    for (int64_t i = 0; i < s->n; i++) {
        if (i > 0 && s->program[i] == s->program[i - 1]) continue;
        mtf_program_print_memory(s->program[i], stdout);
        putchar('\n');
        mtf_program_print_resharding(s->program[i], stdout);
        putchar('\n');
    }
    printf("%-15s %-12s %14s %14s %16s  %s\n", "operation", "over", "elements", "bytes sent",
           "flops", "name");
    json_t *all = instructions(s), *row;
    size_t i;
    json_array_foreach(all, i, row) print_row(row);
    json_decref(all);
}

static mtf_status open_model(const config *c, bool strict, lm **m, mtf_err *err)
{
    data d = {0};
    int64_t vocab = c->model.vocab;
    mtf_status st = MTF_OK;
    if (!vocab && c->data.train[0]) st = data_open(c, &d, err);
    if (st == MTF_OK) st = data_vocab(c, d.tokenizer, &vocab, err);
    data_close(&d);
    mtf_err warning = {0};
    const lm_request r = {.parts = LM_TRAIN | (data_validates(c) ? LM_EVAL : 0),
                          .vocab = vocab,
                          .strict = strict,
                          .dtype = -1};
    if (st == MTF_OK) st = lm_open(c, &r, m, &warning, err);
    if (st == MTF_OK) cli_warn(&warning);
    return st;
}

static int run(int argc, char **argv)
{
    options o;
    option_args args;
    int code = 0;
    if (!cli_parse(&command_explain, &table, argc, argv, &o, &args, 1, 1, &code)) return code;
    mtf_err err = {0};
    config c;
    lm *m = NULL;
    config_defaults(&c);
    const char *mesh = cli_given(&table, &args, "mesh") ? o.mesh : NULL;
    const char *layout = cli_given(&table, &args, "layout") ? o.layout : NULL;
    mtf_status st = mtf_launch(NULL, NULL, &err);
    if (st == MTF_OK) st = cli_config(args.items[0], &o.set, mesh, layout, &c, &err);
    if (st == MTF_OK) st = open_model(&c, o.strict, &m, &err);
    if (st == MTF_OK && cli_is_root()) {
        step_programs s = programs_of(m);
        const int threads = plan_threads((int)o.threads);
        const mtf_memory memory = lm_memory(m, threads, mtf_mesh_processors(m->mesh) > 1);
        if (o.json)
            print_json(m, &memory, &s);
        else
            print_text(m, &memory, threads, &s, o.program);
        mem_free(s.program);
    }
    if (st == MTF_OK) st = cli_flush(&err);
    lm_close(&m);
    config_free(&c);
    mem_free(args.items);
    options_free(&table, &o);
    return cli_finish(st, &err);
}

const command command_explain = {
    .name = "explain",
    .arguments = "CONFIG.yaml [OPTIONS]",
    .summary = "the SPMD program of a training step: work, traffic and memory per instruction",
    .run = run,
};
