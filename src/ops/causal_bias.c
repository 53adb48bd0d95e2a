/* SPDX-License-Identifier: Apache-2.0
 * The causal mask of attention as a tensor that is added to scores. */
#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

/* Far below any score, and finite: a row that is masked as a whole still has a softmax. */
#define MASKED (-1e9)

typedef struct bias_attr {
    mtf_shape shape; /* [query memory] */
    mtf_dtype type;
} bias_attr;

static const op_field fields[] = {
    OP_FIELD(bias_attr, shape, FIELD_SHAPE), OP_FIELD(bias_attr, type, FIELD_DTYPE), {0}};

static bool infer(mtf_graph *g, mtf_node *n)
{
    bias_attr *a = n->attr;
    if (!graph_check_shape(g, &a->shape, n->name)) return false;
    n->out[0].shape = a->shape;
    n->out[0].dtype = a->type;
    if (mtf_dtype_is_float(a->type)) return true;
    graph_fail(g, "causal_bias '%s': the type %s is not possible; use f32, f64 or bf16", n->name,
               mtf_dtype_name(a->type));
    return false;
}

/* A grain is one query. Both dims may be cut: their blocks begin at their offsets. */
static int64_t grains(const kernel_args *k)
{
    return k->dim[0].local;
}

static void kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    const kernel_dim query = k->dim[0], memory = k->dim[1];
    const int64_t first = FAULT(FAULT_MASK_OFFSET) ? 0 : query.offset;
    for (int64_t q = begin; q < end; q++) {
        const int64_t last = first + q - memory.offset; /* the last key that is seen */
        const int64_t seen = last < 0 ? 0 : last < memory.local ? last + 1 : memory.local;
        element_fill(k->out[0].data, k->out[0].dtype, q * memory.local, seen, 0.0);
        element_fill(k->out[0].data, k->out[0].dtype, q * memory.local + seen, memory.local - seen,
                     MASKED);
    }
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    static const struct {
        mtf_dim query, memory;
    } of[] = {{{"a", 6}, {"b", 6}},  {{"a", 6}, {"c", 10}}, {{"a", 10}, {"b", 3}},
              {{"a", 1}, {"b", 10}}, {{"a", 3}, {"b", 1}},  {{"a", 1}, {"b", 1}}};
    return k < 6 ? mtf_causal_bias(g, of[k].query, of[k].memory, sample_float()) : NULL;
}

const op op_causal_bias = {
    .name = "causal_bias",
    .doc = "out[q m] = 0 where q >= m, else -1e9",
    .example = "mtf_causal_bias(g, a, b, MTF_F32)",
    .nin = 0,
    .attr_size = sizeof(bias_attr),
    .fields = fields,
    .infer = infer,
    .kernel = kernel,
    .grains = grains,
    .sample = sample,
};

mtf_tensor *mtf_causal_bias(mtf_graph *g, mtf_dim query, mtf_dim memory, mtf_dtype type)
{
    const bias_attr a = {.shape = MTF_SHAPE(query, memory), .type = type};
    return graph_add(g, &op_causal_bias, NULL, 0, NULL, &a);
}
