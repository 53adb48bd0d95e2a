/* SPDX-License-Identifier: Apache-2.0
 * Maximal flow and minimal cut of a network with capacities on its edges. */
#ifndef SPMD_FLOW_H
#define SPMD_FLOW_H

#include <stdbool.h>

typedef __int128 flow_amount;

/* The capacity of edges that no cut may contain. All others together are less. */
#define FLOW_ENDLESS ((flow_amount)1 << 120)

typedef struct flow flow;
/* Nodes 0, the source, and 1, the sink, and others. It is fast where nearly all edges lead to nodes
 * of higher numbers, or to the sink. */
flow *flow_new(int nodes);
void flow_free(flow **f);
/* Takes all edges out. */
void flow_clear(flow *f);
void flow_edge(flow *f, int from, int to, flow_amount capacity);
/* The capacity of a minimal cut between source and sink; FLOW_ENDLESS where there is none. */
flow_amount flow_solve(flow *f);
/* After flow_solve: is the node on the source's side of the minimal cut nearest to the source? */
bool flow_is_reached(const flow *f, int node);

#endif
