/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "spmd/lowering.h"

holding *holding_of(const lowering *l, const mtf_tensor *t)
{
    holding *h = NULL;
    if (t->node->id >= 0) h = l->of[l->first[t->node->id] + t->index];
    for (int64_t i = l->ndetached - 1; t->node->id < 0 && i >= 0 && !h; i--)
        if (l->detached[i]->tensor == t) h = l->detached[i];
    MTF_CHECK(h, "'%s' is used before it is partitioned", t->node->name);
    return h;
}

void holding_share(lowering *l, const mtf_node *n, int i, holding *h)
{
    if (n->id >= 0) {
        l->of[l->first[n->id] + i] = h;
        return;
    }
    mem_grow((void **)&l->detached, l->ndetached, &l->detached_cap, sizeof *l->detached);
    l->detached[l->ndetached++] = h;
}

holding *holding_new(lowering *l, const mtf_tensor *t)
{
    holding *h = arena_alloc(l->p->mem, sizeof *h);
    h->tensor = t;
    holding_share(l, t->node, t->index, h);
    return h;
}

void holding_add(holding *h, value *v)
{
    mem_grow((void **)&h->all, h->n, &h->cap, sizeof(value *));
    h->all[h->n++] = v;
}

placement home_placement(const lowering *l, const mtf_shape *s, bool *conflict)
{
    placement p = {.pending = 0};
    unsigned used = 0;
    *conflict = false;
    for (int d = 0; d < s->rank; d++) {
        const split wanted = layout_split(l->p->layout, s->dim[d].name);
        if (split_mask(wanted) & used) {
            *conflict = true;
            continue;
        }
        p.split[d] = wanted;
        used |= split_mask(wanted);
    }
    return p;
}

static void free_list(holding *h)
{
    if (!h) return;
    mem_free(h->all);
    h->all = NULL;
}

void lowering_free(lowering *l)
{
    for (int64_t i = 0; i < l->first[l->p->graph->nnodes]; i++)
        free_list(l->of[i]);
    for (int64_t i = 0; i < l->ndetached; i++)
        free_list(l->detached[i]);
    mem_free(l->detached);
    memo_free(&l->routes);
    memo_free(&l->plans);
}
