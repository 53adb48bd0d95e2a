/* SPDX-License-Identifier: Apache-2.0
 * Norms: values known by hand (reference 3.4), initial values, moving averages, what a split of the
 * channels moves, wrong arguments. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "spmd/program.h"
#include "support/eval.h"
#include "support/mistakes.h"
#include "support/model.h"

static const mtf_dim batch = {"batch", 2}, channel = {"channel", 3};

static const char *const cuts[][2] = {
    {"", ""}, {"x:2", "channel:x"}, {"x:3", "channel:x"}, {"x:2;y:3", "batch:x;channel:y"}};
enum { CUTS = sizeof cuts / sizeof *cuts };

/* [1, 2, 3, 4] along one dim, with variables that a test gives itself. */
static void layer_and_rms_norm(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape d = MTF_SHAPE({"channel", 4});
    mtf_tensor *x = INPUT(&e, d, MTF_F64, 1, 2, 3, 4);
    mtf_tensor *scale = INPUT(&e, d, MTF_F64, 1, 2, 3, 4),
               *bias = INPUT(&e, d, MTF_F64, 0, 0, 0, 1);
    const mtf_norm bare = {.along = d}, scaled = {.along = d, .scale = scale},
                   both = {.along = d, .scale = scale, .bias = bias};
    for (int c = 0; c < CUTS - 1; c++) {
        const char *m = cuts[c][0], *l = cuts[c][1];
        EXPECT_ON(&e, m, l, mtf_layer_norm(x, bare, 1e-6), 1e-5, -1.34164, -0.44721, 0.44721,
                  1.34164);
        EXPECT_ON(&e, m, l, mtf_layer_norm(x, both, 1e-6), 1e-5, -1.34164, -0.89443, 1.34164,
                  6.36656);
        /* The mean of the squares is 7.5. */
        EXPECT_ON(&e, m, l, mtf_rms_norm(x, bare, 0), 1e-5, 0.365148, 0.730297, 1.095445, 1.460593);
        EXPECT_ON(&e, m, l, mtf_rms_norm(x, scaled, 0), 1e-5, 0.365148, 1.460593, 3.286335,
                  5.842374);
        EXPECT_ON(&e, m, l, mtf_rms_norm(x, bare, 8.5), 1e-12, 0.25, 0.5, 0.75, 1);
    }
    eval_close(&e);
}

/* Over two dims at once, one of them of size 1; a single value is its own mean. */
static void over_several_dims(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape abc = MTF_SHAPE({"a", 2}, {"b", 1}, {"c", 2});
    mtf_tensor *x = INPUT(&e, abc, MTF_F64, 1, 2, 3, 4), *one = INPUT(&e, MTF_SCALAR, MTF_F64, 3);
    const mtf_norm all = {.along = MTF_SHAPE({"c", 2}, {"b", 1}, {"a", 2})},
                   some = {.along = MTF_SHAPE({"b", 1}, {"c", 2})}, none = {.along = MTF_SCALAR};
    EXPECT(&e, mtf_layer_norm(x, all, 1e-6), 1e-5, -1.34164, -0.44721, 0.44721, 1.34164);
    EXPECT(&e, mtf_layer_norm(x, some, 0), 1e-12, -1, 1, -1, 1);
    EXPECT(&e, mtf_layer_norm(one, none, 1), 0, 0);
    EXPECT(&e, mtf_rms_norm(one, none, 0), 1e-12, 1);
    eval_close(&e);
}

static void variables_as_asked_for(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    const mtf_shape d = MTF_SHAPE(channel);
    const mtf_norm none = mtf_norm_variables(g, "none", d, 0, MTF_F32),
                   scale = mtf_norm_variables(g, "rms", d, MTF_NORM_SCALE, MTF_F32),
                   both = mtf_norm_variables(g, "n", d, MTF_NORM_SCALE | MTF_NORM_BIAS, MTF_F64);
    assert_int_equal(mtf_graph_status(g, NULL), MTF_OK);
    assert_true(!none.scale && !none.bias && scale.scale && !scale.bias);
    assert_string_equal(mtf_tensor_name(both.scale), "n/scale");
    assert_string_equal(mtf_tensor_name(both.bias), "n/bias");
    assert_int_equal(mtf_tensor_dtype(both.bias), MTF_F64);
    mtf_graph_free(&g);
}

/* ---- batch norm ---- */

/* Reference 3.4: [[0, 1, 2], [4, 5, 6]] over the first dim; 2 that + 1 normalised gives the same.
 */
static void batch_norm(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_err err = {0};
    const float data[] = {0, 1, 2, 4, 5, 6};
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(batch, channel), MTF_F32);
    const mtf_batch_stats s =
        mtf_batch_norm_variables(g, "norm", MTF_SHAPE(channel), false, MTF_F32);
    mtf_tensor *update[2], *again[2];
    mtf_tensor *y = mtf_batch_norm(x, s, 0.75, 1e-9, update);
    mtf_tensor *z = mtf_batch_norm(mtf_offset(mtf_scale(y, 2), 1), s, 0.75, 1e-9, again);
    mtf_tensor *inference = mtf_batch_norm_inference(x, s, 0);
    mtf_tensor *fetch[] = {y, z, inference, s.mean, s.variance};
    for (int c = 0; c < CUTS; c++) {
        float out[3][6], mean[3], variance[3];
        void *to[] = {out[0], out[1], out[2], mean, variance};
        machine m = machine_new(
            g, cuts[c][0], cuts[c][1],
            &(mtf_request){.nfetches = 5, .fetches = fetch, .nupdates = 2, .updates = update});
        const float want[2][5][3] = {{{-1, -1, -1}, {1, 1, 1}, {0, 1, 2}, {0, 0, 0}, {1, 1, 1}},
                                     /* 0.75 * 0 + 0.25 * (2, 3, 4); 0.75 * 1 + 0.25 * 4 */
                                     {{-1, -1, -1},
                                      {1, 1, 1},
                                      {-0.377964f, 0.188982f, 0.755929f},
                                      {0.5, 0.75, 1},
                                      {1.75, 1.75, 1.75}}};
        for (int step = 0; step < 2; step++) {
            if (mtf_run(m.session, m.program, 1, &(mtf_feed){.placeholder = x, .data = data}, to,
                        NULL, &err) != MTF_OK)
                fail_msg("%s", err.text);
            const float *got[] = {out[0], out[0] + 3, out[2], mean, variance};
            for (int i = 0; i < 5; i++)
                for (int k = 0; k < 3; k++)
                    assert_true(fabsf(got[i][k] - want[step][i][k]) < 1e-5f);
            for (int k = 0; k < 6; k++)
                assert_true(fabsf(out[1][k] - out[0][k]) < 1e-5f);
        }
        machine_free(&m);
    }
    mtf_graph_free(&g);
}

/* A scale that begins as zeros; averages are no trainable variables and get no gradient. */
static void batch_norm_variables(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_random_normal(g, "x", MTF_SHAPE(batch, channel), MTF_F64, 0, 1);
    const mtf_batch_stats s =
        mtf_batch_norm_variables(g, "norm", MTF_SHAPE(channel), true, MTF_F64);
    mtf_tensor *update[2], *y = mtf_batch_norm(x, s, 0.9, 1e-6, update), *d[5];
    mtf_tensor *of[] = {x, s.scale, s.bias, s.mean, s.variance};
    assert_int_equal(mtf_gradients_of(1, &y, NULL, 5, of, d), MTF_OK);
    assert_true(d[0] && d[1] && d[2] && !d[3] && !d[4]);
    double out[6], mean[3];
    machine m = machine_new(g, "", "",
                            &(mtf_request){.nfetches = 2, .fetches = (mtf_tensor *[]){y, s.mean}});
    mtf_err err = {0};
    assert_int_equal(mtf_run(m.session, m.program, 0, NULL, (void *[]){out, mean}, NULL, &err),
                     MTF_OK);
    for (int i = 0; i < 6; i++)
        assert_true(out[i] == 0 && mean[i % 3] == 0);
    machine_free(&m);
    mtf_graph_free(&g);
}

/* ---- what is moved ---- */

/* Every collective is an all_reduce of at most `elements` numbers; there is one at least. */
static void expect_small_sums(mtf_graph *g, const char *mesh, const char *layout,
                              const mtf_request *r, int64_t elements)
{
    machine m = machine_new(g, mesh, layout, r);
    int found = 0;
    for (const instr *i = m.program->first; i; i = i->next) {
        if (!instr_is_collective(i)) continue;
        found++;
        if (i->kind != INSTR_ALL_REDUCE || instr_cost_of(m.program, i).elements > elements)
            fail_msg("layout '%s': %s of %lld elements", layout, instr_name(i),
                     (long long)instr_cost_of(m.program, i).elements);
    }
    assert_true(found > 0);
    machine_free(&m);
}

static void nothing_is_gathered(void **state)
{
    (void)state;
    enum { TOKENS = 32, WIDTH = 64 };
    const mtf_dim token = {"token", TOKENS}, width = {"width", WIDTH};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(token, width), MTF_F32);
    const mtf_norm n = mtf_norm_variables(g, "norm", MTF_SHAPE(width), 3, MTF_F32);
    const mtf_batch_stats s =
        mtf_batch_norm_variables(g, "batch", MTF_SHAPE(width), false, MTF_F32);
    mtf_tensor *update[2], *norms[] = {mtf_layer_norm(x, n, 1e-6), mtf_rms_norm(x, n, 1e-6),
                                       mtf_batch_norm(x, s, 0.9, 1e-6, update)};
    for (int i = 0; i < 3; i++) {
        mtf_tensor *y = norms[i], *dx, *dy = mtf_mul(y, y);
        mtf_gradients_of(1, &dy, NULL, 1, &x, &dx);
        mtf_tensor *fetch[] = {y, dx};
        const mtf_request r = {
            .nfetches = 2, .fetches = fetch, .nupdates = i == 2 ? 2 : 0, .updates = update};
        /* Means and their gradients, one number per token or channel; two of them in one call. */
        if (i < 2) expect_small_sums(g, "x:4", "width:x", &r, 2 * TOKENS);
        if (i == 2) expect_small_sums(g, "x:4", "token:x", &r, 2 * WIDTH);
    }
    mtf_graph_free(&g);
}

/* ---- mistakes ---- */

#define A                                                                                          \
    {                                                                                              \
        "a", 4                                                                                     \
    }
#define ALONG(p, ...) ((mtf_norm){.along = MTF_SHAPE(__VA_ARGS__)})

static mtf_tensor *batch_norm_of(parts *p, mtf_shape channels, double momentum, double epsilon)
{
    mtf_tensor *update[2];
    const mtf_batch_stats s = mtf_batch_norm_variables(p->g, "norm", channels, false, MTF_F32);
    mtf_tensor *y = mtf_batch_norm(p->x, s, momentum, epsilon, update);
    assert_true(!update[0] && !update[1]);
    return y;
}

MISTAKE(missing_dim, mtf_layer_norm(p->x, ALONG(p, {"d", 4}), 1e-6))
MISTAKE(another_size, mtf_rms_norm(p->x, ALONG(p, {"b", 5}), 1e-6))
MISTAKE(epsilon_below_zero, mtf_layer_norm(p->x, ALONG(p, {"b", 6}), -1))
MISTAKE(epsilon_is_nan, mtf_rms_norm(p->x, ALONG(p, {"b", 6}), NAN))
MISTAKE(norm_of_integers, mtf_layer_norm(p->i, ALONG(p, {"a", 4}), 0))
MISTAKE(scale_of_another_type,
        mtf_layer_norm(p->d, mtf_norm_variables(p->g, "n", MTF_SHAPE(A), 3, MTF_F32), 0))
MISTAKE(unknown_parts, mtf_norm_variables(p->g, "n", MTF_SHAPE(A), 4, MTF_F32).scale)
MISTAKE(repeated_dim, mtf_norm_variables(p->g, "n", MTF_SHAPE(A, A), 1, MTF_F32).scale)
MISTAKE(channels_that_x_lacks, batch_norm_of(p, MTF_SHAPE({"c", 3}), 0.9, 0))
MISTAKE(momentum_above_one, batch_norm_of(p, MTF_SHAPE(A), 1.5, 0))
MISTAKE(batch_epsilon_below_zero, batch_norm_of(p, MTF_SHAPE(A), 0.5, -1e-9))
MISTAKE(inference_without_channel,
        mtf_batch_norm_inference(p->y,
                                 mtf_batch_norm_variables(p->g, "n", MTF_SHAPE(A), false, MTF_F32),
                                 0))

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const mistake_row rows[] = {
        MISTAKE_ROW(missing_dim),
        MISTAKE_ROW(another_size),
        MISTAKE_ROW(epsilon_below_zero),
        MISTAKE_ROW(epsilon_is_nan),
        MISTAKE_ROW(norm_of_integers),
        MISTAKE_ROW(scale_of_another_type),
        MISTAKE_ROW(unknown_parts),
        MISTAKE_ROW(repeated_dim),
        MISTAKE_ROW(channels_that_x_lacks),
        MISTAKE_ROW(momentum_above_one),
        MISTAKE_ROW(batch_epsilon_below_zero),
        MISTAKE_ROW(inference_without_channel),
    };
    mistakes_check("norm_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_and_rms_norm),     cmocka_unit_test(over_several_dims),
        cmocka_unit_test(variables_as_asked_for), cmocka_unit_test(batch_norm),
        cmocka_unit_test(batch_norm_variables),   cmocka_unit_test(nothing_is_gathered),
        cmocka_unit_test(mistakes_have_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
