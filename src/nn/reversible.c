/* SPDX-License-Identifier: Apache-2.0
 * Reversible residual layers. A layer is a custom gradient over (x1, back1, x2, back2) and whatever
 * f reads besides. The gradient of a `back` tensor is no gradient but the reconstructed activation
 * of its stream: at the top nothing flows into them, and the activations themselves are taken;
 * below, each layer hands to the one before what it has reconstructed. */
#include <string.h>

#include "graph/copies.h"
#include "mtf/gradient.h"
#include "mtf/nn.h"
#include "ops/rows.h"

/* Operands and results of the custom gradient; operands go on with what f reads besides x2. */
enum { X1, BACK1, X2, BACK2, STREAMS };

typedef struct layer {
    int64_t begin, end; /* what f built */
    mtf_tensor *x2, *f; /* its operand and result */
    int nothers;
    mtf_tensor **other;
} layer;

/* f, as the backward pass computes it again on x2. */
static copies *repeat(const layer *l, mtf_tensor *x2, mtf_tensor *const *others)
{
    copies *c = copies_new(x2->node->graph, l->begin, l->end);
    copies_replace(c, l->x2, x2);
    for (int i = 0; i < l->nothers; i++)
        copies_replace(c, l->other[i], others[i]);
    copies_make(c);
    return c;
}

/* Gradients of what f reads from that of its result. */
static void through_f(const layer *l, copies *c, mtf_tensor *dy, mtf_tensor **dxs)
{
    const size_t bytes = sizeof(mtf_tensor *) * (size_t)(l->nothers + 1);
    mtf_tensor **x = mem_alloc(bytes), **dx = mem_zalloc(bytes), *f = copies_of(c, l->f);
    x[0] = copies_of(c, l->x2);
    for (int i = 0; i < l->nothers; i++)
        x[1 + i] = copies_of(c, l->other[i]);
    if (f) mtf_gradients_of(1, &f, &dy, l->nothers + 1, x, dx);
    dxs[X2] = dxs[X2] && dx[0] ? mtf_add(dxs[X2], dx[0]) : dxs[X2] ? dxs[X2] : dx[0];
    if (l->nothers) memcpy(dxs + STREAMS, dx + 1, bytes - sizeof(mtf_tensor *));
    mem_free(x);
    mem_free(dx);
}

static void gradient(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                     mtf_tensor *const *dys, mtf_tensor **dxs)
{
    const layer *l = context;
    /* The results are swapped: x2 is the first stream now, and x1 + f(x2) the second. */
    mtf_tensor *x2 = dys[BACK1] ? dys[BACK1] : outs[X1];
    mtf_tensor *sum = dys[BACK2] ? dys[BACK2] : outs[X2];
    copies *c = repeat(l, x2, ins + STREAMS);
    dxs[BACK1] = mtf_sub(sum, copies_of(c, l->f));
    dxs[BACK2] = x2;
    dxs[X1] = dys[X2];
    dxs[X2] = dys[X1];
    if (dys[X2]) through_f(l, c, dys[X2], dxs);
    copies_free(&c);
}

mtf_reversible mtf_reversible_begin(mtf_tensor *x)
{
    if (!x) return (mtf_reversible){0};
    mtf_tensor *none = mtf_constant(x->node->graph, 0.0, x->shape, x->dtype);
    return (mtf_reversible){.x1 = x, .x2 = x, .back1 = none, .back2 = none};
}

static void add_other(layer *l, mtf_tensor *t)
{
    for (int i = 0; i < l->nothers; i++)
        if (l->other[i] == t) return;
    if (t != l->x2) l->other[l->nothers++] = t;
}

/* What f read, and what it gave where it built nothing for that: all but x2. */
static void find_others(mtf_graph *g, layer *l)
{
    const int n = mtf_external_inputs(g, l->begin, l->end, 0, NULL);
    mtf_tensor **all = mem_alloc(sizeof(mtf_tensor *) * (size_t)(n + 1));
    mtf_external_inputs(g, l->begin, l->end, n, all);
    l->other = arena_alloc(g->mem, sizeof(mtf_tensor *) * (size_t)(n + 1));
    for (int i = 0; i < n && g->err.status == MTF_OK; i++)
        add_other(l, all[i]);
    if (l->f->node->id < l->begin) add_other(l, l->f);
    mem_free(all);
}

/* Are the streams as a layer gave them? Others would be reconstructed as these. */
static bool are_of(const mtf_node *from, const mtf_reversible *s)
{
    return s->x1 == &from->out[X1] && s->back1 == &from->out[BACK1] && s->x2 == &from->out[X2] &&
           s->back2 == &from->out[BACK2];
}

/* Did they go into a layer? The reconstructions of two would be added up. */
static bool went_on(const mtf_node *from)
{
    const mtf_graph *g = from->graph;
    for (int64_t i = from->id + 1; i < g->nnodes; i++) {
        const mtf_node *n = g->node[i];
        if (n->op == from->op && n->nin >= 2 * STREAMS &&
            n->in[STREAMS + BACK1] == &from->out[BACK1])
            return true;
    }
    return false;
}

static bool streams_usable(mtf_graph *g, const mtf_reversible *s)
{
    const mtf_node *from = s->back1 ? s->back1->node : NULL;
    if (from && from->op != &op_custom_gradient) return true; /* of mtf_reversible_begin */
    if (!from || !are_of(from, s))
        graph_fail(
            g,
            "reversible layer: its streams '%s' and '%s' are not those of one layer; end the "
            "stack before they are changed, and begin another",
            s->x1->node->name, s->x2->node->name);
    else if (went_on(from))
        graph_fail(g,
                   "reversible layer: the streams of '%s' go into a layer already; end them there, "
                   "or begin another stack",
                   from->name);
    else
        return true;
    return false;
}

static bool result_fits(const mtf_tensor *x, const mtf_tensor *f)
{
    if (!f) {
        if (mtf_graph_status(x->node->graph, NULL) == MTF_OK)
            graph_fail(x->node->graph, "reversible layer: f gives NULL for x1 '%s'", x->node->name);
        return false;
    }
    if (f->dtype == x->dtype && shape_equal(&f->shape, &x->shape)) return true;
    graph_fail(x->node->graph, "reversible layer: f gives %s%s for x1 '%s', which is %s%s",
               mtf_dtype_name(f->dtype), shape_text(&f->shape), x->node->name,
               mtf_dtype_name(x->dtype), shape_text(&x->shape));
    return false;
}

mtf_reversible mtf_reversible_layer(mtf_reversible s, mtf_layer_fn *f, void *context)
{
    mtf_reversible r = {0};
    if (!s.x1 || !s.x2) return r;
    mtf_graph *g = s.x2->node->graph;
    if (!f) {
        graph_fail(g, "reversible layer: f is NULL");
        return r;
    }
    if (!streams_usable(g, &s)) return r;
    layer l = {.begin = mtf_graph_mark(g), .x2 = s.x2};
    l.f = f(context, s.x2);
    l.end = mtf_graph_mark(g);
    if (!result_fits(s.x1, l.f)) return r;
    find_others(g, &l);
    mtf_tensor *outs[STREAMS] = {s.x2, s.back2, mtf_add(s.x1, l.f), s.back1}, *y[STREAMS];
    mtf_tensor **ins = mem_alloc(sizeof(mtf_tensor *) * (size_t)(STREAMS + l.nothers));
    memcpy(ins, (mtf_tensor *[STREAMS]){s.x1, s.back1, s.x2, s.back2}, sizeof outs);
    memcpy(ins + STREAMS, l.other, sizeof(mtf_tensor *) * (size_t)l.nothers);
    mtf_custom_gradient(STREAMS, outs, STREAMS + l.nothers, ins, gradient, &l, sizeof l, y);
    mem_free(ins);
    return (mtf_reversible){.x1 = y[X1], .back1 = y[BACK1], .x2 = y[X2], .back2 = y[BACK2]};
}

mtf_tensor *mtf_reversible_end(mtf_reversible s)
{
    return s.x1 && s.x2 ? mtf_add(s.x1, s.x2) : NULL;
}
