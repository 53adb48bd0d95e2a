/* SPDX-License-Identifier: Apache-2.0
 * Attention. */
#include <math.h>

#include "mtf/nn.h"

/* q's shape with d_kv replaced by `memory`, dims in the order [.. heads length memory]: the order
 * in which the product of the last two dims is one matrix per sequence and head. */
static mtf_shape scores_shape(const mtf_tensor *q, const mtf_tensor *k, const char *memory,
                              const char *d_kv)
{
    const mtf_shape of_q = mtf_shape_without(mtf_tensor_shape(q), d_kv);
    const mtf_shape of_k = mtf_tensor_shape(k);
    mtf_shape s = {.rank = 0};
    for (int own = 0; own < 2; own++) /* dims of both, then q's own */
        for (int i = 0; i < of_q.rank; i++)
            if ((mtf_shape_find(&of_k, of_q.dim[i].name) < 0) == own)
                s = mtf_shape_with(s, of_q.dim[i]);
    return mtf_shape_with(s, mtf_tensor_dim(k, memory));
}

mtf_tensor *mtf_attention(mtf_tensor *q, mtf_tensor *k, mtf_tensor *v, mtf_tensor *bias,
                          const char *memory, const char *d_kv, double dropout)
{
    if (!q || !k || !v) return NULL;
    const double factor = 1.0 / sqrt((double)mtf_tensor_dim(q, d_kv).size);
    mtf_tensor *scores = mtf_matmul(mtf_scale(q, factor), k, scores_shape(q, k, memory, d_kv));
    if (bias) scores = mtf_add(scores, bias);
    mtf_tensor *weights = mtf_dropout(mtf_softmax(scores, memory), "weights", dropout);
    return mtf_matmul(weights, v, mtf_tensor_shape(q));
}
