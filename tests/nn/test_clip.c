/* SPDX-License-Identifier: Apache-2.0
 * The global norm, clipping of gradients, and moving averages of variables, on several layouts. */
#include "check.h"

#include <math.h>

#include "support/eval.h"
#include "support/model.h"

static const char *const layouts[][2] = {{"", ""},
                                         {"x:2;y:2", ""},
                                         {"x:2;y:2", "a:x"},
                                         {"x:3;y:2", "a:x;b:y"},
                                         {"x:2;y:3", "a:x+y;c:y"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* Two gradients and a variable that has none. */
typedef struct gradients {
    eval e;
    mtf_tensor *t[3];
} gradients;

static gradients gradients_new(void)
{
    gradients s = {.e = eval_open()};
    s.t[0] = INPUT(&s.e, MTF_SHAPE({"a", 4}, {"b", 3}), MTF_F64, 1, -2, 3, 4, -5, 6, 7, 8, 9, -10,
                   11, 12);
    s.t[2] = INPUT(&s.e, MTF_SHAPE({"c", 3}), MTF_F64, 0.5, 2, -1);
    return s;
}

static void norm_counts_once(void **state)
{
    (void)state;
    gradients s = gradients_new();
    mtf_tensor *norm = mtf_global_norm(3, s.t);
    mtf_tensor *zero = mtf_constant(s.e.g, 0.0, MTF_SCALAR, MTF_F64);
    for (int l = 0; l < LAYOUTS; l++) {
        const char *m = layouts[l][0], *k = layouts[l][1];
        EXPECT_ON(&s.e, m, k, norm, 1e-14, sqrt(650 + 5.25));
        EXPECT_ON(&s.e, m, k, mtf_clip_factor(norm, 0.1), 1e-14, 0.1 / sqrt(650 + 5.25));
        EXPECT_ON(&s.e, m, k, mtf_clip_factor(zero, 0.1), 0, 1);
    }
    eval_close(&s.e);
}

/* Against the same sums on the host. */
static void expect_clipped(const mtf_clip *c, double scale)
{
    static const double value[2][12] = {{1, -2, 3, 4, -5, 6, 7, 8, 9, -10, 11, 12}, {0.5, 2, -1}};
    static const int n[2] = {12, 3};
    double want[2][12], square = 0;
    for (int k = 0; k < 2; k++) {
        double own = 0;
        for (int i = 0; i < n[k]; i++) {
            want[k][i] = value[k][i] * scale;
            if (c->value > 0) want[k][i] = fmin(fmax(want[k][i], -c->value), c->value);
            own += want[k][i] * want[k][i];
        }
        const double factor = c->variable_norm > 0 ? fmin(1, c->variable_norm / sqrt(own)) : 1;
        for (int i = 0; i < n[k]; i++)
            want[k][i] *= factor;
        square += own * factor * factor;
    }
    const double factor = c->norm > 0 ? fmin(1, c->norm / sqrt(square)) : 1;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < n[k]; i++)
            want[k][i] *= factor;
    gradients s = gradients_new();
    mtf_tensor *out[3], *by = mtf_constant(s.e.g, scale, MTF_SCALAR, MTF_F64);
    mtf_tensor *norm = mtf_clip_gradients(3, s.t, scale == 1 ? NULL : by, c, out);
    assert_null(out[1]);
    for (int l = 0; l < LAYOUTS; l++) {
        eval_expect_on(&s.e, layouts[l][0], layouts[l][1], out[0], 12, want[0], 1e-14);
        eval_expect_on(&s.e, layouts[l][0], layouts[l][1], out[2], 3, want[1], 1e-14);
        EXPECT_ON(&s.e, layouts[l][0], layouts[l][1], norm, 1e-14, sqrt(650 + 5.25) * scale);
    }
    eval_close(&s.e);
}

static void clipping(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++)
        expect_clipped(&(mtf_clip){.value = k & 1 ? 1.5 : 0,
                                   .variable_norm = k & 2 ? 2.5 : 0,
                                   .norm = k & 4 ? 3 : 0},
                       k & 8 ? 0.25 : 1);
    expect_clipped(&(mtf_clip){.value = 100, .variable_norm = 100, .norm = 100}, 1); /* nothing */
}

/* ---- averages ---- */

/* Weights that begin as 1, 2, 3, 4, and lose 1 in each step; others that have no gradient. */
typedef struct averaged {
    mtf_graph *g;
    mtf_tensor *w[2];
    mtf_optimizer *o;
    mtf_tensor *update[2 * MTF_MAX_VARIABLE_UPDATES], *swap[4];
    int nupdates;
} averaged;

static averaged averaged_new(void)
{
    averaged s = {.g = mtf_graph_new()};
    const mtf_shape shape = MTF_SHAPE({"a", 4});
    mtf_tensor *first = mtf_offset(mtf_range(s.g, shape.dim[0], MTF_F64), 1);
    s.w[0] = mtf_variable(s.g, "w", first, true);
    s.w[1] = mtf_weight(s.g, "unused", shape, 1.0, MTF_F64);
    mtf_tensor *d[2] = {mtf_constant(s.g, 1, shape, MTF_F64), NULL};
    s.o = mtf_optimizer_new(s.g, &(mtf_optimizer_options){.average_decay = 0.25}, 2, s.w);
    s.nupdates = mtf_optimizer_updates(s.o, d, s.update);
    assert_int_equal(s.nupdates, 2);
    assert_int_equal(mtf_optimizer_swap_averages(s.o, s.swap), 4);
    assert_int_equal(s.o->nslots, 2);
    assert_string_equal(mtf_tensor_name(s.o->average[0]), "w/average");
    return s;
}

static void run_once(const machine *m, int n, const mtf_feed *feed)
{
    mtf_err err = {0};
    if (mtf_run(m->session, m->program, n, feed, NULL, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
}

static void get(const machine *m, const mtf_tensor *t, double *out)
{
    mtf_err err = {0};
    if (mtf_state_get(m->session, t, out, &err) != MTF_OK) fail_msg("%s", err.text);
}

static void averages(void **state)
{
    (void)state;
    for (int l = 0; l < LAYOUTS; l++) {
        averaged s = averaged_new();
        machine m = machine_new(s.g, layouts[l][0], layouts[l][1],
                                &(mtf_request){.nupdates = s.nupdates, .updates = s.update});
        const double rate = 1;
        double w[4], average[4];
        for (int t = 0; t < 2; t++)
            run_once(&m, 1, &(mtf_feed){.placeholder = s.o->rate[0], .data = &rate});
        get(&m, s.w[0], w);
        get(&m, s.o->average[0], average);
        for (int i = 0; i < 4; i++) {
            assert_true(w[i] == i - 1);
            assert_true(average[i] == (0.25 * (i + 1) + 0.75 * i) * 0.25 + 0.75 * (i - 1));
        }
        get(&m, s.w[1], w);
        get(&m, s.o->average[1], average);
        assert_memory_equal(w, average, sizeof w); /* as they began */
        machine_free(&m);
        mtf_graph_free(&s.g);
    }
}

/* Exchanged, and back. */
static void swapped_averages(void **state)
{
    (void)state;
    static const double weights[4] = {5, 6, 7, 8}, means[4] = {-1, -2, -3, -4};
    for (int l = 0; l < LAYOUTS; l++) {
        averaged s = averaged_new();
        machine m = machine_new(s.g, layouts[l][0], layouts[l][1],
                                &(mtf_request){.nupdates = 4, .updates = s.swap});
        mtf_err err = {0};
        mtf_state_set(m.session, s.w[0], weights, &err);
        mtf_state_set(m.session, s.o->average[0], means, &err);
        for (int t = 1; t <= 3; t++) {
            double w[4], average[4];
            run_once(&m, 0, NULL);
            get(&m, s.w[0], w);
            get(&m, s.o->average[0], average);
            assert_memory_equal(w, t % 2 ? means : weights, sizeof w);
            assert_memory_equal(average, t % 2 ? weights : means, sizeof w);
        }
        machine_free(&m);
        mtf_graph_free(&s.g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(norm_counts_once),
                                       cmocka_unit_test(clipping), cmocka_unit_test(averages),
                                       cmocka_unit_test(swapped_averages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
