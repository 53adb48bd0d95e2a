/* SPDX-License-Identifier: Apache-2.0
 * Dense layers, products of them, and the pair that a Transformer's feed-forward layer is. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "mtf/noise.h"
#include "nn/activation.h"

/* ---- shapes ---- */

static mtf_shape joined(mtf_shape a, const mtf_dim *d, int n)
{
    for (int i = 0; i < n; i++)
        a = mtf_shape_with(a, d[i]);
    return a;
}

/* The reduced dims, "_<name>" where an out dim has the same name. */
static mtf_shape reduced_dims(mtf_graph *g, const mtf_dense_options *o)
{
    mtf_shape s = o->reduced;
    for (int i = 0; i < s.rank; i++)
        if (mtf_shape_find(&o->out, s.dim[i].name) >= 0)
            s.dim[i].name = arena_printf(g->mem, "_%s", s.dim[i].name);
    return s;
}

static bool dims_usable(mtf_graph *g, const char *name, const mtf_dense_options *o)
{
    for (int i = 0; i < o->expert.rank; i++) {
        const char *dim = o->expert.dim[i].name;
        if (mtf_shape_find(&o->reduced, dim) < 0 && mtf_shape_find(&o->out, dim) < 0) continue;
        graph_fail(g, "dense '%s': dim %s is an expert dim; it cannot be a reduced or new one too",
                   name, dim);
    }
    if (o->expert.rank + o->reduced.rank + o->out.rank > MTF_MAX_RANK)
        graph_fail(g, "dense '%s': the kernel would have %d dims; there may be %d", name,
                   o->expert.rank + o->reduced.rank + o->out.rank, (int)MTF_MAX_RANK);
    return mtf_graph_status(g, NULL) == MTF_OK;
}

/* ---- dense ---- */

mtf_dense_weights mtf_dense_variables(mtf_graph *g, const char *name, const mtf_dense_options *o,
                                      mtf_dtype type)
{
    if (!o) {
        graph_fail(g, "dense '%s': the struct of options is NULL", name ? name : "");
        return (mtf_dense_weights){0};
    }
    mtf_dense_weights w = {
        .nexpert = o->expert.rank, .nreduced = o->reduced.rank, .unit_scaling = o->unit_scaling};
    if (!dims_usable(g, name, o) || !activation_known(g, o->activation)) return w;
    mtf_initializer kernel = o->kernel;
    kernel.unit |= o->unit_scaling;
    const mtf_shape reduced = reduced_dims(g, o);
    const mtf_shape out = joined(o->expert, o->out.dim, o->out.rank);
    const mtf_shape shape =
        joined(joined(o->expert, reduced.dim, reduced.rank), o->out.dim, o->out.rank);
    mtf_scope_push(g, name);
    w.kernel = mtf_initialized(g, "kernel", shape, reduced, o->out, &kernel, type);
    if (o->bias)
        w.bias = mtf_initialized(g, "bias", out, MTF_SCALAR, MTF_SCALAR, &MTF_INITIAL_ZEROS, type);
    mtf_scope_pop(g);
    if (o->activation) w.activation = arena_strdup(g->mem, o->activation);
    return w;
}

/* x with those dims called "_<name>" that the kernel calls so, and what the result will have. */
static mtf_tensor *prepare(mtf_tensor *x, const mtf_dense_weights *w, mtf_shape *output)
{
    mtf_graph *g = mtf_tensor_graph(x);
    const mtf_shape kernel = mtf_tensor_shape(w->kernel);
    const int first = w->nexpert + w->nreduced;
    for (int i = 0; i < first; i++) {
        const char *name = kernel.dim[i].name;
        const mtf_shape now = mtf_tensor_shape(x);
        const bool renamed = i >= w->nexpert && name[0] == '_' &&
                             mtf_shape_find(&kernel, name + 1) >= first &&
                             mtf_shape_find(&now, name) < 0;
        if (mtf_shape_find(&now, renamed ? name + 1 : name) < 0)
            return graph_fail(g, "dense '%s': '%s' of shape %s lacks the %s dim %s",
                              mtf_tensor_name(w->kernel), mtf_tensor_name(x), shape_text(&now),
                              i < w->nexpert ? "expert" : "reduced", renamed ? name + 1 : name);
        if (renamed) x = mtf_rename(x, name + 1, name);
    }
    *output = mtf_tensor_shape(x);
    for (int i = w->nexpert; i < first; i++)
        *output = mtf_shape_without(*output, kernel.dim[i].name);
    for (int i = first; i < kernel.rank; i++) {
        if (mtf_shape_find(output, kernel.dim[i].name) >= 0)
            return graph_fail(g, "dense '%s': '%s' of shape %s has the new dim %s already",
                              mtf_tensor_name(w->kernel), mtf_tensor_name(x), shape_text(&x->shape),
                              kernel.dim[i].name);
        *output = mtf_shape_with(*output, kernel.dim[i]);
    }
    return x;
}

mtf_tensor *mtf_dense_layer(mtf_tensor *x, const mtf_dense_weights *w)
{
    if (!x || !w || !w->kernel) return NULL;
    mtf_shape output;
    x = prepare(x, w, &output);
    if (!x) return NULL;
    mtf_tensor *const both[] = {x, mtf_variable_read(w->kernel)};
    mtf_tensor *y =
        w->unit_scaling ? mtf_unit_einsum(2, both, output) : mtf_einsum(2, both, output);
    if (w->bias) y = mtf_add(y, mtf_variable_read(w->bias));
    return mtf_activate(y, w->activation);
}

/* ---- products ---- */

mtf_dense_product mtf_dense_product_variables(mtf_graph *g, const char *name,
                                              const mtf_dense_options *o, int nactivations,
                                              const char *const *activations, mtf_dtype type)
{
    mtf_dense_product p = {.nfactors = nactivations};
    if (nactivations < 1 || nactivations > MTF_MAX_DENSE_FACTORS) {
        graph_fail(g, "dense_product '%s': %d activations; there must be 1 to %d", name,
                   nactivations, (int)MTF_MAX_DENSE_FACTORS);
        p.nfactors = 0;
    } else if (!activations || !o) {
        graph_fail(g,
                   "dense_product '%s': the list of activations or the struct of options is NULL",
                   name);
        p.nfactors = 0;
    }
    for (int i = 0; i < p.nfactors; i++) {
        mtf_dense_options one = *o;
        one.activation = activations[i];
        const char *of = nactivations > 1 ? arena_printf(g->mem, "%s_%d", name, i) : name;
        p.factor[i] = mtf_dense_variables(g, of, &one, type);
    }
    return p;
}

mtf_tensor *mtf_dense_product_layer(mtf_tensor *x, const mtf_dense_product *p)
{
    mtf_tensor *y = NULL;
    for (int i = 0; p && i < p->nfactors; i++) {
        mtf_tensor *factor = mtf_dense_layer(x, &p->factor[i]);
        if (!factor) return NULL;
        y = y ? mtf_mul(y, factor) : factor;
    }
    return y;
}

/* ---- feed-forward ---- */

mtf_dense_pair mtf_dense_pair_variables(mtf_graph *g, const char *name, mtf_shape channels,
                                        mtf_shape hidden, int nactivations,
                                        const char *const *activations, mtf_dtype type)
{
    mtf_dense_pair p;
    mtf_scope_push(g, name);
    p.wi = mtf_dense_product_variables(g, "wi",
                                       &(mtf_dense_options){.reduced = channels, .out = hidden},
                                       nactivations, activations, type);
    p.wo = mtf_dense_variables(g, "wo", &(mtf_dense_options){.reduced = hidden, .out = channels},
                               type);
    mtf_scope_pop(g);
    return p;
}

/* `s` without the dims of a list of names. */
static mtf_shape without_names(mtf_graph *g, mtf_shape s, const char *names)
{
    static const char separators[] = ";,. ";
    for (const char *at = names; at && *at;) {
        at += strspn(at, separators);
        const int n = (int)strcspn(at, separators);
        const char *name = arena_printf(g->mem, "%.*s", n, at);
        at += n;
        if (!n) continue;
        if (mtf_shape_find(&s, name) < 0)
            graph_fail(g, "dropout: %s is to have one choice for all of dim %s, and has none",
                       shape_text(&s), name);
        s = mtf_shape_without(s, name);
    }
    return s;
}

mtf_tensor *mtf_dense_pair_layer(mtf_tensor *x, const mtf_dense_pair *p, double rate,
                                 const char *shared)
{
    mtf_tensor *hidden = p ? mtf_dense_product_layer(x, &p->wi) : NULL;
    if (!hidden) return NULL;
    const mtf_shape noise = without_names(mtf_tensor_graph(hidden), hidden->shape, shared);
    return mtf_dense_layer(mtf_dropout_shared(hidden, "hidden", rate, noise), &p->wo);
}
