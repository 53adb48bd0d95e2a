/* SPDX-License-Identifier: Apache-2.0
 * Drawing from a distribution that is given by its logits: the index of the largest of logits plus
 * Gumbel noise is such a draw (Gumbel-max). The noise is a function of the global index, so the
 * draw is the same on every layout. */
#include <math.h>

#include "graph/graph.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

/* -log(-log(u)), u in [2^-40, 1): its logarithm is finite. */
static mtf_tensor *gumbel(mtf_tensor *like, const char *name)
{
    mtf_graph *g = like->node->graph;
    mtf_tensor *u = mtf_random_uniform(g, name, like->shape, like->dtype, 0x1p-40, 1.0);
    return mtf_negative(mtf_log(mtf_negative(mtf_log(u))));
}

/* Beyond it, and beyond its reciprocal, logits would not be finite or all be equal. */
static const double COLDEST = 1e-6;

static bool options_usable(const mtf_tensor *logits, const char *dim, const mtf_sampling *o)
{
    const int at = mtf_shape_find(&logits->shape, dim);
    if (!o) {
        graph_fail(logits->node->graph, "sample of '%s': the options are NULL", logits->node->name);
        return false;
    }
    const bool ok =
        at >= 0 && (TYPES_FLOAT & 1u << logits->dtype) &&
        (o->temperature == 0 || (o->temperature >= COLDEST && o->temperature <= 1 / COLDEST)) &&
        o->top_k >= 0 && o->top_p >= 0 && o->top_p <= 1;
    if (!ok)
        graph_fail(
            logits->node->graph,
            "sample of '%s' %s%s along %s: temperature %g, top_k %lld, top_p %g; logits must "
            "be of a floating-point type, the dim one of theirs, the temperature 0 or in %g..%g, "
            "top_k at least 0 and top_p in 0..1",
            logits->node->name, mtf_dtype_name(logits->dtype), shape_text(&logits->shape),
            dim ? dim : "NULL", o->temperature, (long long)o->top_k, o->top_p, COLDEST,
            1 / COLDEST);
    return ok;
}

/* Along `rank`, the logits from the largest down: those behind the first that together have the
 * probability p are out of the game. The first always stays. */
static mtf_tensor *cut_tail(mtf_tensor *sorted, const char *rank, double p)
{
    mtf_graph *g = sorted->node->graph;
    mtf_tensor *before = mtf_cumsum(mtf_softmax(sorted, rank), rank, true, false);
    mtf_tensor *out = mtf_greater_equal(before, mtf_constant(g, p, MTF_SCALAR, sorted->dtype));
    const mtf_dim d = mtf_tensor_dim(sorted, rank);
    mtf_tensor *first =
        mtf_equal(mtf_range(g, d, MTF_I32), mtf_constant(g, 0, MTF_SCALAR, MTF_I32));
    out = mtf_logical_and(out, mtf_logical_not(first));
    return mtf_where(out, mtf_constant(g, -INFINITY, MTF_SCALAR, sorted->dtype), sorted);
}

/* Draws among the ranks, then looks up which index has that rank. */
static mtf_tensor *sample_ranked(mtf_tensor *logits, const char *name, const char *dim,
                                 const mtf_sampling *o)
{
    const int64_t n = mtf_tensor_dim(logits, dim).size;
    const bool limited = o->top_k > 0 && o->top_k < n;
    const char *name_of_rank = shape_fresh_name(logits->node->graph, &logits->shape, "rank");
    const mtf_dim rank = {name_of_rank, limited ? o->top_k : n};
    mtf_tensor *sorted, *index;
    mtf_top_k(logits, dim, rank, false, &sorted, &index);
    if (!sorted) return NULL;
    if (o->top_p > 0 && o->top_p < 1) sorted = cut_tail(sorted, rank.name, o->top_p);
    return mtf_gather(index, mtf_argmax(mtf_add(sorted, gumbel(sorted, name)), rank.name),
                      rank.name);
}

mtf_tensor *mtf_sample(mtf_tensor *logits, const char *name, const char *dim, const mtf_sampling *o)
{
    if (!logits || !options_usable(logits, dim, o)) return NULL;
    logits = mtf_cast(logits, mtf_dtype_of_sums(logits->dtype)); /* bf16 cannot tell 1 from 1 - u */
    if (o->temperature == 0) return mtf_argmax(logits, dim);
    mtf_tensor *x = mtf_scale(logits, 1.0 / o->temperature);
    if (o->top_k > 0 || (o->top_p > 0 && o->top_p < 1)) return sample_ranked(x, name, dim, o);
    return mtf_argmax(mtf_add(x, gumbel(x, name)), dim);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    static const mtf_sampling o[] = {
        {.temperature = 0},
        {.temperature = 1},
        {.temperature = 0.5, .top_k = 3},
        {.temperature = 2, .top_p = 0.6},
        {.temperature = 1, .top_k = 50, .top_p = 0.01},
        {.temperature = 1, .top_k = 1, .top_p = 1},
    };
    static const mtf_shape of[] = {{.rank = 1, .dim = {{"v", 1}}},
                                   {.rank = 2, .dim = {{"v", 3}, {"a", 1}}}};
    if (k > 5 + 4) return NULL;
    if (k > 5) return mtf_sample(sample_normal(g, of[k % 2]), "draw", "v", &o[k / 2]);
    return mtf_sample(sample_normal(g, MTF_SHAPE({"a", 4}, {"v", 10})), "draw", "v", &o[k]);
}

const op op_sample = {
    .name = "sample",
    .doc =
        "out[..] = an index along dim, drawn with the probabilities softmax(logits / temperature)",
    .example = "mtf_sample(x, \"draw\", \"b\", &(mtf_sampling){.temperature = 0.8, .top_k = 3})",
    .traits = TRAIT_COMPOSED,
    .sample = sample,
};
