/* SPDX-License-Identifier: Apache-2.0
 * The graph inside: nodes in creation order, which is a topological order. Knows no mesh, no layout
 * and no memory. Invariant: a node never changes once its builder has returned it. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/err.h"
#include "base/mem.h"
#include "mtf/graph.h"

typedef struct mtf_node mtf_node;
typedef struct op op;

struct mtf_tensor {
    mtf_node *node;
    int index; /* which output of the node */
    mtf_dtype dtype;
    mtf_shape shape; /* names are interned in the graph: equal names have equal pointers */
};

struct mtf_node {
    const op *op;
    mtf_graph *graph;
    int id;           /* position in the graph; -1 for a node made while lowering */
    const char *name; /* full path */
    int nin, nout;
    mtf_tensor **in;
    mtf_tensor *out; /* array of nout */
    void *attr;      /* op->attr_size bytes */
    int region;      /* the recompute region that it was built in; 0: none */
    int copy;        /* the recomputation that it is part of; 0: none (graph/copies.h) */
};

/* Nodes that a backward pass computes again instead of keeping them: those from `begin` to before
 * `end`; -1: the region is still open. */
typedef struct region {
    int64_t begin, end;
} region;

struct mtf_graph {
    arena *mem;
    mtf_err err;
    mtf_node **node;
    int64_t nnodes, nodes_cap;
    const char **names; /* hash table of interned strings */
    int64_t nnames, names_cap;
    const char *scope;   /* "" or "a/b/" */
    const char **scopes; /* the stack below */
    int64_t nscopes, scopes_cap;
    int64_t *uses;          /* per interned name slot: how often a node took it */
    int64_t *streams;       /* likewise: how often a random stream took it */
    const char *batch_name; /* the dim that microbatches cut, or NULL (mtf_graph_set_batch) */
    int64_t batch_full;     /* its size in the full batch */
    bool seeded;            /* random tensors draw from `seed` (mtf_graph_set_seed) */
    uint64_t seed;
    region *region; /* region[r - 1] is that of nodes whose `region` is r */
    int64_t nregions, regions_cap;
    int open;          /* calls of mtf_recompute_begin that wait for their end */
    int copy, ncopies; /* what new nodes are part of; how many recomputations there are */
};

/* The one pointer for a name in this graph; NULL is a name that no dim has. */
const char *graph_intern(mtf_graph *g, const char *name);

/* The path for a node: scope + name, made unique with _1, _2, ... */
const char *graph_unique_name(mtf_graph *g, const char *name);

/* What is behind the last slash of a path. */
const char *graph_base_name(const char *path);

/* The path of a random stream: likewise, but among streams only and since the last
 * mtf_graph_repeat_streams. */
const char *graph_stream_name(mtf_graph *g, const char *name);

/* Stores a graph error (the first one stays) and returns NULL. */
__attribute__((format(printf, 2, 3))) mtf_tensor *graph_fail(mtf_graph *g, const char *fmt, ...);

/* Interns the names of `s`; an error where a dim is repeated, has no legal name or no size. `what`
 * names the thing in the message. */
bool graph_check_shape(mtf_graph *g, mtf_shape *s, const char *what);

/* Builds a node of row `op`: checks, infers, appends. `name` may be NULL (the row's name is used).
 * The attributes are copied. Returns the first output or NULL; further outputs are node->out[i].
 * Any NULL among `in` gives NULL. */
mtf_tensor *graph_add(mtf_graph *g, const op *row, const char *name, int nin, mtf_tensor *const *in,
                      const void *attr);

/* As graph_add, but the node is not part of the graph: its memory is in `mem`. For lowering. */
mtf_node *graph_detached(mtf_graph *g, arena *mem, const op *row, const mtf_node *origin, int nin,
                         mtf_tensor *const *in, const void *attr);

/* The graph of the first tensor that is not NULL, or NULL: a builder that is given some NULL among
 * its operands hands them to graph_add, which says so. */
mtf_graph *graph_of(int n, mtf_tensor *const *ts);

/* "[batch=8 io=4]" in one of a few static buffers of the thread. */
const char *shape_text(const mtf_shape *s);
bool shape_equal(const mtf_shape *a, const mtf_shape *b);
/* A name for a dim of ours beside those of `s`: "@base", or @base_1, @base_2, ... No user's dims
 * and rules of layouts begin so. */
const char *shape_fresh_name(mtf_graph *g, const mtf_shape *s, const char *base);
/* Position of an interned name, or -1. */
int shape_find(const mtf_shape *s, const char *interned);

/* Aborts with a message where an invariant of the graph is broken. */
void graph_verify(const mtf_graph *g);

/* Prints one node as in mtf_graph_print. */
void node_print(const mtf_node *n, FILE *f);

#endif
