/* SPDX-License-Identifier: Apache-2.0
 * Gradient descent, plain and with momentum, and Adam. */
#include <math.h>

#include "graph/graph.h"
#include "nn/optimize.h"

static void first_moment(mtf_graph *g, mtf_optimizer *o, int i)
{
    (void)g;
    o->m[i] = optimizer_slot(o, i, "m", mtf_tensor_shape(o->variable[i]));
}

/* ---- gradient descent ---- */

static mtf_tensor *sgd(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list)
{
    (void)list;
    return mtf_mul(gradient, optimizer_rate(o, i));
}

static mtf_tensor *velocity(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list)
{
    mtf_tensor *m = mtf_add(mtf_scale(o->m[i], o->options.momentum), gradient);
    list->update[list->n++] = mtf_assign(o->m[i], m);
    return m;
}

static mtf_tensor *momentum(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list)
{
    return mtf_mul(velocity(o, i, gradient, list), optimizer_rate(o, i));
}

static mtf_tensor *nesterov(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list)
{
    mtf_tensor *m = velocity(o, i, gradient, list);
    mtf_tensor *ahead = mtf_add(gradient, mtf_scale(m, o->options.momentum));
    return mtf_mul(ahead, optimizer_rate(o, i));
}

/* ---- Adam ---- */

/* -expm1 keeps the digits that 1 - beta^step loses for a beta near 1. */
double mtf_adam_correction(double beta, int64_t step)
{
    return beta > 0 ? -1.0 / expm1((double)step * log(beta)) : 1.0;
}

static void begin(mtf_graph *g, mtf_optimizer *o)
{
    const mtf_dtype type = optimizer_type(o);
    optimizer_check_epsilon(g, o, "epsilon", o->options.epsilon);
    if (!o->options.uncorrected) {
        o->correction[0] = mtf_placeholder(g, "correction_1", MTF_SCALAR, type);
        o->correction[1] = mtf_placeholder(g, "correction_2", MTF_SCALAR, type);
    }
}

static void begin_with_decay(mtf_graph *g, mtf_optimizer *o)
{
    const int n = o->nvariables;
    begin(g, o);
    if (o->options.weight_decay == 0) return;
    bool *spared = arena_alloc(g->mem, (size_t)n);
    if (o->options.exclude_from_weight_decay &&
        !optimizer_match(g, "exclude_from_weight_decay", o->options.exclude_from_weight_decay, n,
                         o->variable, spared))
        return;
    for (int i = 0; i < n; i++)
        o->decays[i] = o->options.exclude_from_weight_decay
                           ? !spared[i]
                           : mtf_tensor_shape(o->variable[i]).rank >= 2;
}

static void moments(mtf_graph *g, mtf_optimizer *o, int i)
{
    first_moment(g, o, i);
    o->v[i] = optimizer_slot(o, i, "v", mtf_tensor_shape(o->variable[i]));
}

/* kept * old + (1 - kept) * now */
static mtf_tensor *average(mtf_tensor *old, mtf_tensor *now, double kept)
{
    return mtf_add(mtf_scale(old, kept), mtf_scale(now, 1.0 - kept));
}

static mtf_tensor *corrected(mtf_tensor *x, mtf_tensor *correction)
{
    return correction ? mtf_mul(x, correction) : x;
}

static mtf_tensor *adam(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list)
{
    const mtf_optimizer_options *s = &o->options;
    mtf_tensor *m = average(o->m[i], gradient, s->beta1);
    mtf_tensor *v = average(o->v[i], mtf_square(gradient), s->beta2);
    list->update[list->n++] = mtf_assign(o->m[i], m);
    list->update[list->n++] = mtf_assign(o->v[i], v);
    mtf_tensor *root = mtf_offset(mtf_sqrt(corrected(v, o->correction[1])), s->epsilon);
    mtf_tensor *d = mtf_div(corrected(m, o->correction[0]), root);
    if (o->decays[i]) d = mtf_add(d, mtf_scale(optimizer_value(o, i), s->weight_decay));
    return mtf_mul(d, optimizer_rate(o, i));
}

const optimizer_row optimizer_sgd = {.name = "sgd", .change = sgd};
const optimizer_row optimizer_momentum = {
    .name = "momentum", .slots = first_moment, .change = momentum};
const optimizer_row optimizer_nesterov = {
    .name = "nesterov", .slots = first_moment, .change = nesterov};
const optimizer_row optimizer_adam = {
    .name = "adam", .begin = begin, .slots = moments, .change = adam};
const optimizer_row optimizer_adamw = {
    .name = "adamw", .begin = begin_with_decay, .slots = moments, .change = adam};
