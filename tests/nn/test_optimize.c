/* SPDX-License-Identifier: Apache-2.0
 * Three steps of each optimiser against PyTorch's. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "support/model.h"

enum { STEPS = 3, W = 6, B = 2 };

static const double start_w[W] = {1, 2, 3, 4, 5, 6}, start_b[B] = {0.5, -0.5};
static const double gradient_w[W] = {.1, .2, .3, .4, .5, .6}, gradient_b[B] = {.7, -.8};
static const double factor[STEPS] = {1.0, -0.5, 2.0}; /* of the gradients, per step */

/* torch.optim with rate 0.1, momentum 0.9, betas (0.9, 0.99), eps 1e-3; AdamW with a decay of 0.05
 * for the matrix and none for the vector. */
static const struct {
    mtf_optimizer_kind kind;
    int updates; /* assignments in all */
    double w[W], b[B];
} cases[] = {
    {MTF_SGD, 2, {0.975, 1.95, 2.925, 3.9, 4.875, 5.85}, {0.325, -0.3}},
    {MTF_MOMENTUM, 4, {0.9624, 1.9248, 2.8872, 3.8496, 4.812, 5.7744}, {0.2368, -0.1992}},
    /* nesterov: g + 0.9 m in each step */
    {MTF_NESTEROV, 4, {0.94116, 1.88232, 2.82348, 3.76464, 4.7058, 5.64696}, {0.08812, -0.02928}},
    {MTF_ADAM,
     6,
     {0.809503583111323, 1.80860061250603, 2.80829765789227, 3.8081458094701, 4.80805458130007,
      5.8079937128045},
     {0.307950210930822, -0.307917571184367}},
    {MTF_ADAMW,
     6,
     {0.795697763417097, 1.77987541019849, 2.76464925791985, 3.7495732506608, 4.73455747798972,
      5.71957187182782},
     {0.307950210930822, -0.307917571184367}},
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *const layouts[][2] = {
    {"", ""}, {"x:2", "a:x"}, {"x:2", "c:x;b:x"}, {"x:2;y:2", "a:x;b:y"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

typedef struct setup {
    mtf_graph *g;
    mtf_tensor *variable[3], *gradient[3]; /* the last has no gradient */
    mtf_optimizer *o;
    mtf_tensor *update[9];
    int nupdates;
} setup;

static setup setup_new(mtf_optimizer_kind kind)
{
    setup s = {.g = mtf_graph_new()};
    const mtf_shape ab = MTF_SHAPE({"a", 2}, {"b", 3}), c = MTF_SHAPE({"c", 2});
    const mtf_optimizer_options o = {.kind = kind,
                                     .momentum = 0.9,
                                     .beta1 = 0.9,
                                     .beta2 = 0.99,
                                     .epsilon = 1e-3,
                                     .weight_decay = 0.05};
    s.variable[0] = mtf_weight(s.g, "w", ab, 1.0, MTF_F64);
    s.variable[1] = mtf_weight(s.g, "b", c, 0.0, MTF_F64);
    s.variable[2] = mtf_weight(s.g, "unused", c, 1.0, MTF_F64);
    s.gradient[0] = mtf_placeholder(s.g, "dw", ab, MTF_F64);
    s.gradient[1] = mtf_placeholder(s.g, "db", c, MTF_F64);
    s.o = mtf_optimizer_new(s.g, &o, 3, s.variable);
    s.nupdates = mtf_optimizer_updates(s.o, s.gradient, s.update);
    return s;
}

static void step(setup *s, machine *run, int64_t t)
{
    double dw[W], db[B];
    for (int i = 0; i < W; i++)
        dw[i] = factor[t - 1] * gradient_w[i];
    for (int i = 0; i < B; i++)
        db[i] = factor[t - 1] * gradient_b[i];
    const double rate = 0.1, c1 = mtf_adam_correction(0.9, t), c2 = mtf_adam_correction(0.99, t);
    const mtf_feed feeds[] = {{.placeholder = s->gradient[0], .data = dw},
                              {.placeholder = s->gradient[1], .data = db},
                              {.placeholder = s->o->rate[0], .data = &rate},
                              {.placeholder = s->o->correction[0], .data = &c1},
                              {.placeholder = s->o->correction[1], .data = &c2}};
    const bool adam = s->o->correction[0] != NULL;
    mtf_err err = {0};
    if (mtf_run(run->session, run->program, adam ? 5 : 3, feeds, NULL, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
}

static void expect_near(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-14 * (1 + fabs(want[i]))))
            fail_msg("element %d is %.17g instead of %.17g", i, got[i], want[i]);
}

static void steps_of_each(void **state)
{
    (void)state;
    for (int k = 0; k < CASES * LAYOUTS; k++) {
        const int c = k / LAYOUTS, l = k % LAYOUTS;
        setup s = setup_new(cases[c].kind);
        assert_int_equal(s.nupdates, cases[c].updates);
        machine run = machine_new(s.g, layouts[l][0], layouts[l][1],
                                  &(mtf_request){.nupdates = s.nupdates, .updates = s.update});
        mtf_err err = {0};
        double w[W], b[B], before[B], after[B];
        mtf_state_set(run.session, s.variable[0], start_w, &err);
        mtf_state_set(run.session, s.variable[1], start_b, &err);
        mtf_state_get(run.session, s.variable[2], before, &err);
        for (int64_t t = 1; t <= STEPS; t++)
            step(&s, &run, t);
        mtf_state_get(run.session, s.variable[0], w, &err);
        mtf_state_get(run.session, s.variable[1], b, &err);
        mtf_state_get(run.session, s.variable[2], after, &err);
        expect_near(w, cases[c].w, W);
        expect_near(b, cases[c].b, B);
        assert_memory_equal(before, after, sizeof before);
        machine_free(&run);
        mtf_graph_free(&s.g);
    }
}

/* ---- host functions ---- */

static void corrections(void **state)
{
    (void)state;
    assert_true(fabs(mtf_adam_correction(0.9, 1) - 10) < 1e-13);
    assert_true(fabs(mtf_adam_correction(0.999, 2) - 1 / (1 - 0.999 * 0.999)) < 1e-9);
    assert_true(mtf_adam_correction(0.9, 100000) == 1.0);
    assert_true(mtf_adam_correction(0.0, 1) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_of_each),
                                       cmocka_unit_test(corrections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
