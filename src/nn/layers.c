/* SPDX-License-Identifier: Apache-2.0
 * Weights, products and feed-forward. All are compositions, so they partition for any
 * layout by the roles of what they are made of. */
#include <math.h>

#include "mtf/nn.h"

mtf_tensor *mtf_dense_weight_typed(mtf_graph *g, const char *name, mtf_shape in, mtf_shape out,
                                   double gain, mtf_variable_types types)
{
    mtf_shape shape = in;
    for (int i = 0; i < out.rank; i++)
        shape = mtf_shape_with(shape, out.dim[i]);
    return mtf_weight_typed(g, name, shape, gain / sqrt((double)mtf_shape_size(&in)), types);
}

mtf_tensor *mtf_dense_weight(mtf_graph *g, const char *name, mtf_shape in, mtf_shape out,
                             double gain, mtf_dtype type)
{
    return mtf_dense_weight_typed(g, name, in, out, gain, mtf_variable_types_for(type));
}

mtf_tensor *mtf_dense(mtf_tensor *x, mtf_tensor *w)
{
    const mtf_shape from = mtf_tensor_shape(x), by = mtf_tensor_shape(w);
    mtf_shape to = {.rank = 0};
    for (int i = 0; i < from.rank; i++)
        if (mtf_shape_find(&by, from.dim[i].name) < 0) to = mtf_shape_with(to, from.dim[i]);
    for (int i = 0; i < by.rank; i++)
        if (mtf_shape_find(&from, by.dim[i].name) < 0) to = mtf_shape_with(to, by.dim[i]);
    return mtf_matmul(x, mtf_variable_read(w), to);
}

mtf_tensor *mtf_embedding(mtf_tensor *table, mtf_tensor *indices, const char *dim)
{
    return mtf_gather(mtf_variable_read(table), indices, dim);
}

mtf_tensor *mtf_feed_forward(mtf_tensor *x, mtf_tensor *wi, mtf_tensor *wo, mtf_activation a)
{
    mtf_tensor *hidden = mtf_dense(x, wi);
    return mtf_dense(a == MTF_GELU ? mtf_gelu(hidden) : mtf_relu(hidden), wo);
}
