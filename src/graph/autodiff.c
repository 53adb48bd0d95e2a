/* SPDX-License-Identifier: Apache-2.0
 * Reverse-mode differentiation as a graph transformation: rows build the gradient nodes. The one
 * operation that is named here is `add`. */
#include "base/check.h"
#include "graph/op.h"
#include "mtf/ops.h"

typedef struct reverse {
    mtf_graph *g;
    int64_t nodes;      /* nodes of the graph before any gradient */
    bool *on_path;      /* per node: does it depend on one of xs through differentiable rows */
    mtf_tensor ***grad; /* per node and output: the sum so far */
} reverse;

static bool is_float(const mtf_tensor *t)
{
    return mtf_dtype_is_float(t->dtype);
}

static void mark_paths(reverse *r, int n, mtf_tensor *const *xs)
{
    for (int i = 0; i < n; i++)
        r->on_path[xs[i]->node->id] = true;
    for (int64_t i = 0; i < r->nodes; i++) {
        const mtf_node *node = r->g->node[i];
        if ((node->op->traits & TRAIT_NO_GRAD) || !node->op->grad) continue;
        for (int k = 0; k < node->nin; k++)
            if (is_float(node->in[k]) && r->on_path[node->in[k]->node->id]) r->on_path[i] = true;
    }
}

static void accumulate(reverse *r, const mtf_tensor *t, mtf_tensor *d)
{
    mtf_tensor **sum = &r->grad[t->node->id][t->index];
    *sum = *sum ? graph_add_gradients(*sum, d) : d;
}

static void step_back(reverse *r, mtf_node *n)
{
    mtf_tensor *dx[KERNEL_MAX_IN] = {0};
    mtf_scope_push(r->g, "grad");
    n->op->grad(n, r->grad[n->id], dx);
    mtf_scope_pop(r->g);
    for (int k = 0; k < n->nin; k++) {
        if (!dx[k] || !r->on_path[n->in[k]->node->id]) continue;
        MTF_CHECK(shape_equal(&dx[k]->shape, &n->in[k]->shape),
                  "the gradient of operand %d of %s '%s' has shape %s instead of %s", k,
                  n->op->name, n->name, shape_text(&dx[k]->shape), shape_text(&n->in[k]->shape));
        MTF_CHECK(dx[k]->dtype == n->in[k]->dtype,
                  "the gradient of operand %d of %s '%s' is %s instead of %s", k, n->op->name,
                  n->name, mtf_dtype_name(dx[k]->dtype), mtf_dtype_name(n->in[k]->dtype));
        accumulate(r, n->in[k], dx[k]);
    }
}

static bool has_gradient(const reverse *r, const mtf_node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (r->grad[n->id][i]) return true;
    return false;
}

static bool arguments_right(mtf_graph *g, const mtf_tensor *y, int n, mtf_tensor *const *xs)
{
    if (y->shape.rank != 0 || !is_float(y)) {
        graph_fail(g, "gradients of '%s': it must be a scalar of a floating-point type, not %s%s",
                   y->node->name, mtf_dtype_name(y->dtype), shape_text(&y->shape));
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!xs[i] || !is_float(xs[i])) {
            graph_fail(g, "gradients of '%s': argument %d ('%s') is no floating-point tensor",
                       y->node->name, i, xs[i] ? xs[i]->node->name : "NULL");
            return false;
        } else if (xs[i]->node->graph != g) {
            graph_fail(g, "gradients of '%s': argument %d ('%s') belongs to another graph",
                       y->node->name, i, xs[i]->node->name);
            return false;
        }
    return true;
}

mtf_status mtf_gradients(mtf_tensor *y, int n, mtf_tensor *const *xs, mtf_tensor **dx)
{
    for (int i = 0; i < n; i++)
        dx[i] = NULL;
    if (!y) return MTF_INVALID;
    mtf_graph *g = y->node->graph;
    if (g->err.status != MTF_OK || !arguments_right(g, y, n, xs)) return g->err.status;
    reverse r = {.g = g, .nodes = g->nnodes};
    arena *scratch = arena_new();
    r.on_path = arena_alloc(scratch, (size_t)r.nodes * sizeof *r.on_path);
    r.grad = arena_alloc(scratch, (size_t)r.nodes * sizeof *r.grad);
    for (int64_t i = 0; i < r.nodes; i++)
        r.grad[i] = arena_alloc(scratch, (size_t)g->node[i]->nout * sizeof **r.grad);
    mark_paths(&r, n, xs);
    const char *scope = g->scope;
    g->scope = "";
    if (r.on_path[y->node->id])
        r.grad[y->node->id][y->index] = mtf_constant(g, 1.0, MTF_SCALAR, y->dtype);
    for (int64_t i = y->node->id; i >= 0 && g->err.status == MTF_OK; i--) {
        mtf_node *node = g->node[i];
        if (!r.on_path[i] || !has_gradient(&r, node) || !node->op->grad) continue;
        /* Gradient nodes are named after the block that they belong to. */
        const char *slash = node->name;
        for (const char *c = node->name; *c; c++)
            if (*c == '/') slash = c + 1;
        g->scope = arena_printf(g->mem, "%.*s", (int)(slash - node->name), node->name);
        step_back(&r, node);
    }
    g->scope = scope;
    for (int i = 0; i < n; i++)
        dx[i] = r.grad[xs[i]->node->id][xs[i]->index];
    arena_free(&scratch);
    return g->err.status;
}
