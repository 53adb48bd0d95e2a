/* SPDX-License-Identifier: Apache-2.0
 * The same memory under other names: reshape and rename.
 *
 * Lowering factors the two shapes into groups of equal products. In a group of one dim each, blocks
 * coincide, so a split that both names have stays and costs nothing. Where the operand is split
 * elsewhere too, blocks are gathered if that is all that is needed, and otherwise exchanged
 * directly: every processor receives just the elements that it lacks. What only the result splits
 * is cut from what is there. */
#include "base/fault.h"
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

/* from[i]: the dim of x that dim i of y is a plain renaming of, or -1. */
static void match_dims(const mtf_shape *x, const mtf_shape *y, int *from)
{
    for (int i = 0; i < y->rank; i++)
        from[i] = -1;
    int i = 0, j = 0;
    while (i < x->rank && j < y->rank) {
        if (x->dim[i].size == y->dim[j].size) {
            from[j++] = i++;
            continue;
        }
        int64_t a = x->dim[i++].size, b = y->dim[j++].size;
        while (a != b) {
            if (a < b)
                a *= x->dim[i++].size;
            else
                b *= y->dim[j++].size;
        }
    }
}

/* How the splits of operand and result fit. */
typedef struct fit {
    int from[MTF_MAX_RANK];  /* per dim of the result: the operand's dim that it keeps, or -1 */
    bool kept[MTF_MAX_RANK]; /* per dim of the operand */
    int gathered;            /* dims of the operand that are split and not kept */
    int cut;                 /* dims of the result that are split and not kept */
} fit;

static fit fit_of(lowering *l, const mtf_shape *x, const mtf_shape *y, lowered v)
{
    fit f = {.gathered = 0};
    match_dims(x, y, f.from);
    for (int j = 0; j < y->rank; j++) {
        const int i = f.from[j];
        const bool fits = i >= 0 && (lower_same_split(l, x->dim[i].name, y->dim[j].name) ||
                                     FAULT(FAULT_RESHAPE_KEEP));
        if (fits)
            f.kept[i] = true;
        else
            f.from[j] = -1;
        if (f.from[j] < 0) f.cut += lower_splits(l, y->dim[j].name);
    }
    for (int i = 0; i < x->rank; i++)
        f.gathered += !f.kept[i] && lower_is_split(l, v, i);
    return f;
}

static bool lower(lowering *l, mtf_node *n)
{
    const mtf_shape *x = &n->in[0]->shape, *y = &n->out[0].shape;
    lowered v = lower_input(l, n, 0);
    const fit f = fit_of(l, x, y, v);
    if (f.gathered > 1 || (f.gathered && f.cut)) {
        lower_output(l, n, 0, lower_exchange(l, n, v));
        return true;
    }
    for (int i = 0; i < x->rank; i++)
        if (!f.kept[i] && lower_is_split(l, v, i)) v = lower_gather(l, v, i);
    v = lower_view(l, n, v, y, f.from);
    for (int j = 0; j < y->rank; j++)
        if (f.from[j] < 0) v = lower_slice(l, v, j, y->dim[j].name);
    lower_output(l, n, 0, v);
    return true;
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
    }
    return NULL;
}

const op op_reshape = {
    .name = "reshape",
    .doc = "out = the elements of x in row-major order",
    .nin = 1,
    .traits = TRAIT_VIEW,
    .attr_size = sizeof(shape_attr),
    .fields = fields,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .lower = lower,
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
    return k < 1 ? mtf_rename(sample_normal(g, ab), "a", "c") : NULL;
}

const op op_rename = {
    .name = "rename",
    .doc = "out = x with a dim under another name",
    .nin = 1,
    .traits = TRAIT_VIEW,
    .attr_size = sizeof(shape_attr),
    .fields = fields,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .lower = lower,
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
