/* SPDX-License-Identifier: Apache-2.0
 * The messages of optimisers, their rules and schedules, and of clipping. */
#include "check.h"

#include <math.h>

#include "support/mistakes.h"

/* An optimiser for w, and a variable of each further type. */
static mtf_tensor *optimizer(parts *p, mtf_optimizer_options o)
{
    return mtf_optimizer_new(p->g, &o, 1, &p->w) ? p->w : NULL;
}

static mtf_tensor *first_variable(const mtf_optimizer *o)
{
    return o ? o->variable[0] : NULL;
}

static mtf_tensor *optimizer_of(parts *p, int n, mtf_tensor *const *variables)
{
    mtf_tensor *updates[2 * MTF_MAX_VARIABLE_UPDATES];
    mtf_optimizer *o =
        mtf_optimizer_new(p->g, &(mtf_optimizer_options){.kind = MTF_SGD}, n, variables);
    assert_null(o);
    assert_int_equal(mtf_optimizer_updates(o, variables, updates), 0);
    return NULL;
}

static mtf_tensor *variable(parts *p, mtf_dtype type)
{
    return mtf_variable(p->g, "v", mtf_constant(p->g, 1, MTF_SHAPE({"a", 4}), type), true);
}

static mtf_tensor *updates_by_list(parts *p, mtf_tensor *const *gradients)
{
    mtf_tensor *updates[MTF_MAX_VARIABLE_UPDATES];
    const mtf_optimizer *o =
        mtf_optimizer_new(p->g, &(mtf_optimizer_options){.kind = MTF_MOMENTUM}, 1, &p->w);
    assert_non_null(o);
    return mtf_optimizer_updates(o, gradients, updates) ? updates[0] : NULL;
}

static mtf_tensor *updates_by(parts *p, mtf_tensor *gradient)
{
    return updates_by_list(p, &gradient);
}

static mtf_tensor *adafactor(parts *p, mtf_adafactor_options a)
{
    return optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAFACTOR, .adafactor = a});
}

static mtf_tensor *rule(parts *p, mtf_rate_rule r)
{
    return optimizer(p, (mtf_optimizer_options){.nrules = 1, .rules = &r});
}

static mtf_tensor *clipped(parts *p, mtf_clip c)
{
    mtf_tensor *x = p->x;
    return mtf_clip_gradients(1, &x, NULL, &c, &x);
}

MISTAKE(no_variable, optimizer_of(p, 0, NULL))
MISTAKE(null_variable, optimizer_of(p, 2, (mtf_tensor *[]){p->w, NULL}))
MISTAKE(null_variables, optimizer_of(p, 1, NULL))
MISTAKE(no_options, first_variable(mtf_optimizer_new(p->g, NULL, 1, &p->w)))
MISTAKE(variable_of_another_graph,
        optimizer_of(p, 1,
                     (mtf_tensor *[]){mtf_variable(
                         p->other, "w", mtf_constant(p->other, 0, MTF_SCALAR, MTF_F32), true)}))
MISTAKE(a_placeholder, optimizer_of(p, 1, &p->x))
MISTAKE(variable_of_integers, optimizer_of(p, 1, (mtf_tensor *[]){variable(p, MTF_I32)}))
MISTAKE(variables_of_two_types, optimizer_of(p, 2, (mtf_tensor *[]){p->w, variable(p, MTF_F64)}))
MISTAKE(no_kind, optimizer(p, (mtf_optimizer_options){.kind = (mtf_optimizer_kind)17}))
MISTAKE(momentum_of_one, optimizer(p, (mtf_optimizer_options){.momentum = 1}))
MISTAKE(momentum_below_zero, optimizer(p, (mtf_optimizer_options){.momentum = -0.9}))
MISTAKE(momentum_is_nan, optimizer(p, (mtf_optimizer_options){.momentum = (double)NAN}))
MISTAKE(beta1_of_one,
        optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAM, .beta1 = 1, .epsilon = 1e-8}))
MISTAKE(beta2_below_zero,
        optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAM, .beta2 = -0.1, .epsilon = 1e-8}))
MISTAKE(epsilon_below_zero, optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAM, .epsilon = -1}))
MISTAKE(epsilon_of_zero, optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAMW}))
MISTAKE(epsilon_is_zero_in_f32,
        optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAM, .epsilon = 1e-60}))
MISTAKE(infinite_weight_decay, optimizer(p, (mtf_optimizer_options){.weight_decay = INFINITY}))
MISTAKE(weight_decay_below_zero,
        optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAMW, .weight_decay = -1}))
MISTAKE(average_decay_of_one, optimizer(p, (mtf_optimizer_options){.average_decay = 1}))
MISTAKE(average_decay_is_nan, optimizer(p, (mtf_optimizer_options){.average_decay = (double)NAN}))
MISTAKE(nothing_without_decay,
        optimizer(p, (mtf_optimizer_options){.kind = MTF_ADAMW,
                                             .epsilon = 1e-8,
                                             .weight_decay = 0.1,
                                             .exclude_from_weight_decay = "bias"}))
static mtf_tensor *average_of_bf16(parts *p)
{
    mtf_tensor *v = variable(p, MTF_BF16);
    return mtf_optimizer_new(p->g, &(mtf_optimizer_options){.average_decay = 0.5}, 1, &v) ? v
                                                                                          : NULL;
}

MISTAKE(too_many_rules, optimizer(p, (mtf_optimizer_options){.nrules = 17}))
MISTAKE(rules_below_zero, optimizer(p, (mtf_optimizer_options){.nrules = -1}))
MISTAKE(rules_are_null, optimizer(p, (mtf_optimizer_options){.nrules = 1}))
MISTAKE(rule_for_nothing, rule(p, (mtf_rate_rule){.pattern = "norms"}))
MISTAKE(rule_without_pattern, rule(p, (mtf_rate_rule){.pattern = NULL}))
MISTAKE(broken_pattern, rule(p, (mtf_rate_rule){.pattern = "no(rm"}))
MISTAKE(wrong_schedule,
        optimizer(p, (mtf_optimizer_options){
                         .schedule = {.nfactors = 1, .factor = {{.narguments = 2}}}}))
MISTAKE(wrong_schedule_of_a_rule,
        rule(p, (mtf_rate_rule){.pattern = "w", .schedule = {.offset = -3}}))

MISTAKE(no_decay, adafactor(p, (mtf_adafactor_options){.decay = (mtf_decay_kind)5}))
MISTAKE(exponent_of_zero, adafactor(p, (mtf_adafactor_options){.exponent = 0}))
MISTAKE(adafactor_beta2_of_one,
        adafactor(p, (mtf_adafactor_options){.exponent = 1, .epsilon1 = 1e-30, .beta2 = 1}))
MISTAKE(decay_offset_below_zero,
        adafactor(p, (mtf_adafactor_options){.exponent = 1, .epsilon1 = 1e-30, .decay_offset = -1}))
MISTAKE(adafactor_beta1_of_one,
        adafactor(p, (mtf_adafactor_options){.exponent = 1, .epsilon1 = 1e-30, .beta1 = 1}))
MISTAKE(threshold_below_zero,
        adafactor(p, (mtf_adafactor_options){
                         .exponent = 1, .epsilon1 = 1e-30, .clipping_threshold = -1}))
MISTAKE(epsilon1_below_zero, adafactor(p, (mtf_adafactor_options){.exponent = 1, .epsilon1 = -1}))
MISTAKE(epsilon1_is_zero_in_f32,
        adafactor(p, (mtf_adafactor_options){.exponent = 1, .epsilon1 = 1e-60}))
MISTAKE(epsilon2_is_nan,
        adafactor(p, (mtf_adafactor_options){
                         .exponent = 1, .epsilon1 = 1e-30, .epsilon2 = (double)NAN}))
MISTAKE(no_stacked_dim,
        adafactor(p, (mtf_adafactor_options){
                         .exponent = 1, .epsilon1 = 1e-30, .stacked_dims = "a;depth"}))
MISTAKE(nothing_without_scale,
        adafactor(p, (mtf_adafactor_options){
                         .exponent = 1, .epsilon1 = 1e-30, .exclude_from_parameter_scale = "bias"}))

MISTAKE(gradient_of_another_shape, updates_by(p, p->y))
MISTAKE(gradient_of_more_dims,
        updates_by(p, mtf_broadcast(p->x, MTF_SHAPE({"a", 4}, {"b", 6}, {"c", 2}))))
MISTAKE(no_gradients, updates_by_list(p, NULL))
MISTAKE(gradient_of_another_graph, updates_by(p, p->foreign))

MISTAKE(value_limit_below_zero, clipped(p, (mtf_clip){.value = -1}))
MISTAKE(variable_limit_is_nan, clipped(p, (mtf_clip){.variable_norm = (double)NAN}))
MISTAKE(limit_below_zero, clipped(p, (mtf_clip){.norm = -1}))
MISTAKE(factor_limit_below_zero, mtf_clip_factor(mtf_constant(p->g, 1, MTF_SCALAR, MTF_F32), -1))
MISTAKE(factor_limit_of_zero, mtf_clip_factor(mtf_constant(p->g, 1, MTF_SCALAR, MTF_F32), 0))
MISTAKE(no_limits, mtf_clip_gradients(1, &p->x, NULL, NULL, (mtf_tensor *[]){NULL}))
MISTAKE(norm_of_flags, mtf_global_norm(1, &p->k))

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const mistake_row rows[] = {
        MISTAKE_ROW(no_variable),
        MISTAKE_ROW(null_variable),
        MISTAKE_ROW(null_variables),
        MISTAKE_ROW(no_options),
        MISTAKE_ROW(variable_of_another_graph),
        MISTAKE_ROW(a_placeholder),
        MISTAKE_ROW(variable_of_integers),
        MISTAKE_ROW(variables_of_two_types),
        MISTAKE_ROW(no_kind),
        MISTAKE_ROW(momentum_of_one),
        MISTAKE_ROW(momentum_below_zero),
        MISTAKE_ROW(momentum_is_nan),
        MISTAKE_ROW(beta1_of_one),
        MISTAKE_ROW(beta2_below_zero),
        MISTAKE_ROW(epsilon_below_zero),
        MISTAKE_ROW(epsilon_of_zero),
        MISTAKE_ROW(epsilon_is_zero_in_f32),
        MISTAKE_ROW(infinite_weight_decay),
        MISTAKE_ROW(weight_decay_below_zero),
        MISTAKE_ROW(average_decay_of_one),
        MISTAKE_ROW(average_decay_is_nan),
        MISTAKE_ROW(nothing_without_decay),
        MISTAKE_ROW(average_of_bf16),
        MISTAKE_ROW(too_many_rules),
        MISTAKE_ROW(rules_below_zero),
        MISTAKE_ROW(rules_are_null),
        MISTAKE_ROW(rule_for_nothing),
        MISTAKE_ROW(rule_without_pattern),
        MISTAKE_ROW(broken_pattern),
        MISTAKE_ROW(wrong_schedule),
        MISTAKE_ROW(wrong_schedule_of_a_rule),
        MISTAKE_ROW(no_decay),
        MISTAKE_ROW(exponent_of_zero),
        MISTAKE_ROW(adafactor_beta2_of_one),
        MISTAKE_ROW(decay_offset_below_zero),
        MISTAKE_ROW(adafactor_beta1_of_one),
        MISTAKE_ROW(threshold_below_zero),
        MISTAKE_ROW(epsilon1_below_zero),
        MISTAKE_ROW(epsilon1_is_zero_in_f32),
        MISTAKE_ROW(epsilon2_is_nan),
        MISTAKE_ROW(no_stacked_dim),
        MISTAKE_ROW(nothing_without_scale),
        MISTAKE_ROW(gradient_of_another_shape),
        MISTAKE_ROW(gradient_of_more_dims),
        MISTAKE_ROW(no_gradients),
        MISTAKE_ROW(gradient_of_another_graph),
        MISTAKE_ROW(value_limit_below_zero),
        MISTAKE_ROW(variable_limit_is_nan),
        MISTAKE_ROW(limit_below_zero),
        MISTAKE_ROW(factor_limit_below_zero),
        MISTAKE_ROW(factor_limit_of_zero),
        MISTAKE_ROW(no_limits),
        MISTAKE_ROW(norm_of_flags),
    };
    mistakes_check("optimizer_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes_have_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
