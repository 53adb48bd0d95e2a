/* SPDX-License-Identifier: Apache-2.0
 * The first step's loss and all gradients against values from PyTorch, made once by
 * tests/golden/make_transformer.py, on one processor and under even and uneven layouts. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "support/model.h"
#include "support/stored.h"

static const struct {
    const char *mesh, *layout;
} cases[] = {
    {"", ""},
    {"rows:2;cols:2", "batch:rows;vocab:cols;d_ff:cols;heads:cols"},
    {"a:3", "vocab:a;heads:a;d_ff:a"},
    {"a:3", "batch:a"},
    {"rows:2;cols:2", "batch:rows;stream_length:cols;vocab:cols;heads:cols;d_ff:cols"},
    {"rows:2;cols:3", "d_model:rows;vocab:cols;memory_length:cols;d_ff:cols"},
    {"rows:2;cols:3", "batch:rows;length:cols"},
    {"rows:2;cols:2", "batch:rows+cols"},
    {"a:5", "d_kv:a;max_length:a"},
};

static safetensors *file;

static int open_file(void **state)
{
    (void)state;
    file = stored_open("transformer.safetensors");
    return 0;
}

static int close_file(void **state)
{
    (void)state;
    safetensors_close(&file);
    return 0;
}

/* The tensor prefix + name, which must have `n` elements. Free with mem_free. */
static void *read_tensor(const char *prefix, const char *name, mtf_dtype type, int64_t n)
{
    char whole[256];
    int64_t found = 0;
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    void *data = stored_read(file, whole, type, &found);
    assert_int_equal(found, n);
    return data;
}

static void load_weights(const model *m, mtf_session *s)
{
    mtf_err err = {0};
    for (int i = 0; i < m->m->nvariables; i++) {
        const int64_t n = tensor_size(m->m->variable[i]);
        float *stored = read_tensor("weight/", mtf_tensor_name(m->m->variable[i]), MTF_F32, n);
        double *wide = mem_alloc((size_t)n * sizeof *wide);
        for (int64_t j = 0; j < n; j++)
            wide[j] = (double)stored[j];
        if (mtf_state_set(s, m->m->variable[i], wide, &err) != MTF_OK) fail_msg("%s", err.text);
        mem_free(stored);
        mem_free(wide);
    }
}

/* Relative to the largest element: single elements may be near zero by cancellation. */
static void compare(const char *layout, const char *prefix, const char *name, const double *got,
                    int64_t n)
{
    double *want = read_tensor(prefix, name, MTF_F64, n), top = 0;
    for (int64_t j = 0; j < n; j++)
        top = fmax(top, fabs(want[j]));
    for (int64_t j = 0; j < n; j++)
        if (!(fabs(got[j] - want[j]) <= 1e-9 * top))
            fail_msg("layout '%s': %s%s, element %lld is %.17g; PyTorch says %.17g", layout, prefix,
                     name, (long long)j, got[j], want[j]);
    mem_free(want);
}

static void run_case(const model *m, int c, const char *prefix, const mtf_feed *feeds)
{
    mtf_tensor *fetch[MODEL_MAX_VARIABLES + 2] = {m->t.loss_sum, m->t.count};
    void *got[MODEL_MAX_VARIABLES + 2];
    const int n = m->m->nvariables;
    memcpy(fetch + 2, m->gradient, sizeof *fetch * (size_t)n);
    for (int i = 0; i < n + 2; i++)
        got[i] = mem_zalloc((size_t)tensor_size(fetch[i]) * sizeof(double));
    mtf_err err = {0};
    machine run = machine_new(m->g, cases[c].mesh, cases[c].layout,
                              &(mtf_request){.nfetches = n + 2, .fetches = fetch});
    load_weights(m, run.session);
    if (mtf_run(run.session, run.program, 2, feeds, got, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    char gradients[64];
    snprintf(gradients, sizeof gradients, "%sgradient/", prefix);
    compare(cases[c].layout, prefix, "loss", got[0], 1);
    assert_true(*(double *)got[1] == 4 * 16 - 7); /* real tokens: see the script */
    for (int i = 0; i < n; i++)
        compare(cases[c].layout, gradients, mtf_tensor_name(m->m->variable[i]), got[i + 2],
                tensor_size(fetch[i + 2]));
    for (int i = 0; i < n + 2; i++)
        mem_free(got[i]);
    machine_free(&run);
}

static void check(bool tied)
{
    const mtf_transformer_options o = {.vocab = 97,
                                       .layers = 2,
                                       .d_model = 32,
                                       .heads = 4,
                                       .d_kv = 8,
                                       .d_ff = 64,
                                       .length = 16,
                                       .activation = MTF_GELU,
                                       .tied = tied,
                                       .dtype = MTF_F64};
    model m = model_new(&o, 5);
    int32_t *inputs = read_tensor("", "inputs", MTF_I32, 80),
            *targets = read_tensor("", "targets", MTF_I32, 80);
    const mtf_feed feeds[] = {{.placeholder = m.t.inputs, .data = inputs},
                              {.placeholder = m.t.targets, .data = targets}};
    for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++)
        run_case(&m, c, tied ? "tied/" : "separate/", feeds);
    mem_free(inputs);
    mem_free(targets);
    mtf_graph_free(&m.g);
}

static void tied_weights(void **state)
{
    (void)state;
    check(true);
}

static void separate_weights(void **state)
{
    (void)state;
    check(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tied_weights),
                                       cmocka_unit_test(separate_weights)};
    return cmocka_run_group_tests(tests, open_file, close_file);
}
