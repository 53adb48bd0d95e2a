/* SPDX-License-Identifier: Apache-2.0
 * Mesh and layout inside, and the arithmetic of blocks: who holds which elements. */
#ifndef MESH_MESH_H
#define MESH_MESH_H

#include "base/err.h"
#include "mtf/mesh.h"

struct mtf_mesh {
    int naxes;
    char name[MTF_MAX_AXES][64];
    int64_t size[MTF_MAX_AXES];
    int64_t processors;
    char text[MTF_MAX_AXES * 90];
};

/* How one dim is cut: over these axes, major first. n = 0: not at all. */
typedef struct split {
    int8_t n;
    int8_t axis[MTF_MAX_AXES];
} split;

typedef struct rule {
    char dim[64];
    split split; /* over axes of size above 1 only: others cut nothing */
} rule;

struct mtf_layout {
    const mtf_mesh *mesh;
    rule *rule;
    int nrules;
    char *text;
};

/* How the layout cuts dims called `dim`. */
split layout_split(const mtf_layout *l, const char *dim);

static inline bool split_equal(split a, split b)
{
    if (a.n != b.n) return false;
    for (int i = 0; i < a.n; i++)
        if (a.axis[i] != b.axis[i]) return false;
    return true;
}

/* `more` behind s; the first and the last n axes of s. */
split split_append(split s, split more);
split split_head(split s, int n);
split split_tail(split s, int n);
/* The axes as a bit mask. */
unsigned split_mask(split s);
/* Product of the sizes of the axes. */
int64_t split_parts(const mtf_mesh *m, split s);
/* Which part processor `proc` holds: the mixed-radix number of its coordinates. */
int64_t split_part(const mtf_mesh *m, split s, int64_t proc);
/* Coordinate of a processor on an axis. */
int64_t mesh_coordinate(const mtf_mesh *m, int64_t proc, int axis);
int mesh_find_axis(const mtf_mesh *m, const char *name);
/* The k-th of n processors, at most as many as there are, that stand for all where not all can be
 * asked: one from every n-th part of the mesh, at places that are spread over the part, so that
 * every axis is seen at many coordinates. The last one holds the last block of every dim, which is
 * a largest one. */
int64_t mesh_sample(const mtf_mesh *m, int64_t k, int64_t n);

/* First element of part i of n elements in p parts: floor(i n / p). Blocks nest: a cut into a * b
 * parts refines the cut into a. */
int64_t block_start(int64_t n, int64_t p, int64_t i);
/* The largest part: ceil(n / p). */
int64_t block_bound(int64_t n, int64_t p);

#endif
