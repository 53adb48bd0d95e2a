/* SPDX-License-Identifier: Apache-2.0
 * Gradients: reverse-mode differentiation as new nodes of the graph, gradients of one's own, and
 * recomputation, which trades time for memory. Gradients are tensors like any other, so gradients
 * of gradients are taken in the same way.
 *
 * Mistakes go to the graph's sticky error (mtf/graph.h). Building is local; every rank builds the
 * same graph. */
#ifndef MTF_GRADIENT_H
#define MTF_GRADIENT_H

#include "mtf/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of the scalar `y` with respect to xs[0 .. n-1], as new nodes of the graph:
 * dx[i] has the shape and type of xs[i], or is NULL where y does not depend on xs[i] through
 * differentiable operations. Returns the graph's status. */
mtf_status mtf_gradients(mtf_tensor *y, int n, mtf_tensor *const *xs, mtf_tensor **dx);

/* The same for several ys of any shape: dx[i] is the gradient of the sum over all elements of all
 * ys[k] * dys[k] (a vector-Jacobian product). dys[k] has the shape and type of ys[k]; where it is
 * NULL, and where `dys` is, it is ones. */
mtf_status mtf_gradients_of(int ny, mtf_tensor *const *ys, mtf_tensor *const *dys, int n,
                            mtf_tensor *const *xs, mtf_tensor **dx);

/* ---- a gradient of one's own ---- */

/* Builds the gradients of a custom operation: dxs[i] from dys, for the operands `ins` and results
 * `outs` that it was made with. dys[k] is NULL where nothing flows back into outs[k], never all of
 * them. dxs come as NULL, and what stays NULL gets no gradient; else dxs[i] has the shape and type
 * of ins[i]. It must use the tensors that it is given instead of those that it remembers: within a
 * recompute region they are the recomputed ones. */
typedef void mtf_gradient_fn(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                             mtf_tensor *const *dys, mtf_tensor **dxs);

/* results[k] has the value of outs[k], which was built from ins[0 .. nin-1] (and other tensors) in
 * any way; but a gradient that reaches results[k] goes to `gradient`, and to nothing else: not into
 * outs[k] by its own operations. `bytes` bytes of `context` are copied. It costs nothing when the
 * program runs. Returns results[0]; `results` may be NULL where nout is 1. All tensors are of
 * floating-point types. */
mtf_tensor *mtf_custom_gradient(int nout, mtf_tensor *const *outs, int nin, mtf_tensor *const *ins,
                                mtf_gradient_fn *gradient, const void *context, size_t bytes,
                                mtf_tensor **results);

/* How much was built so far, to be given to mtf_external_inputs. */
int64_t mtf_graph_mark(const mtf_graph *g);

/* What the part of the graph from mark `begin` to before mark `end` reads of floating-point tensors
 * that were built before it, variables included: each once, in order of first use, of which the
 * first `room` are stored in `inputs`. Returns how many there are. A variable that was made between
 * the marks is an error: nothing outside could take its gradient. */
int mtf_external_inputs(mtf_graph *g, int64_t begin, int64_t end, int room, mtf_tensor **inputs);

/* ---- recomputation ---- */

/* What is built between the two calls is a region that a backward pass does not keep: gradients
 * compute what they need of it again, from what it reads of tensors outside. Dropout is the same
 * again, and so are the values and gradients: bit for bit, but for layouts under which the repeated
 * work is divided in another manner (rounding). Regions are recomputed one after another, so that
 * the memory of one of them is needed, not of all. A region within a region is part of it.
 * Variables are made outside. Gradients may be taken once it is closed. (Chen et al., 2016,
 * "Training deep nets with sublinear memory cost".) */
void mtf_recompute_begin(mtf_graph *g);
void mtf_recompute_end(mtf_graph *g);

#ifdef __cplusplus
}
#endif
#endif
