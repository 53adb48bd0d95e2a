/* SPDX-License-Identifier: Apache-2.0 */
#include "train/update.h"

#include "train/config_schedule.h"

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static mtf_adafactor_options adafactor_options(const config_adafactor *c)
{
    return (mtf_adafactor_options){.multiply_by_parameter_scale = c->multiply_by_parameter_scale,
                                   .factored = c->factored,
                                   .decay = c->decay == CONFIG_POW ? MTF_DECAY_POW : MTF_DECAY_ADAM,
                                   .exponent = c->exponent,
                                   .beta2 = c->beta2,
                                   .decay_offset = c->decay_offset,
                                   .beta1 = c->beta1,
                                   .clipping_threshold = c->clipping_threshold,
                                   .epsilon1 = c->epsilon1,
                                   .epsilon2 = c->epsilon2,
                                   .min_dim_size_to_factor = c->min_dim_size_to_factor,
                                   .stacked_dims = or_null(c->stacked_dims),
                                   .exclude_from_parameter_scale =
                                       or_null(c->exclude_from_parameter_scale)};
}

mtf_status update_optimizer(lm *m, mtf_err *err)
{
    static const mtf_optimizer_kind kinds[] = {
        [CONFIG_SGD] = MTF_SGD,           [CONFIG_MOMENTUM] = MTF_MOMENTUM,
        [CONFIG_NESTEROV] = MTF_NESTEROV, [CONFIG_ADAM] = MTF_ADAM,
        [CONFIG_ADAMW] = MTF_ADAMW,       [CONFIG_ADAFACTOR] = MTF_ADAFACTOR};
    const config_train *c = &m->config->train;
    mtf_rate_rule rules[MTF_MAX_RATE_RULES];
    mtf_optimizer_options o = {.kind = kinds[c->optimizer],
                               .momentum = c->momentum,
                               .beta1 = c->beta1,
                               .beta2 = c->beta2,
                               .epsilon = c->epsilon,
                               .uncorrected = !c->bias_correction,
                               .weight_decay = c->weight_decay,
                               .exclude_from_weight_decay = or_null(c->exclude_from_weight_decay),
                               .adafactor = adafactor_options(&m->config->adafactor),
                               .rules = rules,
                               .average_decay = c->ema_decay};
    TRY(config_schedule(m->config, &o.schedule, err));
    o.nrules = config_rate_rules(m->config, m->mem, rules, err);
    if (o.nrules < 0) return MTF_INVALID;
    m->optimizer = mtf_optimizer_new(m->graph, &o, m->nvariables, m->variables);
    return mtf_graph_status(m->graph, err);
}

int update_build(lm *m, mtf_tensor *count, mtf_tensor *const *gradients, mtf_tensor **updates,
                 mtf_tensor **norm)
{
    const config_train *c = &m->config->train;
    const mtf_clip clip = {
        .value = c->clip_value, .variable_norm = c->clip_variable_norm, .norm = c->clip_norm};
    mtf_scope_push(m->graph, "update");
    mtf_tensor *one = mtf_constant(m->graph, 1.0, MTF_SCALAR, m->dtype);
    mtf_tensor *share = mtf_reciprocal(mtf_maximum(count, one));
    mtf_tensor **mean = arena_alloc(m->mem, sizeof *mean * (size_t)m->nvariables);
    for (int i = 0; i < m->nvariables; i++) /* of weights in bf16 as well */
        mean[i] = mtf_cast(gradients[i], m->dtype);
    *norm = mtf_clip_gradients(m->nvariables, mean, share, &clip, mean);
    const int n = mtf_optimizer_updates(m->optimizer, mean, updates);
    mtf_scope_pop(m->graph);
    return n;
}
