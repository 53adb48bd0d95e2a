/* SPDX-License-Identifier: Apache-2.0
 * cumsum: running sums along a dim, one addition per element. Where the dim is cut every processor
 * sums its block, the sums of all blocks are gathered, and each begins with those before its own.
 */
#include <string.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"
#include "ops/window.h"

typedef struct cumsum_attr {
    const char *dim;
    int exclusive, reverse;
    int at;             /* position of `dim` in the operand, set by infer */
    const char *blocks; /* of the rows for a cut dim: the dim of their sums, one for each block */
    int64_t parts;
} cumsum_attr;

static const op_field fields[] = {OP_FIELD(cumsum_attr, dim, FIELD_NAME),
                                  OP_FIELD(cumsum_attr, exclusive, FIELD_INT),
                                  OP_FIELD(cumsum_attr, reverse, FIELD_INT),
                                  {0}};

static bool infer(mtf_graph *g, mtf_node *n)
{
    cumsum_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    n->out[0].shape = x->shape;
    n->out[0].dtype = x->dtype;
    a->at = window_dim(g, n, x, a->dim);
    if (a->at < 0) return false;
    if (TYPES_NUMBER & 1u << x->dtype) return true;
    graph_fail(g, "cumsum '%s': the type %s is not possible here; cast the operand", n->name,
               mtf_dtype_name(x->dtype));
    return false;
}

/* ---- kernels ---- */

/* A block as [outer, n, inner], n along the dim. */
typedef struct columns {
    int64_t outer, n, inner;
} columns;

static columns columns_of(const kernel_args *k, int at)
{
    columns c = {.outer = 1, .n = k->dim[k->in[0].dim[at]].local, .inner = 1};
    for (int d = 0; d < k->out[0].rank; d++)
        if (d != at) *(d < at ? &c.outer : &c.inner) *= k->dim[d].local;
    return c;
}

enum { LANES = 16 };

/* The sums of a few neighbouring columns so far; of whole numbers modulo 2^32. */
typedef union running {
    double real[LANES];
    uint32_t whole[LANES];
} running;

/* One direction along n elements that are `step` apart, for a few neighbouring columns, from the
 * sums that are in `acc` on. */
#define SCAN(T, WIDE, KIND)                                                                        \
    do {                                                                                           \
        const T *in = (const T *)x + at;                                                           \
        T *out = (T *)y + at;                                                                      \
        WIDE *acc = sums->KIND;                                                                    \
        for (int64_t i = 0; i < n; i++, in += step, out += step)                                   \
            for (int j = 0; j < lanes; j++) {                                                      \
                const WIDE before = acc[j];                                                        \
                acc[j] = (WIDE)(acc[j] + (WIDE)TILE_LOAD_##T(in[j]));                              \
                out[j] = TILE_AS_##T(exclusive ? before : acc[j]);                                 \
            }                                                                                      \
    } while (0)

/* Adds n elements that are `step` apart, for a few columns, to the sums. */
#define ADD(T, WIDE, KIND)                                                                         \
    do {                                                                                           \
        const T *in = (const T *)x + at;                                                           \
        WIDE *acc = sums->KIND;                                                                    \
        for (int64_t i = 0; i < n; i++, in += step)                                                \
            for (int j = 0; j < lanes; j++)                                                        \
                acc[j] = (WIDE)(acc[j] + (WIDE)TILE_LOAD_##T(in[j]));                              \
    } while (0)

#define STORE(T, WIDE, KIND)                                                                       \
    for (int j = 0; j < lanes; j++)                                                                \
    ((T *)y)[at + j] = TILE_AS_##T(sums->KIND[j])

#define BY_TYPE(type, DO)                                                                          \
    switch (type) {                                                                                \
    case MTF_F64:                                                                                  \
        DO(double, double, real);                                                                  \
        break;                                                                                     \
    case MTF_F32:                                                                                  \
        DO(float, double, real);                                                                   \
        break;                                                                                     \
    case MTF_BF16:                                                                                 \
        DO(bf16, double, real);                                                                    \
        break;                                                                                     \
    default:                                                                                       \
        DO(int32_t, uint32_t, whole);                                                              \
        break;                                                                                     \
    }

static void add(mtf_dtype type, const void *x, int64_t at, int64_t n, int64_t step, int lanes,
                running *sums)
{
    BY_TYPE(type, ADD)
}

static void scan(mtf_dtype type, const void *x, void *y, int64_t at, int64_t n, int64_t step,
                 int lanes, bool exclusive, running *sums)
{
    BY_TYPE(type, SCAN)
}

static void store(mtf_dtype type, void *y, int64_t at, int lanes, running *sums)
{
    BY_TYPE(type, STORE)
}

/* The order in which n elements, `inner` apart from place `at` on, are summed. */
typedef struct walk {
    int64_t at, step;
} walk;

static walk walk_of(const columns *c, int64_t outer, int64_t column, bool reverse)
{
    const int64_t first = outer * c->n * c->inner + column;
    if (!reverse) return (walk){first, c->inner};
    return (walk){first + (c->n - 1) * c->inner, -c->inner};
}

/* The sums of the blocks in front of the own one, in the direction of the sum. Where a block is
 * empty its sum is 0, so those that begin where the own one does make no difference. */
static void add_blocks(const kernel_args *k, const cumsum_attr *a, const columns *c, int64_t outer,
                       int64_t column, int lanes, running *sums)
{
    const kernel_dim own = k->dim[a->at];
    const columns blocks = {.outer = c->outer, .n = a->parts, .inner = c->inner};
    const walk w = walk_of(&blocks, outer, column, a->reverse);
    int64_t n = 0;
    for (int64_t i = 0; i < a->parts; i++) {
        const int64_t first = own.global * i / a->parts;
        if (FAULT(FAULT_CUMSUM_BLOCKS)) continue;
        n += a->reverse ? first >= own.offset + own.local : first < own.offset;
    }
    add(k->in[1].dtype, k->in[1].data, w.at, n, w.step, lanes, sums);
}

/* Running sums, or the sum of all alone. */
static void sum_columns(const kernel_args *k, int64_t begin, int64_t end, bool total)
{
    const cumsum_attr *a = k->attr;
    const columns c = columns_of(k, a->at);
    for (int64_t o = begin; o < end; o++)
        for (int64_t j = 0; j < c.inner; j += LANES) {
            running sums = {0};
            const int lanes = c.inner - j < LANES ? (int)(c.inner - j) : LANES;
            const walk w = walk_of(&c, o, j, a->reverse);
            if (k->nin > 1) add_blocks(k, a, &c, o, j, lanes, &sums);
            if (total) {
                add(k->in[0].dtype, k->in[0].data, w.at, c.n, w.step, lanes, &sums);
                store(k->out[0].dtype, k->out[0].data, o * c.inner + j, lanes, &sums);
            } else {
                scan(k->out[0].dtype, k->in[0].data, k->out[0].data, w.at, c.n, w.step, lanes,
                     a->exclusive, &sums);
            }
        }
}

static void cumsum_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    sum_columns(k, begin, end, false);
}

static void block_sum_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    sum_columns(k, begin, end, true);
}

static int64_t grains(const kernel_args *k)
{
    const cumsum_attr *a = k->attr;
    return columns_of(k, a->at).outer;
}

/* ---- over a dim that is cut ---- */

static bool block_sum_infer(mtf_graph *g, mtf_node *n)
{
    const cumsum_attr *a = n->attr;
    (void)g;
    n->out[0].shape = n->in[0]->shape;
    n->out[0].shape.dim[a->at] = (mtf_dim){a->blocks, a->parts};
    n->out[0].dtype = mtf_dtype_of_sums(n->in[0]->dtype);
    return true;
}

/* Running sums of bf16 are rounded, and those of a part of the operand are not the result's. */
static bool linear(const mtf_node *n, unsigned mask)
{
    const bool rounds = n->out[0].dtype != mtf_dtype_of_sums(n->out[0].dtype);
    return mask == (1u << n->nin) - 1 && !rounds;
}

static const op block_sum = {
    .name = "cumsum_blocks",
    .doc = "out[.., p, ..] = sum of block p of x along dim",
    .nin = 1,
    .attr_size = sizeof(cumsum_attr),
    .fields = fields,
    .infer = block_sum_infer,
    .linear = linear,
    .kernel = block_sum_kernel,
    .grains = grains,
};

static role join_role(const mtf_node *n, const char *dim)
{
    return dim == ((const cumsum_attr *)n->attr)->blocks ? ROLE_WHOLE : ROLE_MAP;
}

static const op join = {
    .name = "cumsum_join",
    .doc = "out = running sums of the block of x, from the sums of the blocks in front of it on",
    .nin = 2,
    .attr_size = sizeof(cumsum_attr),
    .fields = fields,
    .infer = infer,
    .role = join_role,
    .linear = linear,
    .kernel = cumsum_kernel,
    .grains = grains,
};

static bool lower(lowering *l, mtf_node *n)
{
    cumsum_attr a = *(const cumsum_attr *)n->attr;
    const mtf_dim d = n->in[0]->shape.dim[a.at];
    a.parts = lower_parts(l, &d);
    if (a.parts == 1) return lower_generic(l, n);
    a.blocks = lower_blocks_name(l, n);
    mtf_tensor *x = n->in[0], *sums = lower_blocks(l, n, &block_sum, x, &a, a.dim, a.blocks);
    if (!sums) return false;
    mtf_tensor *out = lower_node(l, n, &join, 2, (mtf_tensor *[]){x, sums}, &a);
    if (out) lower_same(l, n, 0, out);
    return out;
}

/* ---- the row ---- */

static role cumsum_role(const mtf_node *n, const char *dim)
{
    return dim == ((const cumsum_attr *)n->attr)->dim ? ROLE_WHOLE : ROLE_MAP;
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const cumsum_attr *a = n->attr;
    dx[0] = mtf_cumsum(dy[0], a->dim, a->exclusive, !a->reverse);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    static const char *const dims[] = {"a", "b", "c", "d"};
    if (k >= 14) return NULL;
    if (k >= 10) /* dims of which some processors have nothing */
        return mtf_cumsum(sample_normal(g, MTF_SHAPE({"a", 3}, {"b", 2})), k % 2 ? "a" : "b",
                          k > 11, k == 10 || k == 12);
    if (k >= 8)
        return mtf_cumsum(sample_integers(g, MTF_SHAPE({"a", 9}, {"b", 18})), "a", k % 2, 0);
    return mtf_cumsum(sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 10}, {"c", 3}, {"d", 1})),
                      dims[k % 4], k & 1, k / 4 != (k & 1));
}

const op op_cumsum = {
    .name = "cumsum",
    .doc = "out[.., i, ..] = sum of x[.., j, ..] over j <= i along dim; exclusive: j < i; reverse: "
           "j >= i, or j > i",
    .example = "mtf_cumsum(x, \"b\", false, false)",
    .nin = 1,
    .attr_size = sizeof(cumsum_attr),
    .fields = fields,
    .infer = infer,
    .role = cumsum_role,
    .linear = linear,
    .grad = grad,
    .kernel = cumsum_kernel,
    .grains = grains,
    .lower = lower,
    .sample = sample,
};

mtf_tensor *mtf_cumsum(mtf_tensor *x, const char *dim, bool exclusive, bool reverse)
{
    if (!x) return NULL;
    const cumsum_attr a = {
        .dim = graph_intern(x->node->graph, dim), .exclusive = exclusive, .reverse = reverse};
    return graph_add(x->node->graph, &op_cumsum, NULL, 1, &x, &a);
}
