/* SPDX-License-Identifier: Apache-2.0
 * The same memory under other names: reshape and rename. Blocks that coincide under both shapes
 * stay where they are; the partitioner finds the cheapest way for the rest. */
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct shape_attr {
    mtf_shape shape;
} shape_attr;

static const op_field fields[] = {OP_FIELD(shape_attr, shape, FIELD_SHAPE), {0}};

static bool infer(mtf_graph *g, mtf_node *n)
{
    shape_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    if (!graph_check_shape(g, &a->shape, n->name)) return false;
    n->out[0].shape = a->shape;
    n->out[0].dtype = x->dtype;
    const int64_t from = mtf_shape_size(&x->shape), to = mtf_shape_size(&a->shape);
    if (from == to) return true;
    graph_fail(g, "%s '%s': %s has %lld elements and %s has %lld; they must be equal", n->op->name,
               n->name, shape_text(&x->shape), (long long)from, shape_text(&a->shape),
               (long long)to);
    return false;
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[0] = mtf_reshape(dy[0], n->in[0]->shape);
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

static mtf_tensor *reshape_sample(mtf_graph *g, int k)
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6});
    switch (k) {
    case 0:
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"c", 24}));
    case 1:
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"a", 4}, {"c", 2}, {"d", 3}));
    case 2:
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"b", 4}, {"a", 6}));
    case 3:
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"c", 3}, {"d", 8}));
    case 4:
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"c", 1}, {"a", 4}, {"b", 6}));
    case 5: /* dims of size 1: in the middle, at the end, taken away, nothing else, for another */
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"a", 4}, {"c", 1}, {"b", 6}));
    case 6:
        return mtf_reshape(sample_normal(g, ab), MTF_SHAPE({"a", 4}, {"b", 6}, {"c", 1}));
    case 7:
        return mtf_reshape(sample_normal(g, sample_edge(1)), MTF_SHAPE({"b", 3}));
    case 8:
        return mtf_reshape(sample_normal(g, MTF_SCALAR), MTF_SHAPE({"a", 1}, {"c", 1}));
    case 9:
        return mtf_reshape(sample_normal(g, sample_edge(2)), MTF_SCALAR);
    case 10:
        return mtf_reshape(sample_normal(g, sample_edge(1)), MTF_SHAPE({"a", 3}, {"b", 1}));
    case 11:
        return mtf_reshape(sample_integers(g, ab), MTF_SHAPE({"b", 6}, {"a", 4}));
    case 12:
        return mtf_reshape(sample_flags(g, MTF_SHAPE({"a", 6})), MTF_SHAPE({"c", 2}, {"a", 3}));
    case 13:
        return mtf_reshape(sample_normal(g, ab), ab);
    }
    return NULL;
}

const op op_reshape = {
    .name = "reshape",
    .doc = "out = the elements of x in row-major order",
    .example = "mtf_reshape(x, MTF_SHAPE({\"c\", 3}, {\"d\", 8}))",
    .nin = 1,
    .traits = TRAIT_VIEW,
    .attr_size = sizeof(shape_attr),
    .fields = fields,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .lower = lower_reshape,
    .sample = reshape_sample,
};

static mtf_tensor *build(const op *row, mtf_tensor *x, const mtf_shape *shape)
{
    mtf_shape s = *shape;
    if (!x || !graph_check_shape(x->node->graph, &s, row->name)) return NULL;
    if (shape_equal(&x->shape, &s)) return x;
    return graph_add(x->node->graph, row, NULL, 1, &x, &(shape_attr){s});
}

mtf_tensor *mtf_reshape(mtf_tensor *x, mtf_shape shape)
{
    return build(&op_reshape, x, &shape);
}

static mtf_tensor *rename_sample(mtf_graph *g, int k)
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6});
    switch (k) {
    case 0:
        return mtf_rename(sample_normal(g, ab), "a", "c");
    case 1:
        return mtf_rename(sample_normal(g, sample_edge(1)), "a", "c");
    case 2:
        return mtf_rename(sample_normal(g, sample_edge(1)), "b", "c");
    case 3:
        return mtf_rename(sample_normal(g, ab), "a", "a");
    case 4:
        return mtf_rename(sample_integers(g, ab), "b", "c");
    }
    return NULL;
}

const op op_rename = {
    .name = "rename",
    .doc = "out = x with a dim under another name",
    .example = "mtf_rename(x, \"a\", \"c\")",
    .nin = 1,
    .traits = TRAIT_VIEW,
    .attr_size = sizeof(shape_attr),
    .fields = fields,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .lower = lower_reshape,
    .sample = rename_sample,
};

mtf_tensor *mtf_rename(mtf_tensor *x, const char *from, const char *to)
{
    if (!x) return NULL;
    const int at = mtf_shape_find(&x->shape, from);
    if (at < 0)
        return graph_fail(x->node->graph, "rename '%s': no dim is called %s in %s", x->node->name,
                          from ? from : "NULL", shape_text(&x->shape));
    mtf_shape s = x->shape;
    s.dim[at].name = to;
    return build(&op_rename, x, &s);
}
