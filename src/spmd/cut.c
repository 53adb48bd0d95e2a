/* SPDX-License-Identifier: Apache-2.0
 * A value is two nodes of a network, `made` and `read`, and the edge between them costs what its
 * reduction costs. On the source's side `made` says: it is made partial; `read`: nobody reads it
 * whole. So the edge is cut exactly where a partial value is reduced. Edges without end hold what
 * must be: operands that are read partial make a partial result, and a partial result has the
 * operands that it must have.
 *
 * One thing no network says: of several ways (x y with both partial) one has to be taken, and the
 * other operands reduced. The network is then a lower bound; branch and bound tries the ways. The
 * limit on calls is met by a price on calls, found as the slope of the hull of the placements, and
 * what is between the hull and the best placement is searched by branch and bound as well. */
#include "spmd/cut.h"

#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "spmd/flow.h"

typedef struct cost {
    int64_t bytes, calls, before_views;
} cost;

/* What one of each weighs. */
typedef struct prices {
    flow_amount byte, call;
} prices;

/* More than all calls, or all sums before views, of one region. */
#define MANY ((flow_amount)1 << 20)
static const prices bytes_first = {.byte = MANY * MANY, .call = MANY};

/* Decisions of a branch: a way, or one of these. */
enum { UNDECIDED = 0 };
#define WHOLE (~0u)

typedef struct search {
    cut_value *v;
    int n;             /* values of the region */
    const int *member; /* which they are, in order */
    const int *local;  /* per value: its place in `member` */
    flow *net;
    prices price;
    int64_t limit;     /* calls */
    unsigned *decided; /* per value: its way in this branch */
    unsigned *now;     /* a placement: ways taken */
    bool *whole;       /* in it: does anybody read the value whole */
    unsigned *best;
    cost best_cost;
    int left; /* flow problems to solve still */
} search;

static const cut_value *value_at(const search *s, int k)
{
    return &s->v[s->member[k]];
}

/* ---- costs ---- */

static bool is_less(cost a, cost b)
{
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (a.calls != b.calls) return a.calls < b.calls;
    return a.before_views < b.before_views;
}

static cost plus(cost a, cost b)
{
    return (cost){a.bytes + b.bytes, a.calls + b.calls, a.before_views + b.before_views};
}

static flow_amount weigh(prices p, cost c)
{
    return p.byte * c.bytes + p.call * c.calls + c.before_views;
}

/* Of a partial value: for who reads its own part; and what that costs more that it is read whole.
 */
static cost cost_sliced(const cut_value *v)
{
    return v->sliced ? (cost){.bytes = v->bytes / 2, .calls = 1} : (cost){0};
}

static cost cost_whole(const cut_value *v)
{
    if (v->sliced) return (cost){.bytes = v->bytes / 2, .before_views = v->before_view};
    return (cost){.bytes = v->bytes, .calls = 1, .before_views = v->before_view};
}

/* Fills `whole`. More calls than any limit where a closed value is reduced. */
static cost cost_of(search *s, const unsigned *taken)
{
    cost sum = {0};
    for (int k = 0; k < s->n; k++) {
        const cut_value *v = value_at(s, k);
        s->whole[k] = v->needed;
        for (int j = 0; j < v->nin; j++)
            if (v->in[j] >= 0 && !(taken[k] >> j & 1)) s->whole[s->local[v->in[j]]] = true;
    }
    for (int k = 0; k < s->n; k++) {
        const cut_value *v = value_at(s, k);
        if (!v->source && !taken[k]) continue;
        sum = plus(sum, cost_sliced(v));
        if (s->whole[k]) sum = plus(sum, cost_whole(v));
        if (s->whole[k] && v->closed) sum.calls += INT32_MAX;
    }
    return sum;
}

/* ---- the network ---- */

enum { SOURCE, SINK, FIRST };

static int made_of(int k)
{
    return FIRST + 2 * k;
}

static int read_of(int k)
{
    return FIRST + 2 * k + 1;
}

/* Is way w of value k still open? */
static bool is_open(const search *s, int k, int w)
{
    return s->decided[k] == UNDECIDED || s->decided[k] == value_at(s, k)->way[w];
}

static void link_operands(search *s, int k)
{
    const cut_value *v = value_at(s, k);
    unsigned some = 0, all = ~0u;
    for (int w = 0; w < v->nways; w++) {
        if (!is_open(s, k, w)) continue;
        some |= v->way[w];
        all &= v->way[w];
    }
    for (int j = 0; j < v->nin; j++) {
        if (v->in[j] < 0) continue;
        const int from = s->local[v->in[j]];
        flow_edge(s->net, read_of(from), some >> j & 1 ? made_of(k) : SINK, FLOW_ENDLESS);
        if (some & all & 1u << j && !FAULT(FAULT_CUT_JOINT))
            flow_edge(s->net, made_of(k), made_of(from), FLOW_ENDLESS);
    }
}

/* The least that placements within the decisions weigh, at least. */
static flow_amount relax(search *s)
{
    s->left--;
    flow_clear(s->net);
    for (int k = 0; k < s->n; k++) {
        const cut_value *v = value_at(s, k);
        const bool whole = s->decided[k] == WHOLE;
        const bool partial = v->source || (s->decided[k] != UNDECIDED && !whole);
        if (partial) flow_edge(s->net, SOURCE, made_of(k), FLOW_ENDLESS);
        if (whole) flow_edge(s->net, made_of(k), SINK, FLOW_ENDLESS);
        if (v->sliced) flow_edge(s->net, made_of(k), SINK, weigh(s->price, cost_sliced(v)));
        flow_edge(s->net, made_of(k), read_of(k),
                  v->closed ? FLOW_ENDLESS : weigh(s->price, cost_whole(v)));
        if (v->needed) flow_edge(s->net, read_of(k), SINK, FLOW_ENDLESS);
        link_operands(s, k);
    }
    return flow_solve(s->net);
}

static bool is_cut(const search *s, int k)
{
    return flow_is_reached(s->net, made_of(k)) && !flow_is_reached(s->net, read_of(k));
}

static cost cost_of_cut(const search *s)
{
    cost sum = {0};
    for (int k = 0; k < s->n; k++) {
        if (flow_is_reached(s->net, made_of(k))) sum = plus(sum, cost_sliced(value_at(s, k)));
        if (is_cut(s, k)) sum = plus(sum, cost_whole(value_at(s, k)));
    }
    return sum;
}

/* ---- from a cut to a placement ---- */

static bool is_partial(const search *s, int k)
{
    return value_at(s, k)->source || s->now[k];
}

/* What is reduced besides the cut because value k takes the way; -1: the way is not open. */
static flow_amount extra_of(const search *s, int k, unsigned way)
{
    const cut_value *v = value_at(s, k);
    flow_amount extra = 0;
    for (int j = 0; j < v->nin; j++) {
        const int from = v->in[j] < 0 ? -1 : s->local[v->in[j]];
        const bool partial = from >= 0 && is_partial(s, from), wanted = way >> j & 1;
        if (wanted && !partial && !FAULT(FAULT_CUT_JOINT)) return -1;
        if (wanted || !partial || !flow_is_reached(s->net, read_of(from))) continue;
        extra += weigh(s->price, cost_whole(value_at(s, from)));
    }
    return extra;
}

/* Fills `now` by the cut. Returns the first value for which no way fits the cut, or -1. */
static int follow_cut(search *s)
{
    int misfit = -1;
    for (int k = 0; k < s->n; k++) {
        const cut_value *v = value_at(s, k);
        flow_amount least = -1;
        s->now[k] = 0;
        const int node = FAULT(FAULT_CUT_SIDE) ? read_of(k) : made_of(k);
        if (v->source || !flow_is_reached(s->net, node)) continue;
        for (int w = 0; w < v->nways; w++) {
            if (!is_open(s, k, w)) continue;
            const flow_amount extra = extra_of(s, k, v->way[w]);
            if (extra < 0 || (least >= 0 && extra >= least)) continue;
            least = extra;
            s->now[k] = v->way[w];
        }
        if (least != 0 && misfit < 0) misfit = k;
    }
    const cost c = cost_of(s, s->now);
    if ((c.calls <= s->limit || FAULT(FAULT_CUT_CALLS)) && is_less(c, s->best_cost)) {
        s->best_cost = c;
        memcpy(s->best, s->now, sizeof *s->best * (size_t)s->n);
    }
    return misfit;
}

/* ---- the search ---- */

/* Can a placement that weighs this be better than the best? */
static bool may_be_better(const search *s, flow_amount weight)
{
    const cost best = s->best_cost;
    const flow_amount equal_bytes = weigh(s->price, best) - 1;
    const flow_amount fewer_bytes =
        s->price.byte * (best.bytes - 1) + s->price.call * s->limit + MANY;
    return weight <= (equal_bytes > fewer_bytes ? equal_bytes : fewer_bytes);
}

/* The value to decide next: one that the cut makes partial and reduces, if any. */
static int undecided(const search *s)
{
    int any = -1;
    for (int k = s->n - 1; k >= 0; k--) {
        if (value_at(s, k)->source || s->decided[k] != UNDECIDED) continue;
        const bool reduced = flow_is_reached(s->net, made_of(k)) &&
                             (value_at(s, k)->sliced || !flow_is_reached(s->net, read_of(k)));
        if (reduced) return k;
        any = k;
    }
    return any;
}

static void explore(search *s)
{
    if (s->left <= 0) return;
    const flow_amount bound = relax(s);
    const int misfit = follow_cut(s);
    if (bound >= FLOW_ENDLESS || !may_be_better(s, bound)) return;
    const int k = misfit >= 0 && s->decided[misfit] == UNDECIDED ? misfit : undecided(s);
    if (k < 0) return;
    for (int w = 0; w < value_at(s, k)->nways; w++) {
        s->decided[k] = value_at(s, k)->way[w];
        explore(s);
    }
    s->decided[k] = WHOLE;
    explore(s);
    s->decided[k] = UNDECIDED;
}

/* `many` has fewer bytes than `few` and more calls, too many. Looks for the price of a call at
 * which a cut with too many and one with few enough weigh the same, and no other weighs less. */
static void find_price(search *s, cost many, cost few)
{
    while (s->left > 0) {
        const flow_amount call = few.bytes - many.bytes, byte = many.calls - few.calls;
        s->price = (prices){.byte = byte * MANY * MANY, .call = call * MANY * MANY + MANY};
        relax(s);
        follow_cut(s);
        const cost c = cost_of_cut(s);
        if (byte * c.bytes + call * c.calls >= byte * few.bytes + call * few.calls) return;
        *(c.calls > s->limit ? &many : &few) = c;
    }
}

static void place_region(search *s)
{
    memset(s->best, 0, sizeof *s->best * (size_t)s->n);
    s->best_cost = cost_of(s, s->best); /* nothing moves */
    s->limit = s->best_cost.calls;
    s->price = bytes_first;
    const cost still = s->best_cost;
    const flow_amount bound = relax(s);
    follow_cut(s);
    if (!may_be_better(s, bound)) return;
    const cost c = cost_of_cut(s);
    if (c.calls > s->limit) find_price(s, c, still);
    explore(s);
}

static void run_search(cut_value *v, int n, const int *member, const int *local)
{
    const size_t count = (size_t)n;
    search s = {.v = v, .n = n, .member = member, .local = local, .left = 16 + CUT_EFFORT / n};
    s.net = flow_new(FIRST + 2 * n);
    s.decided = mem_zalloc(sizeof *s.decided * count);
    s.now = mem_zalloc(sizeof *s.now * count);
    s.best = mem_zalloc(sizeof *s.best * count);
    s.whole = mem_zalloc(sizeof *s.whole * count);
    place_region(&s);
    cost_of(&s, s.best);
    for (int k = 0; k < n; k++) {
        cut_value *x = &v[member[k]];
        x->taken = s.best[k];
        x->reduced = (x->source || x->taken) && (s.whole[k] || x->sliced);
    }
    flow_free(&s.net);
    mem_free(s.decided);
    mem_free(s.now);
    mem_free(s.best);
    mem_free(s.whole);
}

/* ---- regions ---- */

static int root_of(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Lists values that depend on each other: per value the next of its region, or -1, and in `first`
 * which value begins one. */
static void find_regions(int n, const cut_value *v, int *next, bool *first)
{
    int *parent = mem_alloc(sizeof *parent * (size_t)n);
    int *last = mem_alloc(sizeof *last * (size_t)n); /* per root */
    for (int i = 0; i < n; i++) {
        parent[i] = i;
        for (int j = 0; j < v[i].nin; j++)
            if (v[i].in[j] >= 0) parent[root_of(parent, v[i].in[j])] = root_of(parent, i);
    }
    memset(last, -1, sizeof *last * (size_t)n);
    for (int i = 0; i < n; i++) {
        int *before = &last[root_of(parent, i)];
        next[i] = -1;
        first[i] = *before < 0;
        if (!first[i]) next[*before] = i;
        *before = i;
    }
    mem_free(parent);
    mem_free(last);
}

void cut_place(int n, cut_value *v)
{
    const size_t count = (size_t)n;
    int *next = mem_alloc(sizeof *next * count), *member = mem_alloc(sizeof *member * count);
    int *local = mem_alloc(sizeof *local * count);
    bool *first = mem_alloc(sizeof *first * count);
    find_regions(n, v, next, first);
    for (int i = 0; i < n; i++) {
        if (!first[i]) continue;
        int members = 0;
        for (int k = i; k >= 0; k = next[k]) {
            local[k] = members;
            member[members++] = k;
        }
        run_search(v, members, member, local);
    }
    mem_free(next);
    mem_free(member);
    mem_free(local);
    mem_free(first);
}
