/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "graph/graph.h"

/* Dims that are stored: a shape may claim more until it is refused where it is used. */
static int stored(const mtf_shape *s)
{
    return s->rank < MTF_MAX_RANK ? s->rank : MTF_MAX_RANK;
}

int64_t mtf_shape_size(const mtf_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < stored(s); i++)
        n *= s->dim[i].size;
    return n;
}

int mtf_shape_find(const mtf_shape *s, const char *name)
{
    for (int i = 0; name && i < stored(s); i++)
        if (s->dim[i].name && strcmp(s->dim[i].name, name) == 0) return i;
    return -1;
}

int shape_find(const mtf_shape *s, const char *interned)
{
    for (int i = 0; i < stored(s); i++)
        if (s->dim[i].name == interned) return i;
    return -1;
}

mtf_shape mtf_shape_without(mtf_shape s, const char *name)
{
    const int at = mtf_shape_find(&s, name);
    if (at < 0) return s;
    for (int i = at; i + 1 < stored(&s); i++)
        s.dim[i] = s.dim[i + 1];
    s.rank--;
    return s;
}

mtf_shape mtf_shape_with(mtf_shape s, mtf_dim d)
{
    if (s.rank >= 0 && s.rank < MTF_MAX_RANK) s.dim[s.rank] = d;
    s.rank++; /* a rank above the maximum is refused where the shape is used */
    return s;
}

mtf_shape mtf_shape_replace(mtf_shape s, const char *from, mtf_dim to)
{
    const int at = mtf_shape_find(&s, from);
    if (at >= 0) s.dim[at] = to;
    return s;
}

bool shape_equal(const mtf_shape *a, const mtf_shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i].name != b->dim[i].name || a->dim[i].size != b->dim[i].size) return false;
    return true;
}

const char *shape_text(const mtf_shape *s)
{
    static _Thread_local char buffers[4][600];
    static _Thread_local int next;
    char *text = buffers[next = (next + 1) % 4];
    size_t used = 0, room = sizeof buffers[0];
    text[used++] = '[';
    for (int i = 0; i < stored(s) && used + 64 < room; i++)
        used += (size_t)snprintf(text + used, room - used - 2, "%s%.60s=%" PRId64, i ? " " : "",
                                 s->dim[i].name, s->dim[i].size);
    if (used > room - 2) used = room - 2;
    text[used++] = ']';
    text[used] = '\0';
    return text;
}

/* A name is free of the separators of mesh and layout strings. */
static bool legal_name(const char *name)
{
    return name && *name && strlen(name) < 64 && !strpbrk(name, " :;,.+\t\n\r'\"[]=");
}

bool graph_check_shape(mtf_graph *g, mtf_shape *s, const char *what)
{
    if (s->rank < 0 || s->rank > MTF_MAX_RANK) {
        graph_fail(g, "%s: a tensor has at most %d dims, not %d; merge some", what, MTF_MAX_RANK,
                   s->rank);
        return false;
    }
    double size = 1;
    for (int i = 0; i < s->rank; i++) {
        mtf_dim *d = &s->dim[i];
        if (!legal_name(d->name)) {
            graph_fail(g,
                       "%s: '%.64s' is no name for a dim; use 1 to 63 characters without spaces, "
                       "quotes, brackets and : ; , . + =",
                       what, d->name ? d->name : "");
            return false;
        }
        if (d->size < 1) {
            graph_fail(g, "%s: dim %s has size %" PRId64 "; it must be at least 1", what, d->name,
                       d->size);
            return false;
        }
        d->name = graph_intern(g, d->name);
        size *= (double)d->size;
        for (int j = 0; j < i; j++)
            if (s->dim[j].name == d->name) {
                graph_fail(g, "%s: dim %s stands twice in %s; rename one of them", what, d->name,
                           shape_text(s));
                return false;
            }
    }
    /* Bytes of thousands of such tensors still fit in an int64_t. */
    if (size > 0x1p48) {
        graph_fail(g, "%s: the shape %s has more than 2^48 elements", what, shape_text(s));
        return false;
    }
    return true;
}

const char *shape_fresh_name(mtf_graph *g, const mtf_shape *s, const char *base)
{
    const char *name = arena_printf(g->mem, "@%s", base);
    for (int k = 1; mtf_shape_find(s, name) >= 0; k++)
        name = arena_printf(g->mem, "@%s_%d", base, k);
    return name;
}
