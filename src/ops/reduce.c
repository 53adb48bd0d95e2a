/* SPDX-License-Identifier: Apache-2.0
 * Reductions over dims. A dim that the output lacks is reduced: SUM, MAX or MIN over blocks. */
#include "mtf/ops.h"
#include "ops/reduce_kernel.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct reduce_attr {
    mtf_shape output;
} reduce_attr;

static const op_field fields[] = {OP_FIELD(reduce_attr, output, FIELD_SHAPE), {0}};

static bool infer_for(mtf_graph *g, mtf_node *n, unsigned types, bool sums)
{
    reduce_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    if (!graph_check_shape(g, &a->output, n->name)) return false;
    for (int i = 0; i < a->output.rank; i++) {
        const mtf_dim d = a->output.dim[i];
        const int at = shape_find(&x->shape, d.name);
        if (at >= 0 && x->shape.dim[at].size == d.size) continue;
        graph_fail(g,
                   "%s '%s': the output dim %s=%lld is no dim of the operand %s; use broadcast "
                   "for new dims",
                   n->op->name, n->name, d.name, (long long)d.size, shape_text(&x->shape));
        return false;
    }
    n->out[0].shape = a->output;
    n->out[0].dtype = sums ? mtf_dtype_of_sums(x->dtype) : x->dtype;
    if (types & (1u << x->dtype)) return true;
    graph_fail(g, "%s '%s': the type %s is not possible here; cast the operand", n->op->name,
               n->name, mtf_dtype_name(x->dtype));
    return false;
}

static bool sum_infer(mtf_graph *g, mtf_node *n)
{
    return infer_for(g, n, TYPES_NUMBER, true);
}

static bool extreme_infer(mtf_graph *g, mtf_node *n)
{
    return infer_for(g, n, TYPES_NUMBER, false);
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

static role role_as(const mtf_node *n, const char *dim, role reduced)
{
    return shape_find(&n->out[0].shape, dim) >= 0 ? ROLE_MAP : reduced;
}

static role max_role(const mtf_node *n, const char *dim)
{
    return role_as(n, dim, ROLE_MAX);
}

static role min_role(const mtf_node *n, const char *dim)
{
    return role_as(n, dim, ROLE_MIN);
}

/* Elements of the whole operand per element of the result. */
static double count_of(const mtf_node *n)
{
    return (double)mtf_shape_size(&n->in[0]->shape) / (double)mtf_shape_size(&n->out[0].shape);
}

static mtf_tensor *build(const op *row, mtf_tensor *x, const mtf_shape *output)
{
    return x ? graph_add(x->node->graph, row, NULL, 1, &x, &(reduce_attr){*output}) : NULL;
}

/* To one dim, to the other, to both in another order, to a scalar, of three dims; over dims of size
 * 1, over dims of which some processors have nothing, over no dim; of integers. */
static mtf_tensor *sample_with(mtf_graph *g, int k, mtf_tensor *(*reduce)(mtf_tensor *, mtf_shape),
                               mtf_tensor *(*operand)(mtf_graph *, mtf_shape))
{
    const mtf_shape abc = MTF_SHAPE({"a", 4}, {"b", 6}, {"c", 9});
    const mtf_shape to[] = {MTF_SHAPE({"a", 4}), MTF_SHAPE({"c", 9}), MTF_SHAPE({"c", 9}, {"a", 4}),
                            MTF_SCALAR};
    if (k < 4) return reduce(operand(g, abc), to[k]);
    const mtf_shape small = MTF_SHAPE({"a", 1}, {"b", 3}, {"c", 1});
    const mtf_shape edges[] = {MTF_SHAPE({"b", 3}), MTF_SHAPE({"c", 1}), MTF_SCALAR, small,
                               MTF_SHAPE({"c", 1}, {"b", 3}, {"a", 1})};
    if (k < 9) return reduce(operand(g, small), edges[k - 4]);
    if (k == 9) return reduce(operand(g, MTF_SCALAR), MTF_SCALAR);
    return k == 10 && reduce != mtf_reduce_mean ? reduce(sample_integers(g, abc), to[2]) : NULL;
}

#define SAMPLE(fn, operand)                                                                        \
    static mtf_tensor *fn##_sample(mtf_graph *g, int k)                                            \
    {                                                                                              \
        return sample_with(g, k, mtf_reduce_##fn, operand);                                        \
    }
SAMPLE(sum, sample_normal)
SAMPLE(mean, sample_normal)
SAMPLE(max, sample_ties)
SAMPLE(min, sample_ties)

/* ---- sum ---- */

static void sum_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    reduce_run(k, REDUCE_SUM, begin, end);
}

static void sum_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    dx[0] = mtf_broadcast(mtf_cast(dy[0], n->in[0]->dtype), n->in[0]->shape);
}

const op op_reduce_sum = {
    .name = "reduce_sum",
    .doc = "out = sum of x over the dims that the output lacks",
    .example = "mtf_reduce_sum(x, MTF_SHAPE(a))",
    .nin = 1,
    .attr_size = sizeof(reduce_attr),
    .fields = fields,
    .infer = sum_infer,
    .linear = linear,
    .grad = sum_grad,
    .kernel = sum_kernel,
    .grains = reduce_grains,
    .sample = sum_sample,
};

/* The sum, or the mean. That of bf16 is f32 until all of it is there; then it is rounded, once. */
static mtf_tensor *summed(mtf_tensor *x, mtf_shape output, bool mean)
{
    if (x && output.rank == x->shape.rank) return mtf_transpose(x, output);
    mtf_tensor *sum = build(&op_reduce_sum, x, &output);
    if (sum && mean) sum = mtf_scale(sum, 1.0 / count_of(sum->node));
    return sum ? mtf_cast(sum, x->dtype) : NULL;
}

mtf_tensor *mtf_reduce_sum(mtf_tensor *x, mtf_shape output)
{
    return summed(x, output, false);
}

/* ---- mean ---- */

/* Measured as a row of its own (docs/performance.md), it was no faster. */
const op op_reduce_mean = {
    .name = "reduce_mean",
    .doc = "out = mean of x over the dims that the output lacks: reduce_sum, scaled",
    .example = "mtf_reduce_mean(x, MTF_SHAPE(a))",
    .traits = TRAIT_COMPOSED,
    .sample = mean_sample,
};

mtf_tensor *mtf_reduce_mean(mtf_tensor *x, mtf_shape output)
{
    if (x && !mtf_dtype_is_float(x->dtype))
        return graph_fail(x->node->graph,
                          "reduce_mean of '%s': the type %s is not possible here; cast the operand",
                          x->node->name, mtf_dtype_name(x->dtype));
    return summed(x, output, true);
}

/* ---- max and min ---- */

static void max_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    reduce_run(k, REDUCE_MAX, begin, end);
}

static void min_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    reduce_run(k, REDUCE_MIN, begin, end);
}

/* Tied elements share dy equally. */
static void extreme_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    mtf_tensor *x = n->in[0], *y = &n->out[0];
    mtf_tensor *tied = mtf_cast(mtf_equal(x, y), x->dtype);
    mtf_tensor *share = mtf_div(dy[0], mtf_reduce_sum(tied, y->shape));
    dx[0] = mtf_mul(tied, share);
}

const op op_reduce_max = {
    .name = "reduce_max",
    .doc = "out = largest of x over the dims that the output lacks",
    .example = "mtf_reduce_max(x, MTF_SCALAR)",
    .nin = 1,
    .attr_size = sizeof(reduce_attr),
    .fields = fields,
    .infer = extreme_infer,
    .role = max_role,
    .grad = extreme_grad,
    .kernel = max_kernel,
    .grains = reduce_grains,
    .sample = max_sample,
};

mtf_tensor *mtf_reduce_max(mtf_tensor *x, mtf_shape output)
{
    return build(&op_reduce_max, x, &output);
}

const op op_reduce_min = {
    .name = "reduce_min",
    .doc = "out = smallest of x over the dims that the output lacks",
    .example = "mtf_reduce_min(x, MTF_SHAPE(b))",
    .nin = 1,
    .attr_size = sizeof(reduce_attr),
    .fields = fields,
    .infer = extreme_infer,
    .role = min_role,
    .grad = extreme_grad,
    .kernel = min_kernel,
    .grains = reduce_grains,
    .sample = min_sample,
};

mtf_tensor *mtf_reduce_min(mtf_tensor *x, mtf_shape output)
{
    return build(&op_reduce_min, x, &output);
}
