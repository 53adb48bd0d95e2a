/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/exchange.h"

#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "base/mem.h"

/* ---- groups ---- */

static void add_group(exchange *x, int i, int ni, int j, int nj)
{
    x->group[x->ngroups++] = (exchange_group){.first = {i, j}, .count = {ni, nj}};
}

/* The finest groups: each ends where the products of both sides first agree. A dim of size 1 that
 * is left over at the end is a group that the other side has no dims in. */
static void cut_groups(exchange *x)
{
    const mtf_shape *a = &x->shape[0], *b = &x->shape[1];
    int i = 0, j = 0;
    while (i < a->rank || j < b->rank) {
        const int i0 = i, j0 = j;
        int64_t p = i < a->rank ? a->dim[i++].size : 1, q = j < b->rank ? b->dim[j++].size : 1;
        while (p != q) {
            if (p < q)
                p *= a->dim[i++].size;
            else
                q *= b->dim[j++].size;
        }
        add_group(x, i0, i - i0, j0, j - j0);
    }
}

/* Axes that `cuts` are over and `other` does not use, in the order of the dims. */
static split only_axes(const split *cuts, int rank, unsigned other)
{
    split s = {0};
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < cuts[d].n; k++)
            if (!(other >> cuts[d].axis[k] & 1)) s.axis[s.n++] = cuts[d].axis[k];
    return s;
}

static unsigned used_by(const split *cuts, int rank)
{
    unsigned mask = 0;
    for (int d = 0; d < rank; d++)
        mask |= split_mask(cuts[d]);
    return mask;
}

static bool as_many_parts(const exchange *x)
{
    if (x->shape[0].rank != x->shape[1].rank) return false;
    for (int d = 0; d < x->shape[0].rank; d++)
        if (x->shape[0].dim[d].size != x->shape[1].dim[d].size ||
            split_parts(x->mesh, x->split[0][d]) != split_parts(x->mesh, x->split[1][d]))
            return false;
    return true;
}

static void describe_sides(exchange *x, const mtf_mesh *m, const mtf_shape *old_shape,
                           const split *old_split, const mtf_shape *new_shape,
                           const split *new_split)
{
    *x = (exchange){.mesh = m, .shape = {*old_shape, *new_shape}, .window = {.dim = -1}};
    memcpy(x->split[0], old_split, sizeof *old_split * (size_t)old_shape->rank);
    memcpy(x->split[1], new_split, sizeof *new_split * (size_t)new_shape->rank);
    x->used = used_by(old_split, old_shape->rank);
    x->lost = only_axes(old_split, old_shape->rank, used_by(new_split, new_shape->rank));
    x->gained = only_axes(new_split, new_shape->rank, x->used);
}

void exchange_describe(exchange *x, const mtf_mesh *m, const mtf_shape *old_shape,
                       const split *old_split, const mtf_shape *new_shape, const split *new_split)
{
    MTF_CHECK(mtf_shape_size(old_shape) == mtf_shape_size(new_shape),
              "an exchange between tensors of different sizes");
    describe_sides(x, m, old_shape, old_split, new_shape, new_split);
    x->permutes = as_many_parts(x);
    cut_groups(x);
}

void exchange_describe_window(exchange *x, const mtf_mesh *m, const mtf_shape *old_shape,
                              const split *old_split, const mtf_shape *new_shape,
                              const split *new_split, window w)
{
    MTF_CHECK(old_shape->rank == new_shape->rank, "a window between tensors of different ranks");
    describe_sides(x, m, old_shape, old_split, new_shape, new_split);
    x->window = w;
    if (FAULT(FAULT_WINDOW_START)) x->window.start = 0;
    for (int d = 0; d < old_shape->rank; d++)
        add_group(x, d, 1, d, 1);
}

/* Does `src` agree with `dst` on the axes that are not in `mask`? */
static bool agree_beside(const exchange *x, unsigned mask, int64_t src, int64_t dst)
{
    for (int a = 0; a < x->mesh->naxes; a++) {
        if (mask >> a & 1) continue;
        const int64_t wanted = FAULT(FAULT_EXCHANGE_REPLICA) ? 0 : mesh_coordinate(x->mesh, dst, a);
        if (mesh_coordinate(x->mesh, src, a) != wanted) return false;
    }
    return true;
}

static bool keeps_block(const exchange *x, int64_t proc)
{
    for (int d = 0; d < x->shape[0].rank; d++)
        if (split_part(x->mesh, x->split[0][d], proc) != split_part(x->mesh, x->split[1][d], proc))
            return false;
    return true;
}

/* The replicas of a block are numbered by the axes that the old layout does not use, its receivers
 * by those that the new one does not use: there are as many, and equal numbers meet. */
static bool serves_block(const exchange *x, int64_t src, int64_t dst)
{
    if (keeps_block(x, dst) || FAULT(FAULT_PERMUTE_KEEP)) return src == dst;
    const split turn = FAULT(FAULT_PERMUTE_TURN) ? x->gained : x->lost;
    const unsigned moved = x->used | split_mask(x->gained);
    return agree_beside(x, FAULT(FAULT_PERMUTE_PARTIAL) ? ~0u : moved, src, dst) &&
           split_part(x->mesh, x->gained, src) == split_part(x->mesh, turn, dst);
}

bool exchange_serves(const exchange *x, int64_t src, int64_t dst)
{
    return x->permutes ? serves_block(x, src, dst) : agree_beside(x, x->used, src, dst);
}

/* ---- pieces of one group ---- */

/* A processor's block of a group's dims on one side. */
typedef struct block {
    int rank;
    int64_t size[MTF_MAX_RANK], lo[MTF_MAX_RANK], n[MTF_MAX_RANK];
    int64_t run;      /* neighbouring elements in the flat index of the group */
    int64_t elements; /* of the block */
    int cut;          /* the innermost dim that is not whole; -1: all are */
} block;

static block block_of(const exchange *x, int g, int side, int64_t proc)
{
    const exchange_group *q = &x->group[g];
    block b = {.rank = q->count[side], .run = 1, .elements = 1, .cut = -1};
    for (int d = 0; d < b.rank; d++) {
        const int dim = q->first[side] + d;
        const split s = x->split[side][dim];
        const int64_t parts = split_parts(x->mesh, s), part = split_part(x->mesh, s, proc);
        b.size[d] = x->shape[side].dim[dim].size;
        b.lo[d] = block_start(b.size[d], parts, part);
        b.n[d] = block_start(b.size[d], parts, part + 1) - b.lo[d];
        b.elements *= b.n[d];
        if (b.n[d] != b.size[d]) b.cut = d;
    }
    for (int d = b.rank - 1; d >= 0 && d >= b.cut; d--)
        b.run *= b.n[d];
    return b;
}

/* Flat index, in the group, of the first element of run r. */
static int64_t run_start(const block *b, int64_t r)
{
    int64_t at = 0, stride = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        int64_t i = 0;
        if (d < b->cut) {
            i = r % b->n[d];
            r /= b->n[d];
        }
        at += (b->lo[d] + i) * stride;
        stride *= b->size[d];
    }
    return at;
}

/* Is element `flat` of the group in the block? If so its position there, and how many from there on
 * are in the same run; if not, how many are certainly not (at least 1). */
static bool find(const block *b, int64_t flat, int64_t *position, int64_t *left)
{
    int64_t at = 0, stride = 1, inner = 1, rest = flat;
    bool inside = true;
    *left = INT64_MAX;
    for (int d = b->rank - 1; d >= 0; d--) {
        const int64_t i = rest % b->size[d] - b->lo[d], within = flat % inner;
        rest /= b->size[d];
        if (i < 0 || i >= b->n[d]) {
            /* Up to the next index that may be inside, or to the end of this dim. */
            const int64_t next = i < 0 ? -i : b->size[d] - b->lo[d] - i;
            *left = next * inner - within;
            inside = false;
        } else if (inside && d == b->cut) {
            *left = (b->n[d] - i) * inner - within;
        }
        at += i * stride;
        stride *= b->n[d];
        inner *= b->size[d];
    }
    *position = at;
    return inside;
}

static void add_piece(exchange_piece **list, int64_t *n, int64_t *cap, exchange_piece p)
{
    exchange_piece *last = *n ? &(*list)[*n - 1] : NULL;
    if (last && last->from + last->n == p.from && last->to + last->n == p.to) {
        last->n += p.n;
        return;
    }
    mem_grow((void **)list, *n, cap, sizeof p);
    (*list)[(*n)++] = p;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The dim of the window: element j of the new block is j + start of the old dim, and with a period
 * whatever lies a multiple of it from there. */
static int64_t meet_window(const window *w, const block *src, const block *dst,
                           exchange_piece **list)
{
    const int64_t a = src->lo[0], a_end = a + src->n[0];
    const int64_t first = dst->lo[0] + w->start, end = first + dst->n[0];
    int64_t n = 0, cap = 0, from = 0, to = 0; /* how many periods further back */
    if (w->period && !FAULT(FAULT_WINDOW_PERIOD)) {
        from = floor_div(first - (a_end - 1), w->period);
        to = floor_div(end - 1 - a, w->period);
    }
    for (int64_t k = from; k <= to; k++) {
        const int64_t back = k * w->period, lo = max(a, first - back);
        const int64_t hi = a_end < end - back ? a_end : end - back;
        if (lo < hi)
            add_piece(list, &n, &cap, (exchange_piece){lo - a, lo + back - first, hi - lo});
    }
    return n;
}

/* Walks the runs of the new block and asks for each stretch whether the old block has it. */
static int64_t meet_group(const exchange *x, int g, const block *src, const block *dst,
                          exchange_piece **list)
{
    int64_t n = 0, cap = 0;
    *list = NULL;
    if (src->elements == 0 || dst->elements == 0) return 0;
    if (g == x->window.dim) return meet_window(&x->window, src, dst, list);
    for (int64_t r = 0; r < dst->elements / dst->run; r++) {
        const int64_t start = run_start(dst, r);
        for (int64_t i = 0, length; i < dst->run; i += length) {
            int64_t position, left;
            const bool inside = find(src, start + i, &position, &left);
            length = left < dst->run - i ? left : dst->run - i;
            if (inside)
                add_piece(list, &n, &cap, (exchange_piece){position, r * dst->run + i, length});
        }
    }
    return n;
}

/* ---- pairs ---- */

exchange_pair exchange_meet(const exchange *x, int64_t src, int64_t dst)
{
    exchange_pair p = {.ngroups = x->ngroups, .last = -1, .elements = 1};
    int64_t from = 1, to = 1;
    for (int g = x->ngroups - 1; g >= 0; g--) {
        const block a = block_of(x, g, 0, src), b = block_of(x, g, 1, dst);
        int64_t elements = 0;
        p.count[g] = p.elements ? meet_group(x, g, &a, &b, &p.list[g]) : 0;
        for (int64_t i = 0; i < p.count[g]; i++)
            elements += p.list[g][i].n;
        const bool whole = p.count[g] == 1 && elements == a.elements && elements == b.elements;
        if (!whole && p.last < 0) p.last = g;
        if (FAULT(FAULT_EXCHANGE_PIECE) && p.count[g] > 1) p.count[g]--;
        p.from_stride[g] = FAULT(FAULT_EXCHANGE_STRIDE) ? to : from;
        p.to_stride[g] = to;
        p.elements *= elements;
        from *= a.elements;
        to *= b.elements;
    }
    return p;
}

void exchange_pair_free(exchange_pair *p)
{
    for (int g = 0; g < p->ngroups; g++)
        mem_free(p->list[g]);
    *p = (exchange_pair){0};
}

static void walk(const exchange_pair *p, int g, int64_t from, int64_t to, exchange_fn *fn,
                 void *ctx)
{
    for (int64_t i = 0; i < p->count[g]; i++) {
        const exchange_piece q = p->list[g][i];
        const int64_t a = from + q.from * p->from_stride[g], b = to + q.to * p->to_stride[g];
        /* Behind the last cut group positions lie side by side. */
        if (g == p->last) {
            fn(ctx, a, b, q.n * p->to_stride[g]);
            continue;
        }
        for (int64_t k = 0; k < q.n; k++)
            walk(p, g + 1, a + k * p->from_stride[g], b + k * p->to_stride[g], fn, ctx);
    }
}

void exchange_walk(const exchange_pair *p, exchange_fn *fn, void *ctx)
{
    if (p->elements == 0) return;
    if (p->last < 0)
        fn(ctx, 0, 0, p->elements);
    else
        walk(p, 0, 0, 0, fn, ctx);
}

static int64_t shared_in_group(const exchange *x, int g, const block *a, const block *b)
{
    exchange_piece *list;
    int64_t elements = 0;
    const int64_t n = meet_group(x, g, a, b, &list);
    for (int64_t i = 0; i < n; i++)
        elements += list[i].n;
    mem_free(list);
    return elements;
}

/* Elements of a new block of a group that the old shape has. */
static int64_t wanted_of_group(const exchange *x, int g, const block *b)
{
    if (g != x->window.dim) return b->elements;
    const int64_t n = x->shape[0].dim[g].size;
    const block all = {.rank = 1, .size = {n}, .n = {n}, .run = n, .elements = n, .cut = -1};
    return shared_in_group(x, g, &all, b);
}

int64_t exchange_bound(const exchange *x, int64_t dst)
{
    int64_t held = 1, wanted = 1;
    for (int g = 0; g < x->ngroups; g++) {
        const block a = block_of(x, g, 0, dst), b = block_of(x, g, 1, dst);
        held *= shared_in_group(x, g, &a, &b);
        wanted *= wanted_of_group(x, g, &b);
    }
    return wanted - held;
}

/* Elements that two processors' blocks share, without keeping the lists. */
static int64_t shared(const exchange *x, int64_t src, int64_t dst)
{
    exchange_pair p = exchange_meet(x, src, dst);
    const int64_t n = p.elements;
    exchange_pair_free(&p);
    return n;
}

int64_t exchange_senders(const exchange *x, int64_t dst)
{
    int64_t n = 0;
    for (int64_t src = 0; src < x->mesh->processors; src++)
        if (src != dst && exchange_serves(x, src, dst)) n += shared(x, src, dst) > 0;
    return n;
}

int64_t exchange_most(const exchange *x, exchange_asked *asked)
{
    const int64_t procs = x->mesh->processors, many = procs < 16 ? procs : 16;
    int64_t most = 0;
    for (int64_t k = 0; k < many; k++) {
        const int64_t n = asked(x, mesh_sample(x->mesh, k, many));
        if (n > most) most = n;
    }
    return most;
}

/* ---- the traffic of the busiest processor ---- */

/* The axes that the group's dims are cut over on one side. */
static unsigned group_axes(const exchange *x, int g, int side)
{
    unsigned axes = 0;
    for (int d = 0; d < x->group[g].count[side]; d++)
        axes |= split_mask(x->split[side][x->group[g].first[side] + d]);
    return axes;
}

/* The next processor that differs on these axes only, or back to the first. False: it is that. */
static bool next_on_axes(const mtf_mesh *m, unsigned axes, int64_t *proc)
{
    int64_t stride = 1;
    for (int a = m->naxes - 1; a >= 0; stride *= m->size[a--]) {
        if (!(axes >> a & 1)) continue;
        if (mesh_coordinate(m, *proc, a) + 1 < m->size[a]) {
            *proc += stride;
            return true;
        }
        *proc -= (m->size[a] - 1) * stride;
    }
    return false;
}

/* Elements of src's block of a group that new blocks of the group have, over all coordinates on
 * axes of both layouts: on the other axes of the new one a processor that takes from `src` has its
 * coordinates. */
static int64_t wanted_in_group(const exchange *x, int g, int64_t src)
{
    const block a = block_of(x, g, 0, src);
    const unsigned axes = group_axes(x, g, 1) & x->used;
    int64_t elements = 0, dst = src;
    for (int k = 0; k < x->mesh->naxes; k++) /* from the first coordinates on */
        if (axes >> k & 1)
            while (mesh_coordinate(x->mesh, dst, k) > 0)
                next_on_axes(x->mesh, 1u << k, &dst);
    do {
        const block b = block_of(x, g, 1, dst);
        elements += shared_in_group(x, g, &a, &b);
    } while (next_on_axes(x->mesh, axes, &dst));
    return elements;
}

/* The axes of the new layout; processors that hold one block of the old one and lie apart in none
 * of the new one's axes. */
static unsigned gained_axes(const exchange *x)
{
    unsigned axes = 0;
    for (int g = 0; g < x->ngroups; g++)
        axes |= group_axes(x, g, 1);
    return axes;
}

static int64_t replicas_of(const exchange *x)
{
    const unsigned lost = x->used & ~gained_axes(x);
    int64_t n = 1;
    for (int a = 0; a < x->mesh->naxes; a++)
        if (lost >> a & 1) n *= x->mesh->size[a];
    return n;
}

/* Of where not all dims keep their number of parts: what others want of a processor's block. The
 * new blocks of a group partition what is wanted of it, and groups have axes of their own: so it is
 * a product over groups, once for each coordinate on the axes of the old layout that the new one
 * does not use. */
static int64_t wanted_by_others(const exchange *x, int64_t proc)
{
    int64_t kept = 1, wanted = replicas_of(x);
    for (int g = 0; g < x->ngroups; g++) {
        const block a = block_of(x, g, 0, proc), b = block_of(x, g, 1, proc);
        kept *= shared_in_group(x, g, &a, &b);
        wanted *= wanted_in_group(x, g, proc);
    }
    return wanted - kept;
}

int64_t exchange_sent(const exchange *x, int64_t src)
{
    if (!x->permutes) return wanted_by_others(x, src);
    int64_t n = 0;
    for (int64_t dst = 0; dst < x->mesh->processors; dst++)
        if (dst != src && serves_block(x, src, dst)) n += shared(x, src, dst);
    return n;
}

int64_t exchange_received(const exchange *x, int64_t dst)
{
    return exchange_bound(x, dst);
}

static int64_t traffic_of(const exchange *x, int64_t proc)
{
    if (!x->permutes) return wanted_by_others(x, proc) + exchange_bound(x, proc);
    int64_t old = 1;
    for (int g = 0; g < x->ngroups; g++)
        old *= block_of(x, g, 0, proc).elements;
    return old + exchange_bound(x, proc);
}

static int64_t largest_block(const exchange *x, int side)
{
    int64_t n = 1;
    for (int d = 0; d < x->shape[side].rank; d++)
        n *= block_bound(x->shape[side].dim[d].size, split_parts(x->mesh, x->split[side][d]));
    return n;
}

int64_t exchange_traffic(const exchange *x)
{
    const unsigned axes = x->used | gained_axes(x);
    int64_t apart = 1, most = 0, proc = 0;
    for (int a = 0; a < x->mesh->naxes; a++)
        if (axes >> a & 1) apart *= x->mesh->size[a];
    if (apart > EXCHANGE_EXACT) return replicas_of(x) * largest_block(x, 0) + largest_block(x, 1);
    do {
        const int64_t n = traffic_of(x, proc);
        if (n > most) most = n;
    } while (next_on_axes(x->mesh, axes, &proc));
    return most;
}
