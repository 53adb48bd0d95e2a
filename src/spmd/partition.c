/* SPDX-License-Identifier: Apache-2.0
 * From graph to program: every node becomes local work, and the least communication that it needs
 * on its own. Passes improve on the whole afterwards. */
#include <string.h>

#include "base/check.h"
#include "spmd/lowering.h"

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

/* What rows with their own lowering may use. */

void lower_same(lowering *l, const mtf_node *n, int i, const mtf_tensor *t)
{
    holding_share(l, n, i, holding_of(l, t));
}

mtf_tensor *lower_node(lowering *l, const mtf_node *n, const op *row, int nin,
                       mtf_tensor *const *in, const void *attr)
{
    mtf_node *d = graph_detached(l->p->graph, l->p->mem, row, n, nin, in, attr);
    return lower_generic(l, d) ? &d->out[0] : NULL;
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

static value *source_value(lowering *l, const mtf_tensor *t, value_kind kind)
{
    bool conflict;
    const placement home = home_placement(l, &t->shape, &conflict);
    value *v = program_value(l->p, t, &t->shape);
    memcpy(v->split, home.split, sizeof v->split);
    v->kind = kind;
    holding *h = holding_new(l, t);
    h->home = v;
    holding_add(h, v);
    return v;
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
        value *v = source_value(l, &n->out[0], state ? VALUE_STATE : VALUE_FEED);
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
    value *next = emit_home(l, t->node, holding_of(l, t->node->in[0]));
    if (!next) return l->err->status;
    instr *i = program_instr(p, NULL, INSTR_ASSIGN, t->node, 1, 0);
    i->in[0] = next;
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
    for (int i = 0; i < r->nfetches; i++) {
        p->fetch[i] = emit_home(l, r->fetches[i]->node, holding_of(l, r->fetches[i]));
        if (!p->fetch[i]) return l->err->status;
    }
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

static mtf_status check_limit(const mtf_program *p, const mtf_request *r, mtf_err *err)
{
    if (r->max_value_bytes >= 0) return MTF_OK;
    return err_set(err, MTF_INVALID,
                   "program '%s': max_value_bytes is %lld; it must be at least 0 (0: no limit)",
                   p->name, (long long)r->max_value_bytes);
}

mtf_status partition(mtf_program *p, const mtf_request *r, mtf_err *err)
{
    TRY(check_request(p, r, err));
    TRY(check_limit(p, r, err));
    mtf_err local = {0};
    arena *mem = arena_new();
    const mtf_graph *g = p->graph;
    lowering l = {.p = p, .err = &local, .max_bytes = r->max_value_bytes};
    l.routes = memo_new();
    l.plans = memo_new();
    l.first = arena_alloc(mem, sizeof *l.first * (size_t)(g->nnodes + 1));
    for (int64_t i = 0; i < g->nnodes; i++)
        l.first[i + 1] = l.first[i] + g->node[i]->nout;
    l.of = arena_alloc(mem, sizeof *l.of * (size_t)(l.first[g->nnodes] + 1));
    l.needed = arena_alloc(mem, (size_t)g->nnodes + 1);
    mark_needed(&l, r);
    mtf_status s = declare_sources(&l);
    if (s == MTF_OK) s = lower_nodes(&l, r);
    if (s != MTF_OK) err_set(err, s, "%s", local.text);
    lowering_free(&l);
    arena_free(&mem);
    if (s == MTF_OK) program_count(p);
    return s;
}
