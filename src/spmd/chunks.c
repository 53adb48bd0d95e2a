/* SPDX-License-Identifier: Apache-2.0
 * A product whose operands may not be gathered whole: part after part of a reduced dim is fetched
 * and multiplied, and the results are added. Unrolled and double-buffered: the operands of the next
 * part are fetched before this one is multiplied, so that two parts are there at a time. */
#include <string.h>

#include "base/fault.h"
#include "spmd/lowering.h"

typedef struct product {
    lowering *l;
    const mtf_node *n;
    const node_task *t;
    const node_plan *plan;
    mtf_dim dim;   /* the reduced dim */
    mtf_node *sum; /* adds two results */
} product;

static int64_t part_start(const product *c, int64_t part)
{
    return block_start(c->dim.size, c->plan->chunks, part);
}

/* Operand k: its part, where it has the dim. */
static value *fetch(const product *c, int64_t part, int k)
{
    holding *h = holding_of(c->l, c->n->in[k]);
    value *from = h->all[c->plan->source[k]];
    const placement at = plan_operand(c->t, c->plan, k);
    const int d = shape_find(&from->shape, c->dim.name);
    if (d < 0) return emit_to(c->l, c->n, h, from, &at);
    mtf_shape shape = from->shape;
    shape.dim[d].size = part_start(c, part + 1) - part_start(c, part);
    instr *i = program_instr(c->l->p, NULL, INSTR_WINDOW, c->n, 1, 1);
    i->in[0] = from;
    i->out[0] = value_at(c->l, from->tensor, &shape, &at, COMBINE_SUM);
    i->dim = d;
    i->start = part_start(c, part);
    const placement was = placement_of(from);
    if (!placement_equal(&was, &at)) i->axes = placement_axes_between(c->l->p->mesh, &was, &at);
    return i->out[0];
}

static void fetch_all(const product *c, int64_t part, value **in)
{
    for (int k = 0; k < c->n->nin; k++)
        in[k] = fetch(c, part, k);
}

static value *multiply(const product *c, int64_t part, value *const *in)
{
    const placement at = plan_result(c->t, c->plan, 0);
    instr *i = emit_work(c->l, c->n, c->t, c->plan);
    i->space[c->plan->chunk_dim].dim.size = part_start(c, part + 1) - part_start(c, part);
    memcpy(i->in, in, sizeof *i->in * (size_t)c->n->nin);
    i->out[0] = value_at(c->l, &c->n->out[0], &c->n->out[0].shape, &at, combine_of(c->t, c->plan));
    return i->out[0];
}

static value *add(const product *c, value *a, value *b)
{
    const placement at = placement_of(a);
    instr *i = program_instr(c->l->p, NULL, INSTR_COMPUTE, c->sum, 2, 1);
    i->op = c->sum->op;
    i->attr = c->sum->attr;
    i->nspace = a->shape.rank;
    i->space = arena_alloc(c->l->p->mem, sizeof *i->space * (size_t)(i->nspace + 1));
    for (int d = 0; d < i->nspace; d++)
        i->space[d] = (space_dim){a->shape.dim[d], a->split[d]};
    i->in[0] = a;
    i->in[1] = b;
    i->out[0] = value_at(c->l, &c->sum->out[0], &a->shape, &at, a->combine);
    return i->out[0];
}

value *emit_chunks(lowering *l, const mtf_node *n, const node_task *t, const node_plan *plan)
{
    mtf_tensor *const both[] = {&n->out[0], &n->out[0]};
    product c = {.l = l, .n = n, .t = t, .plan = plan, .dim = t->dim[plan->chunk_dim]};
    c.sum = graph_detached(l->p->graph, l->p->mem, n->op->accumulate, n, 2, both, NULL);
    value *in[2][KERNEL_MAX_IN], *total = NULL;
    fetch_all(&c, 0, in[0]);
    for (int64_t part = 0; part < plan->chunks; part++) {
        if (part + 1 < plan->chunks) fetch_all(&c, part + 1, in[(part + 1) % 2]);
        value *one = multiply(&c, part, in[part % 2]);
        if (total && FAULT(FAULT_CHUNK_LOST)) continue;
        total = total ? add(&c, total, one) : one;
    }
    return total;
}
