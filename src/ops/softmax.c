/* SPDX-License-Identifier: Apache-2.0
 * logsumexp, softmax and log_softmax as compositions of max, exp and sum: over a split dim they
 * partition into two small reductions, and nothing is gathered. The maximum only shifts, so no
 * gradient flows through it. Those of bf16 are worked out in f32 and rounded at the end. */
#include <math.h>

#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

static mtf_tensor *maximum_of(mtf_tensor *x, mtf_shape output)
{
    return mtf_stop_gradient(mtf_reduce_max(x, output));
}

static mtf_tensor *logsumexp(mtf_tensor *x, mtf_shape output)
{
    /* Where all is -inf, or one is +inf, the maximum cannot be subtracted: 0 takes its place. */
    mtf_tensor *largest = maximum_of(x, output);
    mtf_tensor *finite =
        mtf_less(mtf_abs(largest), mtf_constant(x->node->graph, INFINITY, MTF_SCALAR, x->dtype));
    mtf_tensor *zero = mtf_constant(x->node->graph, 0.0, MTF_SCALAR, x->dtype);
    mtf_tensor *top = mtf_where(finite, largest, zero);
    mtf_tensor *sum = mtf_reduce_sum(mtf_exp(mtf_sub(x, top)), output);
    return mtf_add(mtf_log(sum), top);
}

/* The operand in the type of its sums. */
static mtf_tensor *wide(mtf_tensor *x)
{
    return mtf_cast(x, mtf_dtype_of_sums(x->dtype));
}

mtf_tensor *mtf_reduce_logsumexp(mtf_tensor *x, mtf_shape output)
{
    return x ? mtf_cast(logsumexp(wide(x), output), x->dtype) : NULL;
}

static bool has_dim(const mtf_tensor *x, const char *what, const char *dim)
{
    if (mtf_shape_find(&x->shape, dim) >= 0) return true;
    graph_fail(x->node->graph, "%s '%s': no dim is called %s in %s", what, x->node->name,
               dim ? dim : "NULL", shape_text(&x->shape));
    return false;
}

mtf_tensor *mtf_softmax(mtf_tensor *x, const char *dim)
{
    if (!x || !has_dim(x, "softmax", dim)) return NULL;
    const mtf_shape rest = mtf_shape_without(x->shape, dim);
    mtf_tensor *e = wide(x);
    e = mtf_exp(mtf_sub(e, maximum_of(e, rest)));
    return mtf_cast(mtf_mul(e, mtf_reciprocal(mtf_reduce_sum(e, rest))), x->dtype);
}

mtf_tensor *mtf_log_softmax(mtf_tensor *x, const char *dim)
{
    if (!x || !has_dim(x, "log_softmax", dim)) return NULL;
    mtf_tensor *w = wide(x);
    return mtf_cast(mtf_sub(w, logsumexp(w, mtf_shape_without(x->shape, dim))), x->dtype);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 10}),
                    abc = MTF_SHAPE({"a", 3}, {"b", 4}, {"c", 9});
    switch (k) {
    case 0:
        return mtf_softmax(sample_normal(g, ab), "b");
    case 1:
        return mtf_softmax(sample_normal(g, abc), "b");
    case 2:
        return mtf_log_softmax(sample_normal(g, ab), "b");
    case 3:
        return mtf_reduce_logsumexp(sample_normal(g, abc), MTF_SHAPE({"b", 4}));
    case 4: /* over a dim of size 1, of 3, over none */
        return mtf_softmax(sample_normal(g, sample_edge(1)), "a");
    case 5:
        return mtf_log_softmax(sample_normal(g, sample_edge(1)), "b");
    case 6:
        return mtf_reduce_logsumexp(sample_normal(g, sample_edge(1)), sample_edge(1));
    case 7:
        return mtf_reduce_logsumexp(sample_normal(g, sample_edge(2)), MTF_SCALAR);
    case 8:
        return mtf_softmax(sample_normal(g, MTF_SHAPE({"b", 3})), "b");
    }
    return NULL;
}

const op op_softmax = {
    .name = "softmax",
    .doc = "out[.., i, ..] = e^x[.., i, ..] / sum over j of e^x[.., j, ..] along dim; log_softmax "
           "is its "
           "logarithm, reduce_logsumexp that of the sum",
    .example = "mtf_softmax(x, \"b\")",
    .traits = TRAIT_COMPOSED,
    .sample = sample,
};
