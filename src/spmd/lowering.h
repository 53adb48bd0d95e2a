/* SPDX-License-Identifier: Apache-2.0
 * What the partitioner knows while it goes through the graph. */
#ifndef SPMD_LOWERING_H
#define SPMD_LOWERING_H

#include "spmd/plan_node.h"

/* The values that hold one tensor: at home, and gathered, sliced or partial copies that were made
 * on the way. Each is made once. */
typedef struct holding {
    const mtf_tensor *tensor;
    value *home; /* NULL where a limit forbids to bring it home */
    value **all;
    int64_t n, cap;
} holding;

struct lowering {
    mtf_program *p;
    mtf_err *err;
    int64_t max_bytes;  /* no copy may be larger on one processor; 0: no limit */
    holding **of;       /* per graph node and output */
    int64_t *first;     /* per graph node: where its outputs begin in `of` */
    holding **detached; /* of nodes made while lowering */
    int64_t ndetached, detached_cap;
    memo *routes, *plans;
    bool *needed; /* per graph node */
};

/* ---- holdings; holding.c ---- */
holding *holding_of(const lowering *l, const mtf_tensor *t);
/* A new, empty one. */
holding *holding_new(lowering *l, const mtf_tensor *t);
/* Output i of the node is what `h` holds. */
void holding_share(lowering *l, const mtf_node *n, int i, holding *h);
void holding_add(holding *h, value *v);
/* The layout's placement of a shape. Where two dims ask for one axis, which only the result of a
 * detached node may do, *conflict is set and the first has it. */
placement home_placement(const lowering *l, const mtf_shape *s, bool *conflict);
void lowering_free(lowering *l);

/* ---- plans; known_plans.c ---- */
/* plan_node, once for nodes that are alike. Where a limit forbids to bring the results home, sets
 * `anywhere`. False after storing an error. */
bool plan_known(lowering *l, node_task *t, node_plan *plan);

/* ---- emitting; emit.c, chunks.c ---- */
/* The moves of a route from v, which `from` holds; results under the new shape go to `to`. */
value *emit_route(lowering *l, const mtf_node *n, holding *from, value *v, holding *to,
                  const route *r);
/* The cheapest way from v, which `h` holds, to a placement that can be reached within the limit. */
value *emit_to(lowering *l, const mtf_node *n, holding *h, value *v, const placement *at);
/* The tensor at home, for instructions that need it there. NULL after an error. */
value *emit_home(lowering *l, const mtf_node *n, holding *h);
/* Stores the error that a placement of a tensor is larger than the limit. */
void limit_exceeded(lowering *l, const mtf_node *n, const mtf_tensor *t, const placement *at);
value *value_at(lowering *l, const mtf_tensor *t, const mtf_shape *shape, const placement *at,
                combine how);
/* How the parts of the plan's results combine. */
combine combine_of(const node_task *t, const node_plan *plan);
/* The plan's local work, its operands and results still to be set. */
instr *emit_work(lowering *l, const mtf_node *n, const node_task *t, const node_plan *plan);
/* A product in parts of a reduced dim, added up. Its result, as the plan's local work gives it. */
value *emit_chunks(lowering *l, const mtf_node *n, const node_task *t, const node_plan *plan);

#endif
