/* SPDX-License-Identifier: Apache-2.0
 * Random cases of losses and their gradients against PyTorch's, which tests/golden/make_losses.py
 * wrote once, on one processor and under layouts. */
#include "check.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "support/cases.h"
#include "support/model.h"

enum { CASES = 150 };

/* The columns of the table, as in the script. */
enum { KIND, RANK, SIZE, CLASSES = SIZE + 3, SMOOTHING, Z_LOSS, COLUMNS };
enum { INDICES, PROBABILITIES, SIGMOID };

static const char *const layouts[][2] = {{"", ""},
                                         {"x:2;y:3;z:2", "a:x;b:y;c:z"},
                                         {"x:2;y:3;z:2", "b:x+y;c:z"},
                                         {"x:4", "a:x"},
                                         {"x:3;y:2", "c:x+y"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* The tensors of the file. */
enum { LOGITS, TARGETS, WEIGHTS, LOSS, LOGITS_GRADIENT, TARGETS_GRADIENT, TENSORS };
static const char *const names[TENSORS] = {"logits", "targets",         "weights",
                                           "loss",   "logits_gradient", "targets_gradient"};

/* One case as a graph. */
typedef struct loss_case {
    mtf_graph *g;
    mtf_shape logits, targets, loss;
    mtf_tensor *placeholder[3];
    mtf_tensor *fetch[3]; /* the loss and the gradients */
    int nfetches;
    const char *classes;
    bool indices;
    const double *stored[TENSORS];
} loss_case;

static loss_case build(const double *row)
{
    static const char *const dims[] = {"a", "b", "c"};
    loss_case c = {.g = mtf_graph_new(), .indices = row[KIND] == INDICES};
    for (int d = 0; d < (int)row[RANK]; d++)
        c.logits = mtf_shape_with(c.logits, (mtf_dim){dims[d], (int64_t)row[SIZE + d]});
    c.classes = dims[(int)row[CLASSES]];
    const mtf_shape rest = mtf_shape_without(c.logits, c.classes);
    c.targets = c.indices ? rest : c.logits;
    c.loss = row[KIND] == SIGMOID ? c.logits : rest;
    mtf_tensor **p = c.placeholder;
    p[LOGITS] = mtf_placeholder(c.g, "logits", c.logits, MTF_F64);
    p[TARGETS] = mtf_placeholder(c.g, "targets", c.targets, c.indices ? MTF_I32 : MTF_F64);
    p[WEIGHTS] = mtf_placeholder(c.g, "weights", c.loss, MTF_F64);
    const mtf_softmax_loss o = {.label_smoothing = row[SMOOTHING], .z_loss = row[Z_LOSS]};
    c.fetch[0] = row[KIND] == SIGMOID
                     ? mtf_sigmoid_cross_entropy(p[LOGITS], p[TARGETS])
                     : mtf_softmax_cross_entropy(p[LOGITS], p[TARGETS], c.classes, &o);
    mtf_tensor *sum = mtf_reduce_sum(mtf_mul(c.fetch[0], p[WEIGHTS]), MTF_SCALAR);
    c.nfetches = c.indices ? 2 : 3;
    mtf_gradients(sum, c.nfetches - 1, p, c.fetch + 1);
    mtf_err err = {0};
    if (mtf_graph_status(c.g, &err) != MTF_OK) fail_msg("%s", err.text);
    return c;
}

/* Sums over the classes of numbers that come from logits round once per class, by an epsilon of the
 * largest logit; the square of log(Z) makes that of it twice. */
static double tolerance_of(const loss_case *c, const double *row)
{
    const int64_t n = mtf_shape_size(&c->logits);
    double top = 0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, fabs(c->stored[LOGITS][i]));
    const double classes = row[SIZE + (int)row[CLASSES]];
    return 4 * DBL_EPSILON * (classes + 4) * (1 + top) * (1 + 2 * row[Z_LOSS] * (1 + top));
}

static void run_on(int index, int layout, const loss_case *c, double tolerance)
{
    const int64_t sizes[] = {mtf_shape_size(&c->loss), mtf_shape_size(&c->logits),
                             mtf_shape_size(&c->targets)};
    int32_t *indices = mem_zalloc((size_t)sizes[2] * sizeof *indices);
    for (int64_t i = 0; i < sizes[2]; i++)
        indices[i] = c->indices ? (int32_t)c->stored[TARGETS][i] : 0;
    mtf_feed feeds[3];
    for (int k = 0; k < 3; k++)
        feeds[k] = (mtf_feed){.placeholder = c->placeholder[k], .data = c->stored[k]};
    if (c->indices) feeds[TARGETS].data = indices;
    void *got[3];
    for (int k = 0; k < c->nfetches; k++)
        got[k] = mem_zalloc((size_t)sizes[k] * sizeof(double));
    machine m = machine_new(c->g, layouts[layout][0], layouts[layout][1],
                            &(mtf_request){.nfetches = c->nfetches, .fetches = c->fetch});
    mtf_err err = {0};
    if (mtf_run(m.session, m.program, 3, feeds, got, NULL, &err) != MTF_OK)
        fail_msg("case %d: %s", index, err.text);
    for (int k = 0; k < c->nfetches; k++) {
        cases_compare(index, layouts[layout][1], names[LOSS + k], got[k], c->stored[LOSS + k],
                      sizes[k], tolerance);
        mem_free(got[k]);
    }
    machine_free(&m);
    mem_free(indices);
}

static void random_cases(void **state)
{
    (void)state;
    cases file = cases_open("losses.safetensors", CASES, COLUMNS, TENSORS, names);
    for (int i = 0; i < CASES; i++) {
        const double *row = cases_row(&file, i);
        loss_case c = build(row);
        const mtf_shape *const shapes[TENSORS] = {&c.logits, &c.targets, &c.loss,
                                                  &c.loss,   &c.logits,  &c.targets};
        for (int k = 0; k < TENSORS; k++)
            c.stored[k] = cases_take(&file, k, mtf_shape_size(shapes[k]));
        const double tolerance = tolerance_of(&c, row);
        run_on(i, 0, &c, tolerance);
        run_on(i, 1 + i % (LAYOUTS - 1), &c, tolerance);
        mtf_graph_free(&c.g);
    }
    cases_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
