/* SPDX-License-Identifier: Apache-2.0
 * Dinic's algorithm: breadth-first levels, then flow up the levels until every path is full. The
 * levels of the first round are the numbers of the nodes: where most edges lead from lower to
 * higher numbers, nearly all flow is found then, however long its paths are. */
#include "spmd/flow.h"

#include <string.h>

#include "base/mem.h"

typedef struct edge {
    int to, next; /* the next edge out of the same node, or -1 */
    flow_amount left;
} edge;

/* A node on the path that is being tried. */
typedef struct visit {
    int edge; /* that leads to it */
    flow_amount offered, passed;
} visit;

/* Edge e and its reverse e ^ 1 lie side by side. */
struct flow {
    int nodes;
    int64_t nedges, edges_cap;
    edge *edge;
    int *first; /* per node: its first edge, or -1 */
    int *level; /* per node: steps from the source; -1: not reached */
    int *at;    /* per node: the edge to try next */
    int *queue;
    visit *path;
};

enum { SOURCE, SINK };

flow *flow_new(int nodes)
{
    flow *f = mem_zalloc(sizeof *f);
    f->nodes = nodes;
    f->first = mem_alloc(sizeof *f->first * (size_t)nodes);
    f->level = mem_alloc(sizeof *f->level * (size_t)nodes);
    f->at = mem_alloc(sizeof *f->at * (size_t)nodes);
    f->queue = mem_alloc(sizeof *f->queue * (size_t)nodes);
    f->path = mem_alloc(sizeof *f->path * (size_t)nodes);
    flow_clear(f);
    return f;
}

void flow_free(flow **f)
{
    mem_free((*f)->edge);
    mem_free((*f)->first);
    mem_free((*f)->level);
    mem_free((*f)->at);
    mem_free((*f)->queue);
    mem_free((*f)->path);
    mem_free(*f);
    *f = NULL;
}

void flow_clear(flow *f)
{
    f->nedges = 0;
    memset(f->first, -1, sizeof *f->first * (size_t)f->nodes);
}

static void half_edge(flow *f, int from, int to, flow_amount capacity)
{
    mem_grow((void **)&f->edge, f->nedges, &f->edges_cap, sizeof *f->edge);
    f->edge[f->nedges] = (edge){.to = to, .next = f->first[from], .left = capacity};
    f->first[from] = (int)f->nedges++;
}

void flow_edge(flow *f, int from, int to, flow_amount capacity)
{
    half_edge(f, from, to, capacity);
    half_edge(f, to, from, 0);
}

/* Levels of all nodes that the source reaches; is the sink one of them? */
static bool find_levels(flow *f)
{
    memset(f->level, -1, sizeof *f->level * (size_t)f->nodes);
    f->level[SOURCE] = 0;
    f->queue[0] = SOURCE;
    for (int head = 0, tail = 1; head < tail; head++)
        for (int u = f->queue[head], e = f->first[u]; e >= 0; e = f->edge[e].next) {
            const int to = f->edge[e].to;
            if (f->edge[e].left == 0 || f->level[to] >= 0) continue;
            f->level[to] = f->level[u] + 1;
            f->queue[tail++] = to;
        }
    return f->level[SINK] >= 0;
}

/* The next edge out of `u` to a higher level, or -1. */
static int next_edge(flow *f, int u)
{
    for (int *e = &f->at[u]; *e >= 0; *e = f->edge[*e].next)
        if (f->edge[*e].left > 0 && f->level[f->edge[*e].to] > f->level[u]) return *e;
    return -1;
}

/* Sends as much as goes up the levels, `most` at most: depth first, and what a node passes on to
 * several others goes to it in one piece, so that long paths with many ends cost their length
 * once. */
static flow_amount fill_levels(flow *f, flow_amount most)
{
    memcpy(f->at, f->first, sizeof *f->at * (size_t)f->nodes);
    int depth = 0;
    f->path[0] = (visit){.edge = -1, .offered = most};
    for (;;) {
        visit *v = &f->path[depth];
        const int u = depth ? f->edge[v->edge].to : SOURCE;
        if (u == SINK) v->passed = v->offered;
        const int e = v->passed == v->offered ? -1 : next_edge(f, u);
        if (e >= 0) {
            const flow_amount rest = v->offered - v->passed, left = f->edge[e].left;
            f->path[++depth] = (visit){.edge = e, .offered = left < rest ? left : rest};
            continue;
        }
        if (depth == 0) return v->passed;
        f->edge[v->edge].left -= v->passed;
        f->edge[v->edge ^ 1].left += v->passed;
        visit *before = &f->path[--depth];
        before->passed += v->passed;
        if (v->passed < v->offered) { /* a dead end is tried no more */
            const int from = f->edge[v->edge ^ 1].to;
            f->at[from] = f->edge[v->edge].next;
        }
    }
}

/* The first levels are the numbers of the nodes. */
static void number_levels(flow *f)
{
    for (int u = 0; u < f->nodes; u++)
        f->level[u] = u;
    f->level[SINK] = f->nodes;
}

flow_amount flow_solve(flow *f)
{
    number_levels(f);
    flow_amount sent = fill_levels(f, FLOW_ENDLESS);
    while (sent < FLOW_ENDLESS && find_levels(f))
        sent += fill_levels(f, FLOW_ENDLESS - sent);
    return sent;
}

bool flow_is_reached(const flow *f, int node)
{
    return f->level[node] >= 0;
}
