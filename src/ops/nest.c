/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nest.h"

void nest_add(nest *nst, const kernel_args *k, int dim, const kernel_view *const *views)
{
    nst->n[nst->rank] = k->dim[dim].local;
    for (int v = 0; v < nst->views; v++)
        nst->stride[v][nst->rank] = view_stride(views[v], dim);
    nst->rank++;
}

static void run(const nest *s, int level, int64_t *at, nest_fn *fn, void *ctx)
{
    int64_t inner[NEST_MAX_VIEWS] = {0};
    if (level + 1 >= s->rank) {
        const int64_t n = s->rank ? s->n[level] : 1;
        for (int v = 0; s->rank && v < s->views; v++)
            inner[v] = s->stride[v][level];
        if (n > 0) fn(ctx, n, at, inner);
        return;
    }
    for (int64_t i = 0; i < s->n[level]; i++) {
        run(s, level + 1, at, fn, ctx);
        for (int v = 0; v < s->views; v++)
            at[v] += s->stride[v][level];
    }
    for (int v = 0; v < s->views; v++)
        at[v] -= s->stride[v][level] * s->n[level];
}

void nest_run(const nest *nst, const int64_t *base, nest_fn *fn, void *ctx)
{
    int64_t at[NEST_MAX_VIEWS] = {0};
    for (int v = 0; v < nst->views; v++)
        at[v] = base ? base[v] : 0;
    run(nst, 0, at, fn, ctx);
}
