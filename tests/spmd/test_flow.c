/* SPDX-License-Identifier: Apache-2.0
 * Maximal flows of random networks against all their cuts. Usage: test [SEED [NETWORKS]]. */
#include "check.h"

#include <stdlib.h>

#include "spmd/flow.h"

enum { MOST_NODES = 8, MOST_EDGES = 24 };

typedef struct network {
    int nodes, nedges;
    int from[MOST_EDGES], to[MOST_EDGES], capacity[MOST_EDGES]; /* -1: without end */
} network;

static uint64_t first_seed = 1;
static int networks = 20000;

static int below(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

static network any_network(uint64_t seed)
{
    uint64_t r = seed * 0x9e3779b97f4a7c15u;
    network n = {.nodes = 2 + below(&r, MOST_NODES - 1)};
    n.nedges = below(&r, MOST_EDGES + 1);
    for (int e = 0; e < n.nedges; e++) {
        n.from[e] = below(&r, n.nodes);
        n.to[e] = below(&r, n.nodes);
        n.capacity[e] = below(&r, 10) ? below(&r, 6) : -1;
    }
    return n;
}

/* The capacity of the cut whose source's side is `side`, as bits; -1: without end. */
static int cut_of(const network *n, unsigned side)
{
    int sum = 0;
    for (int e = 0; e < n->nedges; e++) {
        if (!(side >> n->from[e] & 1) || side >> n->to[e] & 1) continue;
        if (n->capacity[e] < 0) return -1;
        sum += n->capacity[e];
    }
    return sum;
}

/* The least capacity, -1 where none ends, and the nodes that are on the source's side in all cuts
 * of it. */
static int least_cut(const network *n, unsigned *nearest)
{
    int least = -1;
    *nearest = ~0u;
    for (unsigned side = 1; side < 1u << n->nodes; side++) {
        const int cut = cut_of(n, side);
        if (!(side & 1) || side & 2 || cut < 0 || (least >= 0 && cut > least)) continue;
        *nearest = cut == least ? *nearest & side : side;
        least = cut;
    }
    return least;
}

static void check_network(uint64_t seed)
{
    const network n = any_network(seed);
    unsigned nearest;
    const int least = least_cut(&n, &nearest);
    flow *f = flow_new(n.nodes);
    for (int round = 0; round < 2; round++) { /* once more after flow_clear */
        flow_clear(f);
        for (int e = 0; e < n.nedges; e++)
            flow_edge(f, n.from[e], n.to[e], n.capacity[e] < 0 ? FLOW_ENDLESS : n.capacity[e]);
        const flow_amount found = flow_solve(f);
        if (found != (least < 0 ? FLOW_ENDLESS : least))
            fail_msg("seed %llu: a flow of %lld, but the least cut has %d",
                     (unsigned long long)seed, (long long)found, least);
        for (int u = 0; least >= 0 && u < n.nodes; u++)
            if (flow_is_reached(f, u) != (nearest >> u & 1))
                fail_msg("seed %llu: node %d is on the wrong side", (unsigned long long)seed, u);
    }
    flow_free(&f);
}

static void flows_are_least_cuts(void **state)
{
    (void)state;
    for (int k = 0; k < networks; k++)
        check_network(first_seed + (uint64_t)k);
}

/* A path that every other node leaves to the sink: its length is paid once, not once per leaf. */
static void long_path_with_many_ends(void **state)
{
    (void)state;
    enum { LENGTH = 200000 };
    flow *f = flow_new(2 + LENGTH);
    flow_edge(f, 0, 2, FLOW_ENDLESS);
    for (int u = 2; u < 1 + LENGTH; u++)
        flow_edge(f, u, u + 1, FLOW_ENDLESS);
    for (int u = 2; u < 2 + LENGTH; u += 2)
        flow_edge(f, u, 1, 3);
    assert_true(flow_solve(f) == 3 * LENGTH / 2);
    flow_free(&f);
}

int main(int argc, char **argv)
{
    if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) networks = atoi(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(flows_are_least_cuts),
                                       cmocka_unit_test(long_path_with_many_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
