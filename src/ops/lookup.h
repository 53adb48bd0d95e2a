/* SPDX-License-Identifier: Apache-2.0
 * What the rows that take indices share. */
#ifndef OPS_LOOKUP_H
#define OPS_LOOKUP_H

#include "graph/op.h"

/* Are the indices i32? Otherwise stores an error. */
bool lookup_indices_usable(mtf_graph *g, const mtf_node *n, const mtf_tensor *indices);

/* One side of a lookup along a dim of the iteration space. */
typedef struct lookup {
    const char *table;
    const int32_t *index;
    char *out;
    int64_t size;         /* bytes of an element */
    int64_t along;        /* stride of the indexed dim in the table, in elements */
    int64_t first, count; /* the block of the indexed dim that is here */
} lookup;

/* `forget_offset` is for planted faults. */
lookup lookup_of(const kernel_args *k, const kernel_view *table, const kernel_view *index, int dim,
                 bool forget_offset);

#endif
