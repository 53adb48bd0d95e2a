/* SPDX-License-Identifier: Apache-2.0
 * Plans of nodes, found once for all nodes that are alike: the layers of a model are. */
#include <string.h>

#include "spmd/lowering.h"

typedef struct known_plan {
    bool possible, away;
    node_plan plan;
} known_plan;

/* Where no plan brings the results home within the limit, they may stay away from it. */
static bool plan_away(node_task *t, node_plan *plan)
{
    if (!t->max_bytes) return false;
    for (int o = 0; o < t->node->nout; o++)
        t->anywhere[o] = true;
    return plan_node(t, plan);
}

/* The largest operand, if the work is done as the layout says. */
static bool no_plan(lowering *l, const node_task *t)
{
    node_plan home = {.chunk_dim = -1};
    memcpy(home.split, t->home, sizeof home.split);
    int largest = 0;
    int64_t most = -1;
    for (int k = 0; k < t->node->nin; k++) {
        const placement at = plan_operand(t, &home, k);
        const int64_t bytes = placement_bytes(t->mesh, &t->node->in[k]->shape,
                                              mtf_dtype_size(t->node->in[k]->dtype), &at);
        if (bytes <= most) continue;
        most = bytes;
        largest = k;
    }
    const placement at = plan_operand(t, &home, largest);
    limit_exceeded(l, t->node, t->node->in[largest], &at);
    return false;
}

typedef struct key {
    char *bytes;
    int64_t n, cap;
} key;

static void add(key *k, const void *data, size_t bytes)
{
    while (k->cap < k->n + (int64_t)bytes) {
        k->cap = k->cap ? 2 * k->cap : 1024;
        k->bytes = mem_realloc(k->bytes, (size_t)k->cap);
    }
    memcpy(k->bytes + k->n, data, bytes);
    k->n += (int64_t)bytes;
}

static void add_split(key *k, split s)
{
    add(k, &s.n, sizeof s.n);
    add(k, s.axis, (size_t)s.n);
}

static void add_placement(key *k, const placement *p, int rank)
{
    add(k, &p->pending, sizeof p->pending);
    for (int d = 0; d < rank; d++)
        add_split(k, p->split[d]);
}

/* All that a plan depends on. Names are interned: equal ones have equal pointers. */
static void add_shape(key *k, const mtf_tensor *t)
{
    add(k, &t->dtype, sizeof t->dtype);
    add(k, &t->shape.rank, sizeof t->shape.rank);
    for (int d = 0; d < t->shape.rank; d++) {
        add(k, &t->shape.dim[d].name, sizeof t->shape.dim[d].name);
        add(k, &t->shape.dim[d].size, sizeof t->shape.dim[d].size);
    }
}

static void add_task(key *k, const node_task *t)
{
    const mtf_node *n = t->node;
    const uint64_t attributes = op_hash_attr(n->op, n->attr);
    add(k, &n->op, sizeof n->op);
    add(k, &attributes, sizeof attributes);
    add(k, &n->nin, sizeof n->nin);
    add(k, &n->nout, sizeof n->nout);
    for (int d = 0; d < t->n; d++) {
        add(k, &t->role[d], sizeof t->role[d]);
        add_split(k, t->home[d]);
    }
    for (int i = 0; i < n->nin; i++) {
        add_shape(k, n->in[i]);
        add(k, &t->available[i], sizeof t->available[i]);
        for (int j = 0; j < t->available[i]; j++)
            add_placement(k, &t->in[i][j], n->in[i]->shape.rank);
    }
    for (int o = 0; o < n->nout; o++) {
        add_shape(k, &n->out[o]);
        add(k, &t->anywhere[o], sizeof t->anywhere[o]);
        add_placement(k, &t->out[o], n->out[o].shape.rank);
    }
}

static known_plan find_plan(node_task *t)
{
    known_plan k = {.possible = false};
    k.possible = plan_node(t, &k.plan);
    if (!k.possible) k.possible = k.away = plan_away(t, &k.plan);
    return k;
}

bool plan_known(lowering *l, node_task *t, node_plan *plan)
{
    key k = {0};
    add_task(&k, t);
    const known_plan *known = memo_find(l->plans, k.bytes, (size_t)k.n);
    if (!known) {
        const known_plan found = find_plan(t);
        memo_add(l->plans, k.bytes, (size_t)k.n, &found, sizeof found);
        known = memo_find(l->plans, k.bytes, (size_t)k.n);
    }
    mem_free(k.bytes);
    *plan = known->plan;
    for (int o = 0; known->away && o < t->node->nout; o++)
        t->anywhere[o] = true;
    return known->possible || no_plan(l, t);
}
