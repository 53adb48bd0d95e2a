/* SPDX-License-Identifier: Apache-2.0
 * concat and split: tensors one behind the other along a dim that they have. Whatever the cuts,
 * each element travels straight to where it belongs. */
#include <string.h>

#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"
#include "ops/window.h"

/* ---- concat ---- */

typedef struct concat_attr {
    const char *dim;
} concat_attr;

static const op_field concat_fields[] = {OP_FIELD(concat_attr, dim, FIELD_NAME), {0}};

static bool concat_infer(mtf_graph *g, mtf_node *n)
{
    const concat_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    int64_t size = 0;
    for (int k = 0; k < n->nin; k++) {
        const mtf_tensor *y = n->in[k];
        const int at = window_dim(g, n, y, a->dim);
        if (at < 0) return false;
        const mtf_shape as = window_shape(&y->shape, a->dim, mtf_tensor_dim(x, a->dim).size);
        if (y->dtype != x->dtype || !shape_equal(&as, &x->shape)) {
            graph_fail(g,
                       "concat '%s': operand %d is %s%s and operand 0 is %s%s; all must have one "
                       "type and, but for the size of %s, the same dims",
                       n->name, k, mtf_dtype_name(y->dtype), shape_text(&y->shape),
                       mtf_dtype_name(x->dtype), shape_text(&x->shape), a->dim);
            return false;
        }
        if (__builtin_add_overflow(size, y->shape.dim[at].size, &size)) size = -1;
    }
    n->out[0].shape = window_shape(&x->shape, a->dim, size);
    n->out[0].dtype = x->dtype;
    return true;
}

static role concat_role(const mtf_node *n, const char *dim)
{
    return dim == ((const concat_attr *)n->attr)->dim ? ROLE_MOVE : ROLE_MAP;
}

static void concat_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const concat_attr *a = n->attr;
    int64_t size[KERNEL_MAX_IN];
    for (int k = 0; k < n->nin; k++)
        size[k] = mtf_tensor_dim(n->in[k], a->dim).size;
    mtf_split(dy[0], a->dim, n->nin, size, dx);
}

static bool concat_lower(lowering *l, mtf_node *n)
{
    return lower_window(l, n, 0, ((const concat_attr *)n->attr)->dim, 0, false);
}

static mtf_tensor *concat_sample(mtf_graph *g, int k)
{
    mtf_tensor *x[20];
    static const int64_t size[3] = {4, 1, 5};
    for (int i = 0; i < 20; i++)
        x[i] = NULL;
    switch (k) {
    case 0:
    case 1:
        for (int i = 0; i < 3; i++)
            x[i] = sample_normal(g, MTF_SHAPE({"a", size[i]}, {"b", 3}));
        return mtf_concat(k ? 2 : 3, x, "a");
    case 2: /* one operand twice */
        x[0] = x[1] = sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 9}));
        x[2] = sample_normal(g, MTF_SHAPE({"b", 2}, {"a", 4})); /* in another order */
        return mtf_concat(3, x, "b");
    case 3: /* more than one node holds */
        for (int i = 0; i < 20; i++)
            x[i] = i < 2 ? sample_normal(g, MTF_SHAPE({"a", 1 + i})) : x[i % 2];
        return mtf_concat(20, x, "a");
    case 4:
        return mtf_concat(1, (mtf_tensor *[]){sample_normal(g, MTF_SHAPE({"a", 4}))}, "a");
    case 5: /* of nothing but dims of size 1 */
        for (int i = 0; i < 3; i++)
            x[i] = sample_normal(g, MTF_SHAPE({"a", 1}, {"b", 1}));
        return mtf_concat(3, x, "a");
    case 6:
        for (int i = 0; i < 2; i++)
            x[i] = sample_integers(g, MTF_SHAPE({"b", 3}, {"a", size[i]}));
        return mtf_concat(2, x, "a");
    case 7:
        for (int i = 0; i < 2; i++)
            x[i] = sample_flags(g, MTF_SHAPE({"a", size[i + 1]}));
        return mtf_concat(2, x, "a");
    }
    return NULL;
}

const op op_concat = {
    .name = "concat",
    .doc = "out = the operands one behind the other along dim",
    .example = "mtf_concat(2, (mtf_tensor *[]){x, x}, \"b\")",
    .nin = -1,
    .traits = TRAIT_RESIZES,
    .attr_size = sizeof(concat_attr),
    .fields = concat_fields,
    .infer = concat_infer,
    .role = concat_role,
    .linear = window_linear,
    .grad = concat_grad,
    .lower = concat_lower,
    .sample = concat_sample,
};

/* Of more operands than a node has, equal parts are put together first. */
mtf_tensor *mtf_concat(int n, mtf_tensor *const *xs, const char *dim)
{
    mtf_graph *g = graph_of(n, xs);
    if (!g) return NULL;
    const concat_attr a = {.dim = graph_intern(g, dim)};
    if (n == 1) return xs[0] && window_has(xs[0], "concat", dim) ? xs[0] : NULL;
    mtf_tensor *part[KERNEL_MAX_IN];
    for (int i = 0; i < n && n <= KERNEL_MAX_IN; i++)
        part[i] = window_ordered(xs[i], xs[0], a.dim);
    if (n <= KERNEL_MAX_IN) return graph_add(g, &op_concat, NULL, n, part, &a);
    for (int i = 0; i < KERNEL_MAX_IN; i++) {
        const int first = (int)((int64_t)n * i / KERNEL_MAX_IN);
        part[i] = mtf_concat((int)((int64_t)n * (i + 1) / KERNEL_MAX_IN) - first, xs + first, dim);
    }
    return mtf_concat(KERNEL_MAX_IN, part, dim);
}

/* ---- split ---- */

typedef struct split_attr {
    int n;
    const char *dim;
    op_list sizes;
} split_attr;

static const op_field split_fields[] = {
    OP_FIELD(split_attr, dim, FIELD_NAME), OP_FIELD(split_attr, sizes, FIELD_LIST), {0}};

static bool split_infer(mtf_graph *g, mtf_node *n)
{
    const split_attr *a = n->attr;
    (void)g;
    for (int i = 0; i < a->n; i++) {
        n->out[i].shape = window_shape(&n->in[0]->shape, a->dim, a->sizes.at[i]);
        n->out[i].dtype = n->in[0]->dtype;
    }
    return true;
}

static role split_role(const mtf_node *n, const char *dim)
{
    return dim == ((const split_attr *)n->attr)->dim ? ROLE_MOVE : ROLE_MAP;
}

/* A part without a gradient has a gradient of zeros. */
static void split_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const split_attr *a = n->attr;
    mtf_tensor *part[KERNEL_MAX_IN];
    for (int i = 0; i < a->n; i++)
        part[i] = dy[i] ? dy[i] : mtf_constant(n->graph, 0.0, n->out[i].shape, n->out[i].dtype);
    dx[0] = mtf_concat(a->n, part, a->dim);
}

static bool split_lower(lowering *l, mtf_node *n)
{
    const split_attr *a = n->attr;
    int64_t start = 0;
    for (int i = 0; i < a->n; start += a->sizes.at[i++])
        if (!lower_window(l, n, i, a->dim, start, false)) return false;
    return true;
}

/* All parts, or the first alone, so that the others have no gradient. */
static mtf_tensor *split_sample(mtf_graph *g, int k)
{
    static const int64_t size[] = {2, 1, 3, 4};
    mtf_tensor *part[20], *x = NULL;
    switch (k) {
    case 0:
    case 1:
        x = sample_normal(g, MTF_SHAPE({"a", 10}, {"b", 4}));
        mtf_split(x, "a", 4, size, part);
        return k ? part[2]
                 : mtf_mul(mtf_concat(2, (mtf_tensor *[]){part[3], part[0]}, "a"),
                           mtf_concat(3, (mtf_tensor *[]){part[1], part[2], part[0]}, "a"));
    case 2:
        x = sample_normal(g, MTF_SHAPE({"b", 4}, {"a", 20}));
        mtf_split(x, "a", 20, NULL, part);
        return mtf_add_n(20, part);
    case 3: /* into one part; the last of some of size 1 */
        x = sample_normal(g, MTF_SHAPE({"a", 3}, {"b", 1}));
        mtf_split(x, "b", 1, NULL, part);
        mtf_split(part[0], "a", 3, NULL, part);
        return part[2];
    case 4:
        x = sample_integers(g, MTF_SHAPE({"a", 10}));
        mtf_split(x, "a", 4, size, part);
        return part[3];
    }
    return NULL;
}

const op op_split = {
    .name = "split",
    .doc = "out_k = the elements of x along dim behind those of out_0 .. out_(k-1)",
    .example = "mtf_split(x, \"b\", 3, NULL, parts)",
    .nin = 1,
    .nout = -1,
    .traits = TRAIT_RESIZES,
    .attr_size = sizeof(split_attr),
    .fields = split_fields,
    .infer = split_infer,
    .role = split_role,
    .linear = NULL,
    .grad = split_grad,
    .lower = split_lower,
    .sample = split_sample,
};

static bool sizes_fit(const mtf_tensor *x, const char *dim, int n, const int64_t *sizes)
{
    const int at = mtf_shape_find(&x->shape, dim);
    int64_t rest = at < 0 ? 0 : x->shape.dim[at].size;
    bool ok = at >= 0 && n >= 1 && (sizes || rest % n == 0);
    for (int i = 0; ok && sizes && i < n; rest -= sizes[i++])
        ok = sizes[i] >= 1 && sizes[i] <= rest;
    if (ok && (!sizes || rest == 0)) return true;
    graph_fail(x->node->graph, "split of '%s' %s along %s into %d: %s", x->node->name,
               shape_text(&x->shape), dim ? dim : "NULL", n,
               at < 0  ? "it has no such dim"
               : sizes ? "the sizes must be at least 1 and add up to that of the dim"
                       : "without sizes the number of parts must divide that of the dim");
    return false;
}

/* At most as many parts as a node has. */
static void split_once(mtf_tensor *x, const char *dim, int n, const int64_t *sizes,
                       mtf_tensor **parts)
{
    split_attr a = {.n = n, .dim = graph_intern(x->node->graph, dim), .sizes = {.n = n}};
    memcpy(a.sizes.at, sizes, sizeof *sizes * (size_t)n);
    mtf_tensor *first = graph_add(x->node->graph, &op_split, NULL, 1, &x, &a);
    for (int i = 0; i < n; i++)
        parts[i] = first ? &first->node->out[i] : NULL;
}

static void split_all(mtf_tensor *x, const char *dim, int n, const int64_t *sizes,
                      mtf_tensor **parts)
{
    if (n == 1) {
        parts[0] = x;
        return;
    }
    if (n <= KERNEL_MAX_IN) {
        split_once(x, dim, n, sizes, parts);
        return;
    }
    int64_t size[KERNEL_MAX_IN] = {0};
    mtf_tensor *group[KERNEL_MAX_IN];
    for (int i = 0; i < KERNEL_MAX_IN; i++)
        for (int64_t k = (int64_t)n * i / KERNEL_MAX_IN; k < (int64_t)n * (i + 1) / KERNEL_MAX_IN;
             k++)
            size[i] += sizes[k];
    split_once(x, dim, KERNEL_MAX_IN, size, group);
    for (int i = 0; i < KERNEL_MAX_IN; i++) {
        const int64_t first = (int64_t)n * i / KERNEL_MAX_IN;
        const int64_t end = (int64_t)n * (i + 1) / KERNEL_MAX_IN;
        if (!group[i]) return;
        split_all(group[i], dim, (int)(end - first), sizes + first, parts + first);
    }
}

void mtf_split(mtf_tensor *x, const char *dim, int n, const int64_t *sizes, mtf_tensor **parts)
{
    if (!parts) {
        if (x)
            graph_fail(x->node->graph, "split of '%s': there is no room for parts", x->node->name);
        return;
    }
    for (int i = 0; i < n; i++)
        parts[i] = NULL;
    if (!x || !sizes_fit(x, dim, n, sizes)) return;
    arena *mem = x->node->graph->mem;
    int64_t *even = arena_alloc(mem, sizeof *even * (size_t)n);
    for (int i = 0; i < n; i++)
        even[i] = sizes ? sizes[i] : mtf_tensor_dim(x, dim).size / n;
    split_all(x, dim, n, even, parts);
}
