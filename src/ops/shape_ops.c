/* SPDX-License-Identifier: Apache-2.0
 * Rows that copy elements to other places: broadcast and transpose. */
#include <string.h>

#include "mtf/ops.h"
#include "ops/nest.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct shape_attr {
    mtf_shape shape;
} shape_attr;

static const op_field fields[] = {OP_FIELD(shape_attr, shape, FIELD_SHAPE), {0}};

static bool infer_copy(mtf_graph *g, mtf_node *n, bool may_grow)
{
    shape_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    if (!graph_check_shape(g, &a->shape, n->name)) return false;
    n->out[0].shape = a->shape;
    n->out[0].dtype = x->dtype;
    for (int i = 0; i < x->shape.rank; i++) {
        const mtf_dim d = x->shape.dim[i];
        const int at = shape_find(&a->shape, d.name);
        if (at >= 0 && a->shape.dim[at].size == d.size) continue;
        graph_fail(g, "%s '%s': the operand's dim %s=%lld is missing in the new shape %s",
                   n->op->name, n->name, d.name, (long long)d.size, shape_text(&a->shape));
        return false;
    }
    if (may_grow || x->shape.rank == a->shape.rank) return true;
    graph_fail(g, "%s '%s': %s has dims that the operand %s lacks; use broadcast for new dims",
               n->op->name, n->name, shape_text(&a->shape), shape_text(&x->shape));
    return false;
}

static bool broadcast_infer(mtf_graph *g, mtf_node *n)
{
    return infer_copy(g, n, true);
}

static bool transpose_infer(mtf_graph *g, mtf_node *n)
{
    return infer_copy(g, n, false);
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

typedef struct copy {
    const char *x;
    char *out;
    int64_t size;
} copy;

static void copy_run(void *ctx, int64_t n, const int64_t *at, const int64_t *stride)
{
    const copy *c = ctx;
    const char *x = c->x + at[0] * c->size;
    char *out = c->out + at[1] * c->size;
    if (stride[0] == 1) {
        memcpy(out, x, (size_t)(n * c->size));
        return;
    }
    const int64_t s = stride[0];
    switch (c->size) {
    case 2:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)(void *)out)[i] = ((const uint16_t *)(const void *)x)[i * s];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)out)[i] = ((const uint32_t *)(const void *)x)[i * s];
        break;
    case 8:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)out)[i] = ((const uint64_t *)(const void *)x)[i * s];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = x[i * s];
        break;
    }
}

/* A grain is one index of the output's first dim. */
static int64_t copy_grains(const kernel_args *k)
{
    return k->out[0].rank ? k->dim[0].local : 1;
}

static void copy_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    const kernel_view *views[] = {&k->in[0], &k->out[0]};
    nest s = {.views = 2};
    for (int d = 0; d < k->out[0].rank; d++)
        nest_add(&s, k, d, views);
    copy c = {.x = k->in[0].data, .out = k->out[0].data, .size = mtf_dtype_size(k->out[0].dtype)};
    int64_t base[2] = {0};
    if (s.rank) {
        s.n[0] = end - begin;
        for (int v = 0; v < 2; v++)
            base[v] = begin * s.stride[v][0];
    }
    nest_run(&s, base, copy_run, &c);
}

static mtf_tensor *build(const op *row, mtf_tensor *x, const mtf_shape *shape)
{
    if (!x) return NULL;
    mtf_shape s = *shape; /* interned, so that equal shapes are recognised */
    if (!graph_check_shape(x->node->graph, &s, row->name)) return NULL;
    if (shape_equal(&x->shape, &s)) return x;
    return graph_add(x->node->graph, row, NULL, 1, &x, &(shape_attr){s});
}

static void broadcast_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[0] = mtf_reduce_sum(dy[0], n->in[0]->shape);
}

static mtf_tensor *broadcast_sample(mtf_graph *g, int k)
{
    switch (k) {
    case 0:
        return mtf_broadcast(sample_normal(g, MTF_SHAPE({"a", 4})), MTF_SHAPE({"a", 4}, {"b", 6}));
    case 1:
        return mtf_broadcast(sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 6})),
                             MTF_SHAPE({"b", 6}, {"c", 9}, {"a", 4}));
    case 2:
        return mtf_broadcast(sample_normal(g, MTF_SCALAR), MTF_SHAPE({"a", 4}, {"b", 6}));
    case 3:
        return mtf_broadcast(sample_normal(g, sample_edge(1)),
                             MTF_SHAPE({"c", 1}, {"b", 3}, {"d", 3}, {"a", 1}));
    case 4:
        return mtf_broadcast(sample_normal(g, MTF_SCALAR), MTF_SCALAR);
    case 5:
        return mtf_broadcast(sample_integers(g, MTF_SHAPE({"a", 4})),
                             MTF_SHAPE({"b", 1}, {"a", 4}));
    }
    return NULL;
}

const op op_broadcast = {
    .name = "broadcast",
    .doc = "out = x, the same along every new dim",
    .example = "mtf_broadcast(y, MTF_SHAPE(a, b))",
    .nin = 1,
    .attr_size = sizeof(shape_attr),
    .fields = fields,
    .infer = broadcast_infer,
    .linear = linear,
    .grad = broadcast_grad,
    .kernel = copy_kernel,
    .grains = copy_grains,
    .sample = broadcast_sample,
};

mtf_tensor *mtf_broadcast(mtf_tensor *x, mtf_shape shape)
{
    return build(&op_broadcast, x, &shape);
}

static void transpose_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[0] = mtf_transpose(dy[0], n->in[0]->shape);
}

static mtf_tensor *transpose_sample(mtf_graph *g, int k)
{
    switch (k) {
    case 0:
        return mtf_transpose(sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 6})),
                             MTF_SHAPE({"b", 6}, {"a", 4}));
    case 1:
        return mtf_transpose(sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 3}, {"c", 9})),
                             MTF_SHAPE({"c", 9}, {"a", 4}, {"b", 3}));
    case 2:
        return mtf_transpose(sample_normal(g, sample_edge(1)), MTF_SHAPE({"b", 3}, {"a", 1}));
    case 3:
        return mtf_transpose(sample_normal(g, MTF_SCALAR), MTF_SCALAR);
    case 4:
        return mtf_transpose(sample_normal(g, sample_edge(1)), sample_edge(1));
    case 5:
        return mtf_transpose(sample_integers(g, MTF_SHAPE({"a", 4}, {"b", 6})),
                             MTF_SHAPE({"b", 6}, {"a", 4}));
    }
    return NULL;
}

const op op_transpose = {
    .name = "transpose",
    .doc = "out = x with its dims in another order",
    .example = "mtf_transpose(x, MTF_SHAPE(b, a))",
    .nin = 1,
    .attr_size = sizeof(shape_attr),
    .fields = fields,
    .infer = transpose_infer,
    .linear = linear,
    .grad = transpose_grad,
    .kernel = copy_kernel,
    .grains = copy_grains,
    .sample = transpose_sample,
};

mtf_tensor *mtf_transpose(mtf_tensor *x, mtf_shape shape)
{
    return build(&op_transpose, x, &shape);
}
