/* SPDX-License-Identifier: Apache-2.0
 * The communicator itself, and the steps that several collectives share. */
#include "base/check.h"
#include "base/mem.h"
#include "comm/internal.h"

comm *comm_over(const transport *t, void *link, int ranks, int rank, const comm_mesh *m,
                pool *workers)
{
    comm *c = mem_zalloc(sizeof *c);
    const int size = mesh_processors(m);
    MTF_CHECK(size >= 1 && (ranks == 1 || ranks == size), "%d ranks for %d processors", ranks,
              size);
    *c = (comm){.transport = t,
                .link = link,
                .mesh = *m,
                .size = size,
                .first = ranks == 1 ? 0 : rank,
                .nhosted = ranks == 1 ? size : 1,
                .ranks = ranks,
                .pool = workers,
                .max_slot = INT64_MAX};
    c->work = mem_alloc((size_t)size * sizeof *c->work);
    c->grains = mem_alloc((size_t)(size + 1) * sizeof *c->grains);
    c->proc = mem_alloc((size_t)size * sizeof *c->proc);
    c->operand = mem_alloc((size_t)size * sizeof *c->operand);
    c->msg = mem_alloc((size_t)size * 2 * sizeof *c->msg);
    c->gathered = mem_alloc((size_t)size * sizeof(uint64_t));
    return c;
}

void comm_free(comm **handle)
{
    comm *c = *handle;
    if (!c) return;
    c->transport->close(c->link);
    mem_free(c->work);
    mem_free(c->grains);
    mem_free(c->proc);
    mem_free(c->operand);
    mem_free(c->msg);
    mem_free(c->gathered);
    mem_free(c);
    *handle = NULL;
}

int comm_size(const comm *c)
{
    return c->size;
}

int comm_first(const comm *c)
{
    return c->first;
}

int comm_nhosted(const comm *c)
{
    return c->nhosted;
}

bool comm_is_root(const comm *c)
{
    return c->first == 0;
}

bool comm_hosts_all(const comm *c)
{
    return c->nhosted == c->size;
}

int64_t comm_coord(const comm *c, int proc, int axis)
{
    MTF_CHECK(axis >= 0 && axis < c->mesh.naxes && proc >= 0 && proc < c->size,
              "processor %d, axis %d", proc, axis);
    int64_t rest = proc;
    for (int a = c->mesh.naxes - 1; a > axis; a--)
        rest /= c->mesh.size[a];
    return rest % c->mesh.size[axis];
}

void comm_list_groups(comm *c, const groups *g, void *const *buf)
{
    int n = 0;
    for (int base = 0; base < c->size; base++) {
        if (group_base(g, base) != base) continue;
        for (int leaf = 0; leaf < g->members; leaf++, n++) {
            c->proc[n] = group_at_leaf(g, base, leaf);
            c->operand[n] = buf[c->proc[n]];
        }
    }
}

typedef struct grain_run {
    const comm *c;
    int items;
    int64_t grain;
    grain_fn *fn;
    void *ctx;
} grain_run;

/* The item that grain `at` belongs to. */
static int item_of(const grain_run *r, int64_t at)
{
    int lo = 0, hi = r->items;
    while (hi - lo > 1) {
        const int mid = lo + (hi - lo) / 2;
        if (r->c->grains[mid] <= at) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void run_grains(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const grain_run *r = ctx;
    for (int64_t at = begin; at < end; at++) {
        const int item = item_of(r, at);
        const int64_t from = (at - r->c->grains[item]) * r->grain;
        const int64_t left = r->c->work[item] - from;
        r->fn(r->ctx, item, from, from + (left < r->grain ? left : r->grain));
    }
}

void comm_run_grains(comm *c, int n, int64_t grain, grain_fn *fn, void *ctx)
{
    c->grains[0] = 0;
    for (int i = 0; i < n; i++)
        c->grains[i + 1] = c->grains[i] + (c->work[i] + grain - 1) / grain;
    grain_run r = {.c = c, .items = n, .grain = grain, .fn = fn, .ctx = ctx};
    pool_for(c->pool, c->grains[n], 1, run_grains, &r);
}
