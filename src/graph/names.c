/* SPDX-License-Identifier: Apache-2.0
 * Names of a graph: interned strings, scopes and unique paths. */
#include <string.h>

#include "graph/graph.h"

static uint64_t hash_text(const char *s)
{
    uint64_t h = 1469598103934665603u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

static int64_t slot_of(const mtf_graph *g, const char *name)
{
    int64_t i = (int64_t)(hash_text(name) & (uint64_t)(g->names_cap - 1));
    while (g->names[i] && strcmp(g->names[i], name) != 0)
        i = (i + 1) & (g->names_cap - 1);
    return i;
}

static void grow_table(mtf_graph *g)
{
    const int64_t old_cap = g->names_cap;
    const char **old = g->names;
    int64_t *old_uses = g->uses, *old_streams = g->streams;
    g->names_cap = old_cap ? 2 * old_cap : 64;
    g->names = mem_zalloc((size_t)g->names_cap * sizeof *g->names);
    g->uses = mem_zalloc((size_t)g->names_cap * sizeof *g->uses);
    g->streams = mem_zalloc((size_t)g->names_cap * sizeof *g->streams);
    for (int64_t i = 0; i < old_cap; i++) {
        if (!old[i]) continue;
        const int64_t to = slot_of(g, old[i]);
        g->names[to] = old[i];
        g->uses[to] = old_uses[i];
        g->streams[to] = old_streams[i];
    }
    mem_free(old);
    mem_free(old_uses);
    mem_free(old_streams);
}

const char *graph_intern(mtf_graph *g, const char *name)
{
    if (!name) name = "[NULL]"; /* no dim can be called so, and messages show it */
    if (2 * (g->nnames + 1) > g->names_cap) grow_table(g);
    const int64_t at = slot_of(g, name);
    if (!g->names[at]) {
        g->names[at] = arena_strdup(g->mem, name);
        g->nnames++;
    }
    return g->names[at];
}

/* Takes scope + name, or the first of its forms with _1, _2, ... that is free. `streams` says which
 * of the two counts knows what is taken: "a", "a" and a user's own "a_1" must all differ. */
static const char *take_name(mtf_graph *g, const char *name, bool streams)
{
    const char *base = graph_intern(g, arena_printf(g->mem, "%s%s", g->scope, name));
    const char *unique = base;
    /* The table may grow in the loop, so the counts are looked up anew. */
#define COUNT(of) (streams ? g->streams : g->uses)[slot_of(g, of)]
    for (int64_t count = COUNT(base); COUNT(unique) > 0; count++)
        unique = graph_intern(g, arena_printf(g->mem, "%s_%lld", base, (long long)count));
    COUNT(unique)++;
    if (base != unique) COUNT(base)++;
#undef COUNT
    return unique;
}

const char *graph_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *graph_unique_name(mtf_graph *g, const char *name)
{
    return take_name(g, name, false);
}

const char *graph_stream_name(mtf_graph *g, const char *name)
{
    return take_name(g, name, true);
}

void mtf_graph_repeat_streams(mtf_graph *g)
{
    if (g->names_cap) memset(g->streams, 0, (size_t)g->names_cap * sizeof *g->streams);
}

void mtf_scope_push(mtf_graph *g, const char *name)
{
    mem_grow((void **)&g->scopes, g->nscopes, &g->scopes_cap, sizeof *g->scopes);
    g->scopes[g->nscopes++] = g->scope;
    g->scope = arena_printf(g->mem, "%s%s/", g->scope, name ? name : "");
}

void mtf_scope_pop(mtf_graph *g)
{
    if (g->nscopes > 0)
        g->scope = g->scopes[--g->nscopes];
    else
        graph_fail(g, "mtf_scope_pop without a matching mtf_scope_push");
}
