/* SPDX-License-Identifier: Apache-2.0
 * Meshes and layouts.
 *
 * A mesh is an array of processors with named axes: "rows:2;cols:4". A layout maps names of dims to
 * axes: "batch:rows;d_ff:cols"; a dim may be cut over several axes, major first:
 * "batch:rows+cols". Separators are `; , .` and space. Processor number = row-major index of the
 * coordinates. */
#ifndef MTF_MESH_H
#define MTF_MESH_H

#include "mtf/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MTF_MAX_AXES = 8 };

typedef struct mtf_mesh mtf_mesh;
typedef struct mtf_layout mtf_layout;

/* Reads a mesh; "" is one processor. NULL with MTF_INVALID in *err on a mistake: a piece without
 * one colon, a name twice or with a '+', a size that is no integer from 1 to 2^20. Local. */
mtf_mesh *mtf_mesh_parse(const char *text, mtf_err *err);
void mtf_mesh_free(mtf_mesh **m);
int64_t mtf_mesh_processors(const mtf_mesh *m);
int mtf_mesh_axes(const mtf_mesh *m);
const char *mtf_mesh_axis_name(const mtf_mesh *m, int axis);
int64_t mtf_mesh_axis_size(const mtf_mesh *m, int axis);
/* The mesh in its normal form, "rows:2;cols:4". Lives as long as the mesh. */
const char *mtf_mesh_text(const mtf_mesh *m);

/* Reads a layout for a mesh; "" cuts nothing. A rule that names no axis of the mesh is left out
 * with a warning in *warning (which may be NULL), or, with `strict`, an error. NULL on a mistake: a
 * piece without one colon, a dim twice, an axis twice in one rule. Local. */
mtf_layout *mtf_layout_parse(const char *text, const mtf_mesh *m, bool strict, mtf_err *warning,
                             mtf_err *err);
void mtf_layout_free(mtf_layout **l);
const char *mtf_layout_text(const mtf_layout *l);

/* Warns of (or, with `strict`, refuses) rules whose dim no tensor of the graph has. */
mtf_status mtf_layout_check_dims(const mtf_layout *l, const mtf_graph *g, bool strict,
                                 mtf_err *warning, mtf_err *err);

#ifdef __cplusplus
}
#endif
#endif
