/* SPDX-License-Identifier: Apache-2.0
 * Sums move past linear work: all_reduce(x) + all_reduce(y) becomes all_reduce(x + y), and a sum is
 * taken where its value is small. For one axis, the values that may be partial sums over it are
 * collected, from the operands of its all_reduces on through all work that is linear; a minimal cut
 * (cut.h) says which of them are reduced. No bytes and no calls are added. Of equal places the
 * earliest is taken, but a view is always passed where that costs nothing: two sums that meet
 * behind views of different names can join, and a gradient's sum stands where its bucket can take
 * it.
 *
 * The sums of one value over several axes stand in the order minor-most first. So axes are done
 * major-most first: a sum over a minor axis may pass what those over major axes passed before. */
#include "base/fault.h"
#include "spmd/cut.h"
#include "spmd/program.h"

/* The values that may be partial over `axis`. */
typedef struct candidates {
    mtf_program *p;
    int axis;
    int64_t n;
    cut_value *cut;
    value **whole;   /* per candidate: the value as it is now */
    value **partial; /* once it is made partial, else NULL */
    int *number;     /* per value of the program: which candidate it is, or -1 */
    arena *mem;      /* lists of operands and ways */
} candidates;

static bool is_sum_over(const instr *i, int axis)
{
    return i->kind == INSTR_ALL_REDUCE && i->combine == COMBINE_SUM && i->nin == 1 &&
           i->axes.n == 1 && i->axes.axis[0] == axis;
}

/* ---- which work may be done on partial values ---- */

/* Each processor does its own part of work that is cut over the axis, with its own share of the
 * sum: the rest of both would be lost. */
static bool is_cut_over(const instr *i, int axis)
{
    for (int d = 0; d < i->nspace; d++)
        if (split_mask(i->space[d].split) >> axis & 1) return true;
    unsigned axes = value_axes(i->out[0]);
    for (int k = 0; k < i->nin; k++)
        axes |= value_axes(i->in[k]);
    return axes >> axis & 1;
}

/* Sums over minor axes are taken first, on values that stay partial over this one. */
static bool is_minor_sum(const instr *i, int axis)
{
    return i->kind == INSTR_ALL_REDUCE && i->combine == COMBINE_SUM && i->nin == 1 &&
           i->axes.n == 1 && i->axes.axis[0] > axis;
}

static bool may_carry(const instr *i, int axis)
{
    if (is_minor_sum(i, axis)) return true;
    const bool row = i->kind == INSTR_WINDOW && i->op; /* not a part of a product */
    if ((i->kind != INSTR_COMPUTE && i->kind != INSTR_VIEW && !row) || i->nout != 1) return false;
    if (i->out[0]->pending && i->out[0]->combine != COMBINE_SUM) return false;
    return !is_cut_over(i, axis);
}

/* Is the result a partial sum when exactly the operands in `way` are? Not beside an operand that is
 * partial over another axis: a product of sums is not the sum of products. */
static bool is_way(const instr *i, unsigned way)
{
    for (int k = 0; k < i->nin; k++)
        for (int j = 0; j < i->nin; j++)
            if (i->in[j] == i->in[k] && (way >> j & 1) != (way >> k & 1)) return false;
    if (i->kind == INSTR_ALL_REDUCE) return true;
    for (int k = 0; k < i->nin; k++)
        if (!(way >> k & 1) && i->in[k]->pending) return false;
    return op_linear(i->node, way) || FAULT(FAULT_SINK_NONLINEAR);
}

/* ---- collecting ---- */

static cut_value *add_candidate(candidates *c, value *v)
{
    cut_value *x = &c->cut[c->n];
    *x = (cut_value){.bytes = 2 * value_bound(c->p, v) * mtf_dtype_size(v->dtype),
                     .closed = v->pending >> c->axis > 1 && !FAULT(FAULT_SINK_ORDER)};
    c->whole[c->n] = v;
    c->number[v->id] = (int)c->n++;
    return x;
}

/* The operands of `i` that are candidates, as bits. */
static unsigned candidates_in(const candidates *c, const instr *i)
{
    unsigned mask = 0;
    for (int k = 0; k < i->nin; k++)
        if (c->number[i->in[k]->id] >= 0) mask |= 1u << k;
    return mask;
}

/* Sums of the operand over minor axes, which may pass what the one over this axis passes. */
static int minor_sums(const candidates *c, const value *v)
{
    int n = 0;
    for (const instr *i = v->def; i && i->kind == INSTR_ALL_REDUCE; i = i->in[0]->def)
        n += is_minor_sum(i, c->axis);
    return n;
}

/* The operand of `mask` that brings most of them, as a bit. */
static unsigned favourite(const candidates *c, const instr *i, unsigned mask)
{
    int best = -1;
    for (int k = 0; k < i->nin; k++)
        if ((mask >> k & 1) && (best < 0 || minor_sums(c, i->in[k]) > minor_sums(c, i->in[best])))
            best = k;
    return 1u << best;
}

/* Ways in `mask`, those with operand `first` before others: of equals the earlier is taken. */
static int list_ways(const instr *i, unsigned mask, unsigned first, unsigned *list)
{
    int n = 0;
    for (int with = 1; with >= 0; with--)
        for (unsigned way = mask; way; way = (way - 1) & mask)
            if (!(way & first) == !with && is_way(i, way)) {
                if (list) list[n] = way;
                n++;
            }
    return n;
}

/* Result of work on candidates, or false where it can be done on no partial value. */
static bool add_result(candidates *c, const instr *i, unsigned mask)
{
    if (!may_carry(i, c->axis)) return false;
    const unsigned first = favourite(c, i, mask);
    const int nways = list_ways(i, mask, first, NULL);
    if (!nways) return false;
    unsigned *ways = arena_alloc(c->mem, sizeof *ways * (size_t)nways);
    int *in = arena_alloc(c->mem, sizeof *in * (size_t)i->nin);
    for (int k = 0; k < i->nin; k++) {
        in[k] = c->number[i->in[k]->id];
        if (in[k] >= 0 && i->kind == INSTR_VIEW) c->cut[in[k]].before_view = true;
    }
    cut_value *x = add_candidate(c, i->out[0]);
    x->nin = i->nin;
    x->in = in;
    x->way = ways;
    x->nways = list_ways(i, mask, first, ways);
    return true;
}

static void need_operands(candidates *c, const instr *i)
{
    for (int k = 0; k < i->nin; k++) {
        if (c->number[i->in[k]->id] < 0) continue;
        cut_value *x = &c->cut[c->number[i->in[k]->id]];
        const bool own_part =
            i->kind == INSTR_SLICE && i->axes.n == 1 && i->axes.axis[0] == c->axis && !x->sliced;
        *(own_part ? &x->sliced : &x->needed) = true;
    }
}

static void collect(candidates *c)
{
    for (int64_t v = 0; v < c->p->nvalues; v++)
        c->number[v] = -1;
    for (instr *i = c->p->first; i; i = i->next) {
        if (is_sum_over(i, c->axis)) {
            add_candidate(c, i->out[0])->source = true;
            continue;
        }
        const unsigned mask = candidates_in(c, i);
        if (mask && !add_result(c, i, mask)) need_operands(c, i);
    }
    for (int k = 0; k < c->p->nfetches; k++) {
        const int at = c->number[c->p->fetch[k]->id];
        if (at >= 0) c->cut[at].needed = true;
    }
}

/* ---- moving ---- */

static value *make_partial(mtf_program *p, const value *v, int axis)
{
    value *partial = program_value(p, v->tensor, &v->shape);
    for (int d = 0; d < v->shape.rank; d++)
        partial->split[d] = v->split[d];
    partial->pending = v->pending | 1u << axis;
    partial->combine = COMBINE_SUM;
    return partial;
}

static bool reads_partial(const candidates *c, const cut_value *x, int j)
{
    if (FAULT(FAULT_SINK_PARTIAL) && x->in[j] >= 0 && c->partial[x->in[j]]) return true;
    return x->taken >> j & 1;
}

/* Candidate k becomes partial where the cut says so, and is reduced behind its instruction. */
static void move(candidates *c, int64_t k)
{
    const cut_value *x = &c->cut[k];
    value *whole = c->whole[k];
    instr *i = whole->def;
    if (x->source) {
        c->partial[k] = i->in[0];
        if (!x->reduced) program_remove(c->p, i);
        return;
    }
    for (int j = 0; j < x->nin; j++)
        if (reads_partial(c, x, j)) i->in[j] = c->partial[x->in[j]];
    if (!x->taken) return;
    i->out[0] = c->partial[k] = make_partial(c->p, whole, c->axis);
    if (!x->reduced) return;
    instr *sum = program_instr(c->p, i, INSTR_ALL_REDUCE, i->node, 1, 1);
    sum->in[0] = i->out[0];
    sum->out[0] = whole;
    sum->axes = (split){.n = 1, .axis = {(int8_t)c->axis}};
    sum->combine = COMBINE_SUM;
}

static void sink_over(mtf_program *p, int axis)
{
    const size_t room = (size_t)p->nvalues + 1;
    candidates c = {.p = p, .axis = axis, .mem = arena_new()};
    c.cut = mem_alloc(sizeof *c.cut * room);
    c.whole = mem_alloc(sizeof *c.whole * room);
    c.partial = mem_zalloc(sizeof *c.partial * room);
    c.number = mem_alloc(sizeof *c.number * room);
    collect(&c);
    cut_place((int)c.n, c.cut);
    for (int64_t k = 0; k < c.n; k++)
        move(&c, k);
    program_count(p);
    mem_free(c.cut);
    mem_free(c.whole);
    mem_free(c.partial);
    mem_free(c.number);
    arena_free(&c.mem);
}

void pass_sink(mtf_program *p)
{
    program_count(p);
    for (int axis = 0; axis < p->mesh->naxes; axis++)
        sink_over(p, axis);
}
