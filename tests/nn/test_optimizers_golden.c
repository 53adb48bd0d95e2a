/* SPDX-License-Identifier: Apache-2.0
 * Random cases of every optimiser, some steps each, against values that were made once by
 * tests/golden/make_optimizers.py, on one processor and under layouts. */
#include "check.h"

#include <float.h>
#include <stdio.h>

#include "base/mem.h"
#include "support/cases.h"
#include "support/model.h"

/* The columns of the table, as in the script. */
enum {
    KIND,
    STEPS,
    RANK,
    SIZE,
    RATE = SIZE + 4,
    MOMENTUM,
    BETA1,
    BETA2,
    EPSILON,
    UNCORRECTED,
    WEIGHT_DECAY,
    SCALE,
    FACTORED,
    DECAY_ADAM,
    EXPONENT,
    DECAY_BETA2,
    OFFSET,
    MEAN,
    THRESHOLD,
    EPSILON1,
    EPSILON2,
    MIN_DIM,
    STACKED,
    COLUMNS,
};

static const char *const layouts[][2] = {{"", ""},
                                         {"x:2;y:3", "a:x;b:y"},
                                         {"x:2;y:3;z:2", "b:x+y;c:z"},
                                         {"x:4", "a:x"},
                                         {"x:2;y:3;z:2", "a:y;d:x;c:z"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static mtf_optimizer_options options_of(const double *row, char stacked[16])
{
    int used = 0;
    for (int d = 0; d < 4; d++)
        if ((int)row[STACKED] >> d & 1) used += sprintf(stacked + used, "%c;", 'a' + d);
    return (mtf_optimizer_options){
        .kind = (mtf_optimizer_kind)row[KIND],
        .momentum = row[MOMENTUM],
        .beta1 = row[BETA1],
        .beta2 = row[BETA2],
        .epsilon = row[EPSILON],
        .uncorrected = row[UNCORRECTED] != 0,
        .weight_decay = row[WEIGHT_DECAY],
        .adafactor = {.multiply_by_parameter_scale = row[SCALE] != 0,
                      .factored = row[FACTORED] != 0,
                      .decay = row[DECAY_ADAM] != 0 ? MTF_DECAY_ADAM : MTF_DECAY_POW,
                      .exponent = row[KIND] == MTF_ADAFACTOR ? row[EXPONENT] : 1,
                      .beta2 = row[DECAY_BETA2],
                      .decay_offset = (int64_t)row[OFFSET],
                      .beta1 = row[MEAN],
                      .clipping_threshold = row[THRESHOLD],
                      .epsilon1 = row[EPSILON1],
                      .epsilon2 = row[EPSILON2],
                      .min_dim_size_to_factor = (int64_t)row[MIN_DIM],
                      .stacked_dims = used ? stacked : NULL},
        .schedule = {.nfactors = 1, .factor = {{.narguments = 1, .argument = {row[RATE]}}}}};
}

static mtf_shape shape_of(const double *row)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    mtf_shape s = MTF_SCALAR;
    for (int d = 0; d < (int)row[RANK]; d++)
        s = mtf_shape_with(s, (mtf_dim){names[d], (int64_t)row[SIZE + d]});
    return s;
}

static void step(const mtf_optimizer *o, machine *run, mtf_tensor *placeholder, const double *g,
                 int64_t t, int64_t steps)
{
    mtf_step_scalar scalars[MTF_MAX_STEP_SCALARS];
    mtf_feed feeds[MTF_MAX_STEP_SCALARS + 1] = {{.placeholder = placeholder, .data = g}};
    const int n = mtf_optimizer_scalars(o, t, steps, scalars);
    for (int i = 0; i < n; i++)
        feeds[i + 1] = (mtf_feed){.placeholder = scalars[i].placeholder, .data = &scalars[i].value};
    mtf_err err = {0};
    if (mtf_run(run->session, run->program, n + 1, feeds, NULL, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
}

static void run_case(int index, int layout, const double *row, const double *weights,
                     const double *gradients, const double *after)
{
    char stacked[16];
    const mtf_optimizer_options options = options_of(row, stacked);
    const mtf_shape shape = shape_of(row);
    const int64_t n = mtf_shape_size(&shape), steps = (int64_t)row[STEPS];
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *w = mtf_weight(g, "w", shape, 1.0, MTF_F64);
    mtf_tensor *d = mtf_placeholder(g, "gradient", shape, MTF_F64);
    mtf_optimizer *o = mtf_optimizer_new(g, &options, 1, &w);
    mtf_tensor *update[MTF_MAX_VARIABLE_UPDATES];
    const int nupdates = mtf_optimizer_updates(o, &d, update);
    mtf_err err = {0};
    if (mtf_graph_status(g, &err) != MTF_OK) fail_msg("case %d: %s", index, err.text);
    machine run = machine_new(g, layouts[layout][0], layouts[layout][1],
                              &(mtf_request){.nupdates = nupdates, .updates = update});
    double *got = mem_alloc((size_t)n * sizeof *got);
    mtf_state_set(run.session, w, weights, &err);
    for (int64_t t = 1; t <= steps; t++)
        step(o, &run, d, gradients + (t - 1) * n, t, steps);
    mtf_state_get(run.session, w, got, &err);
    /* A step rounds some tens of times, each time by at most half an epsilon of weight or step. */
    cases_compare(index, layouts[layout][1], "w", got, after, n, 32 * DBL_EPSILON * (double)steps);
    mem_free(got);
    machine_free(&run);
    mtf_graph_free(&g);
}

static void random_cases(void **state)
{
    (void)state;
    enum { CASES = 170, WEIGHTS = 0, GRADIENTS, AFTER, TENSORS };
    static const char *const names[TENSORS] = {"weights", "gradients", "after"};
    cases file = cases_open("optimizers.safetensors", CASES, COLUMNS, TENSORS, names);
    for (int i = 0; i < CASES; i++) {
        const double *row = cases_row(&file, i);
        const mtf_shape shape = shape_of(row);
        const int64_t n = mtf_shape_size(&shape);
        const double *weights = cases_take(&file, WEIGHTS, n);
        const double *gradients = cases_take(&file, GRADIENTS, n * (int64_t)row[STEPS]);
        const double *after = cases_take(&file, AFTER, n);
        run_case(i, 0, row, weights, gradients, after);
        run_case(i, 1 + i % (LAYOUTS - 1), row, weights, gradients, after);
    }
    cases_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
