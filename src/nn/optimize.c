/* SPDX-License-Identifier: Apache-2.0
 * Optimisers and clipping: elementwise work on variables, gradients and slots, so each processor
 * updates what it holds and nothing moves. */
#include "mtf/optimize.h"

#include "graph/graph.h"

static bool is_adam(const mtf_optimizer *o)
{
    return o->options.kind == MTF_ADAM || o->options.kind == MTF_ADAMW;
}

/* The type of a variable's slots and of its update: f32 where it is stored as bf16. */
static mtf_dtype type_of(const mtf_tensor *variable)
{
    return mtf_dtype_of_sums(mtf_tensor_dtype(variable));
}

/* Named by the variable's whole path, whatever the scope is. */
static mtf_tensor *slot(mtf_graph *g, const mtf_tensor *variable, const char *name)
{
    const char *path = arena_printf(g->mem, "%s/%s", mtf_tensor_name(variable), name);
    mtf_tensor *zero = mtf_constant(g, 0.0, mtf_tensor_shape(variable), type_of(variable));
    return mtf_variable(g, path, zero, false);
}

static bool variables_usable(mtf_graph *g, int n, mtf_tensor *const *variables)
{
    if (n < 1) graph_fail(g, "optimizer: there is no variable");
    for (int i = 0; i < n; i++) {
        const mtf_tensor *v = variables[i];
        if (!v) return false;
        if (mtf_dtype_is_float(v->dtype) && type_of(v) == type_of(variables[0])) continue;
        graph_fail(
            g,
            "optimizer: variables '%s' and '%s' have the types %s and %s; all must be f32 or "
            "bf16, or all f64",
            mtf_tensor_name(variables[0]), mtf_tensor_name(v), mtf_dtype_name(variables[0]->dtype),
            mtf_dtype_name(v->dtype));
    }
    return mtf_graph_status(g, NULL) == MTF_OK;
}

mtf_optimizer *mtf_optimizer_new(mtf_graph *g, const mtf_optimizer_options *options, int nvariables,
                                 mtf_tensor *const *variables)
{
    if (!variables_usable(g, nvariables, variables)) return NULL;
    const size_t bytes = sizeof(mtf_tensor *) * (size_t)nvariables;
    const mtf_dtype type = type_of(variables[0]);
    mtf_optimizer *o = arena_alloc(g->mem, sizeof *o);
    *o = (mtf_optimizer){.options = *options, .nvariables = nvariables};
    o->variable = arena_alloc(g->mem, bytes);
    o->m = arena_alloc(g->mem, bytes);
    o->v = arena_alloc(g->mem, bytes);
    for (int i = 0; i < nvariables; i++) {
        o->variable[i] = variables[i];
        if (options->kind != MTF_SGD) o->m[i] = slot(g, variables[i], "m");
        if (is_adam(o)) o->v[i] = slot(g, variables[i], "v");
    }
    o->rate = mtf_placeholder(g, "learning_rate", MTF_SCALAR, type);
    if (is_adam(o)) {
        o->correction[0] = mtf_placeholder(g, "correction_1", MTF_SCALAR, type);
        o->correction[1] = mtf_placeholder(g, "correction_2", MTF_SCALAR, type);
    }
    return mtf_graph_status(g, NULL) == MTF_OK ? o : NULL;
}

/* keep * old + (1 - keep) * now */
static mtf_tensor *average(mtf_tensor *old, mtf_tensor *now, double kept)
{
    return mtf_add(mtf_scale(old, kept), mtf_scale(now, 1.0 - kept));
}

/* What the rate is multiplied with; adds the assignments of slots. */
static mtf_tensor *direction(const mtf_optimizer *o, int i, mtf_tensor *w, mtf_tensor *gradient,
                             mtf_tensor **updates, int *n)
{
    const mtf_optimizer_options *s = &o->options;
    if (s->kind == MTF_SGD) return gradient;
    if (s->kind == MTF_MOMENTUM) {
        mtf_tensor *m = mtf_add(mtf_scale(o->m[i], s->momentum), gradient);
        updates[(*n)++] = mtf_assign(o->m[i], m);
        return m;
    }
    mtf_tensor *m = average(o->m[i], gradient, s->beta1);
    mtf_tensor *v = average(o->v[i], mtf_square(gradient), s->beta2);
    updates[(*n)++] = mtf_assign(o->m[i], m);
    updates[(*n)++] = mtf_assign(o->v[i], v);
    mtf_tensor *root = mtf_offset(mtf_sqrt(mtf_mul(v, o->correction[1])), s->epsilon);
    mtf_tensor *d = mtf_div(mtf_mul(m, o->correction[0]), root);
    const bool decays =
        s->kind == MTF_ADAMW && s->weight_decay != 0 && mtf_tensor_shape(w).rank >= 2;
    return decays ? mtf_add(d, mtf_scale(w, s->weight_decay)) : d;
}

int mtf_optimizer_updates(const mtf_optimizer *o, mtf_tensor *const *gradients,
                          mtf_tensor **updates)
{
    if (!o) return 0;
    mtf_graph *g = mtf_tensor_graph(o->rate);
    int n = 0;
    mtf_scope_push(g, "optimizer");
    for (int i = 0; i < o->nvariables; i++) {
        if (!gradients[i]) continue;
        mtf_tensor *v = o->variable[i], *w = mtf_cast(v, type_of(v));
        mtf_tensor *d = direction(o, i, w, mtf_cast(gradients[i], type_of(v)), updates, &n);
        mtf_tensor *next = mtf_sub(w, mtf_mul(d, o->rate));
        updates[n++] = mtf_assign(v, mtf_cast(next, mtf_tensor_dtype(v)));
    }
    mtf_scope_pop(g);
    return mtf_graph_status(g, NULL) == MTF_OK ? n : 0;
}

mtf_tensor *mtf_global_norm(int n, mtf_tensor *const *tensors)
{
    mtf_tensor *sum = NULL;
    mtf_tensor **part = mem_alloc(sizeof(mtf_tensor *) * (size_t)(n > 0 ? n : 1));
    int parts = 0;
    for (int i = 0; i < n; i++)
        if (tensors[i]) {
            mtf_tensor *x = mtf_cast(tensors[i], type_of(tensors[i]));
            part[parts++] = mtf_reduce_sum(mtf_square(x), MTF_SCALAR);
        }
    for (int i = 0; i < parts; i++)
        sum = sum ? mtf_add(sum, part[i]) : part[i];
    mem_free(part);
    return mtf_sqrt(sum);
}

/* A norm of 0 gives infinity, then 1. */
mtf_tensor *mtf_clip_factor(mtf_tensor *norm, double limit)
{
    mtf_graph *g = mtf_tensor_graph(norm);
    if (!g) return NULL;
    const mtf_dtype type = mtf_tensor_dtype(norm);
    mtf_tensor *ratio = mtf_div(mtf_constant(g, limit, MTF_SCALAR, type), norm);
    return mtf_minimum(mtf_constant(g, 1.0, MTF_SCALAR, type), ratio);
}
