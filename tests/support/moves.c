/* SPDX-License-Identifier: Apache-2.0 */
#include "support/moves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exec/session.h"
#include "mtf/mtf.h"

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "moves: %s: %s\n", what, why);
    exit(1);
}

moves moves_open(const char *mesh, mtf_shape shape)
{
    mtf_err err = {0};
    moves x = {.g = mtf_graph_new()};
    mtf_tensor *t = mtf_placeholder(x.g, "operand", shape, MTF_F64);
    const mtf_request r = {.nfetches = 1, .fetches = &t};
    x.m = mtf_mesh_parse(mesh, &err);
    x.l = x.m ? mtf_layout_parse("", x.m, true, NULL, &err) : NULL;
    x.p = x.l ? mtf_compile(x.g, x.m, x.l, &r, &err) : NULL;
    if (!x.p) stop(mesh, err.text);
    x.p->nfetches = 0;
    x.operand = x.p->feed[0];
    return x;
}

void moves_close(moves *x)
{
    mtf_program_free(&x->p);
    mtf_layout_free(&x->l);
    mtf_mesh_free(&x->m);
    mtf_graph_free(&x->g);
}

/* ---- what can be done ---- */

static void add_cuts(const mtf_mesh *m, int rank, unsigned used, cuts now, cuts *list, int *n)
{
    if (*n == MAX_MOVES) stop("all_cuts", "too many");
    list[(*n)++] = now;
    for (int a = 0; a < m->naxes; a++)
        for (int d = 0; d < rank && !(used >> a & 1); d++) {
            bool later = false; /* dims in ascending order, so that every cut comes once */
            for (int e = d + 1; e < rank; e++)
                later = later || now.s[e].n;
            if (later) continue;
            cuts next = now;
            next.s[d].axis[next.s[d].n++] = (int8_t)a;
            add_cuts(m, rank, used | 1u << a, next, list, n);
        }
}

int all_cuts(const mtf_mesh *m, const mtf_shape *shape, unsigned not_over, cuts *list)
{
    int n = 0;
    add_cuts(m, shape->rank, not_over, (cuts){0}, list, &n);
    return n;
}

static split append(split s, split more)
{
    for (int k = 0; k < more.n; k++)
        s.axis[s.n++] = more.axis[k];
    return s;
}

static split first_axes(split s, int n)
{
    split head = {.n = (int8_t)n};
    memcpy(head.axis, s.axis, (size_t)n);
    return head;
}

static split last_axes(split s, int n)
{
    split tail = {.n = (int8_t)n};
    memcpy(tail.axis, s.axis + s.n - n, (size_t)n);
    return tail;
}

hand_move move_over(const value *v, instr_kind kind, int dim, int to_dim, split axes)
{
    hand_move k = {.kind = kind, .dim = dim, .to_dim = to_dim, .axes = axes, .shape = v->shape};
    const bool leaves = kind == INSTR_ALL_GATHER || kind == INSTR_ALL_TO_ALL;
    memcpy(k.cut, v->split, sizeof k.cut);
    if (leaves) k.cut[dim] = first_axes(k.cut[dim], k.cut[dim].n - axes.n);
    if (kind == INSTR_ALL_TO_ALL) k.cut[to_dim] = append(k.cut[to_dim], axes);
    if (kind == INSTR_SLICE || kind == INSTR_REDUCE_SCATTER) k.cut[dim] = append(k.cut[dim], axes);
    return k;
}

hand_move move_to(const value *v, instr_kind kind, mtf_shape shape, const split *cut)
{
    hand_move k = {.kind = kind, .dim = -1, .to_dim = -1, .shape = shape};
    unsigned mask = value_axes(v);
    memcpy(k.cut, cut, sizeof k.cut);
    for (int d = 0; d < shape.rank; d++)
        mask |= split_mask(cut[d]);
    for (int a = 0; a < MTF_MAX_AXES; a++)
        if (mask >> a & 1) k.axes.axis[k.axes.n++] = (int8_t)a;
    return k;
}

static void add_move(hand_move *list, int *n, hand_move k)
{
    if (*n == MAX_MOVES) stop("all_moves", "too many");
    list[(*n)++] = k;
}

static int lists_of_axes(const mtf_mesh *m, unsigned from, split *list)
{
    static cuts found[MAX_MOVES];
    const mtf_shape one = {.rank = 1};
    const int n = all_cuts(m, &one, ~from, found);
    for (int i = 1; i < n; i++) /* the first is empty */
        list[i - 1] = found[i].s[0];
    return n - 1;
}

/* slice, and with pending axes all_reduce and reduce_scatter */
static void moves_over(const mtf_mesh *m, const value *v, bool pending, hand_move *list, int *n)
{
    split axes[64];
    const unsigned free = ((1u << m->naxes) - 1) & ~value_axes(v) & ~v->pending;
    const int lists = lists_of_axes(m, pending ? v->pending : free, axes);
    const instr_kind kind = pending ? INSTR_REDUCE_SCATTER : INSTR_SLICE;
    for (int i = 0; i < lists; i++) {
        if (pending) add_move(list, n, move_over(v, INSTR_ALL_REDUCE, -1, -1, axes[i]));
        for (int d = 0; d < v->shape.rank; d++)
            add_move(list, n, move_over(v, kind, d, -1, axes[i]));
    }
}

/* all_gather and all_to_all of every tail of every dim's axes */
static void moves_of_tails(const value *v, hand_move *list, int *n)
{
    for (int d = 0; d < v->shape.rank; d++)
        for (int tail = 1; tail <= v->split[d].n; tail++) {
            const split axes = last_axes(v->split[d], tail);
            add_move(list, n, move_over(v, INSTR_ALL_GATHER, d, -1, axes));
            for (int to = 0; to < v->shape.rank; to++)
                if (to != d) add_move(list, n, move_over(v, INSTR_ALL_TO_ALL, d, to, axes));
        }
}

static bool permutes(const mtf_mesh *m, const value *v, const hand_move *k)
{
    if (k->shape.rank != v->shape.rank) return false;
    for (int d = 0; d < v->shape.rank; d++)
        if (split_parts(m, v->split[d]) != split_parts(m, k->cut[d])) return false;
    return true;
}

static void moves_to_layouts(const mtf_mesh *m, const value *v, mtf_shape shape, hand_move *list,
                             int *n)
{
    static cuts found[MAX_MOVES];
    const int layouts = all_cuts(m, &shape, v->pending, found);
    for (int i = 0; i < layouts; i++) {
        const hand_move k = move_to(v, INSTR_EXCHANGE, shape, found[i].s);
        if (!k.axes.n) continue;
        add_move(list, n, k);
        if (permutes(m, v, &k)) add_move(list, n, move_to(v, INSTR_PERMUTE, shape, found[i].s));
    }
}

int all_moves(const mtf_mesh *m, const value *v, hand_move *list)
{
    int n = 0;
    moves_over(m, v, false, list, &n);
    moves_over(m, v, true, list, &n);
    moves_of_tails(v, list, &n);
    moves_to_layouts(m, v, v->shape, list, &n);
    const mtf_shape flat = {.rank = 1, .dim = {{"flat", mtf_shape_size(&v->shape)}}};
    if (v->shape.rank > 1) moves_to_layouts(m, v, flat, list, &n);
    return n;
}

/* ---- doing it ---- */

value *moves_add(moves *x, value *v, const hand_move *how)
{
    value *out = program_value(x->p, v->tensor, &how->shape);
    memcpy(out->split, how->cut, sizeof out->split);
    const bool reduces = how->kind == INSTR_ALL_REDUCE || how->kind == INSTR_REDUCE_SCATTER;
    out->pending = reduces ? v->pending & ~split_mask(how->axes) : v->pending;
    out->combine = v->combine;
    instr *i = program_instr(x->p, NULL, how->kind, v->tensor->node, 1, 1);
    i->in[0] = v;
    i->out[0] = out;
    i->axes = how->axes;
    i->dim = how->dim;
    i->to_dim = how->to_dim;
    i->combine = v->combine;
    return out;
}

instr *moves_last(const moves *x)
{
    return x->p->last;
}

/* The flat indexes of the elements in the block of `v` on `proc`, in order; free with mem_free. */
static int64_t *elements_of(const mtf_mesh *m, const value *v, int64_t proc, int64_t *n)
{
    int64_t lo[MTF_MAX_RANK], hi[MTF_MAX_RANK], at[MTF_MAX_RANK], total = 1;
    const int rank = v->shape.rank;
    for (int d = 0; d < rank; d++) {
        int64_t parts = 1, part = 0;
        for (int k = 0; k < v->split[d].n; k++) {
            const int a = v->split[d].axis[k];
            parts *= m->size[a];
            part = part * m->size[a] + mesh_coordinate(m, proc, a);
        }
        lo[d] = at[d] = part * v->shape.dim[d].size / parts;
        hi[d] = (part + 1) * v->shape.dim[d].size / parts;
        total *= hi[d] - lo[d];
    }
    int64_t *list = mem_alloc(sizeof *list * (size_t)(total + 1));
    for (*n = 0; *n < total; ++*n) {
        int64_t flat = 0;
        for (int d = 0; d < rank; d++)
            flat = flat * v->shape.dim[d].size + at[d];
        list[*n] = flat;
        for (int d = rank - 1; d >= 0 && ++at[d] == hi[d]; d--)
            at[d] = lo[d];
    }
    return list;
}

/* The share of element `flat` that processors with these coordinates on the pending axes hold. */
static double share_of(const mtf_mesh *m, unsigned pending, const int64_t *coordinate, int64_t flat)
{
    double key = 0;
    for (int a = 0; a < m->naxes; a++)
        if (pending >> a & 1) key = 11 * key + (double)((coordinate[a] * 5 + 2) % 7) + 1;
    return (double)flat + 1 + 1000 * key;
}

/* The same, combined over the axes from `a` on that are in `over`. */
static double combined(const moves *x, unsigned over, int64_t *coordinate, int a, int64_t flat)
{
    if (a == x->m->naxes) return share_of(x->m, x->operand->pending, coordinate, flat);
    if (!(over >> a & 1)) return combined(x, over, coordinate, a + 1, flat);
    const int64_t own = coordinate[a];
    double all = 0;
    for (int64_t c = 0; c < x->m->size[a]; c++) {
        coordinate[a] = c;
        const double one = combined(x, over, coordinate, a + 1, flat);
        if (c == 0 || (x->operand->combine == COMBINE_MAX && one > all) ||
            (x->operand->combine == COMBINE_MIN && one < all))
            all = one;
        else if (x->operand->combine == COMBINE_SUM)
            all += one;
    }
    coordinate[a] = own;
    return all;
}

static double wanted(const moves *x, const value *v, int64_t proc, int64_t flat)
{
    int64_t coordinate[MTF_MAX_AXES];
    for (int a = 0; a < x->m->naxes; a++)
        coordinate[a] = mesh_coordinate(x->m, proc, a);
    return combined(x, x->operand->pending & ~v->pending, coordinate, 0, flat);
}

static double *block_in(mtf_session *s, const value *v, int h)
{
    return (double *)(void *)session_memory(s, h, session_offset(s, v));
}

static void fail(const moves *x, const value *v, int64_t proc, double got, double want)
{
    mtf_program_print(x->p, stderr);
    fprintf(stderr, "moves: %%%d on processor %lld: %.17g instead of %.17g\n", v->id,
            (long long)proc, got, want);
    exit(1);
}

static void compare(moves *x, mtf_session *s, const value *v)
{
    for (int h = 0; h < s->nhosted; h++) {
        int64_t n;
        int64_t *flat = elements_of(x->m, v, s->first + h, &n);
        const double *block = block_in(s, v, h);
        for (int64_t i = 0; i < n; i++) {
            const double want = wanted(x, v, s->first + h, flat[i]);
            if (block[i] != want) fail(x, v, s->first + h, block[i], want);
        }
        mem_free(flat);
    }
}

static void fill_operand(moves *x, mtf_session *s)
{
    for (int h = 0; h < s->nhosted; h++) {
        int64_t n;
        int64_t *flat = elements_of(x->m, x->operand, s->first + h, &n);
        for (int64_t i = 0; i < n; i++)
            block_in(s, x->operand, h)[i] = wanted(x, x->operand, s->first + h, flat[i]);
        mem_free(flat);
    }
}

/* Every value that a move makes is kept to the end, as a fetch is. */
static void plan(mtf_program *p)
{
    program_verify(p, "moves");
    p->fetch = arena_alloc(p->mem, sizeof *p->fetch * (size_t)(p->ninstrs + 1));
    for (const instr *i = p->first; i; i = i->next)
        p->fetch[p->nfetches++] = i->out[0];
    plan_memory(p);
    program_verify_memory(p);
}

void moves_run(moves *x)
{
    mtf_err err = {0};
    plan(x->p);
    mtf_session *s = mtf_session_new(1, &x->p, &(mtf_session_options){.threads = 1}, &err);
    if (!s) stop("a session", err.text);
    fill_operand(x, s);
    session_execute(s, &s->bound[0]);
    for (int k = 0; k < x->p->nfetches; k++)
        compare(x, s, x->p->fetch[k]);
    mtf_session_free(&s);
}
