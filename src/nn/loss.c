/* SPDX-License-Identifier: Apache-2.0
 * Losses. With L = log(Z) and t the targets, which sum to T, the cross-entropy is T L - sum t
 * logit: the sums over the classes are those of exponentials and of t logit, and where the classes
 * are split, each is partial work and a small sum between processors. */
#include "mtf/loss.h"

#include <math.h>

#include "graph/graph.h"

static mtf_tensor *number(mtf_tensor *like, double value)
{
    return mtf_constant(mtf_tensor_graph(like), value, MTF_SCALAR, mtf_tensor_dtype(like));
}

/* Losses of bf16 are f32. */
static mtf_tensor *wide(mtf_tensor *x)
{
    return mtf_cast(x, mtf_dtype_of_sums(mtf_tensor_dtype(x)));
}

static bool same_dims(const mtf_shape *a, const mtf_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) {
        const int at = mtf_shape_find(b, a->dim[i].name);
        same = at >= 0 && b->dim[at].size == a->dim[i].size;
    }
    return same;
}

static bool targets_usable(mtf_tensor *logits, mtf_tensor *targets, const mtf_shape *want,
                           const char *what)
{
    const bool whole = mtf_tensor_dtype(targets) == MTF_I32;
    const mtf_shape shape = mtf_tensor_shape(targets);
    if (mtf_tensor_graph(targets) != mtf_tensor_graph(logits))
        graph_fail(mtf_tensor_graph(logits), "%s: targets '%s' belong to another graph", what,
                   mtf_tensor_name(targets));
    else if (!same_dims(&shape, want))
        graph_fail(mtf_tensor_graph(logits),
                   "%s: targets '%s' of type %s have the shape %s; for logits of shape %s it must "
                   "be %s",
                   what, mtf_tensor_name(targets), mtf_dtype_name(mtf_tensor_dtype(targets)),
                   shape_text(&shape), shape_text(&logits->shape), shape_text(want));
    else if (!whole && mtf_tensor_dtype(targets) != mtf_tensor_dtype(logits))
        graph_fail(mtf_tensor_graph(logits), "%s: targets '%s' are %s and logits '%s' are %s", what,
                   mtf_tensor_name(targets), mtf_dtype_name(mtf_tensor_dtype(targets)),
                   mtf_tensor_name(logits), mtf_dtype_name(mtf_tensor_dtype(logits)));
    return mtf_graph_status(mtf_tensor_graph(logits), NULL) == MTF_OK;
}

static bool options_usable(mtf_tensor *logits, const mtf_softmax_loss *o)
{
    mtf_graph *g = mtf_tensor_graph(logits);
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        graph_fail(g, "softmax_cross_entropy: label_smoothing is %g; it must be from 0 to 1",
                   o->label_smoothing);
    if (!(o->z_loss >= 0 && isfinite(o->z_loss)))
        graph_fail(g, "softmax_cross_entropy: z_loss is %g; it must be a number of at least 0",
                   o->z_loss);
    return mtf_graph_status(g, NULL) == MTF_OK;
}

/* The sum of logits times targets, and the sum of targets (NULL: 1), before smoothing. */
static mtf_tensor *target_logit(mtf_tensor *logits, mtf_tensor *targets, const char *classes,
                                mtf_shape rest, mtf_tensor **total)
{
    *total = NULL;
    if (mtf_tensor_dtype(targets) == MTF_I32) return mtf_gather(logits, targets, classes);
    *total = mtf_reduce_sum(targets, rest);
    return mtf_matmul(logits, targets, rest);
}

/* The loss where the target is a class, else 0. */
static mtf_tensor *of_classes(mtf_tensor *loss, mtf_tensor *targets, int64_t classes)
{
    mtf_tensor *is_class = mtf_logical_and(mtf_greater_equal(targets, number(targets, 0)),
                                           mtf_less(targets, number(targets, (double)classes)));
    return mtf_where(is_class, loss, number(loss, 0));
}

mtf_tensor *mtf_softmax_cross_entropy(mtf_tensor *logits, mtf_tensor *targets, const char *classes,
                                      const mtf_softmax_loss *options)
{
    if (!logits || !targets) return NULL;
    const mtf_softmax_loss o = options ? *options : (mtf_softmax_loss){0};
    const mtf_dim d = mtf_tensor_dim(logits, classes); /* its error where there is none */
    const mtf_shape shape = mtf_tensor_shape(logits), rest = mtf_shape_without(shape, classes);
    const bool whole = mtf_tensor_dtype(targets) == MTF_I32;
    if (!options_usable(logits, &o) ||
        !targets_usable(logits, targets, whole ? &rest : &shape, "softmax_cross_entropy"))
        return NULL;
    logits = wide(logits);
    if (!whole) targets = wide(targets);
    /* The target first: its sum over split classes then waits for that of the exponentials. */
    mtf_tensor *total, *target = target_logit(logits, targets, classes, rest, &total);
    mtf_tensor *log_z = mtf_reduce_logsumexp(logits, rest);
    if (o.label_smoothing > 0) {
        const double s = o.label_smoothing;
        target = mtf_add(mtf_scale(target, 1 - s), mtf_scale(mtf_reduce_mean(logits, rest), s));
        if (total) total = mtf_offset(mtf_scale(total, 1 - s), s);
    }
    mtf_tensor *loss = mtf_sub(total ? mtf_mul(log_z, total) : log_z, target);
    if (o.z_loss > 0) loss = mtf_add(loss, mtf_scale(mtf_square(log_z), o.z_loss));
    return whole && loss ? of_classes(loss, targets, d.size) : loss;
}

/* softplus(x) - x t: its gradient is sigmoid(x) - t everywhere, at 0 too. */
mtf_tensor *mtf_sigmoid_cross_entropy(mtf_tensor *logits, mtf_tensor *targets)
{
    if (!logits || !targets) return NULL;
    const mtf_shape shape = mtf_tensor_shape(logits);
    if (mtf_tensor_dtype(targets) == MTF_I32 && mtf_tensor_dtype(logits) != MTF_I32)
        return graph_fail(mtf_tensor_graph(logits),
                          "sigmoid_cross_entropy: targets '%s' are i32; cast them to %s",
                          mtf_tensor_name(targets), mtf_dtype_name(mtf_tensor_dtype(logits)));
    if (!targets_usable(logits, targets, &shape, "sigmoid_cross_entropy")) return NULL;
    logits = wide(logits);
    return mtf_sub(mtf_softplus(logits), mtf_mul(logits, wide(targets)));
}

mtf_tensor *mtf_weights_nonzero(mtf_tensor *x, mtf_dtype type)
{
    return x ? mtf_cast(mtf_not_equal(x, number(x, 0)), type) : NULL;
}

mtf_tensor *mtf_real_tokens(mtf_tensor *targets, mtf_dtype type)
{
    return targets ? mtf_cast(mtf_greater_equal(targets, number(targets, 0)), type) : NULL;
}

mtf_tensor *mtf_cross_entropy(mtf_tensor *logits, mtf_tensor *targets, const char *vocab)
{
    return mtf_softmax_cross_entropy(logits, targets, vocab, NULL);
}
