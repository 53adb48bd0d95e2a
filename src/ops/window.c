/* SPDX-License-Identifier: Apache-2.0
 * slice and pad along one dim, and what the other rows share that take other elements of a dim. */
#include "ops/window.h"

#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

const op_field window_fields[] = {OP_FIELD(window_attr, dim, FIELD_NAME),
                                  OP_FIELD(window_attr, start, FIELD_I64),
                                  OP_FIELD(window_attr, size, FIELD_I64),
                                  OP_FIELD(window_attr, wrap, FIELD_INT),
                                  {0}};

int window_dim(mtf_graph *g, const mtf_node *n, const mtf_tensor *x, const char *dim)
{
    const int at = shape_find(&x->shape, dim);
    if (at < 0)
        graph_fail(g, "%s '%s': no dim is called %s in %s", n->op->name, n->name,
                   dim ? dim : "NULL", shape_text(&x->shape));
    return at;
}

mtf_shape window_shape(const mtf_shape *like, const char *dim, int64_t size)
{
    mtf_shape s = *like;
    for (int d = 0; d < s.rank; d++)
        if (s.dim[d].name == dim) s.dim[d].size = size;
    return s;
}

mtf_tensor *window_ordered(mtf_tensor *x, const mtf_tensor *like, const char *dim)
{
    if (!x || !like || x->node->graph != like->node->graph) return x;
    mtf_shape s = like->shape;
    for (int d = 0; d < s.rank; d++) {
        const int at = shape_find(&x->shape, s.dim[d].name);
        if (at < 0) return x; /* the row has a message for that */
        if (s.dim[d].name == dim) s.dim[d].size = x->shape.dim[at].size;
        if (s.dim[d].size != x->shape.dim[at].size) return x;
    }
    return s.rank == x->shape.rank ? mtf_transpose(x, s) : x;
}

role window_role(const mtf_node *n, const char *dim)
{
    return dim == ((const window_attr *)n->attr)->dim ? ROLE_MOVE : ROLE_MAP;
}

bool window_linear(const mtf_node *n, unsigned mask)
{
    return mask == (1u << n->nin) - 1;
}

bool window_lower(lowering *l, mtf_node *n)
{
    const window_attr *a = n->attr;
    return lower_window(l, n, 0, a->dim, a->start, a->wrap);
}

bool window_infer(mtf_graph *g, mtf_node *n)
{
    const window_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    if (window_dim(g, n, x, a->dim) < 0) return false;
    n->out[0].shape = window_shape(&x->shape, a->dim, a->size);
    n->out[0].dtype = x->dtype;
    return true;
}

/* The window that looks back: what it does not reach has no gradient. */
void window_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const window_attr *a = n->attr;
    const int at = shape_find(&n->in[0]->shape, a->dim);
    dx[0] = window_build(dy[0], a->dim, -a->start, n->in[0]->shape.dim[at].size);
}

/* What slice and pad have in common. */
#define WINDOW_OF_ONE                                                                              \
    .nin = 1, .traits = TRAIT_RESIZES, .attr_size = sizeof(window_attr), .fields = window_fields,  \
    .infer = window_infer, .role = window_role, .linear = window_linear, .grad = window_grad,      \
    .lower = window_lower

static mtf_tensor *slice_sample(mtf_graph *g, int k)
{
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 10}, {"c", 3});
    static const struct {
        const char *dim;
        int64_t begin, size;
    } of[] = {{"b", 0, 4}, {"b", 3, 6}, {"a", 1, 2}, {"c", 2, 1}, {"a", 3, 1}, {"b", 1, 9}};
    if (k < 6) return mtf_slice(sample_normal(g, s), of[k].dim, of[k].begin, of[k].size);
    if (k > 6 && k < 11) { /* dims of which some processors have nothing; all of one */
        const int64_t at = k % 2 ? 2 : 0;
        if (k > 8) return mtf_slice(sample_integers(g, s), k == 9 ? "a" : "c", at, k == 9 ? 2 : 3);
        return mtf_slice(sample_normal(g, MTF_SHAPE({"b", 3}, {"c", 1})), k == 7 ? "b" : "c", at,
                         1);
    }
    if (k > 10) return NULL;
    const mtf_window w[] = {{"b", 2, 7}, {"a", 0, 3}};
    return mtf_slice_dims(sample_normal(g, s), 2, w);
}

const op op_slice = {
    .name = "slice",
    .doc = "out[.., i, ..] = x[.., i + start, ..] for `size` elements of dim",
    .example = "mtf_slice(x, \"b\", 1, 4)",
    WINDOW_OF_ONE,
    .sample = slice_sample,
};

static mtf_tensor *pad_sample(mtf_graph *g, int k)
{
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 9}, {"c", 1});
    static const struct {
        const char *dim;
        int64_t before, after;
    } of[] = {{"b", 1, 0}, {"b", 0, 3}, {"a", 5, 7}, {"c", 2, 1}};
    if (k < 4) return mtf_pad(sample_normal(g, s), of[k].dim, of[k].before, of[k].after);
    if (k == 5) return mtf_pad(sample_normal(g, MTF_SHAPE({"b", 3}, {"c", 1})), "b", 0, 0);
    if (k == 6) return mtf_pad(sample_normal(g, MTF_SHAPE({"b", 3}, {"c", 1})), "c", 0, 3);
    if (k == 7) return mtf_pad(sample_normal(g, MTF_SHAPE({"b", 1})), "b", 30, 20);
    if (k == 8) return mtf_pad(sample_integers(g, MTF_SHAPE({"b", 3})), "b", 1, 1);
    if (k > 8) return NULL;
    const mtf_padding p[] = {{"a", 1, 1}, {"b", 2, 0}};
    return mtf_pad_dims(sample_normal(g, s), 2, p);
}

const op op_pad = {
    .name = "pad",
    .doc = "out[.., i, ..] = x[.., i + start, ..] for `size` elements of dim, 0 beyond x's ends",
    .example = "mtf_pad(x, \"b\", 1, 2)",
    WINDOW_OF_ONE,
    .sample = pad_sample,
};

mtf_tensor *window_build(mtf_tensor *x, const char *dim, int64_t start, int64_t size)
{
    const window_attr a = {.dim = graph_intern(x->node->graph, dim), .start = start, .size = size};
    const int at = shape_find(&x->shape, a.dim);
    const int64_t n = at < 0 ? 0 : x->shape.dim[at].size;
    if (start == 0 && size == n) return x;
    const bool within = start >= 0 && start + size <= n;
    return graph_add(x->node->graph, within ? &op_slice : &op_pad, NULL, 1, &x, &a);
}

int64_t window_has(const mtf_tensor *x, const char *what, const char *dim)
{
    const int at = mtf_shape_find(&x->shape, dim);
    if (at >= 0) return x->shape.dim[at].size;
    graph_fail(x->node->graph, "%s of '%s': no dim is called %s in %s", what, x->node->name,
               dim ? dim : "NULL", shape_text(&x->shape));
    return 0;
}

mtf_tensor *mtf_slice(mtf_tensor *x, const char *dim, int64_t begin, int64_t size)
{
    if (!x) return NULL;
    const int64_t n = window_has(x, "slice", dim);
    if (n == 0) return NULL;
    if (begin < 0 || size < 1 || begin > n || size > n - begin)
        return graph_fail(x->node->graph,
                          "slice of '%s': %lld elements of %s from %lld on are asked for; it has "
                          "%lld, counted from 0",
                          x->node->name, (long long)size, dim, (long long)begin, (long long)n);
    return window_build(x, dim, begin, size);
}

mtf_tensor *mtf_slice_dims(mtf_tensor *x, int n, const mtf_window *w)
{
    for (int i = 0; i < n && x; i++)
        x = w ? mtf_slice(x, w[i].dim, w[i].begin, w[i].size)
              : graph_fail(x->node->graph, "slice of '%s': the list of %d windows is NULL",
                           x->node->name, n);
    return x;
}

mtf_tensor *mtf_pad(mtf_tensor *x, const char *dim, int64_t before, int64_t after)
{
    if (!x) return NULL;
    const int64_t n = window_has(x, "pad", dim);
    if (n == 0) return NULL;
    if (before < 0 || after < 0 || before > INT64_MAX - n || after > INT64_MAX - n - before)
        return graph_fail(x->node->graph,
                          "pad of '%s': %lld elements before and %lld behind the %lld of %s are "
                          "asked for; neither may be negative, use mtf_slice to take some away",
                          x->node->name, (long long)before, (long long)after, (long long)n, dim);
    return window_build(x, dim, -before, before + n + after);
}

mtf_tensor *mtf_pad_dims(mtf_tensor *x, int n, const mtf_padding *p)
{
    for (int i = 0; i < n && x; i++)
        x = p ? mtf_pad(x, p[i].dim, p[i].before, p[i].after)
              : graph_fail(x->node->graph, "pad of '%s': the list of %d paddings is NULL",
                           x->node->name, n);
    return x;
}
