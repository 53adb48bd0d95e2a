/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/lookup.h"

#include "ops/nest.h"

bool lookup_indices_usable(mtf_graph *g, const mtf_node *n, const mtf_tensor *indices)
{
    if (indices->dtype == MTF_I32) return true;
    graph_fail(g, "%s '%s': the indices have the type %s; they must be i32", n->op->name, n->name,
               mtf_dtype_name(indices->dtype));
    return false;
}

lookup lookup_of(const kernel_args *k, const kernel_view *table, const kernel_view *index, int dim,
                 bool forget_offset)
{
    return (lookup){.table = table->data,
                    .index = index->data,
                    .out = k->out[0].data,
                    .size = mtf_dtype_size(k->out[0].dtype),
                    .along = view_stride(table, dim),
                    .first = forget_offset ? 0 : k->dim[dim].offset,
                    .count = k->dim[dim].local};
}
