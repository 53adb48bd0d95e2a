/* SPDX-License-Identifier: Apache-2.0
 * The Transformer with recomputed layers has the gradients of the one without, bit for bit on most
 * layouts and with dropout, and needs less memory. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "support/model.h"

enum { BATCH = 6, LENGTH = 16, VOCAB = 29, TOKENS = BATCH * LENGTH };

/* Where several copies of a tensor lie on the way, work may be divided in another manner when it is
 * repeated: then there is rounding. */
static const struct {
    const char *mesh, *layout;
    bool rounds;
} cases[] = {
    {"", "", false},
    {"x:2", "batch:x", false},
    {"x:4", "vocab:x;heads:x;d_ff:x", false},
    {"rows:3;cols:2", "batch:rows;vocab:cols;d_ff:cols;heads:cols", false},
    {"rows:2;cols:2", "d_model:cols;stream_length:rows;length:rows", true},
};
enum { CASES = sizeof cases / sizeof *cases };

static model build(int64_t layers, int64_t recompute)
{
    const mtf_transformer_options o = {.vocab = VOCAB,
                                       .layers = layers,
                                       .d_model = 32,
                                       .heads = 4,
                                       .d_kv = 8,
                                       .d_ff = 48,
                                       .length = LENGTH,
                                       .dropout = 0.2,
                                       .activation = MTF_GELU,
                                       .recompute = recompute,
                                       .dtype = MTF_F64};
    return model_new(&o, BATCH);
}

/* The loss and all gradients of one run, one after another; free with mem_free. */
static double *gradients(model *m, const char *mesh, const char *layout, int64_t *n,
                         mtf_totals *totals)
{
    mtf_err err = {0};
    mtf_tensor *fetch[MODEL_MAX_VARIABLES + 1] = {m->t.loss_sum};
    int64_t at[MODEL_MAX_VARIABLES + 1] = {0};
    *n = 1;
    for (int i = 0; i < m->m->nvariables; i++) {
        fetch[i + 1] = m->gradient[i];
        at[i + 1] = *n;
        *n += tensor_size(m->gradient[i]);
    }
    double *out = mem_zalloc(sizeof *out * (size_t)*n);
    void *to[MODEL_MAX_VARIABLES + 1];
    for (int i = 0; i <= m->m->nvariables; i++)
        to[i] = out + at[i];
    machine run = machine_new(m->g, mesh, layout,
                              &(mtf_request){.nfetches = m->m->nvariables + 1, .fetches = fetch});
    *totals = mtf_program_totals(run.program);
    int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i * 7 % VOCAB;
    const mtf_feed feeds[] = {{.placeholder = m->t.inputs, .data = tokens},
                              {.placeholder = m->t.targets, .data = tokens}};
    if (mtf_run(run.session, run.program, 2, feeds, to, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    machine_free(&run);
    return out;
}

static void compare(const double *want, const double *got, int64_t n, int c, int64_t every)
{
    for (int64_t i = 0; i < n; i++)
        if (cases[c].rounds ? !(fabs(want[i] - got[i]) <= 1e-12 * (1 + fabs(want[i])))
                            : memcmp(&want[i], &got[i], sizeof *want) != 0)
            fail_msg("mesh '%s', layout '%s', recompute %lld: number %lld is %.9g instead of %.9g",
                     cases[c].mesh, cases[c].layout, (long long)every, (long long)i, got[i],
                     want[i]);
}

static void equal_gradients(void **state)
{
    (void)state;
    model plain = build(4, 0);
    for (int64_t every = 1; every <= 3; every++) {
        model again = build(4, every);
        for (int c = 0; c < CASES; c++) {
            int64_t n, m;
            mtf_totals a, b;
            double *x = gradients(&plain, cases[c].mesh, cases[c].layout, &n, &a);
            double *y = gradients(&again, cases[c].mesh, cases[c].layout, &m, &b);
            assert_int_equal(n, m);
            compare(x, y, n, c, every);
            assert_true(b.flops > a.flops && b.peak_bytes < a.peak_bytes);
            mem_free(x);
            mem_free(y);
        }
        mtf_graph_free(&again.g);
    }
    mtf_graph_free(&plain.g);
}

/* Bytes of values, at the peak, that 3 further layers take. */
static int64_t growth(int64_t recompute, const char *mesh, const char *layout)
{
    int64_t bytes[2], n;
    for (int i = 0; i < 2; i++) {
        model m = build(i ? 6 : 3, recompute);
        mtf_totals t;
        mem_free(gradients(&m, mesh, layout, &n, &t));
        bytes[i] = t.peak_bytes - t.state_bytes;
        mtf_graph_free(&m.g);
    }
    return bytes[1] - bytes[0];
}

/* A layer keeps its operand for the backward pass, a third of it or less of what it would keep. The
 * gradients, which are fetched here, stay in any case. */
static void memory_falls(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        const int64_t none = growth(0, cases[c].mesh, cases[c].layout),
                      every_third = growth(3, cases[c].mesh, cases[c].layout),
                      all = growth(1, cases[c].mesh, cases[c].layout);
        if (!(all < every_third && every_third < none))
            fail_msg("mesh '%s', layout '%s': 3 layers take %lld bytes, %lld where one of them is "
                     "recomputed, %lld where all are",
                     cases[c].mesh, cases[c].layout, (long long)none, (long long)every_third,
                     (long long)all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_gradients),
        cmocka_unit_test(memory_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
