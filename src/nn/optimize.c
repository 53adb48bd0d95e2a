/* SPDX-License-Identifier: Apache-2.0
 * Optimisers as a whole: slots, placeholders, the step, averages. Elementwise work on variables,
 * gradients and slots, so each processor updates what it holds; only Adafactor's means move. */
#include "nn/optimize.h"

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "base/pattern.h"
#include "graph/graph.h"
#include "ops/rows.h"

static const optimizer_row *const rows[MTF_NUM_OPTIMIZERS] = {
    [MTF_SGD] = &optimizer_sgd,           [MTF_MOMENTUM] = &optimizer_momentum,
    [MTF_NESTEROV] = &optimizer_nesterov, [MTF_ADAM] = &optimizer_adam,
    [MTF_ADAMW] = &optimizer_adamw,       [MTF_ADAFACTOR] = &optimizer_adafactor,
};

/* ---- what is shared with the kinds ---- */

static mtf_tensor *keep(mtf_optimizer *o, mtf_tensor *slot)
{
    if (slot) o->slot[o->nslots++] = slot;
    return slot;
}

/* Named by the variable's whole path, whatever the scope is. */
static mtf_tensor *make_slot(mtf_optimizer *o, int i, const char *name, mtf_tensor *initial)
{
    mtf_graph *g = mtf_tensor_graph(o->variable[i]);
    const char *path = arena_printf(g->mem, "%s/%s", mtf_tensor_name(o->variable[i]), name);
    return keep(o, mtf_variable(g, path, initial, false));
}

mtf_tensor *optimizer_slot(mtf_optimizer *o, int i, const char *name, mtf_shape shape)
{
    mtf_graph *g = mtf_tensor_graph(o->variable[i]);
    return make_slot(o, i, name, mtf_constant(g, 0.0, shape, optimizer_type(o)));
}

static mtf_dtype type_of(const mtf_tensor *variable)
{
    return mtf_dtype_of_sums(mtf_tensor_dtype(variable));
}

mtf_dtype optimizer_type(const mtf_optimizer *o)
{
    return type_of(o->variable[0]);
}

mtf_tensor *optimizer_value(const mtf_optimizer *o, int i)
{
    mtf_tensor *v = o->variable[i];
    return mtf_cast(FAULT(FAULT_WRITE_BACK) ? mtf_variable_read(v) : v, optimizer_type(o));
}

void optimizer_check_epsilon(mtf_graph *g, const mtf_optimizer *o, const char *name, double epsilon)
{
    const mtf_dtype type = optimizer_type(o);
    const double least = type == MTF_F64 ? 1e-300 : 1e-37; /* with all their digits */
    if (!(epsilon >= least && isfinite(epsilon)))
        graph_fail(g, "optimizer: %s is %g; in %s it must be at least %g", name, epsilon,
                   mtf_dtype_name(type), least);
}

mtf_tensor *optimizer_rate(const mtf_optimizer *o, int i)
{
    return o->rate[o->rate_of[i]];
}

bool optimizer_match(mtf_graph *g, const char *what, const char *pattern, int n,
                     mtf_tensor *const *variables, bool *mark)
{
    regex_t regex;
    mtf_err err = {0};
    if (pattern_compile(pattern, &regex, &err) != MTF_OK)
        return graph_fail(g, "optimizer: %s %s", what, err.text) != NULL;
    bool any = false;
    for (int i = 0; i < n; i++) {
        mark[i] = regexec(&regex, mtf_tensor_name(variables[i]), 0, NULL, 0) == 0;
        any |= mark[i];
    }
    regfree(&regex);
    if (!any)
        graph_fail(g,
                   "optimizer: %s '%s' matches no variable; the %d variables have names like '%s' "
                   "and '%s'",
                   what, pattern, n, mtf_tensor_name(variables[0]),
                   mtf_tensor_name(variables[n - 1]));
    return any;
}

/* ---- making one ---- */

static bool variables_usable(mtf_graph *g, int n, mtf_tensor *const *variables)
{
    if (n < 1 || !variables) graph_fail(g, "optimizer: there is no variable");
    for (int i = 0; i < n && variables; i++) {
        const mtf_tensor *v = variables[i];
        if (!v) return graph_fail(g, "optimizer: variable %d of %d is NULL", i, n) != NULL;
        if (v->node->graph != g)
            graph_fail(g, "optimizer: '%s' belongs to another graph", mtf_tensor_name(v));
        if (!(v->node->op->traits & TRAIT_STATE))
            graph_fail(g, "optimizer: '%s' is no variable", mtf_tensor_name(v));
        if (!mtf_dtype_is_float(v->dtype))
            graph_fail(g, "optimizer: variable '%s' is %s; it must be f32, bf16 or f64",
                       mtf_tensor_name(v), mtf_dtype_name(v->dtype));
        if (type_of(v) == type_of(variables[0])) continue;
        graph_fail(
            g,
            "optimizer: variables '%s' and '%s' have the types %s and %s; all must be f32 or "
            "bf16, or all f64",
            mtf_tensor_name(variables[0]), mtf_tensor_name(v), mtf_dtype_name(variables[0]->dtype),
            mtf_dtype_name(v->dtype));
    }
    return mtf_graph_status(g, NULL) == MTF_OK;
}

static bool schedule_usable(mtf_graph *g, const char *what, const mtf_schedule *s)
{
    mtf_err err = {0};
    if (mtf_schedule_check(s, &err) == MTF_OK) return true;
    return graph_fail(g, "optimizer: schedule%s: %s", what, err.text) != NULL;
}

/* Numbers of the kinds; those of Adafactor are checked by its row. */
static void check_numbers(mtf_graph *g, const mtf_optimizer_options *o)
{
    const struct {
        const char *name;
        double value, below;
    } checks[] = {
        {"momentum", o->momentum, 1},
        {"beta1", o->beta1, 1},
        {"beta2", o->beta2, 1},
        {"weight_decay", o->weight_decay, (double)INFINITY},
        {"average_decay", o->average_decay, 1},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!(checks[i].value >= 0 && checks[i].value < checks[i].below))
            graph_fail(g, "optimizer: %s is %g; it must be at least 0 and below %g", checks[i].name,
                       checks[i].value, checks[i].below);
}

static bool options_usable(mtf_graph *g, const mtf_optimizer_options *o)
{
    if ((unsigned)o->kind >= MTF_NUM_OPTIMIZERS)
        graph_fail(g, "optimizer: there is no kind %d", (int)o->kind);
    if (o->nrules < 0 || o->nrules > MTF_MAX_RATE_RULES)
        graph_fail(g, "optimizer: %d rules of learning rates; there may be %d", o->nrules,
                   (int)MTF_MAX_RATE_RULES);
    else if (o->nrules > 0 && !o->rules)
        graph_fail(g, "optimizer: the list of %d rules of learning rates is NULL", o->nrules);
    check_numbers(g, o);
    schedule_usable(g, "", &o->schedule);
    return mtf_graph_status(g, NULL) == MTF_OK;
}

static void allocate(mtf_graph *g, mtf_optimizer *o, int n, mtf_tensor *const *variables)
{
    mtf_tensor ***const lists[] = {&o->variable, &o->m, &o->v, &o->vr, &o->vc, &o->average};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        *lists[k] = arena_alloc(g->mem, sizeof(mtf_tensor *) * (size_t)n);
    o->slot = arena_alloc(g->mem, sizeof(mtf_tensor *) * MTF_MAX_VARIABLE_UPDATES * (size_t)n);
    o->decays = arena_alloc(g->mem, (size_t)n);
    o->scales = arena_alloc(g->mem, (size_t)n);
    o->rate_of = arena_alloc(g->mem, sizeof *o->rate_of * (size_t)n);
    o->nvariables = n;
    memcpy(o->variable, variables, sizeof *variables * (size_t)n);
}

/* The placeholders of learning rates, and which one each variable takes. Later rules first, so that
 * the first one that matches stays. */
static void make_rates(mtf_graph *g, mtf_optimizer *o)
{
    const int n = o->options.nrules;
    const mtf_dtype type = optimizer_type(o);
    bool *mark = arena_alloc(g->mem, (size_t)o->nvariables);
    mtf_rate_rule *copy = arena_alloc(g->mem, sizeof *copy * (size_t)(n + 1));
    o->nrates = n + 1;
    for (int k = 0; k < o->nrates; k++)
        o->rate[k] = mtf_placeholder(g, "learning_rate", MTF_SCALAR, type);
    for (int k = n - 1; k >= 0; k--) {
        copy[k] = o->options.rules[k];
        if (!copy[k].pattern) {
            graph_fail(g, "optimizer: the pattern of learning rate %d is NULL", k);
            return;
        }
        copy[k].pattern = arena_strdup(g->mem, copy[k].pattern);
        if (!schedule_usable(g, " of a rule", &copy[k].schedule) ||
            !optimizer_match(g, "the pattern of a learning rate", copy[k].pattern, o->nvariables,
                             o->variable, mark))
            return;
        for (int i = 0; i < o->nvariables; i++)
            if (mark[i]) o->rate_of[i] = k + 1;
    }
    o->options.rules = copy;
}

/* A variable's average begins as the variable does. */
static void make_average(mtf_optimizer *o, int i)
{
    const mtf_tensor *v = o->variable[i];
    if (v->dtype == MTF_BF16) {
        graph_fail(v->node->graph,
                   "optimizer: average_decay is %g and variable '%s' is stored as bf16, whose "
                   "average would not move; store it as f32",
                   o->options.average_decay, mtf_tensor_name(v));
        return;
    }
    const variable_attr *a = o->variable[i]->node->attr;
    o->average[i] = make_slot(o, i, "average", a->initial);
}

/* The options outlive the caller's texts. */
static void keep_texts(mtf_graph *g, mtf_optimizer_options *o)
{
    const char **const texts[] = {&o->exclude_from_weight_decay, &o->adafactor.stacked_dims,
                                  &o->adafactor.exclude_from_parameter_scale};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i]) *texts[i] = arena_strdup(g->mem, *texts[i]);
}

mtf_optimizer *mtf_optimizer_new(mtf_graph *g, const mtf_optimizer_options *options, int nvariables,
                                 mtf_tensor *const *variables)
{
    if (!options) graph_fail(g, "optimizer: the struct of options is NULL");
    if (!options || !variables_usable(g, nvariables, variables) || !options_usable(g, options))
        return NULL;
    const optimizer_row *row = rows[options->kind];
    mtf_optimizer *o = arena_alloc(g->mem, sizeof *o);
    o->options = *options;
    keep_texts(g, &o->options);
    allocate(g, o, nvariables, variables);
    make_rates(g, o);
    if (row->begin && mtf_graph_status(g, NULL) == MTF_OK) row->begin(g, o);
    for (int i = 0; i < nvariables && mtf_graph_status(g, NULL) == MTF_OK; i++) {
        if (row->slots) row->slots(g, o, i);
        if (options->average_decay > 0) make_average(o, i);
    }
    return mtf_graph_status(g, NULL) == MTF_OK ? o : NULL;
}

/* ---- a step ---- */

static void add_average(const mtf_optimizer *o, int i, mtf_tensor *value, update_list *list)
{
    const double decay = o->options.average_decay;
    mtf_tensor *next = mtf_add(mtf_scale(o->average[i], decay), mtf_scale(value, 1.0 - decay));
    list->update[list->n++] = mtf_assign(o->average[i], next);
}

/* A gradient of fewer dims would be repeated along the others. */
static bool gradient_fits(mtf_graph *g, const mtf_tensor *w, const mtf_tensor *d)
{
    if (d->node->graph == g && shape_equal(&d->shape, &w->shape)) return true;
    graph_fail(g, "optimizer: the gradient '%s' of variable '%s' has the shape %s; it must be %s%s",
               d->node->name, w->node->name, shape_text(&d->shape), shape_text(&w->shape),
               d->node->graph == g ? "" : ", and of one graph with it");
    return false;
}

int mtf_optimizer_updates(const mtf_optimizer *o, mtf_tensor *const *gradients,
                          mtf_tensor **updates)
{
    if (!o) return 0;
    mtf_graph *g = mtf_tensor_graph(o->rate[0]);
    if (!gradients || !updates) {
        graph_fail(g, "optimizer: the list of gradients or of updates is NULL");
        return 0;
    }
    update_list list = {.update = updates};
    mtf_scope_push(g, "optimizer");
    for (int i = 0; i < o->nvariables; i++) {
        if (!gradients[i] || !gradient_fits(g, o->variable[i], gradients[i])) continue;
        mtf_tensor *gradient = mtf_cast(gradients[i], optimizer_type(o));
        mtf_tensor *change = rows[o->options.kind]->change(o, i, gradient, &list);
        mtf_tensor *value = mtf_sub(optimizer_value(o, i), change);
        const mtf_dtype stored = mtf_tensor_dtype(o->variable[i]);
        updates[list.n++] = mtf_assign(o->variable[i], mtf_cast(value, stored));
        if (o->average[i]) add_average(o, i, value, &list);
    }
    mtf_scope_pop(g);
    return mtf_graph_status(g, NULL) == MTF_OK ? list.n : 0;
}

int mtf_optimizer_swap_averages(const mtf_optimizer *o, mtf_tensor **updates)
{
    int n = 0;
    for (int i = 0; o && i < o->nvariables; i++) {
        if (!o->average[i]) continue;
        updates[n++] = mtf_assign(o->variable[i], o->average[i]);
        updates[n++] = mtf_assign(o->average[i], o->variable[i]);
    }
    return n;
}

static void add_scalar(mtf_step_scalar *list, int *n, mtf_tensor *placeholder, double value)
{
    if (placeholder) list[(*n)++] = (mtf_step_scalar){.placeholder = placeholder, .value = value};
}

int mtf_optimizer_scalars(const mtf_optimizer *o, int64_t step, int64_t total,
                          mtf_step_scalar *scalars)
{
    int n = 0;
    for (int k = 0; o && k < o->nrates; k++) {
        const mtf_schedule *s = k ? &o->options.rules[k - 1].schedule : &o->options.schedule;
        add_scalar(scalars, &n, o->rate[k], mtf_schedule_rate(s, step, total));
    }
    if (!o) return 0;
    add_scalar(scalars, &n, o->correction[0], mtf_adam_correction(o->options.beta1, step));
    add_scalar(scalars, &n, o->correction[1], mtf_adam_correction(o->options.beta2, step));
    const double decay = mtf_adafactor_decay(&o->options.adafactor, step);
    add_scalar(scalars, &n, o->decay, decay);
    add_scalar(scalars, &n, o->novelty, 1.0 - decay);
    return n;
}
