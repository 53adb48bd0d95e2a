/* SPDX-License-Identifier: Apache-2.0
 * Placements of sums against all that there are, on small random graphs. Usage:
 * test [SEED [GRAPHS]]; a failure prints the seed that repeats it with GRAPHS = 1. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmd/cut.h"

enum { MOST_VALUES = 9, MOST_IN = 3, MOST_WAYS = 4 };

typedef struct graph {
    int n;
    cut_value v[MOST_VALUES];
    int in[MOST_VALUES][MOST_IN];
    unsigned way[MOST_VALUES][MOST_WAYS];
} graph;

typedef struct cost {
    int64_t bytes, calls, before_views;
} cost;

static uint64_t first_seed = 1;
static int graphs = 100000;

static int below(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

/* ---- random graphs ---- */

/* The result of an instruction: linear jointly, in any one operand, or in some sets of them. */
static void any_result(graph *g, int i, uint64_t *r)
{
    cut_value *v = &g->v[i];
    unsigned of = 0;
    v->nin = 1 + below(r, MOST_IN);
    for (int j = 0; j < v->nin; j++) {
        g->in[i][j] = below(r, 6) ? below(r, i) : -1;
        for (int k = 0; k < j; k++) /* an operand that stands twice: leave it out once */
            if (g->in[i][k] == g->in[i][j]) g->in[i][j] = -1;
        if (g->in[i][j] >= 0) of |= 1u << j;
    }
    const int kind = below(r, 4);
    for (unsigned way = 1; way < 1u << v->nin; way++) {
        const bool single = !(way & (way - 1));
        const bool is_way = kind == 0 ? way == of : kind < 3 ? single : below(r, 2);
        if ((way & of) == way && is_way && v->nways < MOST_WAYS) g->way[i][v->nways++] = way;
    }
}

static graph any_graph(uint64_t seed)
{
    uint64_t r = seed * 0x9e3779b97f4a7c15u;
    graph g = {.n = 2 + below(&r, MOST_VALUES - 1)};
    const int small = 1 + below(&r, 8), sources = 1 + below(&r, 4);
    for (int i = 0; i < g.n; i++) {
        cut_value *v = &g.v[i];
        v->bytes = 2 * below(&r, small + (i < sources ? small : 1));
        v->needed = below(&r, 3) == 0;
        v->sliced = below(&r, 8) == 0;
        v->before_view = below(&r, 3) == 0;
        if (i >= sources) any_result(&g, i, &r);
        v->source = v->nways == 0;
        if (v->source) v->nin = 0;
        v->closed = !v->source && below(&r, 10) == 0;
    }
    return g;
}

static void tie(graph *g)
{
    for (int i = 0; i < g->n; i++) {
        g->v[i].in = g->in[i];
        g->v[i].way = g->way[i];
    }
}

/* Is it one region? Others are placed one by one. */
static bool is_connected(const graph *g)
{
    unsigned reached = 1;
    for (int round = 0; round < g->n; round++)
        for (int i = 0; i < g->n; i++)
            for (int j = 0; j < g->v[i].nin; j++) {
                const unsigned both = g->in[i][j] < 0 ? 0 : 1u << i | 1u << g->in[i][j];
                if (reached & both) reached |= both;
            }
    return reached == (1u << g->n) - 1;
}

/* ---- all placements ---- */

static bool is_partial(const graph *g, int i)
{
    return g->v[i].source || g->v[i].taken;
}

/* Does anybody read value i whole? */
static bool is_whole(const graph *g, int i)
{
    bool whole = g->v[i].needed;
    for (int r = 0; r < g->n; r++)
        for (int j = 0; j < g->v[r].nin; j++)
            whole = whole || (g->in[r][j] == i && !(g->v[r].taken >> j & 1));
    return whole;
}

/* False where a closed value would be reduced. */
static bool cost_of(const graph *g, cost *c)
{
    *c = (cost){0};
    for (int i = 0; i < g->n; i++) {
        const cut_value *v = &g->v[i];
        if (!is_partial(g, i)) continue;
        if (is_whole(g, i) && v->closed) return false;
        if (is_whole(g, i)) c->before_views += v->before_view;
        if (is_whole(g, i))
            c->bytes += v->bytes;
        else if (v->sliced)
            c->bytes += v->bytes / 2;
        c->calls += is_whole(g, i) || v->sliced;
    }
    return true;
}

static bool is_less(cost a, cost b)
{
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (a.calls != b.calls) return a.calls < b.calls;
    return a.before_views < b.before_views;
}

/* The best ways of values from i on, after those before it took theirs. */
static void try_all(graph *g, int i, int64_t most_calls, cost *best)
{
    cost c;
    if (i == g->n) {
        if (cost_of(g, &c) && c.calls <= most_calls && is_less(c, *best)) *best = c;
        return;
    }
    try_all(g, i + 1, most_calls, best);
    for (int w = 0; w < g->v[i].nways; w++) {
        bool open = true;
        for (int j = 0; j < g->v[i].nin; j++)
            if (g->way[i][w] >> j & 1) open = open && is_partial(g, g->in[i][j]);
        if (!open) continue;
        g->v[i].taken = g->way[i][w];
        try_all(g, i + 1, most_calls, best);
        g->v[i].taken = 0;
    }
}

/* ---- the test ---- */

static void print_graph(const graph *g)
{
    for (int i = 0; i < g->n; i++) {
        const cut_value *v = &g->v[i];
        printf("%d: %lld bytes%s%s%s%s%s", i, (long long)v->bytes, v->source ? " source" : "",
               v->needed ? " needed" : "", v->sliced ? " sliced" : "", v->closed ? " closed" : "",
               v->before_view ? " before a view" : "");
        for (int j = 0; j < v->nin; j++)
            printf(" %d", g->in[i][j]);
        for (int w = 0; w < v->nways; w++)
            printf(" way %x", g->way[i][w]);
        printf(" takes %x%s\n", v->taken, v->reduced ? " reduced" : "");
    }
}

static void check_is_consistent(const graph *g, uint64_t seed)
{
    for (int i = 0; i < g->n; i++) {
        const cut_value *v = &g->v[i];
        bool is_way = !v->taken;
        for (int w = 0; w < v->nways; w++)
            is_way = is_way || v->taken == g->way[i][w];
        bool open = true;
        for (int j = 0; j < v->nin; j++)
            if (v->taken >> j & 1) open = open && is_partial(g, g->in[i][j]);
        if (is_way && open && v->reduced == (is_partial(g, i) && (is_whole(g, i) || v->sliced)))
            continue;
        print_graph(g);
        fail_msg("seed %llu: value %d is placed wrongly", (unsigned long long)seed, i);
    }
}

/* Counts of what the graphs showed, so that the test shows that it tests. */
static int connected, moved, limited, several_ways;

static void check_graph(uint64_t seed)
{
    graph g = any_graph(seed);
    if (!is_connected(&g)) return;
    connected++;
    tie(&g);
    cost still, best, unlimited = {INT64_MAX, 0, 0}, found;
    assert_true(cost_of(&g, &still));
    best = still;
    try_all(&g, 0, still.calls, &best);
    try_all(&g, 0, INT64_MAX, &unlimited);
    cut_place(g.n, g.v);
    check_is_consistent(&g, seed);
    assert_true(cost_of(&g, &found));
    if (memcmp(&found, &best, sizeof best) != 0) {
        print_graph(&g);
        fail_msg("seed %llu: %lld bytes in %lld calls (%lld before views), but %lld in %lld (%lld) "
                 "are enough",
                 (unsigned long long)seed, (long long)found.bytes, (long long)found.calls,
                 (long long)found.before_views, (long long)best.bytes, (long long)best.calls,
                 (long long)best.before_views);
    }
    moved += is_less(best, still);
    limited += is_less(unlimited, best);
    for (int i = 0; i < g.n; i++)
        several_ways += g.v[i].taken && g.v[i].nways > 1;
}

static void placements_are_the_best(void **state)
{
    (void)state;
    for (int k = 0; k < graphs; k++)
        check_graph(first_seed + (uint64_t)k);
    printf("seed %llu, %d graphs: %d better than before, %d limited by calls, %d values with "
           "several ways\n",
           (unsigned long long)first_seed, connected, moved, limited, several_ways);
    if (graphs < 1000) return;
    assert_true(connected > graphs / 5 && moved > connected / 5);
    assert_true(limited > connected / 50 && several_ways > connected / 20);
}

/* ---- single cases ---- */

#define SOURCE(size)                                                                               \
    {                                                                                              \
        .bytes = (size), .source = true                                                            \
    }
/* The result of an instruction that is linear jointly in operands `ins`, as many as bits of `mask`.
 */
#define RESULT(size, ins, mask)                                                                    \
    {                                                                                              \
        .bytes = (size), .nin = sizeof(ins) / sizeof *(ins), .in = (ins), .nways = 1,              \
        .way = (const unsigned[])                                                                  \
        {                                                                                          \
            mask                                                                                   \
        }                                                                                          \
    }

/* Work of equal size is not passed, but a view is. */
static void of_equals_the_nearest(void **state)
{
    (void)state;
    const int of_0[] = {0}, of_1[] = {1};
    cut_value work[] = {SOURCE(8), RESULT(8, of_0, 1), RESULT(8, of_1, 1)};
    work[2].needed = true;
    cut_place(3, work);
    assert_true(work[0].reduced && !work[1].taken && !work[2].taken);
    work[0].before_view = true;
    cut_place(3, work);
    assert_true(!work[0].reduced && work[1].taken && work[1].reduced && !work[2].taken);
}

/* What one region saves in calls another may not spend. */
static void regions_are_placed_by_themselves(void **state)
{
    (void)state;
    const int sum[] = {0, 1}, of_2[] = {2};
    cut_value v[] = {SOURCE(8),         SOURCE(8),          SOURCE(100),
                     RESULT(8, sum, 3), RESULT(2, of_2, 1), RESULT(2, of_2, 1)};
    v[3].needed = v[4].needed = v[5].needed = true;
    cut_place(6, v);
    assert_true(v[3].reduced && !v[0].reduced && !v[1].reduced);
    assert_true(v[2].reduced && !v[4].taken && !v[5].taken);
}

/* One region of PARTS parts, far more than can be tried out. In each a source may become two small
 * sums, which saves bytes and adds a call; JOINS pairs of sources become one sum and save one. The
 * best placement takes two sums where that saves most, JOINS times. */
enum { PARTS = 300, JOINS = 40, ENDS = 2 * PARTS + JOINS, LARGE = 3 * (PARTS + JOINS) + ENDS };

typedef struct large {
    int n, nends;
    cut_value v[LARGE];
    int in[LARGE][2], end[ENDS];
} large;

static const unsigned one_of_two = 1, both = 3;

static void add(large *g, int64_t bytes, int a, int b, const unsigned *way)
{
    int *in = g->in[g->n];
    in[0] = a;
    in[1] = b;
    g->v[g->n++] = (cut_value){.bytes = bytes,
                               .source = !way,
                               .nin = way ? 2 : 0,
                               .in = in,
                               .nways = way != NULL,
                               .way = way};
}

static int savings(int part)
{
    return part * 7 % PARTS;
}

static void build(large *g)
{
    for (int k = 0; k < PARTS; k++) {
        const int source = g->n;
        add(g, 100 + 2 * savings(k), -1, -1, NULL);
        for (int j = 0; j < 2; j++) {
            g->end[g->nends++] = g->n;
            add(g, 4, source, -1, &one_of_two);
        }
    }
    for (int k = 0; k < JOINS; k++) {
        const int first = g->n;
        add(g, 10, -1, -1, NULL);
        add(g, 10, -1, -1, NULL);
        g->end[g->nends++] = g->n;
        add(g, 10, first, first + 1, &both);
    }
    for (int k = 0; k + 1 < ENDS; k++) { /* ties them together; too large to be partial */
        add(g, 1 << 20, g->end[k], g->end[k + 1], &one_of_two);
        g->v[g->n - 1].needed = true;
    }
}

static void large_region_with_too_many_calls(void **state)
{
    (void)state;
    static large g;
    build(&g);
    cut_place(g.n, g.v);
    for (int k = 0; k < PARTS; k++) {
        const bool parts = savings(k) >= PARTS - JOINS;
        assert_int_equal(g.v[3 * k].reduced, !parts);
        assert_int_equal(g.v[3 * k + 1].reduced, parts);
        assert_int_equal(g.v[3 * k + 2].reduced, parts);
    }
    for (int k = PARTS; k < PARTS + JOINS; k++)
        assert_true(g.v[3 * k + 2].reduced && !g.v[3 * k].reduced && !g.v[3 * k + 1].reduced);
}

int main(int argc, char **argv)
{
    if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) graphs = atoi(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(placements_are_the_best),
                                       cmocka_unit_test(of_equals_the_nearest),
                                       cmocka_unit_test(regions_are_placed_by_themselves),
                                       cmocka_unit_test(large_region_with_too_many_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
