/* SPDX-License-Identifier: Apache-2.0
 * one_hot: each block of a split dim writes the places that fall into it. */
#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/lookup.h"
#include "ops/nest.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct one_hot_attr {
    mtf_shape dim; /* of rank 1 */
    double on, off;
    mtf_dtype type;
} one_hot_attr;

static const op_field one_hot_fields[] = {OP_FIELD(one_hot_attr, dim, FIELD_SHAPE),
                                          OP_FIELD(one_hot_attr, on, FIELD_F64),
                                          OP_FIELD(one_hot_attr, off, FIELD_F64),
                                          OP_FIELD(one_hot_attr, type, FIELD_DTYPE),
                                          {0}};

static bool one_hot_infer(mtf_graph *g, mtf_node *n)
{
    one_hot_attr *a = n->attr;
    if (!lookup_indices_usable(g, n, n->in[0]) || !graph_check_shape(g, &a->dim, n->name))
        return false;
    n->out[0].shape = mtf_shape_with(n->in[0]->shape, a->dim.dim[0]);
    n->out[0].dtype = a->type;
    return true;
}

/* A grain is one index: the operand is compact, and its dims are the result's but the last. */
static int64_t one_hot_grains(const kernel_args *k)
{
    int64_t rows = 1;
    for (int i = 0; i < k->out[0].rank - 1; i++)
        rows *= k->dim[i].local;
    return rows;
}

static void one_hot_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    const one_hot_attr *a = k->attr;
    const kernel_dim d = k->dim[k->out[0].rank - 1];
    const int64_t offset = FAULT(FAULT_ONE_HOT_OFFSET) ? 0 : d.offset;
    element_fill(k->out[0].data, a->type, begin * d.local, (end - begin) * d.local, a->off);
    for (int64_t r = begin; r < end; r++) {
        const int64_t on = ((const int32_t *)k->in[0].data)[r] - offset;
        if (on >= 0 && on < d.local) element_put(k->out[0].data, a->type, r * d.local + on, a->on);
    }
}

static mtf_tensor *one_hot_sample(mtf_graph *g, int k)
{
    const mtf_dim v = {"v", 6};
    switch (k) {
    case 0:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 9})), v, 1.0, 0.0, sample_float());
    case 1:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 3}, {"b", 2})), (mtf_dim){"v", 10},
                           0.9, 0.1, sample_float());
    case 2:
        return mtf_one_hot(sample_integers(g, MTF_SCALAR), v, 1.0, 0.0, MTF_I32);
    case 3: /* on and off are one, and exchanged */
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 9})), v, 2.5, 2.5, sample_float());
    case 4:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 3})), v, -1.0, 1e6, sample_float());
    case 5:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 9})), (mtf_dim){"v", 1}, 1.0, 0.0,
                           sample_float());
    case 6:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 1}, {"b", 3})), (mtf_dim){"v", 3},
                           1.0, 0.0, sample_float());
    case 7:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 9})), v, 1.0, 0.0, MTF_BOOL);
    case 8: /* no index is in the dim */
        return mtf_one_hot(mtf_offset(sample_integers(g, MTF_SHAPE({"a", 9})), 8), v, 1.0, 0.0,
                           sample_float());
    }
    return NULL;
}

const op op_one_hot = {
    .name = "one_hot",
    .doc = "out = on where dim's index is the index, else off",
    .example = "mtf_one_hot(i, v, 1, 0, MTF_F32)",
    .nin = 1,
    .attr_size = sizeof(one_hot_attr),
    .fields = one_hot_fields,
    .infer = one_hot_infer,
    .kernel = one_hot_kernel,
    .grains = one_hot_grains,
    .sample = one_hot_sample,
};

mtf_tensor *mtf_one_hot(mtf_tensor *indices, mtf_dim dim, double on, double off, mtf_dtype type)
{
    if (!indices) return NULL;
    const one_hot_attr a = {.dim = {.rank = 1, .dim = {dim}}, .on = on, .off = off, .type = type};
    return graph_add(indices->node->graph, &op_one_hot, NULL, 1, &indices, &a);
}
