/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "mesh/pieces.h"

static mtf_status read_axis(mtf_mesh *m, const piece *p, const char *text, mtf_err *err)
{
    if (m->naxes == MTF_MAX_AXES)
        return err_set(err, MTF_INVALID, "mesh '%s': more than %d axes", text, MTF_MAX_AXES);
    if (strchr(p->name, '+'))
        return err_set(err, MTF_INVALID,
                       "mesh '%s': the name '%s' has a '+', which joins axes in a layout", text,
                       p->name);
    char *end = NULL;
    const long long size = strtoll(p->value, &end, 10);
    if (p->value[0] < '0' || p->value[0] > '9' || *end || size < 1 || size > 1 << 20)
        return err_set(err, MTF_INVALID,
                       "mesh '%s': axis %s has the size '%s'; it must be an integer from 1 to %d",
                       text, p->name, p->value, 1 << 20);
    if (mesh_find_axis(m, p->name) >= 0)
        return err_set(err, MTF_INVALID, "mesh '%s': axis %s stands twice; rename one of them",
                       text, p->name);
    snprintf(m->name[m->naxes], sizeof m->name[0], "%s", p->name);
    m->size[m->naxes++] = size;
    if (m->processors > (1 << 24) / size)
        return err_set(err, MTF_INVALID, "mesh '%s': more than 2^24 processors", text);
    m->processors *= size;
    return MTF_OK;
}

mtf_mesh *mtf_mesh_parse(const char *text, mtf_err *err)
{
    mtf_mesh *m = mem_zalloc(sizeof *m);
    m->processors = 1;
    pieces ps;
    mtf_status s = pieces_read(text, "mesh", "name:size, for example rows:2;cols:4", &ps, err);
    for (int i = 0; s == MTF_OK && i < ps.n; i++)
        s = read_axis(m, &ps.piece[i], text, err);
    pieces_free(&ps);
    if (s != MTF_OK) {
        mtf_mesh_free(&m);
        return NULL;
    }
    for (int i = 0; i < m->naxes; i++) {
        const size_t used = strlen(m->text);
        snprintf(m->text + used, sizeof m->text - used, "%s%s:%lld", i ? ";" : "", m->name[i],
                 (long long)m->size[i]);
    }
    return m;
}

void mtf_mesh_free(mtf_mesh **m)
{
    mem_free(*m);
    *m = NULL;
}

int64_t mtf_mesh_processors(const mtf_mesh *m)
{
    return m->processors;
}

int mtf_mesh_axes(const mtf_mesh *m)
{
    return m->naxes;
}

const char *mtf_mesh_axis_name(const mtf_mesh *m, int axis)
{
    return m->name[axis];
}

int64_t mtf_mesh_axis_size(const mtf_mesh *m, int axis)
{
    return m->size[axis];
}

const char *mtf_mesh_text(const mtf_mesh *m)
{
    return m->text;
}

int mesh_find_axis(const mtf_mesh *m, const char *name)
{
    for (int i = 0; i < m->naxes; i++)
        if (strcmp(m->name[i], name) == 0) return i;
    return -1;
}

int64_t mesh_coordinate(const mtf_mesh *m, int64_t proc, int axis)
{
    for (int i = m->naxes - 1; i > axis; i--)
        proc /= m->size[i];
    return proc % m->size[axis];
}

int64_t mesh_sample(const mtf_mesh *m, int64_t k, int64_t n)
{
    const int64_t first = k * m->processors / n, end = (k + 1) * m->processors / n;
    if (k == n - 1) return m->processors - 1;
    /* Multiples of the golden ratio lie far from each other between 0 and 1. */
    const uint64_t place = ((uint64_t)k * 0x9e3779b97f4a7c15u) >> 32;
    return first + (int64_t)((place * (uint64_t)(end - first)) >> 32);
}

int64_t block_start(int64_t n, int64_t p, int64_t i)
{
    /* i n may not fit 64 bits for the largest tensors; division of 128 bits is slow. */
    const bool fits = n <= INT32_MAX && i <= INT32_MAX;
    const int64_t at = fits ? n * i / p : (int64_t)((__int128)n * i / p);
    return FAULT(FAULT_BLOCK_BOUND) && i > 0 && i < p && at + 1 < n ? at + 1 : at;
}

int64_t block_bound(int64_t n, int64_t p)
{
    return (n + p - 1) / p;
}
