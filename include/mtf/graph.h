/* SPDX-License-Identifier: Apache-2.0
 * Graphs: tensors with named dimensions and the operations between them. No mesh in sight.
 *
 * Building has a sticky error. The first wrong call stores its message in the graph and returns
 * NULL; later calls that are given a NULL tensor return NULL. So model code needs no checks: ask
 * mtf_graph_status once at the end. A graph owns everything that is built in it. Not thread-safe;
 * under MPI every rank builds the same graph. */
#ifndef MTF_GRAPH_H
#define MTF_GRAPH_H

#include <stdio.h>

#include "mtf/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_graph mtf_graph;
typedef struct mtf_tensor mtf_tensor;

enum { MTF_MAX_RANK = 12 };

/* A named dimension. A name has 1 to 63 characters, no spaces, quotes and brackets and none of
 * `: ; , . + =`. In one tensor and in one operation a name has one size; elsewhere in the graph it
 * may have another. Operations that need a dim of their own on the way call it "@group" and the
 * like: leave names with @ in front to them, so that no rule of a layout is meant for both. */
typedef struct mtf_dim {
    const char *name;
    int64_t size; /* at least 1 */
} mtf_dim;

/* An ordered list of dimensions, each name once. Data is row-major in this order. */
typedef struct mtf_shape {
    int rank;
    mtf_dim dim[MTF_MAX_RANK];
} mtf_shape;

/* A shape written in place: MTF_SHAPE({"batch", 8}, {"io", 4}). MTF_SCALAR has no dims. */
#define MTF_SHAPE(...)                                                                             \
    ((mtf_shape){.rank = (int)(sizeof((mtf_dim[]){__VA_ARGS__}) / sizeof(mtf_dim)),                \
                 .dim = {__VA_ARGS__}})
#define MTF_SCALAR ((mtf_shape){.rank = 0})

/* Number of elements. */
int64_t mtf_shape_size(const mtf_shape *s);
/* Position of the dim called `name`, or -1. */
int mtf_shape_find(const mtf_shape *s, const char *name);
/* `s` without the dim `name`; `s` with `d` behind its dims; `s` with `from` replaced by `to`. */
mtf_shape mtf_shape_without(mtf_shape s, const char *name);
mtf_shape mtf_shape_with(mtf_shape s, mtf_dim d);
mtf_shape mtf_shape_replace(mtf_shape s, const char *from, mtf_dim to);

/* A new, empty graph. mtf_graph_free accepts NULL behind the handle and clears it. */
mtf_graph *mtf_graph_new(void);
void mtf_graph_free(mtf_graph **g);

/* MTF_OK, or the first error of building with its message in *err (which may be NULL). */
mtf_status mtf_graph_status(const mtf_graph *g, mtf_err *err);

/* Names of nodes are paths: mtf_scope_push(g, "block_0") puts "block_0/" before the names of all
 * nodes that are built until the matching mtf_scope_pop. */
void mtf_scope_push(mtf_graph *g, const char *name);
void mtf_scope_pop(mtf_graph *g);

/* Facts about a tensor. Strings live as long as the graph. NULL gives a scalar f32 called "". */
mtf_shape mtf_tensor_shape(const mtf_tensor *t);
mtf_dim mtf_tensor_dim(const mtf_tensor *t, const char *name);
mtf_dtype mtf_tensor_dtype(const mtf_tensor *t);
const char *mtf_tensor_name(const mtf_tensor *t);
mtf_graph *mtf_tensor_graph(const mtf_tensor *t);

/* One line per node: id, operation, name, inputs, outputs with shapes, attributes. */
void mtf_graph_print(const mtf_graph *g, FILE *f);

#ifdef __cplusplus
}
#endif
#endif
