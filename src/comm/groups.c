/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/groups.h"

#include "base/check.h"

enum { MAX_PROCESSORS = 1 << 24 };

int mesh_processors(const comm_mesh *m)
{
    if (m->naxes < 0 || m->naxes > COMM_MAX_AXES) return 0;
    int64_t n = 1;
    for (int a = 0; a < m->naxes; a++) {
        if (m->size[a] < 1 || m->size[a] > MAX_PROCESSORS) return 0;
        n *= m->size[a];
        if (n > MAX_PROCESSORS) return 0;
    }
    return (int)n;
}

groups groups_over(const comm_mesh *m, comm_axes axes)
{
    int stride[COMM_MAX_AXES] = {0};
    bool wanted[COMM_MAX_AXES] = {false};
    for (int a = m->naxes - 1, s = 1; a >= 0; a--) {
        stride[a] = s;
        s *= (int)m->size[a];
    }
    groups g = {.n = 0, .members = 1};
    MTF_CHECK(axes.n >= 0 && axes.n <= m->naxes, "%d axes of a mesh of %d", axes.n, m->naxes);
    for (int i = 0; i < axes.n; i++) {
        const int a = axes.axis[i];
        MTF_CHECK(a >= 0 && a < m->naxes && !wanted[a], "axis %d of a mesh of %d", a, m->naxes);
        wanted[a] = true;
        if (m->size[a] == 1) continue;
        g.listed[g.n].size = (int)m->size[a];
        g.listed[g.n++].stride = stride[a];
        g.members *= (int)m->size[a];
    }
    for (int a = 0, k = 0; a < m->naxes; a++) {
        if (!wanted[a] || m->size[a] == 1) continue;
        g.sorted[k].size = (int)m->size[a];
        g.sorted[k++].stride = stride[a];
    }
    return g;
}

int group_base(const groups *g, int proc)
{
    int base = proc;
    for (int k = 0; k < g->n; k++)
        base -= proc / g->sorted[k].stride % g->sorted[k].size * g->sorted[k].stride;
    return base;
}

int group_index(const groups *g, int proc)
{
    int index = 0;
    for (int k = 0; k < g->n; k++)
        index = index * g->listed[k].size + proc / g->listed[k].stride % g->listed[k].size;
    return index;
}

int group_leaf(const groups *g, int proc)
{
    int leaf = 0;
    for (int k = 0; k < g->n; k++)
        leaf = leaf * g->sorted[k].size + proc / g->sorted[k].stride % g->sorted[k].size;
    return leaf;
}

int group_at_index(const groups *g, int base, int index)
{
    for (int k = g->n - 1; k >= 0; k--) {
        base += index % g->listed[k].size * g->listed[k].stride;
        index /= g->listed[k].size;
    }
    return base;
}

int group_at_leaf(const groups *g, int base, int leaf)
{
    for (int k = g->n - 1; k >= 0; k--) {
        base += leaf % g->sorted[k].size * g->sorted[k].stride;
        leaf /= g->sorted[k].size;
    }
    return base;
}

int64_t block_begin(int64_t i, int64_t n, int64_t parts)
{
    return i * (n / parts) + i * (n % parts) / parts;
}
