/* SPDX-License-Identifier: Apache-2.0
 * top_k: the k first elements along a dim and where they stand, in one order for all: larger first
 * (or smaller), NaN above all numbers, ties to the lowest index. Where the dim is cut every
 * processor chooses from its block, and from what the blocks chose the result is chosen. */
#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"
#include "ops/window.h"

typedef struct top_attr {
    const char *dim;
    const char *k_name; /* the dim of the result */
    int64_t k;          /* its size */
    int smallest;
    const char *blocks; /* of the rows for a cut dim: the dim of what blocks chose */
    int64_t chosen;     /* its size */
} top_attr;

static const op_field fields[] = {OP_FIELD(top_attr, dim, FIELD_NAME),
                                  OP_FIELD(top_attr, k_name, FIELD_NAME),
                                  OP_FIELD(top_attr, k, FIELD_I64),
                                  OP_FIELD(top_attr, smallest, FIELD_INT),
                                  {0}};

static void set_results(mtf_node *n, const char *without, mtf_dim with)
{
    const mtf_shape s = mtf_shape_with(mtf_shape_without(n->in[0]->shape, without), with);
    n->out[0].shape = n->out[1].shape = s;
    n->out[0].dtype = n->in[0]->dtype;
    n->out[1].dtype = MTF_I32;
}

static bool infer(mtf_graph *g, mtf_node *n)
{
    const top_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    const int at = window_dim(g, n, x, a->dim);
    if (at < 0) return false;
    const int64_t size = x->shape.dim[at].size;
    if (!(TYPES_NUMBER & 1u << x->dtype) || size > INT32_MAX) {
        graph_fail(g,
                   "top_k '%s' of %s%s: the operand must be of numbers, and %s have at most %d "
                   "elements, for indices are i32",
                   n->name, mtf_dtype_name(x->dtype), shape_text(&x->shape), a->dim, INT32_MAX);
        return false;
    }
    if (a->k < 1 || a->k > size || !a->k_name || shape_find(&x->shape, a->k_name) >= 0) {
        graph_fail(g,
                   "top_k '%s': %s=%lld of %s: the new dim must have a name that the operand %s "
                   "does not use, and from 1 to %lld elements",
                   n->name, a->k_name ? a->k_name : "NULL", (long long)a->k, a->dim,
                   shape_text(&x->shape), (long long)size);
        return false;
    }
    set_results(n, a->dim, (mtf_dim){a->k_name, a->k});
    return true;
}

/* ---- choosing ---- */

#define T        double
#define SEEN     double
#define LOAD(v)  (v)
#define STORE(v) (v)
#define NAME(x)  x##_f64
#include "ops/top_k_body.inc"

#define T        float
#define SEEN     float
#define LOAD(v)  (v)
#define STORE(v) (v)
#define NAME(x)  x##_f32
#include "ops/top_k_body.inc"

#define T        int32_t
#define SEEN     int32_t
#define LOAD(v)  (v)
#define STORE(v) (v)
#define NAME(x)  x##_i32
#include "ops/top_k_body.inc"

#define T        bf16
#define SEEN     float
#define LOAD(v)  bf16_to_f32(v)
#define STORE(v) bf16_from_f32(v)
#define NAME(x)  x##_bf16
#include "ops/top_k_body.inc"

/* ---- kernels ---- */

/* Rows of the operand that begin at each index of the other dims: [outer, n, inner]. */
typedef struct rows {
    int64_t outer, n, inner, k;
    kernel_dim own;
} rows;

static rows rows_of(const kernel_args *k)
{
    rows r = {.outer = 1, .inner = 1, .k = k->dim[k->out[0].rank - 1].local};
    bool behind = false;
    for (int d = 0; d < k->in[0].rank; d++) {
        const int dim = k->in[0].dim[d];
        const int64_t size = k->dim[dim].local;
        if (dim >= k->out[0].rank) { /* the one dim that the results lack */
            r.own = k->dim[dim];
            r.n = size;
            behind = true;
        } else if (behind) {
            r.inner *= size;
        } else {
            r.outer *= size;
        }
    }
    return r;
}

static int64_t grains(const kernel_args *k)
{
    const rows r = rows_of(k);
    return r.outer * r.inner;
}

#define CHOOSE(type, suffix)                                                                       \
    choose_##suffix((const type *)k->in[0].data + at, from, r.inner, r.own.offset, r.n,            \
                    (row_##suffix){(type *)k->out[0].data + row * r.k, index, a->smallest}, r.k)

static void kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    const top_attr *a = k->attr;
    const rows r = rows_of(k);
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row / r.inner * r.n * r.inner + row % r.inner;
        const int32_t *from = k->nin > 1 ? (const int32_t *)k->in[1].data + at : NULL;
        int32_t *index = (int32_t *)k->out[1].data + row * r.k;
        switch (k->out[0].dtype) {
        case MTF_F64:
            CHOOSE(double, f64);
            break;
        case MTF_F32:
            CHOOSE(float, f32);
            break;
        case MTF_BF16:
            CHOOSE(bf16, bf16);
            break;
        default:
            CHOOSE(int32_t, i32);
            break;
        }
    }
}

static double cost(const mtf_node *n, const kernel_args *k)
{
    double elements = 1;
    for (int d = 0; d < k->space; d++)
        if (d != n->out[0].shape.rank - 1) elements *= (double)k->dim[d].local;
    return elements;
}

static role whole_beside(const mtf_node *n, const char *dim)
{
    const int at = shape_find(&n->out[0].shape, dim);
    return at >= 0 && at < n->out[0].shape.rank - 1 ? ROLE_MAP : ROLE_WHOLE;
}

/* ---- over a dim that is cut ---- */

static bool choose_infer(mtf_graph *g, mtf_node *n)
{
    const top_attr *a = n->attr;
    (void)g;
    set_results(n, a->dim, (mtf_dim){a->blocks, a->chosen});
    return true;
}

static const op choose_blocks = {
    .name = "top_k_blocks",
    .doc = "out[.., p, j] = the j-th of the first elements of block p of x",
    .nin = 1,
    .nout = 2,
    .attr_size = sizeof(top_attr),
    .fields = fields,
    .infer = choose_infer,
    .role = whole_beside,
    .kernel = kernel,
    .grains = grains,
    .cost = cost,
};

static bool join_infer(mtf_graph *g, mtf_node *n)
{
    const top_attr *a = n->attr;
    (void)g;
    set_results(n, a->blocks, (mtf_dim){a->k_name, a->k});
    return true;
}

static const op join = {
    .name = "top_k_join",
    .doc = "out[.., j] = the j-th of what all blocks chose",
    .nin = 2,
    .nout = 2,
    .attr_size = sizeof(top_attr),
    .fields = fields,
    .infer = join_infer,
    .role = whole_beside,
    .kernel = kernel,
    .grains = grains,
    .cost = cost,
};

static bool lower(lowering *l, mtf_node *n)
{
    top_attr a = *(const top_attr *)n->attr;
    mtf_tensor *x = n->in[0];
    const mtf_dim d = mtf_tensor_dim(x, a.dim);
    const int64_t parts = lower_parts(l, &d), most = (d.size + parts - 1) / parts;
    if (parts == 1) return lower_generic(l, n);
    a.blocks = lower_blocks_name(l, n);
    a.chosen = parts * (a.k < most ? a.k : most);
    mtf_tensor *chosen = lower_blocks(l, n, &choose_blocks, x, &a, a.dim, a.blocks);
    if (!chosen) return false;
    mtf_tensor *both[] = {chosen, &chosen->node->out[1]};
    mtf_tensor *out = lower_node(l, n, &join, 2, both, &a);
    for (int o = 0; out && o < 2; o++)
        lower_same(l, n, o, &out->node->out[o]);
    return out;
}

/* ---- the row ---- */

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const top_attr *a = n->attr;
    if (dy[0]) dx[0] = mtf_scatter_add(dy[0], &n->out[1], a->dim, n->in[0]->shape);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 10}, {"c", 3});
    static const struct {
        const char *dim;
        int64_t k;
        bool smallest;
    } of[] = {{"b", 1, false}, {"b", 3, true}, {"b", 10, false}, {"a", 4, true}, {"c", 2, false}};
    mtf_tensor *values, *indices;
    const int kind = k / 5;
    if (k > 14 && k < 21) { /* dims of which some processors have nothing; nothing but ties */
        const mtf_shape small = MTF_SHAPE({"b", 3}, {"c", 1});
        mtf_tensor *y = k < 19 ? sample_normal(g, small)
                               : mtf_scale(sample_integers(g, MTF_SHAPE({"b", 10})), 0);
        mtf_top_k(y, k == 15 ? "c" : "b",
                  (mtf_dim){"k", k == 15   ? 1
                                 : k == 18 ? 2
                                           : 3},
                  k % 2, &values, &indices);
        return k == 16 || k > 18 ? indices : values;
    }
    if (kind > 2) return NULL;
    mtf_tensor *x = kind == 0 ? sample_normal(g, s) : sample_integers(g, s);
    mtf_top_k(x, of[k % 5].dim, (mtf_dim){"k", of[k % 5].k}, of[k % 5].smallest, &values, &indices);
    return kind == 1 ? indices : values;
}

const op op_top_k = {
    .name = "top_k",
    .doc = "out_0[.., j] = the j-th largest (or smallest) element of x along dim, out_1 its index",
    .example = "mtf_top_k(x, \"b\", (mtf_dim){\"top\", 2}, false, &values, &indices)",
    .nin = 1,
    .nout = 2,
    .attr_size = sizeof(top_attr),
    .fields = fields,
    .infer = infer,
    .role = whole_beside,
    .grad = grad,
    .kernel = kernel,
    .grains = grains,
    .cost = cost,
    .lower = lower,
    .sample = sample,
};

void mtf_top_k(mtf_tensor *x, const char *dim, mtf_dim k, bool smallest, mtf_tensor **values,
               mtf_tensor **indices)
{
    if (values) *values = NULL;
    if (indices) *indices = NULL;
    if (!x) return;
    mtf_graph *g = x->node->graph;
    const top_attr a = {.dim = graph_intern(g, dim),
                        .k_name = graph_intern(g, k.name),
                        .k = k.size,
                        .smallest = smallest};
    mtf_tensor *out = graph_add(g, &op_top_k, NULL, 1, &x, &a);
    if (out && values) *values = &out->node->out[0];
    if (out && indices) *indices = &out->node->out[1];
}
