/* SPDX-License-Identifier: Apache-2.0 */
#include "spmd/occupancy.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

typedef struct node {
    extent_list all, some; /* taken all through, at some moment of, the node's stretch of time */
} node;

struct occupancy {
    int leaves; /* a power of two; node k has the children 2k and 2k + 1, the root is 1 */
    node *node;
    int64_t steps;
};

/* What a call asks of the tree. */
typedef struct request {
    occupancy *o;
    int begin, end;
    extent take;      /* occupancy_take */
    extent_list *out; /* occupancy_list */
} request;

occupancy *occupancy_new(int moments)
{
    occupancy *o = mem_zalloc(sizeof *o);
    o->leaves = 1;
    while (o->leaves < moments)
        o->leaves *= 2;
    o->node = mem_zalloc(sizeof *o->node * 2 * (size_t)o->leaves);
    return o;
}

void occupancy_free(occupancy *o)
{
    for (int k = 1; k < 2 * o->leaves; k++) {
        mem_free(o->node[k].all.item);
        mem_free(o->node[k].some.item);
    }
    mem_free(o->node);
    mem_free(o);
}

void occupancy_clear(occupancy *o)
{
    for (int k = 1; k < 2 * o->leaves; k++)
        o->node[k].all.n = o->node[k].some.n = 0;
}

int64_t occupancy_steps(const occupancy *o)
{
    return o->steps;
}

/* ---- lists ---- */

/* Most lists are short and there are many: they begin small. */
static void reserve(extent_list *l, int64_t n)
{
    if (n <= l->cap) return;
    while (l->cap < n)
        l->cap = l->cap ? 2 * l->cap : 2;
    l->item = mem_realloc(l->item, sizeof *l->item * (size_t)l->cap);
}

/* The first extent that ends at `offset` or behind it. */
static int64_t find(const extent_list *l, int64_t offset)
{
    int64_t lo = 0, hi = l->n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (l->item[mid].to < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Puts an extent in its place, joined with those that it touches. Returns how many were moved. */
static int64_t add(extent_list *l, extent e)
{
    const int64_t first = find(l, e.from);
    int64_t last = first;
    for (; last < l->n && l->item[last].from <= e.to; last++) {
        if (l->item[last].from < e.from) e.from = l->item[last].from;
        if (l->item[last].to > e.to) e.to = l->item[last].to;
    }
    reserve(l, l->n + 1);
    const int64_t behind = l->n - last;
    memmove(l->item + first + 1, l->item + last, sizeof *l->item * (size_t)behind);
    l->item[first] = e;
    l->n += first + 1 - last;
    return behind + 1;
}

/* ---- the tree ---- */

static void take(const request *r, int k, int lo, int hi)
{
    if (lo > r->end || hi < r->begin) return;
    node *n = &r->o->node[k];
    r->o->steps += add(&n->some, r->take);
    if (r->begin <= lo && hi <= r->end) {
        r->o->steps += add(&n->all, r->take);
        return;
    }
    const int mid = lo + (hi - lo) / 2;
    take(r, 2 * k, lo, mid);
    take(r, 2 * k + 1, mid + 1, hi);
}

void occupancy_take(occupancy *o, int begin, int end, extent e)
{
    const request r = {.o = o, .begin = begin, .end = end, .take = e};
    if (e.from < e.to) take(&r, 1, 0, o->leaves - 1);
}

static void append(const request *r, const extent_list *l)
{
    reserve(r->out, r->out->n + l->n);
    if (l->n) memcpy(r->out->item + r->out->n, l->item, sizeof *l->item * (size_t)l->n);
    r->out->n += l->n;
    r->o->steps += l->n;
}

static void list(const request *r, int k, int lo, int hi)
{
    if (lo > r->end || hi < r->begin) return;
    const bool inside = r->begin <= lo && hi <= r->end;
    append(r, inside ? &r->o->node[k].some : &r->o->node[k].all);
    if (inside) return;
    const int mid = lo + (hi - lo) / 2;
    list(r, 2 * k, lo, mid);
    list(r, 2 * k + 1, mid + 1, hi);
}

void occupancy_list(occupancy *o, int begin, int end, extent_list *out)
{
    const request r = {.o = o, .begin = begin, .end = end, .out = out};
    list(&r, 1, 0, o->leaves - 1);
}
