/* SPDX-License-Identifier: Apache-2.0
 * Operations: functions that add nodes to a graph.
 *
 * Every function returns the new tensor, owned by the graph, or NULL after an error (see
 * mtf/graph.h). Dims match by name, whatever their order. Shapes are written [batch io].
 * Elementwise functions of several operands broadcast: the result has the longer shape where one
 * operand's dims all stand in the other, else the first's dims followed by those that it lacks.
 * Types must be equal unless said otherwise. The floating-point types are f32, f64 and bf16.
 * Results of bf16 are computed in f32 and rounded once; sums of bf16 (einsum, reduce_sum,
 * reduce_mean, scatter_add) are f32 until every processor's part is in, and softmax and logsumexp
 * until their end. Building is local; every rank builds the same graph.
 */
#ifndef MTF_OPS_H
#define MTF_OPS_H

#include "mtf/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sources ---- */

/* A value that the caller gives for every run. */
mtf_tensor *mtf_placeholder(mtf_graph *g, const char *name, mtf_shape shape, mtf_dtype type);
/* State that lives across runs. `initial` has the variable's shape and type (usually a constant or
 * a random tensor) and is computed when the session is initialised. Only trainable variables are
 * updated by optimisers. Every read in a run sees the value from before the run. */
mtf_tensor *mtf_variable(mtf_graph *g, const char *name, mtf_tensor *initial, bool trainable);

/* A variable may have up to three types, as in Mesh-TensorFlow. They differ only where all are
 * floating-point types. */
typedef struct mtf_variable_types {
    mtf_dtype master;     /* what a checkpoint holds */
    mtf_dtype stored;     /* what the processors hold, and updates write: the variable's own type */
    mtf_dtype activation; /* what the graph computes with: the type of mtf_variable_read */
} mtf_variable_types;

/* The usual types for computing with `activation`: f32 is stored for bf16, else the same. */
mtf_variable_types mtf_variable_types_for(mtf_dtype activation);

/* As mtf_variable, with `initial` cast to the stored type. Fails where the types differ and one is
 * no floating-point type. */
mtf_tensor *mtf_variable_typed(mtf_graph *g, const char *name, mtf_tensor *initial, bool trainable,
                               mtf_variable_types types);
/* The variable's value in its activation type. Gradients come back in the stored type, so that
 * updates work on the stored value and never on a rounded copy. A tensor that is no variable is
 * itself. */
mtf_tensor *mtf_variable_read(mtf_tensor *variable);
/* The variable's value after the run is `value`. Takes effect where it is listed as an update of a
 * program; at most one assignment of a variable per program. */
mtf_tensor *mtf_assign(mtf_tensor *variable, mtf_tensor *value);
/* The same value everywhere, as a cast from f64 gives it. */
mtf_tensor *mtf_constant(mtf_graph *g, double value, mtf_shape shape, mtf_dtype type);
/* out[d] = d, of any type but bool; i32 counts to 2^31 elements, bf16 rounds beyond 256. */
mtf_tensor *mtf_range(mtf_graph *g, mtf_dim dim, mtf_dtype type);

/* What keeps queries from later keys: [query memory], 0 where query's index >= memory's, else -1e9.
 * To be added to the scores of attention. Of a floating-point type. */
mtf_tensor *mtf_causal_bias(mtf_graph *g, mtf_dim query, mtf_dim memory, mtf_dtype type);

/* Random tensors. A value depends on the seed of the run, the name's path, the step of the run and
 * the element's global index, never on mesh or layout. Of a floating-point type; a bf16
 * is the f32 of the same place, rounded, so that `high` itself may come out of a uniform one. */
mtf_tensor *mtf_random_uniform(mtf_graph *g, const char *name, mtf_shape shape, mtf_dtype type,
                               double low, double high);
mtf_tensor *mtf_random_normal(mtf_graph *g, const char *name, mtf_shape shape, mtf_dtype type,
                              double mean, double stddev);
/* A normal distribution cut at two standard deviations from its mean. */
mtf_tensor *mtf_random_truncated_normal(mtf_graph *g, const char *name, mtf_shape shape,
                                        mtf_dtype type, double mean, double stddev);
/* Each element is 0 with probability `rate` in [0, 1), else x / (1 - rate). Rate 0 returns x. */
mtf_tensor *mtf_dropout(mtf_tensor *x, const char *name, double rate);
/* The stream of a random tensor or dropout is that of its path, scope and name; a further one of
 * the same path is numbered, so that the two differ. This call begins the numbering anew: a model
 * that is built again behind it, for another batch size say, draws the same values as before. */
void mtf_graph_repeat_streams(mtf_graph *g);
/* Random tensors, draws and dropouts that are built between the two calls have a seed of their own:
 * they are the same in every session, whatever its seed is, and still differ from step to step and
 * from stream to stream. */
void mtf_graph_set_seed(mtf_graph *g, uint64_t seed);
void mtf_graph_clear_seed(mtf_graph *g);
/* Says that the dim called `name` is a microbatch of a batch of `full` sequences: random values of
 * tensors with this dim are those of the full batch, at the run's batch offset. Holds for what is
 * built behind it; a NULL name ends it. */
void mtf_graph_set_batch(mtf_graph *g, const char *name, int64_t full);

/* ---- elementwise, one operand of a floating-point type unless said otherwise ---- */

mtf_tensor *mtf_identity(mtf_tensor *x);
mtf_tensor *mtf_negative(mtf_tensor *x); /* i32 too */
mtf_tensor *mtf_abs(mtf_tensor *x);      /* i32 too; gradient sign(x) */
mtf_tensor *mtf_sign(mtf_tensor *x);     /* i32 too; no gradient */
mtf_tensor *mtf_square(mtf_tensor *x);   /* i32 too */
mtf_tensor *mtf_reciprocal(mtf_tensor *x);
mtf_tensor *mtf_sqrt(mtf_tensor *x);
mtf_tensor *mtf_rsqrt(mtf_tensor *x);
mtf_tensor *mtf_exp(mtf_tensor *x);
mtf_tensor *mtf_log(mtf_tensor *x);
mtf_tensor *mtf_sin(mtf_tensor *x);
mtf_tensor *mtf_cos(mtf_tensor *x);
mtf_tensor *mtf_tanh(mtf_tensor *x);
mtf_tensor *mtf_sigmoid(mtf_tensor *x);
mtf_tensor *mtf_relu(mtf_tensor *x); /* gradient 0 at 0 */
mtf_tensor *mtf_leaky_relu(mtf_tensor *x, double alpha);
mtf_tensor *mtf_elu(mtf_tensor *x);
mtf_tensor *mtf_selu(mtf_tensor *x);
mtf_tensor *mtf_softplus(mtf_tensor *x);
/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
mtf_tensor *mtf_gelu(mtf_tensor *x);
mtf_tensor *mtf_swish(mtf_tensor *x);                /* x sigmoid(x) */
mtf_tensor *mtf_logical_not(mtf_tensor *x);          /* bool */
mtf_tensor *mtf_cast(mtf_tensor *x, mtf_dtype type); /* any to any; to i32 truncates */
mtf_tensor *mtf_stop_gradient(mtf_tensor *x);        /* any type */
mtf_tensor *mtf_scale(mtf_tensor *x, double factor); /* x * factor */
mtf_tensor *mtf_offset(mtf_tensor *x, double term);  /* x + term */

/* ---- elementwise, several operands; floating-point types and i32 unless said otherwise ---- */

mtf_tensor *mtf_add(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_add_n(int n, mtf_tensor *const *xs); /* at least one */
mtf_tensor *mtf_sub(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_mul(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_div(mtf_tensor *x, mtf_tensor *y); /* floating-point types */
/* x^y; NaN for a negative x and a y that is no integer. Floating-point types. */
mtf_tensor *mtf_pow(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_maximum(mtf_tensor *x,
                        mtf_tensor *y); /* NaN wins; the gradient is halved at ties */
mtf_tensor *mtf_minimum(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_floordiv(mtf_tensor *x, mtf_tensor *y); /* rounds down; i32: x / 0 is 0 */
mtf_tensor *mtf_mod(mtf_tensor *x, mtf_tensor *y);      /* sign of y; i32: x mod 0 is 0 */
mtf_tensor *mtf_less(mtf_tensor *x, mtf_tensor *y);     /* comparisons give bool */
mtf_tensor *mtf_less_equal(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_greater(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_greater_equal(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_equal(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_not_equal(mtf_tensor *x, mtf_tensor *y);
mtf_tensor *mtf_logical_and(mtf_tensor *x, mtf_tensor *y); /* bool */
mtf_tensor *mtf_logical_or(mtf_tensor *x, mtf_tensor *y);  /* bool */
/* a where the bool `condition` holds, else b. A NaN in the other branch does not leak. Any type. */
mtf_tensor *mtf_where(mtf_tensor *condition, mtf_tensor *a, mtf_tensor *b);

/* ---- products and reductions ---- */

/* The product of n operands, summed over all dims that `output` lacks. `output` may have dims that
 * no operand has: the result is repeated along them. Any type but bool. Processors with
 * instructions for products of bf16 take operands of bf16 below 2^-126 in size for 0. */
mtf_tensor *mtf_einsum(int n, mtf_tensor *const *xs, mtf_shape output);
/* mtf_einsum of two. */
mtf_tensor *mtf_matmul(mtf_tensor *x, mtf_tensor *y, mtf_shape output);

/* Reductions to the dims of `output` (a subset of x's, in any order). */
mtf_tensor *mtf_reduce_sum(mtf_tensor *x, mtf_shape output);
mtf_tensor *mtf_reduce_mean(mtf_tensor *x, mtf_shape output); /* floating-point types */
/* The gradient is shared equally among tied elements. NaN wins. */
mtf_tensor *mtf_reduce_max(mtf_tensor *x, mtf_shape output);
mtf_tensor *mtf_reduce_min(mtf_tensor *x, mtf_shape output);
/* Are all, is any of the flags of x set over the dims that `output` lacks. bool. */
mtf_tensor *mtf_reduce_all(mtf_tensor *x, mtf_shape output);
mtf_tensor *mtf_reduce_any(mtf_tensor *x, mtf_shape output);
/* The first element along `dim`: x's dims without it. Any type. */
mtf_tensor *mtf_reduce_first(mtf_tensor *x, const char *dim);
/* Groups of `size` neighbours along `dim`, each reduced to one element (by mtf_reduce_mean,
 * mtf_reduce_max, ...), or to its first: `dim` is as many times smaller; `size` divides it. */
typedef mtf_tensor *mtf_pool_fn(mtf_tensor *x, mtf_shape output);
mtf_tensor *mtf_pool_1d(mtf_tensor *x, const char *dim, int64_t size, mtf_pool_fn *reduce);
mtf_tensor *mtf_stride_1d(mtf_tensor *x, const char *dim, int64_t size);
/* Running sums along `dim`: out[.., i, ..] is the sum of x[.., j, ..] over all j <= i, with
 * `exclusive` j < i; with `reverse` j >= i, or j > i. Where `dim` is split the sums of blocks are
 * gathered. Floating-point types and i32. */
mtf_tensor *mtf_cumsum(mtf_tensor *x, const char *dim, bool exclusive, bool reverse);
/* log(sum(exp(x))) without overflow. Floating-point types. */
mtf_tensor *mtf_reduce_logsumexp(mtf_tensor *x, mtf_shape output);
/* Along the one dim called `dim`; shape of x. Floating-point types. */
mtf_tensor *mtf_softmax(mtf_tensor *x, const char *dim);
mtf_tensor *mtf_log_softmax(mtf_tensor *x, const char *dim);

/* ---- shape ---- */

/* Repeats x along the dims that it lacks; `shape` has all dims of x, in any order. */
mtf_tensor *mtf_broadcast(mtf_tensor *x, mtf_shape shape);
/* The same dims in another order. */
mtf_tensor *mtf_transpose(mtf_tensor *x, mtf_shape shape);
/* The same elements in row-major order under another shape of equal size. */
mtf_tensor *mtf_reshape(mtf_tensor *x, mtf_shape shape);
/* x with its dim `from` called `to`. */
mtf_tensor *mtf_rename(mtf_tensor *x, const char *from, const char *to);

/* ---- other elements of a dim; any type. All of these work over dims that are split: but for
 * dynamic_shift each element travels straight to the processor that needs it. ---- */

/* out[.., i, ..] = x[.., begin + i, ..] for i in [0, size) along `dim`; the elements must exist. */
mtf_tensor *mtf_slice(mtf_tensor *x, const char *dim, int64_t begin, int64_t size);
/* x with `before` zeros in front and `after` behind along `dim`; neither may be negative. */
mtf_tensor *mtf_pad(mtf_tensor *x, const char *dim, int64_t before, int64_t after);

/* The same along n dims, one after the other. */
typedef struct mtf_window {
    const char *dim;
    int64_t begin, size;
} mtf_window;
mtf_tensor *mtf_slice_dims(mtf_tensor *x, int n, const mtf_window *w);
typedef struct mtf_padding {
    const char *dim;
    int64_t before, after;
} mtf_padding;
mtf_tensor *mtf_pad_dims(mtf_tensor *x, int n, const mtf_padding *p);

/* n tensors (at least one) one behind the other along `dim`. One type, and but for the size of
 * `dim` one shape, dims in one order. */
mtf_tensor *mtf_concat(int n, mtf_tensor *const *xs, const char *dim);
/* Cuts x along `dim` into n parts of the given sizes, which add up to the dim's; with NULL into
 * equal ones, n then divides its size. Fills parts[0 .. n-1], with NULL after an error. */
void mtf_split(mtf_tensor *x, const char *dim, int n, const int64_t *sizes, mtf_tensor **parts);
/* n tensors (at least one) of one type and shape side by side along a new dim of size n, which
 * stands at place `axis` of the result; -1 is the last place. */
mtf_tensor *mtf_stack(int n, mtf_tensor *const *xs, const char *dim, int axis);
/* The elements of x along `dim`, without that dim: as many parts as it has elements. */
void mtf_unstack(mtf_tensor *x, const char *dim, mtf_tensor **parts);

/* out[.., i, ..] = x[.., i - offset, ..] along `dim`; zeros come in, or with `wrap` the other end.
 * Any offset. Only what crosses from one block to another travels. */
mtf_tensor *mtf_shift(mtf_tensor *x, const char *dim, int64_t offset, bool wrap);
/* Likewise with an i32 offset for every index of some other dims of x. `dim` is gathered where it
 * is split; the work is in proportion to the result. */
mtf_tensor *mtf_dynamic_shift(mtf_tensor *x, mtf_tensor *offset, const char *dim, bool wrap);
/* A dim that is laid out as `blocks` of `block` elements each: every block with the `left` elements
 * in front of it and the `right` ones behind it, from as many neighbouring blocks as that takes;
 * what is beyond the ends is zero, or with `wrap` the other end. `block` has size + left + right
 * elements. Where `blocks` is split only the margins travel. `left` and `right` may be 0. */
mtf_tensor *mtf_halo_exchange(mtf_tensor *x, const char *blocks, const char *block, int64_t left,
                              int64_t right, bool wrap);

/* ---- order; floating-point types and i32. NaN is above all numbers, and of equal elements the one
 * with the lowest index comes first, on every layout. Where `dim` is split every processor chooses
 * from its block and only what it chose is gathered. ---- */

/* The k.size largest elements of x along `dim`, the largest first, or the smallest, the smallest
 * first: the dims of x without `dim`, then k, whose name x does not use; 1 <= k.size <= size of
 * `dim`. *values has the type of x and its gradient; *indices is i32. Either may be NULL. */
void mtf_top_k(mtf_tensor *x, const char *dim, mtf_dim k, bool smallest, mtf_tensor **values,
               mtf_tensor **indices);
/* The i32 index of the largest, of the smallest element along `dim`: x's dims without `dim`. */
mtf_tensor *mtf_argmax(mtf_tensor *x, const char *dim);
mtf_tensor *mtf_argmin(mtf_tensor *x, const char *dim);
/* The n-th largest, smallest element along `dim`, counted from 0: x's dims without `dim`. */
mtf_tensor *mtf_nth_largest(mtf_tensor *x, const char *dim, int64_t n);
mtf_tensor *mtf_nth_smallest(mtf_tensor *x, const char *dim, int64_t n);
/* x sorted along `dim`, and in *indices (may be NULL) where its elements stood. Shape of x. */
mtf_tensor *mtf_sort(mtf_tensor *x, const char *dim, bool descending, mtf_tensor **indices);

/* How to draw from logits. */
typedef struct mtf_sampling {
    double temperature; /* logits are divided by it, 1e-6 to 1e6; 0: always the largest */
    int64_t top_k;      /* only the k largest can be drawn; 0: all. Ties to the lowest index */
    double top_p; /* only the largest, until they have this probability together; 0 or 1: all */
} mtf_sampling;

/* An i32 index along `dim`, drawn with the probabilities softmax(logits / temperature) among those
 * that the options leave (first top_k, then top_p of what is left): logits' dims without `dim`. The
 * stream of the draw is that of its path, as for random tensors; the same on every layout.
 * Floating-point types; drawn in f32 for bf16. */
mtf_tensor *mtf_sample(mtf_tensor *logits, const char *name, const char *dim,
                       const mtf_sampling *o);

/* ---- indexing; indices are i32 ---- */

/* out = table at indices along the table's dim `dim`: the dims of indices, then those of the table
 * without `dim` that indices lack. Dims that both have are matched. Outside of [0, size): zero. */
mtf_tensor *mtf_gather(mtf_tensor *table, mtf_tensor *indices, const char *dim);
/* A tensor of zeros with shape `output`, which has `dim`; every element of `updates` is added at
 * the place along `dim` that `indices` name; indices outside are dropped. The transpose of gather.
 */
mtf_tensor *mtf_scatter_add(mtf_tensor *updates, mtf_tensor *indices, const char *dim,
                            mtf_shape output);
/* `on` where dim's index equals the index, else `off`; dims of indices, then `dim`. */
mtf_tensor *mtf_one_hot(mtf_tensor *indices, mtf_dim dim, double on, double off, mtf_dtype type);

#ifdef __cplusplus
}
#endif
#endif
