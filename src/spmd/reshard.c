/* SPDX-License-Identifier: Apache-2.0
 * Shortest path (A*) over placements. A state is a placement under the old or the new shape; its
 * neighbours are what one move makes of it. The direct exchange is known from the start, so that
 * only cheaper states are looked at, and a limit on their number never leaves us without a route.
 */
#include "spmd/reshard.h"

#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "mesh/exchange.h"
#include "mesh/link.h"

enum { MAX_STATES = 512, ASKED = 16, FEW_ASKED = 4, FEW = 16 };

typedef struct state {
    bool reshaped; /* lies under the new shape */
    placement at;
    uint64_t code; /* of `at` */
    price price;   /* from the start */
    double rest;   /* seconds to the goal, at least */
    int parent;    /* -1: the start */
    move by;
    bool done;
} state;

typedef struct search {
    const reshard_task *r;
    bool reshapes; /* are the shapes different */
    unsigned axes; /* that the start or the goal uses */
    state *state;
    int n;
    int goal; /* -1: not reached yet */
} search;

static const mtf_shape *shape_at(const search *s, bool reshaped)
{
    return reshaped ? s->r->to_shape : s->r->from_shape;
}

/* ---- prices ---- */

/* Elements that a processor keeps, and that it has in the end; the shape stays. */
static void kept_elements(const mtf_mesh *mesh, const mtf_shape *shape, const placement *from,
                          const placement *to, int64_t proc, int64_t *kept, int64_t *all)
{
    *kept = *all = 1;
    for (int d = 0; d < shape->rank; d++) {
        const kernel_dim a = dim_block(mesh, shape->dim[d], from->split[d], proc);
        const kernel_dim b = dim_block(mesh, shape->dim[d], to->split[d], proc);
        const int64_t lo = a.offset > b.offset ? a.offset : b.offset;
        const int64_t a_end = a.offset + a.local, b_end = b.offset + b.local;
        const int64_t hi = a_end < b_end ? a_end : b_end;
        *kept *= hi > lo ? hi - lo : 0;
        *all *= b.local;
    }
}

static exchange exchange_between(const search *s, const state *from, const move *m)
{
    exchange x;
    exchange_describe(&x, s->r->mesh, shape_at(s, from->reshaped), from->at.split,
                      shape_at(s, from->reshaped || m->reshapes), m->to.split);
    return x;
}

/* What a processor receives when no element comes twice. */
static double least_bytes(const search *s, const state *from, const move *m, const exchange *x)
{
    if (m->reshapes) return (double)(exchange_most(x, exchange_bound) * s->r->element);
    const int64_t procs = s->r->mesh->processors, asked = procs < ASKED ? procs : ASKED;
    int64_t most = 0;
    for (int64_t k = 0; k < asked; k++) {
        int64_t kept, all;
        kept_elements(s->r->mesh, shape_at(s, from->reshaped), &from->at, &m->to,
                      mesh_sample(s->r->mesh, k, asked), &kept, &all);
        if (all - kept > most) most = all - kept;
    }
    return (double)(most * s->r->element);
}

static bool is_prefix(split a, split b)
{
    return a.n <= b.n && split_equal(a, split_head(b, a.n));
}

/* At most so many old blocks of one dim meet a new one. */
static double blocks_met(int64_t old_parts, int64_t new_parts)
{
    if (old_parts % new_parts == 0) return (double)(old_parts / new_parts);
    if (new_parts % old_parts == 0) return 1;
    const int64_t n = old_parts / new_parts + 2;
    return (double)(n < old_parts ? n : old_parts);
}

/* At most so many processors send to one; on large meshes nobody is asked. */
static double senders(const exchange *x)
{
    if (x->mesh->processors <= FEW) return (double)exchange_most(x, exchange_senders);
    double n = 1;
    bool own = true; /* does every processor certainly hold some of what it needs */
    for (int g = 0; g < x->ngroups; g++) {
        const exchange_group *q = &x->group[g];
        if (q->count[0] == 1 && q->count[1] == 1) {
            const split a = x->split[0][q->first[0]], b = x->split[1][q->first[1]];
            n *= blocks_met(split_parts(x->mesh, a), split_parts(x->mesh, b));
            own = own && (is_prefix(a, b) || is_prefix(b, a));
            continue;
        }
        for (int d = 0; d < q->count[0]; d++) {
            const split a = x->split[0][q->first[0] + d];
            n *= (double)split_parts(x->mesh, a);
            own = own && a.n == 0;
        }
    }
    return own ? n - 1 : n;
}

static price price_of(const search *s, const state *from, const move *m, double operand)
{
    const double p = (double)split_parts(s->r->mesh, m->axes), others = p - 1;
    const double share = operand * others / p;
    /* What is moved before it is viewed under the new shape serves other shapes too. */
    price c = {.calls = 1, .moves = s->reshapes && from->reshaped ? 2 : 1};
    switch (m->kind) {
    case INSTR_ALL_REDUCE: {
        const double cut = link_time(2, 2 * others, 2 * share);
        const double at_once = link_time(1, others, operand * others); /* for small values */
        c.seconds = cut < at_once ? cut : at_once;
        c.bytes = 2 * share;
        return c;
    }
    case INSTR_REDUCE_SCATTER:
        c.bytes = share;
        c.seconds = link_time(1, others, c.bytes);
        return c;
    case INSTR_ALL_GATHER:
    case INSTR_ALL_TO_ALL:
        c.bytes = least_bytes(s, from, m, NULL);
        c.seconds = link_time(1, others, c.bytes);
        return c;
    case INSTR_PERMUTE:
        c.bytes = least_bytes(s, from, m, NULL);
        c.seconds = link_time(1, 1, c.bytes);
        return c;
    case INSTR_EXCHANGE: {
        const exchange x = exchange_between(s, from, m);
        c.bytes = least_bytes(s, from, m, &x);
        c.seconds = link_time(1, senders(&x), c.bytes);
        c.moves = ROUTE_MAX_MOVES; /* where plainer moves do the same, they do it */
        return c;
    }
    default: /* local */
        return (price){.moves = 1};
    }
}

/* ---- states ---- */

static bool is_goal(const search *s, const state *x)
{
    if (x->reshaped != s->reshapes) return false;
    return s->r->anywhere || placement_equal(&x->at, &s->r->to);
}

/* A placement in a number: for every axis the dim that it cuts and its place there, or that the
 * value is partial over it. */
_Static_assert(MTF_MAX_AXES <= 8 && MTF_MAX_RANK < 15, "eight bits per axis");
static uint64_t code_of(const placement *p)
{
    uint64_t code = 0;
    for (int d = 0; d < MTF_MAX_RANK; d++)
        for (int i = 0; i < p->split[d].n; i++)
            code |= (uint64_t)(16 * i + d + 1) << 8 * p->split[d].axis[i];
    for (int a = 0; a < MTF_MAX_AXES; a++)
        if (p->pending >> a & 1) code |= (uint64_t)15 << 8 * a;
    return code;
}

static int find_state(const search *s, bool reshaped, uint64_t code)
{
    for (int i = 0; i < s->n; i++)
        if (s->state[i].code == code && s->state[i].reshaped == reshaped) return i;
    return -1;
}

/* Seconds that are still needed, at least: a call for every axis to reduce over, and where elements
 * are missing a call that brings them. */
static double rest_of(const search *s, bool reshaped, const placement *at)
{
    const reshard_task *r = s->r;
    if (r->anywhere || reshaped != s->reshapes) return 0;
    const int sums = __builtin_popcount(at->pending & ~r->to.pending);
    if (sums) return link_time(sums, sums, 0);
    const int64_t procs = r->mesh->processors, asked = procs < ASKED ? procs : ASKED;
    const int64_t few = asked < FEW_ASKED ? asked : FEW_ASKED; /* of those that prices ask */
    int64_t most = 0;
    for (int64_t k = 0; k < few; k++) {
        int64_t kept, all;
        kept_elements(r->mesh, r->to_shape, at, &r->to,
                      mesh_sample(r->mesh, k * asked / few, asked), &kept, &all);
        if (all - kept > most) most = all - kept;
    }
    return most ? link_time(1, 1, (double)(most * r->element)) : 0;
}

/* No move of the kind is faster. */
static double least_seconds(instr_kind kind)
{
    return kind == INSTR_SLICE || kind == INSTR_VIEW ? 0 : link_time(1, 1, 0);
}

/* Would a route of so many seconds be slower than the one that is known? */
static bool hopeless(const search *s, double seconds)
{
    return s->goal >= 0 && seconds > s->state[s->goal].price.seconds * (1 + 1e-9);
}

/* Enters what a move makes of state `from`, where that is cheaper than all that is known. Returns
 * its number, or -1. */
static int enter(search *s, int from, move m)
{
    const state *f = &s->state[from];
    const mtf_mesh *mesh = s->r->mesh;
    const bool reshaped = f->reshaped || m.reshapes;
    const int64_t operand = placement_bytes(mesh, shape_at(s, f->reshaped), s->r->element, &f->at);
    const int64_t result = placement_bytes(mesh, shape_at(s, reshaped), s->r->element, &m.to);
    if (s->r->max_bytes && !FAULT(FAULT_MOVE_LIMIT) && result > operand && result > s->r->max_bytes)
        return -1;
    const uint64_t code = code_of(&m.to);
    const int known = find_state(s, reshaped, code);
    if (known >= 0 && s->state[known].done) return -1;
    const double rest = known >= 0 ? s->state[known].rest : rest_of(s, reshaped, &m.to);
    if (hopeless(s, f->price.seconds + least_seconds(m.kind) + rest)) return -1;
    const price sum = price_sum(f->price, price_of(s, f, &m, (double)operand));
    if (hopeless(s, sum.seconds + rest)) return -1;
    if (s->goal >= 0 && !price_less(sum, s->state[s->goal].price)) return -1;
    if (known >= 0 && !price_less(sum, s->state[known].price)) return -1;
    if (known < 0 && s->n == MAX_STATES) return -1;
    const int at = known >= 0 ? known : s->n++;
    s->state[at] = (state){.reshaped = reshaped,
                           .at = m.to,
                           .code = code,
                           .price = sum,
                           .rest = rest,
                           .parent = from,
                           .by = m};
    if (is_goal(s, &s->state[at])) s->goal = at;
    return at;
}

/* ---- moves ---- */

static split one_axis(int axis)
{
    return (split){.n = 1, .axis = {(int8_t)axis}};
}

/* The axis whose sum is taken next, or -1: minor-most first. */
static int next_sum(const search *s, const placement *at)
{
    const unsigned left = at->pending & ~(s->r->anywhere ? at->pending : s->r->to.pending);
    if (left && FAULT(FAULT_SUM_ORDER)) return __builtin_ctz(left);
    return left ? 31 - __builtin_clz(left) : -1;
}

static void try_sums(search *s, int from, const placement *at, int rank)
{
    const int axis = next_sum(s, at);
    if (axis < 0) return;
    move m = {.kind = INSTR_ALL_REDUCE, .dim = -1, .to_dim = -1, .axes = one_axis(axis), .to = *at};
    m.to.pending &= ~(1u << axis);
    const placement summed = m.to;
    enter(s, from, m);
    /* Elsewhere the sum stays one call, which passes can move and put into buckets. */
    const bool cut_in_the_end = s->r->anywhere || (placement_axes(&s->r->to) >> axis & 1);
    for (int d = 0; d < rank && cut_in_the_end; d++) {
        m.kind = INSTR_REDUCE_SCATTER;
        m.dim = d;
        m.to = summed;
        m.to.split[d] = split_append(at->split[d], m.axes);
        enter(s, from, m);
    }
}

/* Only over axes that the goal is cut over: what is sliced and gathered again saves nothing. */
static void try_slices(search *s, int from, const placement *at, int rank)
{
    const unsigned wanted = s->r->anywhere ? 0 : placement_axes(&s->r->to);
    const unsigned busy = placement_axes(at) | at->pending;
    for (int a = 0; a < s->r->mesh->naxes; a++) {
        if (!((wanted & ~busy) >> a & 1)) continue;
        for (int d = 0; d < rank; d++) {
            move m = {.kind = INSTR_SLICE, .dim = d, .to_dim = -1, .axes = one_axis(a), .to = *at};
            m.to.split[d] = split_append(at->split[d], m.axes);
            enter(s, from, m);
        }
    }
}

/* The last axes of a dim are gathered, or go to another dim. */
static void try_tails(search *s, int from, const placement *at, int rank)
{
    for (int d = 0; d < rank; d++)
        for (int k = 1; k <= at->split[d].n; k++) {
            move m = {.kind = INSTR_ALL_GATHER, .dim = d, .to_dim = -1, .to = *at};
            m.axes = split_tail(at->split[d], k);
            m.to.split[d] = split_head(at->split[d], at->split[d].n - k);
            const placement gathered = m.to;
            enter(s, from, m);
            m.kind = INSTR_ALL_TO_ALL;
            for (m.to_dim = 0; m.to_dim < rank; m.to_dim++) {
                if (m.to_dim == d) continue;
                m.to = gathered;
                m.to.split[m.to_dim] = split_append(at->split[m.to_dim], m.axes);
                enter(s, from, m);
            }
        }
}

static void enter_permute(search *s, int from, const placement *to)
{
    const placement *at = &s->state[from].at;
    move m = {.kind = INSTR_PERMUTE, .dim = -1, .to_dim = -1, .to = *to};
    m.axes = placement_axes_between(s->r->mesh, at, to);
    enter(s, from, m);
}

/* Axes x and y, of one size, change places. */
static placement exchange_axes(const placement *p, int x, int y)
{
    placement q = *p;
    for (int d = 0; d < MTF_MAX_RANK; d++)
        for (int i = 0; i < q.split[d].n; i++) {
            if (p->split[d].axis[i] == x) q.split[d].axis[i] = (int8_t)y;
            if (p->split[d].axis[i] == y) q.split[d].axis[i] = (int8_t)x;
        }
    return q;
}

static bool same_parts(const mtf_mesh *m, const placement *a, const placement *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if (split_parts(m, a->split[d]) != split_parts(m, b->split[d])) return false;
    return true;
}

/* Blocks go to other processors as they are: to the goal, after two axes of one size changed
 * places, or two neighbours of one dim. */
static void try_permutes(search *s, int from, int rank)
{
    const state x = s->state[from];
    const mtf_mesh *m = s->r->mesh;
    const unsigned used = placement_axes(&x.at);
    const placement *to = &s->r->to;
    if (!s->r->anywhere && x.reshaped == s->reshapes && x.at.pending == to->pending &&
        same_parts(m, &x.at, to, rank))
        enter_permute(s, from, to);
    for (int a = 0; a < m->naxes; a++)
        for (int b = 0; b < a; b++) {
            const bool some = (used >> a & 1) || (used >> b & 1);
            const bool free = !(((x.at.pending >> a) | (x.at.pending >> b)) & 1);
            const bool both = (s->axes >> a & 1) && (s->axes >> b & 1);
            if (!some || !free || !both || m->size[a] != m->size[b]) continue;
            const placement p = exchange_axes(&x.at, a, b);
            enter_permute(s, from, &p);
        }
    for (int d = 0; d < rank; d++)
        for (int i = 0; i + 1 < x.at.split[d].n; i++) {
            placement p = x.at;
            p.split[d].axis[i] = x.at.split[d].axis[i + 1];
            p.split[d].axis[i + 1] = x.at.split[d].axis[i];
            enter_permute(s, from, &p);
        }
}

/* ---- the new shape ---- */

/* The first dim of a group that has more than one element; -1: none has. */
static int leading(const mtf_shape *shape, int first, int count)
{
    for (int d = first; d < first + count; d++)
        if (shape->dim[d].size > 1) return d;
    return -1;
}

/* Where the blocks of a group of dims are also blocks under the new shape: dims that are only
 * renamed, and a first dim that has one size or is cut evenly in both shapes, so that both cut the
 * flat index at the same places. Dims of size 1 do not count as first. */
static bool view_group(const search *s, const exchange *x, int g, placement *to)
{
    const exchange_group *q = &x->group[g];
    const int old_first = leading(&x->shape[0], q->first[0], q->count[0]);
    const int new_first = leading(&x->shape[1], q->first[1], q->count[1]);
    if (q->count[0] == 1 && q->count[1] == 1) {
        to->split[q->first[1]] = x->split[0][q->first[0]];
        return true;
    }
    for (int d = q->first[0]; d < q->first[0] + q->count[0]; d++) {
        const split cut = x->split[0][d];
        if (!cut.n) continue;
        const int64_t p = split_parts(s->r->mesh, cut);
        const int64_t n = x->shape[0].dim[d].size;
        const int64_t m = new_first >= 0 ? x->shape[1].dim[new_first].size : 0;
        const bool fits = d == old_first && m > 0 && (n == m || (n % p == 0 && m % p == 0));
        if (!fits && !(FAULT(FAULT_RESHAPE_KEEP) && new_first >= 0)) return false;
        to->split[new_first] = cut;
    }
    return true;
}

static void try_view(search *s, int from)
{
    const state *f = &s->state[from];
    if (!s->reshapes || f->reshaped) return;
    exchange x;
    const split whole[MTF_MAX_RANK] = {{0}};
    exchange_describe(&x, s->r->mesh, s->r->from_shape, f->at.split, s->r->to_shape, whole);
    move m = {.kind = INSTR_VIEW, .dim = -1, .to_dim = -1, .reshapes = true};
    m.to.pending = f->at.pending;
    for (int g = 0; g < x.ngroups; g++)
        if (!view_group(s, &x, g, &m.to)) return;
    enter(s, from, m);
}

static void try_exchange(search *s, int from)
{
    const state *f = &s->state[from];
    if (s->r->anywhere || f->at.pending != s->r->to.pending) return;
    move m = {.kind = INSTR_EXCHANGE,
              .dim = -1,
              .to_dim = -1,
              .reshapes = s->reshapes && !f->reshaped,
              .to = s->r->to};
    m.axes = placement_axes_between(s->r->mesh, &f->at, &m.to);
    if (m.axes.n) enter(s, from, m);
}

/* ---- the search ---- */

static void expand(search *s, int from)
{
    const placement at = s->state[from].at;
    const int rank = shape_at(s, s->state[from].reshaped)->rank;
    try_view(s, from);
    try_sums(s, from, &at, rank);
    try_slices(s, from, &at, rank);
    try_tails(s, from, &at, rank);
    try_permutes(s, from, rank);
    try_exchange(s, from);
}

/* The general way: all sums, then the exchange. */
static void enter_general(search *s)
{
    int at = 0;
    for (int axis; at >= 0 && (axis = next_sum(s, &s->state[at].at)) >= 0;) {
        move m = {.kind = INSTR_ALL_REDUCE, .dim = -1, .to_dim = -1, .axes = one_axis(axis)};
        m.to = s->state[at].at;
        m.to.pending &= ~(1u << axis);
        at = enter(s, at, m);
    }
    if (at >= 0) try_exchange(s, at);
}

/* The state whose route may be the fastest. */
static int cheapest(const search *s)
{
    int best = -1;
    price least = {0};
    for (int i = 0; i < s->n; i++) {
        price p = s->state[i].price;
        p.seconds += s->state[i].rest;
        if (s->state[i].done || (best >= 0 && !price_less(p, least))) continue;
        best = i;
        least = p;
    }
    return best;
}

/* Slices of one dim that follow each other are one. */
static bool joins(const move *last, const move *m)
{
    return last->kind == INSTR_SLICE && m->kind == INSTR_SLICE && last->dim == m->dim;
}

static void write_route(const search *s, route *out)
{
    int path[MAX_STATES], length = 0;
    for (int i = s->goal; s->state[i].parent >= 0; i = s->state[i].parent)
        path[length++] = i;
    MTF_CHECK(length <= ROUTE_MAX_MOVES, "a route of %d moves", length);
    *out = (route){.price = s->state[s->goal].price};
    for (int i = length - 1; i >= 0; i--) {
        const move *m = &s->state[path[i]].by;
        move *last = out->n ? &out->move[out->n - 1] : NULL;
        if (last && joins(last, m)) {
            last->axes = split_append(last->axes, m->axes);
            last->to = m->to;
        } else {
            out->move[out->n++] = *m;
        }
    }
}

static bool find_route(const reshard_task *r, route *out)
{
    search s = {.r = r, .reshapes = r->from_shape != r->to_shape, .n = 1, .goal = -1};
    s.axes = placement_axes(&r->from) | placement_axes(&r->to) | r->from.pending;
    s.state = mem_alloc(sizeof *s.state * MAX_STATES);
    s.state[0] = (state){.at = r->from, .code = code_of(&r->from), .parent = -1};
    s.state[0].rest = rest_of(&s, false, &r->from);
    enter_general(&s);
    for (int at; (at = cheapest(&s)) >= 0 && at != s.goal;) {
        s.state[at].done = true;
        expand(&s, at);
    }
    if (s.goal >= 0) write_route(&s, out);
    mem_free(s.state);
    return s.goal >= 0;
}

/* ---- routes that were found before ---- */

enum { KEY_SPLIT = 1 + MTF_MAX_AXES, KEY_MAX = 64 + 4 * MTF_MAX_RANK * (8 + KEY_SPLIT) };

static char *add_key(char *at, const void *data, size_t bytes)
{
    memcpy(at, data, bytes);
    return at + bytes;
}

/* All that a route depends on, but the mesh. Names of dims do not matter. */
static size_t key_of(const reshard_task *r, char *key)
{
    char *at = key;
    const bool reshapes = r->from_shape != r->to_shape;
    const mtf_shape *shape[] = {r->from_shape, r->to_shape};
    const placement *p[] = {&r->from, &r->to};
    const int64_t numbers[] = {r->element, r->max_bytes, r->anywhere, reshapes};
    at = add_key(at, numbers, sizeof numbers);
    for (int i = 0; i < 2; i++) {
        if (i == 1 && r->anywhere && !reshapes) continue;
        at = add_key(at, &shape[i]->rank, sizeof shape[i]->rank);
        at = add_key(at, &p[i]->pending, sizeof p[i]->pending);
        for (int d = 0; d < shape[i]->rank; d++) {
            at = add_key(at, &shape[i]->dim[d].size, sizeof shape[i]->dim[d].size);
            at = add_key(at, &p[i]->split[d].n, 1);
            at = add_key(at, p[i]->split[d].axis, (size_t)p[i]->split[d].n);
        }
    }
    return (size_t)(at - key);
}

bool reshard_route(const reshard_task *r, route *out)
{
    *out = (route){0};
    if (r->from_shape == r->to_shape && (r->anywhere || placement_equal(&r->from, &r->to)))
        return true;
    if (!r->known) return find_route(r, out);
    char key[KEY_MAX];
    const size_t bytes = key_of(r, key);
    const route *known = memo_find(r->known, key, bytes);
    if (!known) {
        route found;
        if (!find_route(r, &found)) found = (route){.n = -1};
        const size_t moves = sizeof(move) * (size_t)(found.n > 0 ? found.n : 0);
        memo_add(r->known, key, bytes, &found, offsetof(route, move) + moves);
        known = memo_find(r->known, key, bytes);
    }
    if (known->n < 0) return false;
    memcpy(out, known, offsetof(route, move) + sizeof(move) * (size_t)known->n);
    return true;
}

price reshard_exchange_price(const reshard_task *r)
{
    search s = {.r = r, .reshapes = r->from_shape != r->to_shape};
    const state from = {.at = r->from};
    const move m = {.kind = INSTR_EXCHANGE, .reshapes = s.reshapes, .to = r->to};
    return price_of(&s, &from, &m, 0);
}

double reshard_least_seconds(const reshard_task *r)
{
    const search s = {.r = r, .reshapes = r->from_shape != r->to_shape};
    return rest_of(&s, false, &r->from);
}
