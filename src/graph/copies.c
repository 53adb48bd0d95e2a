/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/copies.h"

#include <string.h>

#include "graph/op.h"

/* A tensor outside of the range and what copies read in its place. */
typedef struct input {
    const mtf_tensor *of;
    mtf_tensor *source; /* the tensor itself, or what replaces it */
    mtf_tensor *here;   /* NULL until it is read */
} input;

struct copies {
    mtf_graph *g;
    int number;
    int64_t begin, end;
    mtf_node **copy; /* per node of the range, or NULL */
    input *input;
    int64_t ninputs, inputs_cap;
};

copies *copies_new(mtf_graph *g, int64_t begin, int64_t end)
{
    copies *c = mem_zalloc(sizeof *c);
    *c = (copies){.g = g, .number = ++g->ncopies, .begin = begin, .end = end};
    c->copy = mem_zalloc(sizeof *c->copy * (size_t)(end - begin + 1));
    return c;
}

void copies_free(copies **handle)
{
    copies *c = *handle;
    if (!c) return;
    mem_free(c->copy);
    mem_free(c->input);
    mem_free(c);
    *handle = NULL;
}

static input *input_of(copies *c, mtf_tensor *t)
{
    for (int64_t i = 0; i < c->ninputs; i++)
        if (c->input[i].of == t) return &c->input[i];
    mem_grow((void **)&c->input, c->ninputs, &c->inputs_cap, sizeof *c->input);
    c->input[c->ninputs] = (input){.of = t, .source = t};
    return &c->input[c->ninputs++];
}

void copies_replace(copies *c, mtf_tensor *t, mtf_tensor *other)
{
    input_of(c, t)->source = other;
}

/* Builds what `of` stands for under the names of its block, as part of this recomputation. */
static mtf_tensor *add(copies *c, const mtf_node *of, const op *row, mtf_tensor *const *in)
{
    mtf_graph *g = c->g;
    const char *scope = g->scope;
    const int copy = g->copy;
    const char *base = graph_base_name(of->name);
    g->copy = c->number;
    g->scope = arena_printf(g->mem, "%.*srecompute/", (int)(base - of->name), of->name);
    mtf_tensor *t =
        row ? graph_add(g, row, base, of->nin, in, of->attr) : graph_recompute_input(base, in[0]);
    g->scope = scope;
    g->copy = copy;
    return t;
}

mtf_tensor *copies_of(copies *c, mtf_tensor *t)
{
    const int64_t at = t->node->id - c->begin;
    if (at >= 0 && t->node->id < c->end && c->copy[at]) return &c->copy[at]->out[t->index];
    input *i = input_of(c, t);
    if (!i->here) i->here = add(c, t->node, NULL, &i->source);
    return i->here;
}

/* The user gives what a placeholder holds and a variable keeps it: there is nothing to repeat. */
static bool is_repeatable(const mtf_node *n)
{
    return !(n->op->traits & (TRAIT_STATE | TRAIT_FEED | TRAIT_ASSIGN));
}

void copies_make(copies *c)
{
    for (int64_t i = c->begin; i < c->end && c->g->err.status == MTF_OK; i++) {
        const mtf_node *n = c->g->node[i];
        if (!is_repeatable(n)) continue;
        mtf_tensor **in = mem_alloc(sizeof(mtf_tensor *) * (size_t)(n->nin + 1));
        for (int k = 0; k < n->nin; k++)
            in[k] = copies_of(c, n->in[k]);
        const mtf_tensor *t = add(c, n, n->op, in);
        if (t) c->copy[i - c->begin] = t->node;
        mem_free(in);
    }
}
