/* SPDX-License-Identifier: Apache-2.0
 * Results with a gradient of the user's own. The operands are the results as they were built, then
 * the tensors that get the gradient; in a program the node is nothing but other names. */
#include <string.h>

#include "base/mem.h"
#include "mtf/gradient.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct custom_attr {
    int outs; /* operands that are results; those behind them get the gradient */
    mtf_gradient_fn *gradient;
    const void *context;
} custom_attr;

static const op_field fields[] = {OP_FIELD(custom_attr, outs, FIELD_INT), {0}};

static bool is_float(const mtf_tensor *t)
{
    return mtf_dtype_is_float(t->dtype);
}

static bool infer(mtf_graph *g, mtf_node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (!is_float(n->in[i])) {
            graph_fail(g, "custom_gradient: '%s' is %s; it takes floating-point tensors",
                       n->in[i]->node->name, mtf_dtype_name(n->in[i]->dtype));
            return false;
        }
    for (int i = 0; i < n->nout; i++) {
        n->out[i].shape = n->in[i]->shape;
        n->out[i].dtype = n->in[i]->dtype;
    }
    return true;
}

static bool gradient_fits(const mtf_node *n, const mtf_tensor *x, const mtf_tensor *dx)
{
    if (!dx) return true;
    if (dx->node->graph != n->graph)
        graph_fail(n->graph, "%s '%s': the gradient of '%s' belongs to another graph", n->op->name,
                   n->name, x->node->name);
    else if (dx->dtype != x->dtype || !shape_equal(&dx->shape, &x->shape))
        graph_fail(n->graph, "%s '%s': the gradient of '%s' is %s%s; it must be %s%s", n->op->name,
                   n->name, x->node->name, mtf_dtype_name(dx->dtype), shape_text(&dx->shape),
                   mtf_dtype_name(x->dtype), shape_text(&x->shape));
    else
        return true;
    return false;
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const custom_attr *a = n->attr;
    mtf_tensor *const *ins = n->in + a->outs;
    mtf_tensor **outs = mem_alloc(sizeof(mtf_tensor *) * (size_t)n->nout);
    for (int i = 0; i < n->nout; i++)
        outs[i] = &n->out[i];
    a->gradient(a->context, ins, outs, dy, dx + a->outs);
    for (int i = 0; i < n->nin - a->outs; i++)
        if (!gradient_fits(n, ins[i], dx[a->outs + i])) dx[a->outs + i] = NULL;
    mem_free(outs);
}

static bool lower(lowering *l, mtf_node *n)
{
    for (int i = 0; i < n->nout; i++)
        lower_same(l, n, i, n->in[i]);
    return true;
}

/* x y^2, whose gradient is written out. */
static void product_gradient(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                             mtf_tensor *const *dys, mtf_tensor **dxs)
{
    (void)context, (void)outs;
    dxs[0] = mtf_mul(dys[0], mtf_square(ins[1]));
    dxs[1] = mtf_scale(mtf_mul(dys[0], mtf_mul(ins[0], ins[1])), 2.0);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    const mtf_shape ab = {.rank = 2, .dim = {{"a", 4}, {"b", 6}}},
                    abc = {.rank = 3, .dim = {{"a", 3}, {"b", 1}, {"c", 9}}};
    if (k > 1) return NULL;
    mtf_tensor *in[] = {sample_normal(g, k ? abc : ab), sample_normal(g, k ? abc : ab)};
    mtf_tensor *y = mtf_mul(in[0], mtf_square(in[1]));
    return mtf_custom_gradient(1, &y, 2, in, product_gradient, NULL, 0, NULL);
}

const op op_custom_gradient = {
    .name = "custom_gradient",
    .doc = "outs = the first operands, with the user's gradient for the others",
    .example = "mtf_custom_gradient(1, &x, 1, &x, gradient, NULL, 0, NULL)",
    .nin = -1,
    .nout = -1,
    .traits = TRAIT_VIEW,
    .attr_size = sizeof(custom_attr),
    .fields = fields,
    .infer = infer,
    .grad = grad,
    .lower = lower,
    .sample = sample,
};

mtf_tensor *mtf_custom_gradient(int nout, mtf_tensor *const *outs, int nin, mtf_tensor *const *ins,
                                mtf_gradient_fn *gradient, const void *context, size_t bytes,
                                mtf_tensor **results)
{
    for (int i = 0; i < nout && results; i++)
        results[i] = NULL;
    mtf_graph *g = nout > 0 ? graph_of(nout, outs) : NULL;
    if (!g) g = nin > 0 ? graph_of(nin, ins) : NULL;
    if (!g) return NULL;
    if (nout < 1 || nin < 0)
        return graph_fail(g,
                          "custom_gradient: %d results and %d operands; there must be at least "
                          "one result, and no fewer than 0 operands",
                          nout, nin);
    if (!outs || (nin > 0 && !ins) || (bytes > 0 && !context))
        return graph_fail(g, "custom_gradient: %s is NULL",
                          !outs ? "the list of results"
                          : ins ? "the context"
                                : "the list of operands");
    if (!gradient) return graph_fail(g, "custom_gradient: the gradient function is NULL");
    if (nout > 1 && !results)
        return graph_fail(g, "custom_gradient: there is no room for %d results", nout);
    custom_attr a = {.gradient = gradient, .outs = nout};
    if (bytes) a.context = memcpy(arena_alloc(g->mem, bytes), context, bytes);
    mtf_tensor **in = mem_alloc(sizeof(mtf_tensor *) * (size_t)(nout + nin));
    memcpy(in, outs, sizeof(mtf_tensor *) * (size_t)nout);
    if (nin) memcpy(in + nout, ins, sizeof(mtf_tensor *) * (size_t)nin);
    mtf_tensor *first = graph_add(g, &op_custom_gradient, NULL, nout + nin, in, &a);
    mem_free(in);
    for (int i = 0; i < nout && first && results; i++)
        results[i] = &first->node->out[i];
    return first;
}
