/* SPDX-License-Identifier: Apache-2.0
 * Building random programs. */
#include "support/random_program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check.h"
#include "graph/op.h"
#include "ops/tile.h"
#include "spmd/program.h"
#include "support/conform.h"
#include "support/layer_samples.h"

static const char *const names[NAMES] = {"a", "b", "c", "d", "e", "f", "v"};

/* ---- one random program ---- */

static int below(draw *r, int n)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

static mtf_shape any_shape(random_program *p, int most)
{
    mtf_shape s = MTF_SCALAR;
    const int rank = below(&p->r, most + 1);
    for (int i = 0; i < rank; i++) {
        const mtf_dim d = p->dim[below(&p->r, NAMES)];
        if (mtf_shape_find(&s, d.name) < 0) s = mtf_shape_with(s, d);
    }
    return s;
}

static mtf_shape some_dims_of(random_program *p, mtf_shape s)
{
    mtf_shape out = MTF_SCALAR;
    for (int i = 0; i < s.rank; i++)
        if (below(&p->r, 2)) out = mtf_shape_with(out, s.dim[i]);
    return out;
}

static mtf_shape shuffled(random_program *p, mtf_shape s)
{
    for (int i = s.rank - 1; i > 0; i--) {
        const int j = below(&p->r, i + 1);
        const mtf_dim d = s.dim[i];
        s.dim[i] = s.dim[j];
        s.dim[j] = d;
    }
    return s;
}

static mtf_tensor *feed(random_program *p, mtf_shape s, mtf_dtype type)
{
    const int64_t n = mtf_shape_size(&s);
    void *data = mem_zalloc((size_t)(n * mtf_dtype_size(type)));
    for (int64_t i = 0; i < n; i++) {
        if (type == MTF_F64)
            ((double *)data)[i] = below(&p->r, 20001) / 10000.0 - 1.0;
        else if (type == MTF_I32)
            ((int32_t *)data)[i] = below(&p->r, 9) - 1;
        else
            ((uint8_t *)data)[i] = below(&p->r, 2) != 0;
    }
    mtf_tensor *t = mtf_placeholder(p->g, "feed", s, type);
    p->feed[p->nfeeds++] = (mtf_feed){.placeholder = t, .data = data};
    return t;
}

static mtf_tensor *any_float(random_program *p)
{
    return p->floats[below(&p->r, p->nfloats)];
}

static mtf_tensor *any_product(random_program *p)
{
    mtf_tensor *x[5];
    mtf_shape all = MTF_SCALAR, out = MTF_SCALAR;
    const int n = 2 + below(&p->r, 4);
    for (int i = 0; i < n; i++) {
        x[i] = any_float(p);
        const mtf_shape s = mtf_tensor_shape(x[i]);
        for (int d = 0; d < s.rank; d++)
            if (mtf_shape_find(&all, s.dim[d].name) < 0) all = mtf_shape_with(all, s.dim[d]);
    }
    all = shuffled(p, all);
    for (int d = 0; d < all.rank && out.rank < RANK; d++)
        if (below(&p->r, 3)) out = mtf_shape_with(out, all.dim[d]);
    return mtf_einsum(n, x, out);
}

/* Two neighbours become one dim, or the other way round, or the dims change their names. */
static mtf_tensor *any_reshape(random_program *p)
{
    mtf_tensor *x = any_float(p);
    mtf_shape s = mtf_tensor_shape(x), t = MTF_SCALAR;
    const int at = s.rank > 1 ? below(&p->r, s.rank - 1) : 0;
    for (int i = 0; i < s.rank; i++) {
        if (s.rank > 1 && i == at) {
            const mtf_dim joined = {"joined", s.dim[i].size * s.dim[i + 1].size};
            t = mtf_shape_with(t, joined);
            i++;
        } else {
            t = mtf_shape_with(t, s.dim[i]);
        }
    }
    mtf_tensor *y = mtf_reshape(x, t);
    if (below(&p->r, 2)) y = mtf_tanh(y);
    for (int i = 0; i < s.rank; i++) { /* back, under free names of the same size */
        const mtf_dim other = p->dim[below(&p->r, NAMES)];
        if (other.size == s.dim[i].size && mtf_shape_find(&s, other.name) < 0) s.dim[i] = other;
    }
    return mtf_reshape(y, s);
}

static mtf_tensor *any_lookup(random_program *p)
{
    mtf_tensor *x = any_float(p);
    const mtf_shape s = mtf_tensor_shape(x);
    if (s.rank == 0 || p->nfeeds >= MAX_FEEDS) return mtf_tanh(x);
    const mtf_dim along = s.dim[below(&p->r, s.rank)];
    mtf_shape at = mtf_shape_without(any_shape(p, 2), along.name);
    mtf_shape rest = mtf_shape_without(s, along.name);
    for (int i = 0; i < at.rank; i++)
        rest = mtf_shape_without(rest, at.dim[i].name);
    if (rest.rank + at.rank > RANK) at = MTF_SCALAR;
    mtf_tensor *indices = feed(p, at, MTF_I32);
    if (below(&p->r, 3)) return mtf_gather(x, indices, along.name);
    mtf_tensor *places = feed(p, some_dims_of(p, mtf_shape_without(s, p->dim[6].name)), MTF_I32);
    x = mtf_reduce_sum(x, mtf_shape_without(s, p->dim[6].name));
    mtf_shape out = some_dims_of(p, mtf_tensor_shape(x));
    return mtf_scatter_add(x, places, "v", mtf_shape_with(shuffled(p, out), p->dim[6]));
}

static mtf_tensor *any_choice(random_program *p)
{
    mtf_tensor *x = any_float(p), *y = any_float(p);
    mtf_tensor *c = p->nfeeds < MAX_FEEDS && below(&p->r, 2) ? feed(p, any_shape(p, 2), MTF_BOOL)
                                                             : mtf_less(x, y);
    return mtf_where(c, x, y);
}

static mtf_tensor *any_along(random_program *p)
{
    mtf_tensor *x = any_float(p);
    const mtf_shape s = mtf_tensor_shape(x);
    if (s.rank == 0) return mtf_sin(x);
    const char *dim = s.dim[below(&p->r, s.rank)].name;
    switch (below(&p->r, 5)) {
    case 0:
        return mtf_softmax(x, dim);
    case 1:
        return mtf_shift(x, dim, below(&p->r, 7) - 3, below(&p->r, 2));
    case 2:
        return mtf_mul(x, mtf_range(p->g, mtf_tensor_dim(x, dim), MTF_F64));
    case 3:
        return mtf_reduce_logsumexp(x, some_dims_of(p, s));
    default:
        return mtf_log_softmax(x, dim);
    }
}

/* x along one dim in parts, in another order, one of them perhaps left out. */
static mtf_tensor *any_parts(random_program *p, mtf_tensor *x, mtf_dim d)
{
    mtf_tensor *part[8];
    const int64_t first = 1 + below(&p->r, (int)d.size - 1);
    const int64_t sizes[] = {first, d.size - first};
    mtf_split(x, d.name, 2, sizes, part);
    if (below(&p->r, 3) == 0) return mtf_pad(part[1], d.name, first, 0);
    mtf_tensor *turned[] = {part[1], mtf_sin(part[0])};
    return mtf_concat(2, turned, d.name);
}

/* x and a function of it side by side along a new dim, and what that gives. */
static mtf_tensor *any_stack(random_program *p, mtf_tensor *x)
{
    mtf_tensor *both[] = {x, mtf_sin(x), x}, *apart[3];
    mtf_tensor *s = mtf_stack(3, both, "stacked", below(&p->r, 2) - 1);
    if (below(&p->r, 2)) return mtf_reduce_max(s, mtf_tensor_shape(x));
    mtf_unstack(s, "stacked", apart);
    return mtf_mul(apart[1], apart[2]);
}

/* Other elements of one dim of x, whose size is the same in the end. */
static mtf_tensor *any_window(random_program *p)
{
    mtf_tensor *x = any_float(p), *top;
    const mtf_shape s = mtf_tensor_shape(x);
    if (s.rank == 0 || p->nfeeds >= MAX_FEEDS) return mtf_sin(x);
    const mtf_dim d = s.dim[below(&p->r, s.rank)];
    const int64_t k = 1 + below(&p->r, (int)d.size), from = below(&p->r, (int)(d.size - k) + 1);
    const bool coin = below(&p->r, 2);
    switch (below(&p->r, 7)) {
    case 0:
        return mtf_pad(mtf_slice(x, d.name, from, k), d.name, coin ? from : d.size - k - from,
                       coin ? d.size - k - from : from);
    case 1:
        return mtf_slice(mtf_concat(2, (mtf_tensor *[]){x, mtf_sin(x)}, d.name), d.name, from,
                         d.size);
    case 2:
        return d.size > 1 ? any_parts(p, x, d) : any_stack(p, x);
    case 3:
        return mtf_dynamic_shift(x, feed(p, some_dims_of(p, mtf_shape_without(s, d.name)), MTF_I32),
                                 d.name, coin);
    case 4:
        return mtf_cumsum(x, d.name, coin, below(&p->r, 2));
    case 5:
        mtf_top_k(x, d.name, (mtf_dim){"top", k}, coin, &top, NULL);
        return mtf_pad(mtf_rename(top, "top", d.name), d.name, from, d.size - k - from);
    default:
        return any_stack(p, x);
    }
}

/* x with its view in which two dims have exchanged their names: one memory, read in two orders. */
static mtf_tensor *any_twist(random_program *p)
{
    mtf_tensor *x = mtf_sin(any_float(p));
    mtf_shape s = mtf_tensor_shape(x);
    for (int i = 1; i < s.rank; i++) {
        const mtf_dim d = s.dim[i];
        if (s.dim[i - 1].size != d.size) continue;
        s.dim[i] = s.dim[i - 1];
        s.dim[i - 1] = d;
    }
    return mtf_add(x, mtf_reshape(x, s));
}

/* Whole numbers in bf16, and a sum of them. What f32 adds is exact, so the one rounding at the end
 * gives equal bits under every layout; a partial sum that is rounded shows at once. */
static mtf_tensor *any_narrow(random_program *p)
{
    mtf_tensor *x = any_float(p), *n[2];
    for (int i = 0; i < 2; i++)
        n[i] = mtf_scale(mtf_cast(feed(p, any_shape(p, 3), MTF_I32), MTF_BF16), i ? 1.0 : 37.0);
    const mtf_shape a = mtf_tensor_shape(n[0]), b = mtf_tensor_shape(n[1]);
    mtf_shape all = a;
    for (int i = 0; i < b.rank; i++)
        if (mtf_shape_find(&all, b.dim[i].name) < 0) all = mtf_shape_with(all, b.dim[i]);
    const mtf_shape out = some_dims_of(p, shuffled(p, all));
    mtf_tensor *y = mtf_einsum(2, n, out);
    switch (below(&p->r, 4)) {
    case 0:
        y = mtf_reduce_sum(mtf_maximum(n[0], mtf_scale(n[1], 16)), out);
        break;
    case 1:
        y = mtf_reduce_sum(mtf_add(y, y), some_dims_of(p, out));
        break;
    case 2:
        y = mtf_reduce_max(y, some_dims_of(p, out));
        break;
    }
    return mtf_mul(x, mtf_scale(mtf_cast(y, MTF_F64), 0x1p-9));
}

static mtf_tensor *any_row(random_program *p)
{
    mtf_tensor *x = any_float(p), *y = any_float(p);
    switch (below(&p->r, 18)) {
    case 0:
        return mtf_add(x, y);
    case 1:
        return mtf_mul(x, y);
    case 2:
        return mtf_maximum(x, y);
    case 3:
        return mtf_sub(mtf_square(x), y);
    case 4:
        return mtf_gelu(x);
    case 5:
        return mtf_dropout(x, "drop", 0.25);
    case 6:
        return mtf_transpose(x, shuffled(p, mtf_tensor_shape(x)));
    case 7:
        return mtf_reduce_sum(x, shuffled(p, some_dims_of(p, mtf_tensor_shape(x))));
    case 8:
        return mtf_reduce_mean(x, some_dims_of(p, mtf_tensor_shape(x)));
    case 9:
        return mtf_reduce_max(x, some_dims_of(p, mtf_tensor_shape(x)));
    case 10:
        return mtf_random_normal(p->g, "noise", any_shape(p, 3), MTF_F64, 0, 1);
    case 11:
        return any_choice(p);
    case 12:
        return any_along(p);
    case 13:
        return any_lookup(p);
    case 14:
        return any_reshape(p);
    case 15:
        return any_twist(p);
    default:
        return any_product(p);
    }
}

/* Linear work on x, with a result of some of its dims. */
static mtf_tensor *any_use(random_program *p, mtf_tensor *x)
{
    const mtf_shape s = mtf_tensor_shape(x), some = some_dims_of(p, s);
    switch (below(&p->r, 4)) {
    case 0:
        return mtf_scale(x, 0.25);
    case 1:
        return mtf_reduce_sum(x, some);
    case 2:
        return mtf_einsum(2, (mtf_tensor *[]){x, any_float(p)}, some);
    default:
        return mtf_transpose(x, shuffled(p, s));
    }
}

/* A product, which is often a partial sum, with two or three readers whose results meet. */
static mtf_tensor *any_fan_out(random_program *p)
{
    mtf_tensor *x = any_product(p), *y = any_use(p, x), *z = any_use(p, x);
    if (below(&p->r, 2)) y = mtf_sub(y, any_use(p, x));
    return below(&p->r, 4) ? mtf_add(y, z) : mtf_mul(mtf_tanh(y), z);
}

/* ---- samples of rows and layers ---- */

static mtf_tensor *near_value(void *term, mtf_tensor *operand)
{
    return mtf_add(operand, term);
}

enum { MOST = 512 };
static bool sample_used[MOST]; /* rows, then layers: was a sample part of some program */

/* Row i, or the layer behind the rows; NULL behind the last. */
static const op *sampled(int i)
{
    assert_true(i < MOST);
    return i < op_count ? op_rows[i] : layer_sample(i - op_count);
}

/* How many samples it has; the first asking builds them all. */
static int samples_of(int i)
{
    static int known[MOST]; /* one more than there are */
    const op *row = sampled(i);
    if (known[i]) return known[i] - 1;
    mtf_graph *g = mtf_graph_new();
    while (row->sample && row->sample(g, known[i]))
        known[i]++;
    mtf_graph_free(&g);
    return known[i]++;
}

static const op *any_sampled(random_program *p, int *k)
{
    int all = 0;
    while (sampled(all))
        all++;
    for (;;) {
        const int i = below(&p->r, all), n = samples_of(i);
        if (n == 0) continue;
        *k = below(&p->r, n);
        sample_used[i] = true;
        return sampled(i);
    }
}

const char *unused_sample(void)
{
    for (int i = 0; sampled(i); i++)
        if (!sample_used[i] && samples_of(i)) return sampled(i)->name;
    return NULL;
}

/* A sample of any row or layer, whose operands depend on a value of the program, as a number. */
static mtf_tensor *any_sample(random_program *p)
{
    int k;
    mtf_tensor *x = mtf_reduce_mean(any_float(p), MTF_SCALAR);
    const op *row = any_sampled(p, &k);
    const int64_t first = p->g->nnodes;
    sample_use_wrap(near_value, mtf_scale(mtf_tanh(x), 1e-3));
    mtf_tensor *y = row->sample(p->g, k);
    sample_use_wrap(NULL, NULL);
    mtf_err err = {0};
    if (!y || mtf_graph_status(p->g, &err) != MTF_OK)
        fail_msg("seed %llu, a sample of '%s': %s", (unsigned long long)p->seed, row->name,
                 err.text);
    int64_t at = 100 * p->samples++;
    for (int64_t i = first; i < p->g->nnodes; i++) {
        mtf_tensor *t = &p->g->node[i]->out[0];
        if (!(t->node->op->traits & TRAIT_FEED)) continue;
        assert_true(p->nfeeds < MAX_FEEDS);
        p->feed[p->nfeeds++] = (mtf_feed){.placeholder = t, .data = sample_data(t, &at)};
    }
    return mtf_reduce_mean(mtf_tanh(mtf_cast(y, MTF_F64)), MTF_SCALAR);
}

/* Keeps ranks and numbers small. */
static mtf_tensor *tamed(random_program *p, mtf_tensor *t)
{
    mtf_shape s = mtf_tensor_shape(t);
    while (s.rank > RANK)
        s = mtf_shape_without(s, s.dim[below(&p->r, s.rank)].name);
    t = mtf_reduce_sum(t, s);
    return below(&p->r, 3) ? mtf_tanh(t) : mtf_scale(t, 0.5);
}

static void add_gradients(random_program *p)
{
    mtf_tensor *loss = mtf_constant(p->g, 0, MTF_SCALAR, MTF_F64), *dx[VARIABLES];
    for (int i = 0; i < 3; i++)
        loss = mtf_add(loss, mtf_reduce_mean(p->floats[p->nfloats - 1 - i], MTF_SCALAR));
    p->fetch[p->nfetches++] = loss;
    mtf_gradients(loss, VARIABLES, p->variable, dx);
    for (int i = 0; i < VARIABLES; i++) {
        mtf_tensor *next = p->variable[i], *other = p->variable[below(&p->r, VARIABLES)];
        if (dx[i] && below(&p->r, 3) == 0) p->fetch[p->nfetches++] = dx[i];
        if (dx[i] && below(&p->r, 4)) next = mtf_sub(next, mtf_scale(dx[i], 0.1));
        if (below(&p->r, 4) == 0) next = other; /* the first two have one shape: they may swap */
        const mtf_shape a = mtf_tensor_shape(next), b = mtf_tensor_shape(p->variable[i]);
        if (a.rank == b.rank && memcmp(a.dim, b.dim, sizeof *a.dim * (size_t)a.rank) == 0)
            p->updates[p->nupdates++] = mtf_assign(p->variable[i], next);
        if (below(&p->r, 4) == 0) p->fetch[p->nfetches++] = below(&p->r, 2) ? next : p->variable[i];
    }
}

/* Apart from the call that makes it, which may look at those that are there. */
static void keep_float(random_program *p, mtf_tensor *t)
{
    p->floats[p->nfloats++] = t;
}

random_program program_new(uint64_t seed)
{
    random_program p = {.r = {seed}, .seed = seed, .g = mtf_graph_new()};
    for (int i = 0; i < NAMES; i++)
        p.dim[i] = (mtf_dim){names[i], 1 + below(&p.r, 6)};
    const mtf_shape s = any_shape(&p, 3);
    for (int i = 0; i < VARIABLES; i++) {
        mtf_tensor *w = mtf_random_normal(p.g, "w", i < 2 ? s : any_shape(&p, 3), MTF_F64, 0, 1);
        p.floats[p.nfloats++] = p.variable[i] = mtf_variable(p.g, "w", w, true);
    }
    for (int i = 0; i < 4; i++)
        keep_float(&p, feed(&p, any_shape(&p, 3), MTF_F64));
    for (int k = 0; k < 2 && seed % 2 == 0; k++) {
        keep_float(&p, tamed(&p, any_window(&p)));
        keep_float(&p, any_sample(&p));
    }
    for (int rows = 5 + below(&p.r, 26); rows > 0; rows--)
        keep_float(&p, tamed(&p, any_row(&p)));
    if (seed % 2 == 0) /* the others are as they were when they failed once */
        keep_float(&p, tamed(&p, any_fan_out(&p)));
    if (seed % 4 == 2 && p.nfeeds + 2 <= MAX_FEEDS) keep_float(&p, tamed(&p, any_narrow(&p)));
    add_gradients(&p);
    while (p.nfetches < MAX_FETCHES - 1)
        p.fetch[p.nfetches++] = any_float(&p);
    mtf_err err = {0};
    if (mtf_graph_status(p.g, &err) != MTF_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    assert_true(p.g->nnodes < MAX_NODES);
    return p;
}

void program_free(random_program *p)
{
    for (int i = 0; i < p->nfeeds; i++)
        mem_free((void *)(uintptr_t)p->feed[i].data);
    mtf_graph_free(&p->g);
}

/* Each name over no axis, or over some of the mesh's in any order. */
void any_layout(draw *r, const char *mesh, char *text, size_t room)
{
    static const char *const ways[3][8] = {
        {"x"}, {"x", "y", "x+y", "y+x"}, {"x", "y", "z", "x+y", "z+x", "y+z+x", "z+y"}};
    static const int count[3] = {1, 4, 7};
    const int axes = strchr(mesh, 'z') ? 2 : strchr(mesh, 'y') ? 1 : 0;
    const char *dims[NAMES + 1] = {"joined"};
    size_t used = 0;
    memcpy(dims + 1, names, sizeof names);
    text[0] = '\0';
    for (int i = 0; i <= NAMES; i++)
        if (below(r, 2))
            used += (size_t)snprintf(text + used, room - used, "%s:%s;", dims[i],
                                     ways[axes][below(r, count[axes])]);
}
