/* SPDX-License-Identifier: Apache-2.0
 * Instructions for routes and for planned nodes. Written once for all rows, by the roles of their
 * dims; no row is named here. */
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "spmd/lowering.h"

/* ---- routes ---- */

value *value_at(lowering *l, const mtf_tensor *t, const mtf_shape *shape, const placement *at,
                combine how)
{
    value *v = program_value(l->p, t, shape);
    memcpy(v->split, at->split, sizeof v->split);
    v->pending = at->pending;
    v->combine = how;
    return v;
}

/* A copy that was made before. */
static value *held_at(const holding *h, const placement *at)
{
    for (int64_t i = 0; i < h->n; i++) {
        const placement p = placement_of(h->all[i]);
        if (placement_equal(&p, at)) return h->all[i];
        if (FAULT(FAULT_COPY_SHARED) && h->all[i] != h->home && p.pending == at->pending)
            return h->all[i];
    }
    return NULL;
}

static value *emit_move(lowering *l, const mtf_node *n, holding *to, value *v, const move *m)
{
    const mtf_shape *shape = m->reshapes ? &to->tensor->shape : &v->shape;
    value *out = held_at(to, &m->to);
    if (out) return out;
    out = value_at(l, to->tensor, shape, &m->to, v->combine);
    instr *i = program_instr(l->p, NULL, m->kind, n, 1, 1);
    i->in[0] = v;
    i->out[0] = out;
    i->axes = m->axes;
    i->dim = m->dim;
    i->to_dim = m->to_dim;
    i->combine = v->combine;
    if (m->kind == INSTR_VIEW) {
        i->op = n->op;
        i->attr = n->attr;
    }
    holding_add(to, out);
    return out;
}

value *emit_route(lowering *l, const mtf_node *n, holding *from, value *v, holding *to,
                  const route *r)
{
    for (int i = 0; i < r->n; i++) {
        if (r->move[i].reshapes) from = to;
        v = emit_move(l, n, from, v, &r->move[i]);
    }
    return v;
}

static reshard_task way_between(const lowering *l, const mtf_tensor *from, const mtf_tensor *to)
{
    return (reshard_task){.mesh = l->p->mesh,
                          .from_shape = &from->shape,
                          .to_shape = from == to ? &from->shape : &to->shape,
                          .element = mtf_dtype_size(from->dtype),
                          .max_bytes = l->max_bytes,
                          .known = l->routes};
}

value *emit_to(lowering *l, const mtf_node *n, holding *h, value *v, const placement *at)
{
    route r;
    reshard_task way = way_between(l, h->tensor, h->tensor);
    way.from = placement_of(v);
    way.to = *at;
    MTF_CHECK(reshard_route(&way, &r), "a planned route of '%s' is gone", h->tensor->node->name);
    return emit_route(l, n, h, v, h, &r);
}

/* The cheapest route from any value that `from` holds. */
static bool best_route(reshard_task *way, const holding *from, value **v, route *best)
{
    bool found = false;
    for (int64_t i = 0; i < from->n; i++) {
        route r;
        way->from = placement_of(from->all[i]);
        if (!reshard_route(way, &r) || (found && !price_less(r.price, best->price))) continue;
        found = true;
        *v = from->all[i];
        *best = r;
    }
    return found;
}

void limit_exceeded(lowering *l, const mtf_node *n, const mtf_tensor *t, const placement *at)
{
    lower_fail(l,
               "%s '%s': '%s' would have %lld bytes on one processor, more than the limit of %lld "
               "bytes for one value; raise the limit or split another of its dims",
               n->op->name, n->name, t->node->name,
               (long long)placement_bytes(l->p->mesh, &t->shape, mtf_dtype_size(t->dtype), at),
               (long long)l->max_bytes);
}

value *emit_home(lowering *l, const mtf_node *n, holding *h)
{
    if (h->home) return h->home;
    bool conflict;
    route r;
    value *v = NULL;
    reshard_task way = way_between(l, h->tensor, h->tensor);
    way.to = home_placement(l, &h->tensor->shape, &conflict);
    if (!best_route(&way, h, &v, &r)) {
        limit_exceeded(l, n, h->tensor, &way.to);
        return NULL;
    }
    h->home = emit_route(l, n, h, v, h, &r);
    return h->home;
}

/* ---- the same elements under another shape ---- */

bool lower_reshape(lowering *l, mtf_node *n)
{
    bool conflict;
    route r;
    value *v = NULL;
    holding *from = holding_of(l, n->in[0]), *to = holding_new(l, &n->out[0]);
    reshard_task way = way_between(l, n->in[0], &n->out[0]);
    way.to = home_placement(l, &n->out[0].shape, &conflict);
    if (best_route(&way, from, &v, &r)) {
        to->home = emit_route(l, n, from, v, to, &r);
        return true;
    }
    way.anywhere = true; /* it stays where it is until somebody needs it */
    if (best_route(&way, from, &v, &r)) {
        emit_route(l, n, from, v, to, &r);
        return true;
    }
    limit_exceeded(l, n, &n->out[0], &way.to);
    return false;
}

/* ---- planned nodes ---- */

/* `scratch` has room for the placements of all values that hold the operands. */
static node_task task_of(const lowering *l, const mtf_node *n, placement *scratch)
{
    node_task t = {.mesh = l->p->mesh, .node = n, .max_bytes = l->max_bytes, .known = l->routes};
    t.n = op_space(n, t.dim);
    for (int d = 0; d < t.n; d++) {
        t.role[d] = op_role(n, t.dim[d].name);
        t.home[d] = layout_split(l->p->layout, t.dim[d].name);
    }
    for (int k = 0; k < n->nin; k++) {
        const holding *h = holding_of(l, n->in[k]);
        t.in[k] = scratch;
        t.available[k] = (int)h->n;
        for (int64_t i = 0; i < h->n; i++)
            *scratch++ = placement_of(h->all[i]);
    }
    for (int o = 0; o < n->nout; o++)
        t.out[o] = home_placement(l, &n->out[o].shape, &t.anywhere[o]);
    return t;
}

instr *emit_work(lowering *l, const mtf_node *n, const node_task *t, const node_plan *plan)
{
    const bool view = n->op->traits & TRAIT_VIEW;
    instr *c = program_instr(l->p, NULL, view ? INSTR_VIEW : INSTR_COMPUTE, n, n->nin, n->nout);
    c->op = n->op;
    c->attr = n->attr;
    c->nspace = t->n;
    c->space = arena_alloc(l->p->mem, sizeof *c->space * (size_t)(t->n ? t->n : 1));
    for (int d = 0; d < t->n; d++)
        c->space[d] = (space_dim){t->dim[d], plan->split[d]};
    return c;
}

combine combine_of(const node_task *t, const node_plan *plan)
{
    static const combine by_role[] = {
        [ROLE_SUM] = COMBINE_SUM, [ROLE_MAX] = COMBINE_MAX, [ROLE_MIN] = COMBINE_MIN};
    combine how = COMBINE_SUM;
    for (int d = 0; d < t->n; d++)
        if (t->role[d] != ROLE_MAP && t->role[d] != ROLE_WHOLE && plan->split[d].n)
            how = by_role[t->role[d]];
    return how;
}

static void emit_whole(lowering *l, const mtf_node *n, const node_task *t, const node_plan *plan,
                       value **out)
{
    value *in[KERNEL_MAX_IN];
    for (int k = 0; k < n->nin; k++) {
        const placement at = plan_operand(t, plan, k);
        holding *h = holding_of(l, n->in[k]);
        in[k] = emit_to(l, n, h, h->all[plan->source[k]], &at);
    }
    instr *c = emit_work(l, n, t, plan);
    memcpy(c->in, in, sizeof *in * (size_t)n->nin);
    for (int o = 0; o < n->nout; o++) {
        const placement at = plan_result(t, plan, o);
        c->out[o] = out[o] = value_at(l, &n->out[o], &n->out[o].shape, &at, combine_of(t, plan));
    }
}

/* The results go where they are wanted, or stay as they are. */
static void settle(lowering *l, const mtf_node *n, const node_task *t, value *const *out)
{
    for (int o = 0; o < n->nout; o++) {
        holding *h = holding_new(l, &n->out[o]);
        holding_add(h, out[o]);
        placement at = t->anywhere[o] ? placement_of(out[o]) : t->out[o];
        at.pending = 0;
        value *v = emit_to(l, n, h, out[o], &at);
        if (!t->anywhere[o]) h->home = v;
    }
}

bool lower_generic(lowering *l, mtf_node *n)
{
    int64_t held = 0;
    for (int k = 0; k < n->nin; k++)
        held += holding_of(l, n->in[k])->n;
    placement *scratch = mem_alloc(sizeof *scratch * (size_t)(held + 1));
    node_task t = task_of(l, n, scratch);
    node_plan plan;
    value *out[KERNEL_MAX_OUT];
    const bool possible = plan_known(l, &t, &plan);
    if (possible) {
        if (plan.chunks > 1)
            out[0] = emit_chunks(l, n, &t, &plan);
        else
            emit_whole(l, n, &t, &plan, out);
        settle(l, n, &t, out);
    }
    mem_free(scratch);
    return possible;
}
