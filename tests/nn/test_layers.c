/* SPDX-License-Identifier: Apache-2.0
 * Layers alone: values known by hand, initial values, the streams of dropout, wrong sizes. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "support/model.h"

/* Fetches up to 4 tensors of f64 on a mesh. */
static void fetch(mtf_graph *g, const char *mesh, const char *layout, int n,
                  mtf_tensor *const *tensors, double **out)
{
    mtf_err err = {0};
    machine run = machine_new(g, mesh, layout, &(mtf_request){.nfetches = n, .fetches = tensors});
    if (mtf_run(run.session, run.program, 0, NULL, (void **)out, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    machine_free(&run);
}

static void expect_near(const double *got, const double *want, int n, double tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance))
            fail_msg("element %d is %.17g instead of %.17g", i, got[i], want[i]);
}

/* [1, 2, .., n] */
static mtf_tensor *count_up(mtf_graph *g, const char *dim, int64_t n)
{
    return mtf_offset(mtf_range(g, (mtf_dim){dim, n}, MTF_F64), 1.0);
}

/* logits [1, 2, 3, 4] and target 3: 0.440190; zeros: log 4. */
static void cross_entropy(void **state)
{
    (void)state;
    static const char *const cuts[][2] = {{"", ""}, {"x:2", "vocab:x"}, {"x:3", "vocab:x"}};
    for (int c = 0; c < 3; c++) {
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *target = mtf_constant(g, 3, MTF_SHAPE({"t", 1}), MTF_I32);
        mtf_tensor *padding = mtf_constant(g, -1, MTF_SHAPE({"t", 1}), MTF_I32);
        mtf_tensor *logits =
            mtf_broadcast(count_up(g, "vocab", 4), MTF_SHAPE({"t", 1}, {"vocab", 4}));
        mtf_tensor *out[] = {mtf_cross_entropy(logits, target, "vocab"),
                             mtf_cross_entropy(mtf_scale(logits, 0), target, "vocab"),
                             mtf_cross_entropy(logits, padding, "vocab")};
        double got[3];
        fetch(g, cuts[c][0], cuts[c][1], 3, out, (double *[]){&got[0], &got[1], &got[2]});
        expect_near(got, (double[]){0.440190, 1.386294, 0}, 3, 1e-6);
        mtf_graph_free(&g);
    }
}

/* Equal scores: query i is the mean of the values 1 .. i + 1. */
static void causal_attention(void **state)
{
    (void)state;
    static const char *const cuts[][2] = {
        {"", ""}, {"x:2", "length:x"}, {"x:3", "memory_length:x"}};
    const mtf_dim length = {"length", 5}, memory = {"memory_length", 5};
    for (int c = 0; c < 3; c++) {
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *q = mtf_constant(g, 0, MTF_SHAPE(length, {"d_kv", 1}), MTF_F64);
        mtf_tensor *v =
            mtf_broadcast(count_up(g, "memory_length", 5), MTF_SHAPE(memory, {"d_kv", 1}));
        mtf_tensor *y = mtf_attention(q, v, v, mtf_causal_bias(g, length, memory, MTF_F64),
                                      "memory_length", "d_kv", 0.0);
        double got[5];
        fetch(g, cuts[c][0], cuts[c][1], 1, &y, (double *[]){got});
        expect_near(got, (double[]){1, 1.5, 2, 2.5, 3}, 5, 1e-14);
        mtf_graph_free(&g);
    }
}

static void initial_deviation(void **state)
{
    (void)state;
    enum { N = 200 * 100 };
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *w =
        mtf_dense_weight(g, "w", MTF_SHAPE({"in", 200}), MTF_SHAPE({"out", 100}), 2.0, MTF_F64);
    double *got = mem_alloc(N * sizeof *got), sum = 0, squares = 0;
    fetch(g, "", "", 1, &w, &got);
    for (int i = 0; i < N; i++) {
        sum += got[i];
        squares += got[i] * got[i];
    }
    const double want = 2.0 / sqrt(200.0);
    assert_true(fabs(sum / N) < 4 * want / sqrt(N));
    assert_true(fabs(sqrt(squares / N) / want - 1) < 0.02);
    mem_free(got);
    mtf_graph_free(&g);
}

/* Two dropouts of one path differ; after a repeat they are drawn as before. */
static void streams(void **state)
{
    (void)state;
    enum { N = 64 };
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_constant(g, 1, MTF_SHAPE({"n", N}), MTF_F64), *y[4];
    for (int k = 0; k < 4; k++) {
        if (k == 2) mtf_graph_repeat_streams(g);
        mtf_scope_push(g, "layer");
        y[k] = mtf_dropout(x, "drop", 0.5);
        mtf_scope_pop(g);
    }
    double got[4][N];
    fetch(g, "x:2", "n:x", 4, y, (double *[]){got[0], got[1], got[2], got[3]});
    assert_memory_not_equal(got[0], got[1], sizeof got[0]);
    assert_memory_equal(got[0], got[2], sizeof got[0]);
    assert_memory_equal(got[1], got[3], sizeof got[1]);
    mtf_graph_free(&g);
}

static const mtf_transformer_options small = {
    .vocab = 11, .layers = 1, .d_model = 8, .heads = 2, .d_kv = 4, .d_ff = 8, .length = 6};

/* A shorter sequence is the beginning of a longer one: later tokens do not matter, nor does the
 * batch; without training there is no dropout. */
static void shorter_sequences(void **state)
{
    (void)state;
    mtf_transformer_options o = small;
    o.dropout = 0.5;
    o.dtype = MTF_F64;
    mtf_graph *g = mtf_graph_new();
    mtf_transformer *m = mtf_transformer_variables(g, &o);
    const mtf_transformer_tensors full = mtf_transformer_apply(m, 2, 6, false),
                                  part = mtf_transformer_apply(m, 1, 4, false);
    mtf_tensor *fetches[] = {full.logits, part.logits};
    const int32_t inputs[12] = {0, 1, 2, 3, 4, 5, 10, 9, 8, 7, 6, 5};
    const mtf_feed feeds[] = {{.placeholder = full.inputs, .data = inputs},
                              {.placeholder = part.inputs, .data = inputs + 6}};
    double a[2][6][11], b[4][11];
    mtf_err err = {0};
    machine run = machine_new(g, "x:2", "stream_length:x;vocab:x",
                              &(mtf_request){.nfetches = 2, .fetches = fetches});
    if (mtf_run(run.session, run.program, 2, feeds, (void *[]){a, b}, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    expect_near(b[0], a[1][0], 44, 1e-13);
    machine_free(&run);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy),     cmocka_unit_test(causal_attention),
        cmocka_unit_test(initial_deviation), cmocka_unit_test(streams),
        cmocka_unit_test(shorter_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
