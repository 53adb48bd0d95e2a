/* SPDX-License-Identifier: Apache-2.0
 * Adafactor, Adam without correction and momentum against the values of Mesh-TensorFlow (reference
 * 4), Adafactor's choice of dims, and patterns of names. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "support/model.h"

enum { N = 6 };

static const double gradient[N] = {.1, .2, .3, .4, .5, .6}, weights[N] = {1, 2, 3, 4, 5, 6};

static const char *const layouts[][2] = {
    {"", ""}, {"x:2", "a:x"}, {"x:2", "b:x"}, {"x:2;y:3", "a:x;b:y"}, {"x:4", "b:x"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* One variable [a=2 b=3] with its gradient. */
typedef struct setup {
    mtf_graph *g;
    mtf_tensor *w, *gradient;
    mtf_optimizer *o;
    mtf_tensor *update[MTF_MAX_VARIABLE_UPDATES];
    int nupdates;
} setup;

static setup setup_new(const mtf_optimizer_options *o)
{
    setup s = {.g = mtf_graph_new()};
    const mtf_shape shape = MTF_SHAPE({"a", 2}, {"b", 3});
    s.w = mtf_weight(s.g, "w", shape, 1.0, MTF_F64);
    s.gradient = mtf_placeholder(s.g, "gradient", shape, MTF_F64);
    s.o = mtf_optimizer_new(s.g, o, 1, &s.w);
    s.nupdates = mtf_optimizer_updates(s.o, &s.gradient, s.update);
    return s;
}

/* Step `t` from 1 at rate 0.1, whatever the schedule. */
static void step(const setup *s, machine *run, const double *g, int64_t t)
{
    mtf_step_scalar scalars[MTF_MAX_STEP_SCALARS];
    mtf_feed feeds[MTF_MAX_STEP_SCALARS + 1] = {{.placeholder = s->gradient, .data = g}};
    const int n = mtf_optimizer_scalars(s->o, t, 1000, scalars);
    scalars[0].value = 0.1;
    for (int i = 0; i < n; i++)
        feeds[i + 1] = (mtf_feed){.placeholder = scalars[i].placeholder, .data = &scalars[i].value};
    mtf_err err = {0};
    if (mtf_run(run->session, run->program, n + 1, feeds, NULL, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
}

static machine machine_of(const setup *s, int layout)
{
    return machine_new(s->g, layouts[layout][0], layouts[layout][1],
                       &(mtf_request){.nupdates = s->nupdates, .updates = s->update});
}

/* The values are printed with six digits behind the point, and were computed in f32. */
static void expect(const machine *run, const mtf_tensor *t, int n, const double *want)
{
    double got[N];
    mtf_err err = {0};
    assert_non_null(t);
    assert_int_equal(tensor_size(t), n);
    if (mtf_state_get(run->session, t, got, &err) != MTF_OK) fail_msg("%s", err.text);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 5e-7 + 2.4e-7 * fabs(want[i])))
            fail_msg("%s[%d] is %.9f instead of %.6f", mtf_tensor_name(t), i, got[i], want[i]);
}

static void set(const machine *run, const mtf_tensor *t, const double *values)
{
    mtf_err err = {0};
    if (mtf_state_set(run->session, t, values, &err) != MTF_OK) fail_msg("%s", err.text);
}

/* ---- reference 4: Adafactor; its step s is ours s + 1 ---- */

static const mtf_adafactor_options plain = MTF_ADAFACTOR_DEFAULTS;

typedef struct adafactor_case {
    const char *name;
    bool unscaled;
    int factor_from; /* min_dim_size_to_factor */
    double beta1, threshold;
    int64_t step;
    const double *w, *g, *vr_before, *vc_before;
    double vr[2], vc[3], v[N], m[N], after[N];
} adafactor_case;

static const double zeros[N] = {0}, sparse[N] = {1, 0, 0, 0, 0, 2};

static const adafactor_case adafactor_cases[] = {
    {.name = "unfactored",
     .factor_from = 128,
     .threshold = 1,
     .step = 1,
     .w = weights,
     .g = gradient,
     .v = {.01, .04, .09, .16, .25, .36},
     .after = {.610556, 1.610556, 2.610556, 3.610556, 4.610556, 5.610556}},
    {.name = "factored",
     .factor_from = 2,
     .threshold = 1,
     .step = 1,
     .w = weights,
     .g = gradient,
     .vr = {.0466667, .2566667},
     .vc = {.085, .145, .225},
     .after = {.759188, 1.631249, 2.555965, 3.589270, 4.606911, 5.621326}},
    {.name = "factored, step 9",
     .factor_from = 2,
     .threshold = 1,
     .step = 10,
     .w = weights,
     .g = gradient,
     .vr_before = (const double[]){.05, .2},
     .vc_before = (const double[]){.1, .2, .3},
     .vr = {.0494717, .2089811},
     .vc = {.0976227, .1912831, .2881133},
     .after = {.798550, 1.712171, 2.648211, 3.607941, 4.649895, 5.657677}},
    {.name = "without the parameter's scale",
     .unscaled = true,
     .factor_from = 2,
     .threshold = 1,
     .step = 1,
     .w = weights,
     .g = gradient,
     .vr = {.0466667, .2566667},
     .vc = {.085, .145, .225},
     .after = {.938165, 1.905314, 2.885983, 3.894534, 4.899064, 5.902765}},
    {.name = "weights of zero, beta1",
     .factor_from = 128,
     .beta1 = 0.9,
     .threshold = 1,
     .step = 1,
     .w = zeros,
     .g = gradient,
     .v = {.01, .04, .09, .16, .25, .36},
     .m = {1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5},
     .after = {-1e-5, -1e-5, -1e-5, -1e-5, -1e-5, -1e-5}},
    {.name = "threshold 0.5",
     .factor_from = 2,
     .threshold = 0.5,
     .step = 1,
     .w = weights,
     .g = sparse,
     .vr = {1. / 3, 4. / 3},
     .vc = {.5, 0, 2},
     .after = {.573385, 2, 3, 4, 5, 5.786693}},
};

static void run_adafactor(const adafactor_case *c, int layout)
{
    mtf_optimizer_options o = {.kind = MTF_ADAFACTOR, .adafactor = plain};
    o.adafactor.multiply_by_parameter_scale = !c->unscaled;
    o.adafactor.min_dim_size_to_factor = c->factor_from;
    o.adafactor.beta1 = c->beta1;
    o.adafactor.clipping_threshold = c->threshold;
    setup s = setup_new(&o);
    machine run = machine_of(&s, layout);
    set(&run, s.w, c->w);
    if (c->vr_before) set(&run, s.o->vr[0], c->vr_before);
    if (c->vc_before) set(&run, s.o->vc[0], c->vc_before);
    step(&s, &run, c->g, c->step);
    expect(&run, s.w, N, c->after);
    if (c->factor_from == 2) {
        expect(&run, s.o->vr[0], 2, c->vr);
        expect(&run, s.o->vc[0], 3, c->vc);
        assert_null(s.o->v[0]);
    } else {
        expect(&run, s.o->v[0], N, c->v);
        assert_null(s.o->vr[0]);
    }
    if (c->beta1 > 0)
        expect(&run, s.o->m[0], N, c->m);
    else
        assert_null(s.o->m[0]);
    machine_free(&run);
    mtf_graph_free(&s.g);
}

static void reference_adafactor(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof adafactor_cases / sizeof *adafactor_cases; c++)
        for (int l = 0; l < LAYOUTS; l++)
            run_adafactor(&adafactor_cases[c], l);
}

/* A first step forgets what was before: nothing of a large mean square may be left of it, nor may
 * the tiny one that takes its place be rounded to 0, whose root has no inverse. */
static void a_forgotten_mean(void **state)
{
    (void)state;
    const double large[N] = {1e20, 1e20, 1e20, 1e20, 1e20, 1e20};
    setup s = setup_new(&(mtf_optimizer_options){.kind = MTF_ADAFACTOR, .adafactor = plain});
    machine run = machine_of(&s, 0);
    set(&run, s.w, weights);
    set(&run, s.o->v[0], large);
    step(&s, &run, zeros, 1);
    expect(&run, s.w, N, weights);
    double v[N];
    mtf_state_get(run.session, s.o->v[0], v, NULL);
    for (int i = 0; i < N; i++)
        assert_true(v[i] == 1e-30);
    machine_free(&run);
    mtf_graph_free(&s.g);
}

/* reference 4, [run]: decays at its steps 0, 1, 9, 99, 9999, 99999. */
static void reference_decays(void **state)
{
    (void)state;
    static const int64_t steps[] = {0, 1, 9, 99, 9999, 99999};
    static const double by_power[] = {0, .425651, .841511, .974881, .999369, .999900},
                        by_beta2[] = {0, .499738, .899548, .989497, .999000, .999000};
    mtf_adafactor_options adam = plain, later = plain;
    adam.decay = MTF_DECAY_ADAM;
    later.decay_offset = 1000;
    for (int i = 0; i < 6; i++) {
        assert_true(fabs(mtf_adafactor_decay(&plain, steps[i] + 1) - by_power[i]) < 6e-7);
        /* computed in f32, where 1 - 0.999^t has a relative error of up to 6e-8 / 0.001 */
        assert_true(fabs(mtf_adafactor_decay(&adam, steps[i] + 1) - by_beta2[i]) < 6e-5);
        assert_true(mtf_adafactor_decay(&later, steps[i] + 1001) ==
                    mtf_adafactor_decay(&plain, steps[i] + 1));
    }
    assert_true(mtf_adafactor_decay(&later, 7) == 0); /* before the offset: as the first step */
    adam.beta2 = 0;
    assert_true(mtf_adafactor_decay(&adam, 5) == 0);
}

/* ---- reference 4: Adam without bias correction ---- */

static void reference_adam(void **state)
{
    (void)state;
    static const struct {
        double decay, after[N];
    } cases[] = {{0, {.683872, 1.683822, 2.683805, 3.683797, 4.683792, 5.683789}},
                 {.01, {.682872, 1.681822, 2.680806, 3.679797, 4.678792, 5.677788}}};
    for (int k = 0; k < 2 * LAYOUTS; k++) {
        setup s = setup_new(&(mtf_optimizer_options){.kind = MTF_ADAMW,
                                                     .beta1 = 0.9,
                                                     .beta2 = 0.999,
                                                     .epsilon = 1e-6,
                                                     .weight_decay = cases[k % 2].decay,
                                                     .uncorrected = true});
        assert_null(s.o->correction[0]);
        assert_null(s.o->correction[1]);
        machine run = machine_of(&s, k / 2);
        set(&run, s.w, weights);
        step(&s, &run, gradient, 1);
        expect(&run, s.w, N, cases[k % 2].after);
        machine_free(&run);
        mtf_graph_free(&s.g);
    }
}

/* Defect C10 of the reference: its momentum step takes the velocity from before the step, so that
 * from v = 1 the weights move by exactly that. Ours takes the new one. */
static void momentum_is_of_this_step(void **state)
{
    (void)state;
    static const double ones[N] = {1, 1, 1, 1, 1, 1};
    setup s = setup_new(&(mtf_optimizer_options){.kind = MTF_MOMENTUM, .momentum = 0.9});
    machine run = machine_of(&s, 3);
    double want[N], velocity[N];
    set(&run, s.w, weights);
    set(&run, s.o->m[0], ones);
    step(&s, &run, gradient, 1);
    for (int i = 0; i < N; i++) {
        velocity[i] = 0.9 + gradient[i];
        want[i] = weights[i] - 0.1 * velocity[i];
    }
    expect(&run, s.o->m[0], N, velocity);
    expect(&run, s.w, N, want);
    machine_free(&run);
    mtf_graph_free(&s.g);
}

/* ---- which dims are factored ---- */

static void expect_slots(mtf_shape shape, const char *stacked, const char *vr, const char *vc)
{
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *w = mtf_weight(g, "w", shape, 1.0, MTF_F32);
    mtf_optimizer_options o = {.kind = MTF_ADAFACTOR, .adafactor = plain};
    o.adafactor.min_dim_size_to_factor = 4;
    o.adafactor.stacked_dims = stacked;
    const mtf_optimizer *f = mtf_optimizer_new(g, &o, 1, &w);
    assert_non_null(f);
    char text[2][64] = {"", ""};
    mtf_tensor *const slot[] = {f->vr[0], f->vc[0]};
    for (int k = 0; k < 2; k++) {
        const mtf_shape s = mtf_tensor_shape(slot[k]);
        for (int i = 0; i < s.rank; i++)
            strcat(text[k], s.dim[i].name);
    }
    assert_string_equal(text[0], vr);
    assert_string_equal(text[1], vc);
    assert_true(!f->v[0] == !!f->vr[0]);
    assert_string_equal(mtf_tensor_name(f->vr[0] ? f->vr[0] : f->v[0]), f->vr[0] ? "w/vr" : "w/v");
    mtf_graph_free(&g);
}

static void factored_dims(void **state)
{
    (void)state;
    expect_slots(MTF_SHAPE({"a", 4}, {"b", 5}), NULL, "a", "b");
    expect_slots(MTF_SHAPE({"a", 5}, {"b", 4}), NULL, "b", "a");
    expect_slots(MTF_SHAPE({"a", 4}, {"b", 4}), NULL, "b", "a"); /* the first is the largest */
    expect_slots(MTF_SHAPE({"a", 3}, {"b", 4}), NULL, "", "");   /* too small */
    expect_slots(MTF_SHAPE({"a", 100}), NULL, "", "");
    expect_slots(MTF_SCALAR, NULL, "", "");
    expect_slots(MTF_SHAPE({"a", 7}, {"b", 5}, {"c", 6}), NULL, "bc", "ab");
    expect_slots(MTF_SHAPE({"a", 5}, {"b", 6}, {"c", 5}, {"d", 2}), NULL, "acd", "bcd");
    expect_slots(MTF_SHAPE({"a", 9}, {"b", 5}, {"c", 6}), "a", "ab", "ac");
    expect_slots(MTF_SHAPE({"a", 9}, {"b", 5}, {"c", 6}), "c;a", "", "");
}

/* Stacked layers have scales of their own, and are clipped as one. */
static void stacked_layers(void **state)
{
    (void)state;
    mtf_optimizer_options o = {.kind = MTF_ADAFACTOR, .adafactor = plain};
    o.adafactor.stacked_dims = "a";
    o.adafactor.clipping_threshold = 0.5;
    for (int l = 0; l < LAYOUTS; l++) {
        setup s = setup_new(&o);
        machine run = machine_of(&s, l);
        set(&run, s.w, weights);
        step(&s, &run, gradient, 1); /* u is 1 everywhere, clipped to 0.5 */
        double want[N];
        const double scale[] = {sqrt(14. / 3), sqrt(77. / 3)};
        for (int i = 0; i < N; i++)
            want[i] = weights[i] - 0.1 * 0.5 * scale[i / 3];
        expect(&run, s.w, N, want);
        machine_free(&run);
        mtf_graph_free(&s.g);
    }
}

/* ---- patterns ---- */

enum { NAMED = 4 };

static mtf_optimizer *named(mtf_graph *g, const mtf_optimizer_options *o)
{
    static const char *const names[NAMED] = {"layer_0/norm/scale", "layer_0/wi", "layer_1/wi",
                                             "embedding"};
    mtf_tensor *v[NAMED];
    for (int i = 0; i < NAMED; i++)
        v[i] = mtf_weight(g, names[i], i ? MTF_SHAPE({"a", 2}, {"b", 3}) : MTF_SHAPE({"a", 2}), 1.0,
                          MTF_F64);
    return mtf_optimizer_new(g, o, NAMED, v);
}

static void expect_marks(const bool *got, const char *want)
{
    for (int i = 0; i < NAMED; i++)
        assert_int_equal(got[i], want[i] == 'x');
}

static void names_that_are_excluded(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *decays;
    } cases[] = {{NULL, ".xxx"}, {"wi", "x..x"}, {"^layer_[01]/wi$|emb", "x..."}};
    for (int c = 0; c < 3; c++) {
        mtf_graph *g = mtf_graph_new();
        const mtf_optimizer *o =
            named(g, &(mtf_optimizer_options){.kind = MTF_ADAMW,
                                              .epsilon = 1e-8,
                                              .weight_decay = 0.1,
                                              .exclude_from_weight_decay = cases[c].pattern});
        expect_marks(o->decays, cases[c].decays);
        mtf_graph_free(&g);
    }
    mtf_graph *g = mtf_graph_new();
    mtf_optimizer_options a = {.kind = MTF_ADAFACTOR, .adafactor = plain};
    a.adafactor.exclude_from_parameter_scale = "layer_0";
    expect_marks(named(g, &a)->scales, "..xx");
    mtf_graph_free(&g);
}

/* Defect C10 of the reference: a later rule that does not match a variable undoes what an earlier
 * one that matches has set. Here the first that matches holds, and no later one. */
static void rules_of_learning_rates(void **state)
{
    (void)state;
    mtf_rate_rule rules[3] = {{.pattern = "norm"}, {.pattern = "layer"}, {.pattern = "embedding"}};
    for (int k = 0; k < 3; k++)
        mtf_schedule_parse((const char *[]){"2", "linear_warmup(10)", "0.5"}[k], &rules[k].schedule,
                           NULL);
    mtf_graph *g = mtf_graph_new();
    mtf_optimizer *o =
        named(g, &(mtf_optimizer_options){
                     .kind = MTF_ADAM, .beta1 = 0.5, .epsilon = 1e-8, .nrules = 3, .rules = rules});
    rules[1].pattern = NULL; /* the optimiser has copies */
    assert_int_equal(o->nrates, 4);
    static const int want[NAMED] = {1, 2, 2, 3};
    assert_memory_equal(o->rate_of, want, sizeof want);
    mtf_step_scalar s[MTF_MAX_STEP_SCALARS];
    assert_int_equal(mtf_optimizer_scalars(o, 2, 100, s), 6);
    static const double values[] = {1, 2, 0.2, 0.5, 4. / 3, 1};
    for (int k = 0; k < 6; k++)
        assert_true(fabs(s[k].value - values[k]) < 1e-15);
    assert_ptr_equal(s[2].placeholder, o->rate[2]);
    assert_ptr_equal(s[4].placeholder, o->correction[0]);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_adafactor),      cmocka_unit_test(a_forgotten_mean),
        cmocka_unit_test(reference_decays),         cmocka_unit_test(reference_adam),
        cmocka_unit_test(momentum_is_of_this_step), cmocka_unit_test(factored_dims),
        cmocka_unit_test(stacked_layers),           cmocka_unit_test(names_that_are_excluded),
        cmocka_unit_test(rules_of_learning_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
