/* SPDX-License-Identifier: Apache-2.0
 * Reverse-mode differentiation as a graph transformation: rows build the gradient nodes. The one
 * operation that is named here is `add`.
 *
 * Nodes of a recompute region are copied when the walk arrives at the region from above, and then
 * the rows build gradients from the copies. The sums of gradients are still kept by original node,
 * so that they are added up in the same order and their bits are the same. */
#include "base/check.h"
#include "graph/copies.h"
#include "graph/op.h"
#include "mtf/gradient.h"
#include "mtf/ops.h"

/* Only nodes from the first of xs to the last of ys can be between the two. */
typedef struct reverse {
    mtf_graph *g;
    int64_t first, count; /* ids of these nodes */
    bool *on_path;        /* per node: does it depend on one of xs through differentiable rows */
    mtf_tensor ***grad;   /* per node and output: the sum so far */
    copies *again;        /* of the region that the walk is in, or NULL */
    int region;
} reverse;

static bool is_float(const mtf_tensor *t)
{
    return mtf_dtype_is_float(t->dtype);
}

static int64_t position(const reverse *r, const mtf_node *n)
{
    const int64_t at = n->id - r->first;
    return at >= 0 && at < r->count ? at : -1;
}

static bool is_on_path(const reverse *r, const mtf_node *n)
{
    const int64_t at = position(r, n);
    return at >= 0 && r->on_path[at];
}

static void mark_paths(reverse *r, int n, mtf_tensor *const *xs)
{
    for (int i = 0; i < n; i++)
        if (position(r, xs[i]->node) >= 0) r->on_path[position(r, xs[i]->node)] = true;
    for (int64_t i = 0; i < r->count; i++) {
        const mtf_node *node = r->g->node[r->first + i];
        if ((node->op->traits & TRAIT_NO_GRAD) || !node->op->grad) continue;
        for (int k = 0; k < node->nin; k++)
            if (is_float(node->in[k]) && is_on_path(r, node->in[k]->node)) r->on_path[i] = true;
    }
}

static mtf_tensor **sum_of(const reverse *r, const mtf_tensor *t)
{
    return &r->grad[position(r, t->node)][t->index];
}

static void accumulate(reverse *r, const mtf_tensor *t, mtf_tensor *d)
{
    mtf_tensor **sum = sum_of(r, t);
    *sum = *sum ? graph_add_gradients(*sum, d) : d;
}

static bool has_gradient(const reverse *r, const mtf_node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (*sum_of(r, &n->out[i])) return true;
    return false;
}

/* What takes the node's place in the backward pass: the node, or its copy where its region is
 * computed again. NULL after an error. */
static mtf_node *stand_in(reverse *r, mtf_node *n)
{
    if (!n->region) return n;
    if (r->region != n->region) {
        const region at = r->g->region[n->region - 1];
        copies_free(&r->again);
        r->again = copies_new(r->g, at.begin, at.end);
        r->region = n->region;
        copies_make(r->again);
    }
    const mtf_tensor *t = r->g->err.status == MTF_OK ? copies_of(r->again, &n->out[0]) : NULL;
    return t ? t->node : NULL;
}

/* Gradient nodes are named after the block that they belong to. */
static void step_back(reverse *r, mtf_node *n)
{
    mtf_node *as = stand_in(r, n);
    if (!as) return;
    mtf_tensor **dx = mem_zalloc(sizeof(mtf_tensor *) * (size_t)(n->nin + 1));
    r->g->scope =
        arena_printf(r->g->mem, "%.*s", (int)(graph_base_name(n->name) - n->name), n->name);
    mtf_scope_push(r->g, "grad");
    n->op->grad(as, r->grad[position(r, n)], dx);
    mtf_scope_pop(r->g);
    for (int k = 0; k < n->nin && r->g->err.status == MTF_OK; k++) {
        if (!dx[k] || !is_on_path(r, n->in[k]->node)) continue;
        MTF_CHECK(shape_equal(&dx[k]->shape, &n->in[k]->shape),
                  "the gradient of operand %d of %s '%s' has shape %s instead of %s", k,
                  n->op->name, n->name, shape_text(&dx[k]->shape), shape_text(&n->in[k]->shape));
        MTF_CHECK(dx[k]->dtype == n->in[k]->dtype,
                  "the gradient of operand %d of %s '%s' is %s instead of %s", k, n->op->name,
                  n->name, mtf_dtype_name(dx[k]->dtype), mtf_dtype_name(n->in[k]->dtype));
        accumulate(r, n->in[k], dx[k]);
    }
    mem_free(dx);
}

/* ---- arguments ---- */

static bool y_usable(mtf_graph *g, int k, const mtf_tensor *y, const mtf_tensor *dy)
{
    if (!is_float(y))
        graph_fail(g, "gradients of '%s': it is %s; only floating-point tensors have gradients",
                   y->node->name, mtf_dtype_name(y->dtype));
    else if (y->node->graph != g || (dy && dy->node->graph != g))
        graph_fail(g, "gradients of '%s': y %d or its seed belongs to another graph", y->node->name,
                   k);
    else if (dy && (dy->dtype != y->dtype || !shape_equal(&dy->shape, &y->shape)))
        graph_fail(g, "gradients of '%s': it is %s%s, and its seed '%s' %s%s; they must be equal",
                   y->node->name, mtf_dtype_name(y->dtype), shape_text(&y->shape), dy->node->name,
                   mtf_dtype_name(dy->dtype), shape_text(&dy->shape));
    else if (g->open && g->region[g->nregions - 1].begin <= y->node->id)
        graph_fail(g,
                   "gradients of '%s': its recompute region is still open; call "
                   "mtf_recompute_end first",
                   y->node->name);
    else
        return true;
    return false;
}

static bool xs_usable(mtf_graph *g, const mtf_tensor *y, int n, mtf_tensor *const *xs)
{
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

/* ---- the walk ---- */

static void find_range(reverse *r, int ny, mtf_tensor *const *ys, int n, mtf_tensor *const *xs)
{
    int64_t last = -1;
    r->first = r->g->nnodes;
    for (int i = 0; i < ny; i++)
        if (ys[i]->node->id > last) last = ys[i]->node->id;
    for (int i = 0; i < n; i++)
        if (xs[i]->node->id < r->first) r->first = xs[i]->node->id;
    r->count = last >= r->first ? last - r->first + 1 : 0;
}

static void seed(reverse *r, int ny, mtf_tensor *const *ys, mtf_tensor *const *dys)
{
    for (int i = 0; i < ny; i++) {
        if (!is_on_path(r, ys[i]->node)) continue;
        const mtf_tensor *y = ys[i];
        accumulate(r, y, dys && dys[i] ? dys[i] : mtf_constant(r->g, 1.0, y->shape, y->dtype));
    }
}

static void walk(reverse *r, int ny, mtf_tensor *const *ys, mtf_tensor *const *dys, int n,
                 mtf_tensor *const *xs, mtf_tensor **dx)
{
    arena *scratch = arena_new();
    r->on_path = arena_alloc(scratch, (size_t)r->count * sizeof *r->on_path + 1);
    r->grad = arena_alloc(scratch, (size_t)(r->count + 1) * sizeof *r->grad);
    for (int64_t i = 0; i < r->count; i++)
        r->grad[i] =
            arena_alloc(scratch, (size_t)r->g->node[r->first + i]->nout * sizeof **r->grad);
    mark_paths(r, n, xs);
    const char *scope = r->g->scope;
    r->g->scope = "";
    seed(r, ny, ys, dys);
    for (int64_t i = r->count - 1; i >= 0 && r->g->err.status == MTF_OK; i--) {
        mtf_node *node = r->g->node[r->first + i];
        if (r->on_path[i] && node->op->grad && has_gradient(r, node)) step_back(r, node);
    }
    r->g->scope = scope;
    for (int i = 0; i < n && r->g->err.status == MTF_OK; i++)
        dx[i] = position(r, xs[i]->node) >= 0 ? *sum_of(r, xs[i]) : NULL;
    copies_free(&r->again);
    arena_free(&scratch);
}

mtf_status mtf_gradients_of(int ny, mtf_tensor *const *ys, mtf_tensor *const *dys, int n,
                            mtf_tensor *const *xs, mtf_tensor **dx)
{
    for (int i = 0; i < n && dx; i++)
        dx[i] = NULL;
    mtf_graph *g = graph_of(ny, ys);
    if (!g) return MTF_INVALID;
    if (n > 0 && (!xs || !dx)) graph_fail(g, "gradients: the list of arguments or results is NULL");
    for (int i = 0; i < ny && g->err.status == MTF_OK; i++) {
        if (!ys[i])
            graph_fail(g, "gradients: y %d is NULL", i);
        else
            y_usable(g, i, ys[i], dys ? dys[i] : NULL);
    }
    if (g->err.status != MTF_OK || !xs_usable(g, ys[0], n, xs)) return g->err.status;
    reverse r = {.g = g};
    find_range(&r, ny, ys, n, xs);
    walk(&r, ny, ys, dys, n, xs, dx);
    return g->err.status;
}

mtf_status mtf_gradients(mtf_tensor *y, int n, mtf_tensor *const *xs, mtf_tensor **dx)
{
    if (y && (y->shape.rank != 0 || !is_float(y))) {
        for (int i = 0; i < n && dx; i++)
            dx[i] = NULL;
        graph_fail(y->node->graph,
                   "gradients of '%s': it must be a scalar of a floating-point type, not %s%s",
                   y->node->name, mtf_dtype_name(y->dtype), shape_text(&y->shape));
        return MTF_INVALID;
    }
    return mtf_gradients_of(1, &y, NULL, n, xs, dx);
}
