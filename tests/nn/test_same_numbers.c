/* SPDX-License-Identifier: Apache-2.0
 * The first losses of a small Transformer are the same numbers on every mesh and layout, with
 * dropout; in microbatches as in one batch. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "support/model.h"

enum { STEPS = 20, BATCH = 6, LENGTH = 16, VOCAB = 29, TOKENS = BATCH * LENGTH };

static const struct {
    const char *mesh, *layout;
} cases[] = {
    {"x:2", "batch:x"},
    {"x:2", "vocab:x;heads:x;d_ff:x"},
    {"x:4", "batch:x"},
    {"x:4", "vocab:x;heads:x;d_ff:x"},
    {"rows:2;cols:2", "batch:rows;vocab:cols;d_ff:cols;heads:cols"},
    {"rows:2;cols:2", "batch:rows+cols"},
    {"rows:3;cols:2", "batch:rows;vocab:cols;d_ff:cols;heads:cols"},
    {"rows:3;cols:2", "d_model:cols;stream_length:rows;length:rows"},
};
enum { CASES = sizeof cases / sizeof *cases };

static mtf_transformer_options options_of(mtf_activation activation, mtf_dtype type)
{
    return (mtf_transformer_options){.vocab = VOCAB,
                                     .layers = 4,
                                     .d_model = 32,
                                     .heads = 4,
                                     .d_kv = 8,
                                     .d_ff = 48,
                                     .length = LENGTH,
                                     .dropout = 0.1,
                                     .activation = activation,
                                     .dtype = type};
}

/* Sequences that can be learnt: each token is the one before plus a stride of its sequence. Some
 * targets are padding. */
static void make_batch(int step, int32_t *inputs, int32_t *targets)
{
    for (int b = 0; b < BATCH; b++) {
        const uint32_t r = random_u32(5, 6, (uint64_t)step, (uint64_t)b);
        const int first = (int)(r % VOCAB), stride = 1 + (int)(r / VOCAB % 3);
        for (int t = 0; t < LENGTH; t++) {
            inputs[b * LENGTH + t] = (first + t * stride) % VOCAB;
            targets[b * LENGTH + t] = b == 2 && t > 10 ? -1 : (first + (t + 1) * stride) % VOCAB;
        }
    }
}

/* ---- one batch ---- */

typedef struct training {
    model m;
    mtf_optimizer *sgd;
    mtf_tensor *update[MODEL_MAX_VARIABLES];
    int nupdates;
} training;

/* Gradients of the sum over the count in the graph, which every processor must count as a whole. */
static training training_new(mtf_activation activation, mtf_dtype type)
{
    const mtf_transformer_options o = options_of(activation, type);
    training t = {.m = model_new(&o, BATCH)};
    const int n = t.m.m->nvariables;
    t.sgd = mtf_optimizer_new(t.m.g, &(mtf_optimizer_options){.kind = MTF_SGD}, n, t.m.m->variable);
    mtf_tensor *mean[MODEL_MAX_VARIABLES];
    for (int i = 0; i < n; i++)
        mean[i] = mtf_div(t.m.gradient[i], t.m.t.count);
    t.nupdates = mtf_optimizer_updates(t.sgd, mean, t.update);
    assert_int_equal(t.nupdates, n);
    return t;
}

static double number(mtf_dtype type, const void *x)
{
    return type == MTF_F64 ? *(const double *)x : (double)*(const float *)x;
}

static void train(training *t, mtf_dtype type, const char *mesh, const char *layout, double *losses)
{
    mtf_err err = {0};
    mtf_tensor *fetch[] = {t->m.t.loss_sum, t->m.t.count};
    machine run = machine_new(
        t->m.g, mesh, layout,
        &(mtf_request){
            .nfetches = 2, .fetches = fetch, .nupdates = t->nupdates, .updates = t->update});
    int32_t inputs[TOKENS], targets[TOKENS];
    const float rate32 = 0.2f;
    const double rate64 = 0.2;
    const mtf_feed feeds[] = {
        {.placeholder = t->m.t.inputs, .data = inputs},
        {.placeholder = t->m.t.targets, .data = targets},
        {.placeholder = t->sgd->rate[0],
         .data = type == MTF_F64 ? (const void *)&rate64 : (const void *)&rate32}};
    for (int s = 0; s < STEPS; s++) {
        double sum = 0, count = 0; /* room for either type */
        make_batch(s, inputs, targets);
        if (mtf_run(run.session, run.program, 3, feeds, (void *[]){&sum, &count},
                    &(mtf_run_values){.step = (uint64_t)s}, &err) != MTF_OK)
            fail_msg("%s", err.text);
        losses[s] = number(type, &sum) / number(type, &count);
    }
    machine_free(&run);
}

static void check(mtf_activation activation, mtf_dtype type, double tolerance)
{
    training t = training_new(activation, type);
    double want[STEPS], got[STEPS], worst = 0;
    train(&t, type, "", "", want);
    assert_true(want[STEPS - 1] < want[0] - 0.05); /* it learns */
    for (int c = 0; c < CASES; c++) {
        train(&t, type, cases[c].mesh, cases[c].layout, got);
        for (int s = 0; s < STEPS; s++) {
            const double relative = fabs(got[s] - want[s]) / want[s];
            worst = fmax(worst, relative);
            if (!(relative < tolerance))
                fail_msg("mesh %s, layout %s: loss of step %d is %.12g instead of %.12g",
                         cases[c].mesh, cases[c].layout, s, got[s], want[s]);
        }
    }
    printf("losses %.6g to %.6g, worst relative difference %.3g\n", want[0], want[STEPS - 1],
           worst);
    mtf_graph_free(&t.m.g);
}

static void gelu_in_f32(void **state)
{
    (void)state;
    check(MTF_GELU, MTF_F32, 1e-5);
}

static void relu_in_f64(void **state)
{
    (void)state;
    check(MTF_RELU, MTF_F64, 1e-9);
}

/* ---- microbatches ---- */

/* Microbatches of 1, 2 and 3 sequences, in one graph over the same variables, add up to the loss
 * and gradients of the whole batch: dropout is that of the full batch. */
enum { MICRO = 3 };

typedef struct instance {
    mtf_transformer_tensors t;
    mtf_tensor *fetch[MODEL_MAX_VARIABLES + 2]; /* loss, count, gradients */
    int nfetches;
} instance;

static instance instance_new(mtf_transformer *m, int64_t batch)
{
    mtf_graph_set_batch(mtf_tensor_graph(m->embedding), "batch", BATCH);
    instance i = {.t = mtf_transformer_apply(m, batch, LENGTH, true)};
    mtf_gradients(i.t.loss_sum, m->nvariables, m->variable, i.fetch + 2);
    i.fetch[0] = i.t.loss_sum;
    i.fetch[1] = i.t.count;
    i.nfetches = 2 + m->nvariables;
    return i;
}

/* Adds what the instance computes for the sequences from `first` to `sums`. */
static void add_run(const instance *in, machine *run, int64_t first, double *const *sums)
{
    mtf_err err = {0};
    int32_t inputs[TOKENS], targets[TOKENS];
    make_batch(0, inputs, targets);
    const mtf_feed feeds[] = {{.placeholder = in->t.inputs, .data = inputs + first * LENGTH},
                              {.placeholder = in->t.targets, .data = targets + first * LENGTH}};
    void *got[MODEL_MAX_VARIABLES + 2];
    for (int i = 0; i < in->nfetches; i++)
        got[i] = mem_alloc((size_t)tensor_size(in->fetch[i]) * sizeof(double));
    const mtf_run_values values = {.step = 4, .batch_offset = first};
    if (mtf_run(run->session, run->program, 2, feeds, got, &values, &err) != MTF_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < in->nfetches; i++) {
        for (int64_t j = 0; j < tensor_size(in->fetch[i]); j++)
            sums[i][j] += ((const double *)got[i])[j];
        mem_free(got[i]);
    }
}

static void run_instance(const instance *in, mtf_graph *g, int64_t first, double *const *sums)
{
    machine run = machine_new(g, "rows:2;cols:2", "batch:rows;vocab:cols;d_ff:cols;heads:cols",
                              &(mtf_request){.nfetches = in->nfetches, .fetches = in->fetch});
    add_run(in, &run, first, sums);
    machine_free(&run);
}

static void microbatches(void **state)
{
    (void)state;
    const mtf_transformer_options o = options_of(MTF_RELU, MTF_F64);
    mtf_graph *g = mtf_graph_new();
    mtf_transformer *m = mtf_transformer_variables(g, &o);
    const instance whole = instance_new(m, BATCH);
    instance part[MICRO];
    for (int i = 0; i < MICRO; i++)
        part[i] = instance_new(m, i + 1);
    mtf_err err = {0};
    if (mtf_graph_status(g, &err) != MTF_OK) fail_msg("%s", err.text);
    double *want[MODEL_MAX_VARIABLES + 2], *got[MODEL_MAX_VARIABLES + 2];
    for (int i = 0; i < whole.nfetches; i++) {
        want[i] = mem_zalloc((size_t)tensor_size(whole.fetch[i]) * sizeof(double));
        got[i] = mem_zalloc((size_t)tensor_size(whole.fetch[i]) * sizeof(double));
    }
    run_instance(&whole, g, 0, want);
    for (int64_t i = 0, first = 0; i < MICRO; first += ++i)
        run_instance(&part[i], g, first, got);
    for (int i = 0; i < whole.nfetches; i++) {
        for (int64_t j = 0; j < tensor_size(whole.fetch[i]); j++)
            if (!(fabs(got[i][j] - want[i][j]) <= 1e-11 * (1 + fabs(want[i][j]))))
                fail_msg("fetch %d, element %lld: %.17g in microbatches, %.17g at once", i,
                         (long long)j, got[i][j], want[i][j]);
        mem_free(want[i]);
        mem_free(got[i]);
    }
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gelu_in_f32), cmocka_unit_test(relu_in_f64),
                                       cmocka_unit_test(microbatches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
