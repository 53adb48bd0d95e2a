/* SPDX-License-Identifier: Apache-2.0
 * Random cases of norms, their gradients and moving averages against PyTorch's, which
 * tests/golden/make_norms.py wrote once, on one processor and under a random layout. */
#include "check.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "support/cases.h"
#include "support/model.h"

enum { CASES = 200, MAX_RANK = 4, MAX_AXES = 3 };

/* The columns of the table and the tensors, as in the script. */
enum {
    KIND,
    RANK,
    SIZE,
    PARTS = SIZE + MAX_RANK,
    BACKWARD,
    AFFINE,
    EPSILON,
    MOMENTUM,
    MESH,
    CUT = MESH + MAX_AXES,
    LARGEST = CUT + MAX_AXES,
    STEEPEST,
    COLUMNS,
};
enum { LAYER, RMS, BATCH, INFERENCE };
enum {
    X,
    WEIGHTS,
    Y,
    X_GRADIENT,
    SCALE,
    BIAS,
    SCALE_GRADIENT,
    BIAS_GRADIENT,
    MEAN,
    VARIANCE,
    MEAN_AFTER,
    VARIANCE_AFTER,
    TENSORS,
};
static const char *const names[TENSORS] = {"x",
                                           "weights",
                                           "y",
                                           "x_gradient",
                                           "scale",
                                           "bias",
                                           "scale_gradient",
                                           "bias_gradient",
                                           "mean",
                                           "variance",
                                           "mean_after",
                                           "variance_after"};

static const char *const dims[MAX_RANK] = {"a", "b", "c", "d"};

/* One case as a graph, with what it has of variables, gradients and moving averages. */
typedef struct norm_case {
    mtf_graph *g;
    mtf_shape shape, parts;
    mtf_tensor *x, *weights;
    mtf_tensor *variable[TENSORS]; /* at SCALE, BIAS, MEAN and VARIANCE; NULL: there is none */
    mtf_tensor *fetch[4], *update[2];
    int nupdates;
    double *stored[TENSORS];
} norm_case;

static mtf_tensor *norm_of(norm_case *c, const double *row)
{
    const double epsilon = row[EPSILON];
    if (row[KIND] == LAYER || row[KIND] == RMS) {
        const mtf_norm n =
            mtf_norm_variables(c->g, "norm", c->parts, (unsigned)row[AFFINE], MTF_F64);
        c->variable[SCALE] = n.scale;
        c->variable[BIAS] = n.bias;
        return row[KIND] == LAYER ? mtf_layer_norm(c->x, n, epsilon)
                                  : mtf_rms_norm(c->x, n, epsilon);
    }
    const mtf_batch_stats s = mtf_batch_norm_variables(c->g, "norm", c->parts, false, MTF_F64);
    c->variable[SCALE] = s.scale;
    c->variable[BIAS] = s.bias;
    c->variable[MEAN] = s.mean;
    c->variable[VARIANCE] = s.variance;
    if (row[KIND] == INFERENCE) return mtf_batch_norm_inference(c->x, s, epsilon);
    c->nupdates = 2;
    return mtf_batch_norm(c->x, s, row[MOMENTUM], epsilon, c->update);
}

static norm_case build(const double *row)
{
    norm_case c = {.g = mtf_graph_new()};
    const int rank = (int)row[RANK];
    for (int d = 0; d < rank; d++)
        c.shape = mtf_shape_with(c.shape, (mtf_dim){dims[d], (int64_t)row[SIZE + d]});
    for (int i = 0; i < rank; i++) {
        const int d = row[BACKWARD] != 0 ? rank - 1 - i : i;
        if ((int)row[PARTS] >> d & 1) c.parts = mtf_shape_with(c.parts, c.shape.dim[d]);
    }
    c.x = mtf_placeholder(c.g, "x", c.shape, MTF_F64);
    c.weights = mtf_placeholder(c.g, "weights", c.shape, MTF_F64);
    c.fetch[0] = norm_of(&c, row);
    mtf_tensor *sum = mtf_reduce_sum(mtf_mul(c.fetch[0], c.weights), MTF_SCALAR);
    mtf_tensor *of[] = {c.x, c.variable[SCALE], c.variable[BIAS]};
    for (int k = 0; k < 3; k++)
        if (of[k]) mtf_gradients(sum, 1, &of[k], &c.fetch[1 + k]);
    mtf_err err = {0};
    if (mtf_graph_status(c.g, &err) != MTF_OK) fail_msg("%s", err.text);
    return c;
}

/* The row's mesh, and its layout: the axes of a dim joined by '+'. */
static void layout_of(const double *row, char mesh[64], char layout[64])
{
    char *m = mesh, *l = layout;
    for (int a = 0; a < MAX_AXES; a++)
        m += sprintf(m, "%c:%d;", 'x' + a, (int)row[MESH + a]);
    for (int d = 0; d < MAX_RANK; d++)
        for (int a = 0, first = 1; a < MAX_AXES; a++)
            if ((int)row[CUT + a] == d) {
                l += first ? sprintf(l, ";%s:%c", dims[d], 'x' + a) : sprintf(l, "+%c", 'x' + a);
                first = 0;
            }
    *l = 0;
}

/* Sums of n numbers round n times, by an epsilon of the largest; a norm divides that by the
 * deviation. */
static double rounding_of(const norm_case *c, const double *row)
{
    return 4 * DBL_EPSILON * ((double)mtf_shape_size(&c->shape) + 8) * (1 + row[LARGEST]);
}

static void set_variables(machine *m, const norm_case *c)
{
    mtf_err err = {0};
    for (int k = SCALE; k <= VARIANCE; k++)
        if (c->variable[k] && mtf_state_set(m->session, c->variable[k], c->stored[k], &err))
            fail_msg("%s", err.text);
}

static void compare_averages(int index, const char *layout, machine *m, const norm_case *c,
                             double tolerance)
{
    mtf_err err = {0};
    const int64_t n = mtf_shape_size(&c->parts);
    double *got = mem_zalloc((size_t)n * sizeof *got);
    for (int k = MEAN; k <= VARIANCE; k++) {
        const int after = k + MEAN_AFTER - MEAN;
        if (!c->variable[k]) continue;
        if (mtf_state_get(m->session, c->variable[k], got, &err)) fail_msg("%s", err.text);
        cases_compare(index, layout, names[after], got, c->stored[after], n, tolerance);
    }
    mem_free(got);
}

static void run_on(int index, const char *mesh, const char *layout, const norm_case *c,
                   const double *row)
{
    static const int results[] = {Y, X_GRADIENT, SCALE_GRADIENT, BIAS_GRADIENT};
    const int64_t n = mtf_shape_size(&c->shape), nparts = mtf_shape_size(&c->parts);
    const double rounding = rounding_of(c, row);
    mtf_tensor *fetch[4];
    void *got[4];
    int result[4], nfetches = 0;
    for (int k = 0; k < 4; k++) {
        if (!c->fetch[k]) continue;
        fetch[nfetches] = c->fetch[k];
        result[nfetches] = results[k];
        got[nfetches++] = mem_zalloc((size_t)n * sizeof(double));
    }
    machine m = machine_new(
        c->g, mesh, layout,
        &(mtf_request){
            .nfetches = nfetches, .fetches = fetch, .nupdates = c->nupdates, .updates = c->update});
    set_variables(&m, c);
    const mtf_feed feeds[] = {{.placeholder = c->x, .data = c->stored[X]},
                              {.placeholder = c->weights, .data = c->stored[WEIGHTS]}};
    mtf_err err = {0};
    if (mtf_run(m.session, m.program, 2, feeds, got, NULL, &err) != MTF_OK)
        fail_msg("case %d: %s", index, err.text);
    for (int k = 0; k < nfetches; k++) {
        const int r = result[k];
        /* The gradient of x is divided by the deviation once more. */
        cases_compare(index, layout, names[r], got[k], c->stored[r],
                      r == Y || r == X_GRADIENT ? n : nparts,
                      r == X_GRADIENT ? rounding * (1 + row[STEEPEST]) : rounding);
        mem_free(got[k]);
    }
    compare_averages(index, layout, &m, c, rounding);
    machine_free(&m);
}

static void random_cases(void **state)
{
    (void)state;
    cases file = cases_open("norms.safetensors", CASES, COLUMNS, TENSORS, names);
    for (int i = 0; i < CASES; i++) {
        const double *row = cases_row(&file, i);
        norm_case c = build(row);
        for (int k = 0; k < TENSORS; k++)
            c.stored[k] =
                cases_take(&file, k, mtf_shape_size(k <= X_GRADIENT ? &c.shape : &c.parts));
        char mesh[64], layout[64];
        layout_of(row, mesh, layout);
        run_on(i, "", "", &c, row);
        run_on(i, mesh, layout, &c, row);
        mtf_graph_free(&c.g);
    }
    cases_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
