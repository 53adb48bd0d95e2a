/* SPDX-License-Identifier: Apache-2.0
 * From graph to program: every node becomes local work, and the least communication that it needs
 * on its own. Passes improve on the whole afterwards. Written once for all rows, by the roles of
 * their dims; no row is named here. */
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "spmd/program.h"

/* A gathered or sliced copy of a value, so that it is made once. */
typedef struct copy {
    const value *of;
    instr_kind kind;
    int dim;
    value *is;
} copy;

struct lowering {
    mtf_program *p;
    mtf_err *err;
    value **home;   /* per graph node and output: its value at home */
    int64_t *first; /* per graph node: where its outputs begin in `home` */
    struct {
        const mtf_tensor *tensor;
        value *value;
    } * detached; /* outputs of nodes made while lowering */
    int64_t ndetached, detached_cap;
    copy *copy;
    int64_t ncopies, copies_cap;
    bool *needed; /* per graph node */
};

/* ---- homes ---- */

static mtf_status refuse_shared_axis(lowering *l, const mtf_node *n, mtf_dim a, mtf_dim b, int axis)
{
    return err_set(
        l->err, MTF_INVALID,
        "%s '%s': dims %s=%lld and %s=%lld are both split over mesh axis '%s'; map one of "
        "them elsewhere in the layout",
        n->op->name, n->name, a.name, (long long)a.size, b.name, (long long)b.size,
        l->p->mesh->name[axis]);
}

static mtf_status check_home(lowering *l, const mtf_tensor *t)
{
    for (int i = 0; i < t->shape.rank; i++)
        for (int j = 0; j < i; j++) {
            const mtf_dim a = t->shape.dim[j], b = t->shape.dim[i];
            const unsigned both = split_mask(layout_split(l->p->layout, a.name)) &
                                  split_mask(layout_split(l->p->layout, b.name));
            if (both) return refuse_shared_axis(l, t->node, a, b, __builtin_ctz(both));
        }
    return MTF_OK;
}

static value *home_value(lowering *l, const mtf_tensor *t)
{
    value *v = program_value(l->p, t, &t->shape);
    for (int i = 0; i < v->shape.rank; i++)
        v->split[i] = layout_split(l->p->layout, v->shape.dim[i].name);
    return v;
}

static value *lookup(lowering *l, const mtf_tensor *t)
{
    if (t->node->id >= 0) return l->home[l->first[t->node->id] + t->index];
    for (int64_t i = l->ndetached - 1; i >= 0; i--)
        if (l->detached[i].tensor == t) return l->detached[i].value;
    return NULL;
}

static void define(lowering *l, const mtf_tensor *t, value *v)
{
    if (t->node->id >= 0) {
        l->home[l->first[t->node->id] + t->index] = v;
        return;
    }
    mem_grow((void **)&l->detached, l->ndetached, &l->detached_cap, sizeof *l->detached);
    l->detached[l->ndetached].tensor = t;
    l->detached[l->ndetached++].value = v;
}

/* ---- moving data ---- */

static value *known_copy(const lowering *l, const value *of, instr_kind kind, int dim)
{
    for (int64_t i = l->ncopies - 1; i >= 0; i--)
        if (l->copy[i].of == of && l->copy[i].kind == kind &&
            (l->copy[i].dim == dim || FAULT(FAULT_COPY_SHARED)))
            return l->copy[i].is;
    return NULL;
}

static value *emit_move(lowering *l, const mtf_node *n, value *v, instr_kind kind, int dim,
                        split axes)
{
    value *out = known_copy(l, v, kind, dim);
    if (out) return out;
    out = program_value(l->p, v->tensor, &v->shape);
    memcpy(out->split, v->split, sizeof out->split);
    out->split[dim] = kind == INSTR_SLICE ? axes : (split){0};
    instr *i = program_instr(l->p, NULL, kind, n, 1, 1);
    i->in[0] = v;
    i->out[0] = out;
    i->axes = axes;
    i->dim = dim;
    mem_grow((void **)&l->copy, l->ncopies, &l->copies_cap, sizeof *l->copy);
    l->copy[l->ncopies++] = (copy){.of = v, .kind = kind, .dim = dim, .is = out};
    return out;
}

static value *emit_gather(lowering *l, const mtf_node *n, value *v, int dim)
{
    return v->split[dim].n ? emit_move(l, n, v, INSTR_ALL_GATHER, dim, v->split[dim]) : v;
}

static value *emit_slice(lowering *l, const mtf_node *n, value *v, int dim, split axes)
{
    return axes.n ? emit_move(l, n, v, INSTR_SLICE, dim, axes) : v;
}

/* One call per axis, minor-most first: the canonical order of sums. */
static value *emit_reduce(lowering *l, const mtf_node *n, value *v)
{
    for (int a = l->p->mesh->naxes - 1; a >= 0; a--) {
        if (!(v->pending >> a & 1)) continue;
        value *out = program_value(l->p, v->tensor, &v->shape);
        memcpy(out->split, v->split, sizeof out->split);
        out->pending = v->pending & ~(1u << a);
        out->combine = v->combine;
        instr *i = program_instr(l->p, NULL, INSTR_ALL_REDUCE, n, 1, 1);
        i->in[0] = v;
        i->out[0] = out;
        i->axes = (split){.n = 1, .axis = {(int8_t)a}};
        i->combine = v->combine;
        v = out;
    }
    return v;
}

/* ---- the generic partitioner ---- */

typedef struct space {
    int n;
    mtf_dim dim[KERNEL_MAX_SPACE];
    role role[KERNEL_MAX_SPACE];
    split split[KERNEL_MAX_SPACE]; /* in the local work */
} space;

/* Elements that a processor receives when dim `d` of the node's operands is gathered. */
static double gather_cost(lowering *l, const mtf_node *n, const char *d)
{
    double cost = 0;
    for (int k = 0; k < n->nin; k++) {
        const int at = shape_find(&n->in[k]->shape, d);
        if (at < 0) continue;
        const value *v = lookup(l, n->in[k]);
        cost += (double)value_bound(l->p, v) * (double)(split_parts(l->p->mesh, v->split[at]) - 1);
    }
    return cost;
}

/* Elements that a processor receives because the results are partial over the axes of dim `i`, when
 * dim `whole` is whole: they are reduced to parts of it. */
static double reduce_cost(lowering *l, const mtf_node *n, const space *s, int i, int whole)
{
    if (s->role[i] == ROLE_MAP || s->role[i] == ROLE_WHOLE) return 0;
    double cost = 0;
    for (int o = 0; o < n->nout; o++) {
        const mtf_shape *shape = &n->out[o].shape;
        double elements = 1;
        for (int d = 0; d < shape->rank; d++) {
            const bool is_whole = shape->dim[d].name == s->dim[whole].name;
            elements *=
                is_whole ? (double)shape->dim[d].size : (double)lower_local(l, &shape->dim[d]);
        }
        const double parts = (double)split_parts(l->p->mesh, s->split[i]);
        cost += elements * (parts - 1) / parts;
    }
    return cost;
}

static double whole_cost(lowering *l, const mtf_node *n, const space *s, int whole, int other)
{
    return gather_cost(l, n, s->dim[whole].name) + reduce_cost(l, n, s, other, whole);
}

/* Two dims of the operation that share an axis: one of them becomes WHOLE, the one with which less
 * moves, gathers before and reductions after; ties to the first. No tensor has both (check_home).
 */
static void resolve_shared_axes(lowering *l, const mtf_node *n, space *s)
{
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < i; j++) {
            if (!(split_mask(s->split[i]) & split_mask(s->split[j]))) continue;
            const bool first = whole_cost(l, n, s, j, i) <= whole_cost(l, n, s, i, j);
            const int whole = first ? j : i;
            s->role[whole] = ROLE_WHOLE;
            s->split[whole] = (split){0};
        }
}

static space describe(lowering *l, const mtf_node *n)
{
    space s = {.n = 0};
    s.n = op_space(n, s.dim);
    for (int i = 0; i < s.n; i++) {
        s.role[i] = op_role(n, s.dim[i].name);
        if (s.role[i] != ROLE_WHOLE) s.split[i] = layout_split(l->p->layout, s.dim[i].name);
    }
    resolve_shared_axes(l, n, &s);
    return s;
}

static int space_find(const space *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (s->dim[i].name == name) return i;
    return -1;
}

static split wanted(const space *s, const value *v, int dim)
{
    return s->split[space_find(s, v->shape.dim[dim].name)];
}

/* The operand with every dim that the local work wants whole gathered. A dim that it wants cut may
 * be whole only in the result of a detached node. */
static value *operand(lowering *l, const mtf_node *n, const space *s, int k)
{
    value *v = lookup(l, n->in[k]);
    MTF_CHECK(v, "operand %d of '%s' was not partitioned", k, n->name);
    for (int i = 0; i < v->shape.rank; i++)
        if (!wanted(s, v, i).n) v = emit_gather(l, n, v, i);
    for (int i = 0; i < v->shape.rank; i++)
        if (!v->split[i].n) v = emit_slice(l, n, v, i, wanted(s, v, i));
    return v;
}

static unsigned axes_in_use(const value *v)
{
    unsigned mask = 0;
    for (int i = 0; i < v->shape.rank; i++)
        mask |= split_mask(v->split[i]);
    return mask;
}

/* Cuts every whole dim as the layout asks; where another dim has the axes (in the result of a
 * detached node), it stays whole. */
static value *bring_home(lowering *l, const mtf_node *n, value *v)
{
    for (int i = 0; i < v->shape.rank; i++) {
        const split home = layout_split(l->p->layout, v->shape.dim[i].name);
        if (!v->split[i].n && !(split_mask(home) & axes_in_use(v)))
            v = emit_slice(l, n, v, i, home);
    }
    return v;
}

/* Axes over which the result is partial, and how its parts combine. */
static unsigned pending_axes(const space *s, int naxes, combine *how)
{
    static const combine by_role[] = {
        [ROLE_SUM] = COMBINE_SUM, [ROLE_MAX] = COMBINE_MAX, [ROLE_MIN] = COMBINE_MIN};
    unsigned mask = 0, used = 0;
    for (int i = 0; i < s->n; i++)
        used |= split_mask(s->split[i]);
    for (int i = 0; i < s->n; i++) {
        if (FAULT(FAULT_NORM_REPLICAS) && s->role[i] == ROLE_SUM)
            mask |= ((1u << naxes) - 1) & ~used; /* replicas are added as if they were parts */
        if (s->role[i] == ROLE_MAP || s->role[i] == ROLE_WHOLE || !s->split[i].n) continue;
        mask |= split_mask(s->split[i]);
        *how = by_role[s->role[i]];
    }
    return mask;
}

static void emit_compute(lowering *l, const mtf_node *n, const space *s)
{
    value *in[KERNEL_MAX_IN];
    for (int k = 0; k < n->nin; k++)
        in[k] = operand(l, n, s, k);
    instr *c = program_instr(l->p, NULL, n->op->traits & TRAIT_VIEW ? INSTR_VIEW : INSTR_COMPUTE, n,
                             n->nin, n->nout);
    c->op = n->op;
    c->attr = n->attr;
    for (int k = 0; k < n->nin; k++)
        c->in[k] = in[k];
    c->nspace = s->n;
    c->space = arena_alloc(l->p->mem, sizeof *c->space * (size_t)(s->n ? s->n : 1));
    for (int i = 0; i < s->n; i++)
        c->space[i] = (space_dim){s->dim[i], s->split[i]};
    for (int o = 0; o < n->nout; o++) {
        const mtf_shape *shape = &n->out[o].shape;
        value *v = program_value(l->p, &n->out[o], shape);
        for (int i = 0; i < shape->rank; i++)
            v->split[i] = s->split[space_find(s, shape->dim[i].name)];
        v->pending = pending_axes(s, l->p->mesh->naxes, &v->combine);
        c->out[o] = v;
    }
    for (int o = 0; o < n->nout; o++)
        define(l, &n->out[o], bring_home(l, n, emit_reduce(l, n, c->out[o])));
}

bool lower_generic(lowering *l, mtf_node *n)
{
    const space s = describe(l, n);
    emit_compute(l, n, &s);
    return true;
}

/* ---- what rows with their own lowering may use ---- */

lowered lower_value(lowering *l, const mtf_tensor *t)
{
    return lookup(l, t)->id;
}

lowered lower_input(lowering *l, const mtf_node *n, int k)
{
    return lookup(l, n->in[k])->id;
}

lowered lower_gather(lowering *l, lowered v, int pos)
{
    value *x = l->p->value[v];
    return emit_gather(l, x->tensor->node, x, pos)->id;
}

lowered lower_slice(lowering *l, lowered v, int pos, const char *as)
{
    value *x = l->p->value[v];
    MTF_CHECK(!x->split[pos].n, "a slice of dim %s, which is cut", x->shape.dim[pos].name);
    return emit_slice(l, x->tensor->node, x, pos, layout_split(l->p->layout, as))->id;
}

bool lower_is_split(lowering *l, lowered v, int pos)
{
    return l->p->value[v]->split[pos].n > 0;
}

bool lower_splits(lowering *l, const char *name)
{
    return layout_split(l->p->layout, name).n > 0;
}

bool lower_same_split(lowering *l, const char *a, const char *b)
{
    return split_equal(layout_split(l->p->layout, a), layout_split(l->p->layout, b));
}

lowered lower_view(lowering *l, const mtf_node *n, lowered v, const mtf_shape *shape,
                   const int *from)
{
    const value *x = l->p->value[v];
    value *out = program_value(l->p, &n->out[0], shape);
    for (int i = 0; i < shape->rank; i++)
        if (from[i] >= 0) out->split[i] = x->split[from[i]];
    instr *i = program_instr(l->p, NULL, INSTR_VIEW, n, 1, 1);
    i->op = n->op;
    i->attr = n->attr;
    i->in[0] = l->p->value[v];
    i->out[0] = out;
    return out->id;
}

/* The axes over which anything moves: those that the two layouts use. */
static split axes_of_exchange(const mtf_mesh *m, const value *from, const value *to)
{
    unsigned used = 0;
    split axes = {0};
    for (int d = 0; d < from->shape.rank; d++)
        used |= split_mask(from->split[d]);
    for (int d = 0; d < to->shape.rank; d++)
        used |= split_mask(to->split[d]);
    for (int a = 0; a < m->naxes; a++)
        if (used >> a & 1) axes.axis[axes.n++] = (int8_t)a;
    return axes;
}

lowered lower_exchange(lowering *l, const mtf_node *n, lowered v)
{
    value *out = home_value(l, &n->out[0]);
    instr *i = program_instr(l->p, NULL, INSTR_EXCHANGE, n, 1, 1);
    i->in[0] = l->p->value[v];
    i->out[0] = out;
    i->axes = axes_of_exchange(l->p->mesh, i->in[0], out);
    return out->id;
}

mtf_tensor *lower_node(lowering *l, const mtf_node *n, const op *row, int nin,
                       mtf_tensor *const *in, const void *attr)
{
    mtf_node *d = graph_detached(l->p->graph, l->p->mem, row, n, nin, in, attr);
    lower_generic(l, d);
    return &d->out[0];
}

int64_t lower_local(lowering *l, const mtf_dim *d)
{
    return block_bound(d->size, split_parts(l->p->mesh, layout_split(l->p->layout, d->name)));
}

void lower_fail(lowering *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(l->err, MTF_INVALID, fmt, ap);
    va_end(ap);
}

void lower_output(lowering *l, const mtf_node *n, int i, lowered v)
{
    if (v >= 0) define(l, &n->out[i], l->p->value[v]);
}

/* ---- the program ---- */

static void mark_needed(lowering *l, const mtf_request *r)
{
    for (int i = 0; i < r->nfetches; i++)
        l->needed[r->fetches[i]->node->id] = true;
    for (int i = 0; i < r->nupdates; i++)
        l->needed[r->updates[i]->node->id] = true;
    for (int64_t i = l->p->graph->nnodes - 1; i >= 0; i--)
        for (int k = 0; l->needed[i] && k < l->p->graph->node[i]->nin; k++)
            l->needed[l->p->graph->node[i]->in[k]->node->id] = true;
}

static int state_of(const mtf_program *p, const mtf_node *variable)
{
    for (int i = 0; i < p->nstates; i++)
        if (p->state[i].node == variable) return i;
    MTF_CHECK(false, "'%s' is no variable of this graph", variable->name);
    return -1;
}

/* All variables and all needed placeholders; their values are there before the first instruction.
 */
static mtf_status declare_sources(lowering *l)
{
    mtf_program *p = l->p;
    const mtf_graph *g = p->graph;
    p->state = arena_alloc(p->mem, sizeof *p->state * (size_t)(g->nnodes + 1));
    p->feed = arena_alloc(p->mem, sizeof *p->feed * (size_t)(g->nnodes + 1));
    for (int64_t i = 0; i < g->nnodes; i++) {
        const mtf_node *n = g->node[i];
        const bool state = n->op->traits & TRAIT_STATE, feed = n->op->traits & TRAIT_FEED;
        if (!state && !(feed && l->needed[i])) continue;
        TRY(check_home(l, &n->out[0]));
        value *v = home_value(l, &n->out[0]);
        v->kind = state ? VALUE_STATE : VALUE_FEED;
        define(l, &n->out[0], v);
        if (state) {
            v->state = p->nstates;
            p->state[p->nstates++] = (state_slot){.node = n, .value = v};
        } else {
            p->feed[p->nfeeds++] = v;
        }
    }
    return MTF_OK;
}

static mtf_status emit_assign(lowering *l, const mtf_tensor *t)
{
    mtf_program *p = l->p;
    const mtf_node *variable = graph_assigned_variable(t->node);
    const int state = state_of(p, variable);
    if (p->state[state].assigned)
        return err_set(l->err, MTF_INVALID,
                       "program '%s': variable '%s' is assigned twice; keep one assignment",
                       p->name, variable->name);
    p->state[state].assigned = true;
    instr *i = program_instr(p, NULL, INSTR_ASSIGN, t->node, 1, 0);
    i->in[0] = lookup(l, t->node->in[0]);
    i->state = state;
    return MTF_OK;
}

static mtf_status lower_nodes(lowering *l, const mtf_request *r)
{
    mtf_program *p = l->p;
    for (int64_t i = 0; i < p->graph->nnodes; i++) {
        mtf_node *n = p->graph->node[i];
        if (!l->needed[i] || (n->op->traits & (TRAIT_STATE | TRAIT_FEED | TRAIT_ASSIGN))) continue;
        for (int o = 0; o < n->nout; o++)
            TRY(check_home(l, &n->out[o]));
        if (!(n->op->lower ? n->op->lower(l, n) : lower_generic(l, n))) return l->err->status;
    }
    for (int i = 0; i < r->nupdates; i++)
        TRY(emit_assign(l, r->updates[i]));
    p->nfetches = r->nfetches;
    p->fetch = arena_alloc(p->mem, sizeof *p->fetch * (size_t)(r->nfetches + 1));
    for (int i = 0; i < r->nfetches; i++)
        p->fetch[i] = lookup(l, r->fetches[i]);
    return MTF_OK;
}

static mtf_status check_request(const mtf_program *p, const mtf_request *r, mtf_err *err)
{
    for (int i = 0; i < r->nfetches; i++) {
        const mtf_tensor *t = r->fetches[i];
        if (!t || t->node->graph != p->graph || (t->node->op->traits & TRAIT_ASSIGN))
            return err_set(err, MTF_INVALID,
                           "program '%s': fetch %d ('%s') is no value of the graph", p->name, i,
                           t ? t->node->name : "NULL");
    }
    for (int i = 0; i < r->nupdates; i++) {
        const mtf_tensor *t = r->updates[i];
        if (!t || t->node->graph != p->graph || !(t->node->op->traits & TRAIT_ASSIGN))
            return err_set(err, MTF_INVALID,
                           "program '%s': update %d ('%s') is no result of mtf_assign on the graph",
                           p->name, i, t ? t->node->name : "NULL");
    }
    return MTF_OK;
}

mtf_status partition(mtf_program *p, const mtf_request *r, mtf_err *err)
{
    TRY(check_request(p, r, err));
    mtf_err local = {0};
    lowering l = {.p = p, .err = &local};
    arena *mem = arena_new();
    const mtf_graph *g = p->graph;
    l.first = arena_alloc(mem, sizeof *l.first * (size_t)(g->nnodes + 1));
    for (int64_t i = 0; i < g->nnodes; i++)
        l.first[i + 1] = l.first[i] + g->node[i]->nout;
    l.home = arena_alloc(mem, sizeof *l.home * (size_t)(l.first[g->nnodes] + 1));
    l.needed = arena_alloc(mem, (size_t)g->nnodes + 1);
    mark_needed(&l, r);
    mtf_status s = declare_sources(&l);
    if (s == MTF_OK) s = lower_nodes(&l, r);
    if (s != MTF_OK) err_set(err, s, "%s", local.text);
    arena_free(&mem);
    mem_free(l.detached);
    mem_free(l.copy);
    program_count(p);
    return s;
}
