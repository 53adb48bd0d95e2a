/* SPDX-License-Identifier: Apache-2.0
 * How one node is divided among the processors: over all assignments of mesh axes to the dims of
 * its iteration space, the one with the cheapest way from what its operands are available in, over
 * the local work, to the placement that is wanted of its results. By the roles
 * of its dims, whatever the row.
 *
 * The plan that the layout itself gives is taken where it needs no communication. It is also taken
 * for rows that are no products, unless two dims of the node ask for one axis: then one of them has
 * it, or none.
 *
 * Only axes that an operand or a wanted result uses are assigned: over the others the work is
 * replicated, as the layout says. */
#ifndef SPMD_PLAN_NODE_H
#define SPMD_PLAN_NODE_H

#include "spmd/reshard.h"

typedef struct node_task {
    const mtf_mesh *mesh;
    const mtf_node *node;
    int n; /* dims of the iteration space */
    mtf_dim dim[KERNEL_MAX_SPACE];
    role role[KERNEL_MAX_SPACE];
    split home[KERNEL_MAX_SPACE]; /* as the layout cuts the dim; preferred among equals */
    int available[KERNEL_MAX_IN]; /* placements of each operand that exist already */
    const placement *in[KERNEL_MAX_IN];
    placement out[KERNEL_MAX_OUT]; /* wanted of the results */
    bool anywhere[KERNEL_MAX_OUT]; /* any placement will do */
    int64_t max_bytes;             /* see reshard.h */
    memo *known;                   /* of routes */
} node_task;

typedef struct node_plan {
    split split[KERNEL_MAX_SPACE]; /* of the local work */
    int source[KERNEL_MAX_IN];     /* which available placement each operand comes from */
    int chunk_dim;                 /* the reduced dim that is worked off in parts; -1: none */
    int64_t chunks;
    price price;
} node_plan;

/* False where max_bytes leaves no plan. */
bool plan_node(const node_task *t, node_plan *plan);

/* What the local work under a plan needs of operand k, and gives as result o. */
placement plan_operand(const node_task *t, const node_plan *plan, int k);
placement plan_result(const node_task *t, const node_plan *plan, int o);

#endif
