/* SPDX-License-Identifier: Apache-2.0
 * einsum: the product of its operands, summed over the dims that the output lacks.
 *
 * The builder leaves simple rows only: a dim of one operand that nobody else and not the output has
 * is summed away before, a new dim of the output is a broadcast after. So every reduced dim of the
 * row stands in at least two operands. More than two operands are ordered when the row is lowered,
 * where local sizes are known.
 *
 * A product of bf16 is an f32 in the row, so that partial sums of blocks travel and are added in
 * f32; the builder rounds the whole sum, once. What it sums before is not rounded. */
#include <math.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/nest.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct einsum_attr {
    mtf_shape output;
} einsum_attr;

static const op_field fields[] = {OP_FIELD(einsum_attr, output, FIELD_SHAPE), {0}};

static bool infer(mtf_graph *g, mtf_node *n)
{
    einsum_attr *a = n->attr;
    if (!graph_check_shape(g, &a->output, n->name)) return false;
    n->out[0].shape = a->output;
    n->out[0].dtype = mtf_dtype_of_sums(n->in[0]->dtype);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->dtype != n->in[0]->dtype || n->in[i]->dtype == MTF_BOOL) {
            graph_fail(g,
                       "einsum '%s': the operands have the types %s and %s; they must be equal "
                       "and not bool",
                       n->name, mtf_dtype_name(n->in[0]->dtype), mtf_dtype_name(n->in[i]->dtype));
            return false;
        }
    for (int i = 0; i < a->output.rank; i++)
        for (int j = 0; j < n->nin; j++) {
            const mtf_shape *s = &n->in[j]->shape;
            const int at = shape_find(s, a->output.dim[i].name);
            if (at < 0 || s->dim[at].size == a->output.dim[i].size) continue;
            graph_fail(g, "einsum '%s': dim %s has size %lld in operand %d and %lld in the output",
                       n->name, a->output.dim[i].name, (long long)s->dim[at].size, j,
                       (long long)a->output.dim[i].size);
            return false;
        }
    return true;
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask && (mask & (mask - 1)) == 0;
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    for (int i = 0; i < n->nin; i++) {
        mtf_tensor *others[KERNEL_MAX_IN] = {mtf_cast(dy[0], n->in[0]->dtype)};
        int count = 1;
        for (int j = 0; j < n->nin; j++)
            if (j != i) others[count++] = n->in[j];
        if (FAULT(FAULT_EINSUM_GRADIENT) && n->nin == 2 &&
            shape_equal(&n->in[0]->shape, &n->in[1]->shape))
            others[1] = n->in[i];
        dx[i] = mtf_einsum(count, others, n->in[i]->shape);
    }
}

/* Two flops per point of the iteration space and operand beyond the first. */
static double cost(const mtf_node *n, const kernel_args *k)
{
    double points = 1;
    for (int i = 0; i < k->space; i++)
        points *= (double)k->dim[i].local;
    return points * (n->nin > 1 ? 2.0 * (n->nin - 1) : 1.0);
}

/* ---- reference kernel for two operands ---- */

typedef struct dot {
    const kernel_args *k;
    double sum;
    float sum32;
    uint32_t sum_int;
} dot;

static void dot_run(void *ctx, int64_t n, const int64_t *at, const int64_t *stride)
{
    dot *d = ctx;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = at[0] + i * stride[0], b = at[1] + i * stride[1];
        switch (d->k->in[0].dtype) {
        case MTF_BF16:
            d->sum32 += bf16_to_f32(((const bf16 *)d->k->in[0].data)[a]) *
                        bf16_to_f32(((const bf16 *)d->k->in[1].data)[b]);
            break;
        case MTF_F32:
            d->sum32 += ((const float *)d->k->in[0].data)[a] * ((const float *)d->k->in[1].data)[b];
            break;
        case MTF_F64:
            d->sum += ((const double *)d->k->in[0].data)[a] * ((const double *)d->k->in[1].data)[b];
            break;
        default:
            d->sum_int += (uint32_t)((const int32_t *)d->k->in[0].data)[a] *
                          (uint32_t)((const int32_t *)d->k->in[1].data)[b];
            break;
        }
    }
}

typedef struct product {
    const kernel_args *k;
    nest reduced;
} product;

static void output_run(void *ctx, int64_t n, const int64_t *at, const int64_t *stride)
{
    const product *p = ctx;
    for (int64_t i = 0; i < n; i++) {
        dot d = {.k = p->k};
        const int64_t base[2] = {at[0] + i * stride[0], at[1] + i * stride[1]};
        const int64_t out = at[2] + i * stride[2];
        nest_run(&p->reduced, base, dot_run, &d);
        switch (p->k->out[0].dtype) {
        case MTF_F32:
            ((float *)p->k->out[0].data)[out] = d.sum32;
            break;
        case MTF_F64:
            ((double *)p->k->out[0].data)[out] = d.sum;
            break;
        default:
            ((int32_t *)p->k->out[0].data)[out] = (int32_t)d.sum_int;
            break;
        }
    }
}

static void kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    const kernel_view *views[] = {&k->in[0], &k->in[1], &k->out[0]};
    product p = {.k = k, .reduced = {.views = 2}};
    nest kept = {.views = 3};
    for (int d = 0; d < k->space; d++) {
        if (d < k->out[0].rank)
            nest_add(&kept, k, d, views);
        else
            nest_add(&p.reduced, k, d, views);
    }
    nest_run(&kept, NULL, output_run, &p);
}

/* ---- order of many operands: dynamic programming over subsets, by local work ---- */

typedef struct plan {
    lowering *l;
    const mtf_node *n;
    double points[3][256];             /* product of the local sizes of eight dims, by their bits */
    uint32_t of[KERNEL_MAX_IN];        /* dims of an operand, as bits of the iteration space */
    uint32_t kept[1 << KERNEL_MAX_IN]; /* dims of the product of a subset */
    double cost[1 << KERNEL_MAX_IN];
    int left[1 << KERNEL_MAX_IN]; /* one half of the best cut of a subset */
} plan;

_Static_assert(KERNEL_MAX_SPACE <= 24, "dims of the iteration space are bits of three bytes");

static uint32_t dims_of(const mtf_shape *s, int ndims, const mtf_dim *dims)
{
    uint32_t mask = 0;
    for (int i = 0; i < ndims; i++)
        if (shape_find(s, dims[i].name) >= 0) mask |= 1u << i;
    return mask;
}

/* Bits of all operands, sizes of all dims, and what every subset keeps: dims of its operands that
 * something outside of it, or the output, still needs. */
static void describe(plan *p)
{
    const mtf_node *n = p->n;
    mtf_dim dims[KERNEL_MAX_SPACE];
    const int ndims = op_space(n, dims), all = (1 << n->nin) - 1;
    for (int byte = 0; byte < 3; byte++)
        for (int bits = 0; bits < 256; bits++) {
            p->points[byte][bits] = 1;
            for (int i = 8 * byte; i < ndims && i < 8 * byte + 8; i++)
                if (bits >> (i - 8 * byte) & 1)
                    p->points[byte][bits] *= (double)lower_local(p->l, &dims[i]);
        }
    for (int i = 0; i < n->nin; i++)
        p->of[i] = dims_of(&n->in[i]->shape, ndims, dims);
    for (int set = 1; set <= all; set++) {
        uint32_t inside = 0, needed = dims_of(&n->out[0].shape, ndims, dims);
        for (int i = 0; i < n->nin; i++)
            *(set >> i & 1 ? &inside : &needed) |= p->of[i];
        p->kept[set] = inside & needed;
    }
}

/* The best cut of a subset whose parts are known. A product that is no tensor costs infinity. */
static void best_cut(plan *p, int set)
{
    const int rest = set & ~(1 << (31 - __builtin_clz((unsigned)set)));
    p->cost[set] = INFINITY;
    if (__builtin_popcount(p->kept[set]) > MTF_MAX_RANK) return;
    for (int part = rest; part; part = (part - 1) & rest) { /* the half without the last operand */
        const uint32_t space = p->kept[part] | p->kept[set & ~part];
        const double points =
            p->points[0][space & 255] * p->points[1][space >> 8 & 255] * p->points[2][space >> 16];
        const double c = p->cost[part] + p->cost[set & ~part] + points;
        if (c > p->cost[set] || c == INFINITY) continue;
        p->cost[set] = c;
        p->left[set] = set & ~part;
    }
}

/* The dims that a subset keeps, in the order of its operands. */
static mtf_shape subset_shape(const plan *p, int set)
{
    mtf_shape s = MTF_SCALAR;
    mtf_dim dims[KERNEL_MAX_SPACE];
    op_space(p->n, dims);
    for (int i = 0; i < p->n->nin; i++)
        for (int j = 0; (set >> i & 1) && j < p->n->in[i]->shape.rank; j++) {
            const mtf_dim d = p->n->in[i]->shape.dim[j];
            int bit = 0;
            while (dims[bit].name != d.name)
                bit++;
            if ((p->kept[set] >> bit & 1) && shape_find(&s, d.name) < 0) s = mtf_shape_with(s, d);
        }
    return s;
}

/* A product of bf16 is an f32; an operand that it meets becomes one too. */
static mtf_tensor *widened(plan *p, mtf_tensor *x)
{
    const cast_attr f32 = {MTF_F32};
    return x->dtype == MTF_F32 ? x : lower_node(p->l, p->n, &op_cast, 1, &x, &f32);
}

static mtf_tensor *emit(plan *p, int set)
{
    if ((set & (set - 1)) == 0) return p->n->in[__builtin_ctz((unsigned)set)];
    mtf_tensor *in[2] = {emit(p, p->left[set]), emit(p, set & ~p->left[set])};
    for (int i = 0; i < 2 && in[0] && in[1]; i++)
        if (in[i]->dtype != in[1 - i]->dtype) in[i] = widened(p, in[i]);
    if (!in[0] || !in[1]) return NULL;
    const bool all = set == (1 << p->n->nin) - 1;
    const einsum_attr a = {all ? p->n->out[0].shape : subset_shape(p, set)};
    return lower_node(p->l, p->n, &op_einsum, 2, in, &a);
}

static bool lower(lowering *l, mtf_node *n)
{
    if (n->nin == 2) return lower_generic(l, n);
    const int all = (1 << n->nin) - 1;
    plan *p = mem_zalloc(sizeof *p);
    p->l = l;
    p->n = n;
    describe(p);
    for (int set = 1; set <= all; set++)
        if (set & (set - 1)) best_cut(p, set);
    const bool ordered = p->cost[all] < INFINITY;
    const mtf_tensor *whole = ordered ? emit(p, all) : NULL;
    if (whole) lower_same(l, n, 0, whole);
    if (!ordered)
        lower_fail(l,
                   "einsum '%s': in every order of the operands the product of some has more than "
                   "%d dims; multiply in parts",
                   n->name, MTF_MAX_RANK);
    mem_free(p);
    return whole;
}

/* ---- builder ---- */

/* Dims of xs[i] that neither the output nor another operand has are summed at once. */
static mtf_tensor *without_private_dims(int n, mtf_tensor *const *xs, int i,
                                        const mtf_shape *output)
{
    mtf_shape kept = MTF_SCALAR;
    for (int d = 0; d < xs[i]->shape.rank; d++) {
        const mtf_dim dim = xs[i]->shape.dim[d];
        bool needed = shape_find(output, dim.name) >= 0;
        for (int j = 0; j < n; j++)
            needed = needed || (j != i && shape_find(&xs[j]->shape, dim.name) >= 0);
        if (needed) kept = mtf_shape_with(kept, dim);
    }
    return kept.rank == xs[i]->shape.rank ? xs[i] : mtf_reduce_sum(xs[i], kept);
}

/* Sums of bf16 that go into a product are not rounded before it, so that the other operands become
 * f32 as well. */
static void keep_sums_wide(int n, mtf_tensor *const *xs, mtf_tensor **in)
{
    bool narrow_sum = false;
    for (int i = 0; i < n; i++)
        narrow_sum = narrow_sum || (in[i] != xs[i] && in[i]->dtype == MTF_BF16);
    for (int i = 0; narrow_sum && i < n; i++)
        in[i] = in[i] != xs[i] ? op_unrounded(in[i]) : mtf_cast(in[i], MTF_F32);
}

static bool all_there(mtf_graph *g, int n, mtf_tensor *const *xs)
{
    for (int i = 0; i < n; i++) {
        if (xs[i] && xs[i]->node->graph == g) continue;
        if (xs[i])
            graph_fail(g, "einsum: operand '%s' belongs to another graph", xs[i]->node->name);
        else
            graph_fail(g, "einsum: operand %d is NULL", i);
        return false;
    }
    return true;
}

mtf_tensor *mtf_einsum(int n, mtf_tensor *const *xs, mtf_shape output)
{
    mtf_graph *g = graph_of(n, xs);
    if (!g || !all_there(g, n, xs)) return NULL;
    if (n > KERNEL_MAX_IN)
        return graph_fail(g, "einsum: %d operands; at most %d are possible", n, KERNEL_MAX_IN);
    if (!graph_check_shape(g, &output, "einsum")) return NULL;
    mtf_tensor *in[KERNEL_MAX_IN];
    mtf_shape known = MTF_SCALAR;
    for (int i = 0; i < n; i++) {
        in[i] = without_private_dims(n, xs, i, &output);
        if (!in[i]) return NULL;
    }
    if (n > 1) keep_sums_wide(n, xs, in);
    for (int i = 0; i < output.rank; i++)
        for (int j = 0; j < n; j++)
            if (shape_find(&in[j]->shape, output.dim[i].name) >= 0) {
                known = mtf_shape_with(known, output.dim[i]);
                break;
            }
    mtf_tensor *y = n == 1 ? mtf_reduce_sum(in[0], known)
                           : graph_add(g, &op_einsum, NULL, n, in, &(einsum_attr){known});
    return y ? mtf_broadcast(mtf_cast(y, xs[0]->dtype), output) : NULL;
}

mtf_tensor *mtf_matmul(mtf_tensor *x, mtf_tensor *y, mtf_shape output)
{
    return mtf_einsum(2, (mtf_tensor *[]){x, y}, output);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    const mtf_dim a = {"a", 4}, b = {"b", 6}, c = {"c", 9}, d = {"d", 3}, e = {"e", 2};
    mtf_tensor *x[5];
#define S(...) sample_normal(g, MTF_SHAPE(__VA_ARGS__))
    switch (k) {
    case 0:
        return mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    case 1:
        return mtf_matmul(S(a, b, d), S(a, d, c), MTF_SHAPE(a, b, c));
    case 2:
        return mtf_matmul(S(a, b), S(c, b), MTF_SHAPE(c, a));
    case 3:
        return mtf_matmul(S(a, b), S(a, b), MTF_SCALAR);
    case 4:
        return mtf_matmul(S(a), S(b), MTF_SHAPE(a, b));
    case 5:
        x[0] = S(a, b), x[1] = S(b, c), x[2] = S(c, d);
        return mtf_einsum(3, x, MTF_SHAPE(a, d));
    case 6:
        x[0] = S(a, b), x[1] = S(b, c), x[2] = S(a, c);
        return mtf_einsum(3, x, MTF_SHAPE(b));
    case 7:
        return mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, d));
    case 8:
        return mtf_matmul(S(a, b), S(a, b), MTF_SHAPE(b, a));
    case 9: /* a product of two has dims that no operand and not the output joins */
        x[0] = S(a, b), x[1] = S(b, c), x[2] = S(c, d), x[3] = S(d, a);
        return mtf_einsum(4, x, MTF_SHAPE(c, a));
    case 10:
        x[0] = S(d, e), x[1] = S(a, e), x[2] = S(a), x[3] = S(d), x[4] = S(e);
        return mtf_einsum(5, x, MTF_SHAPE(e));
    case 11: /* one operand: twice, thrice, alone, alone with a new dim */
        x[0] = x[1] = S(a, b);
        return mtf_einsum(2, x, MTF_SHAPE(a));
    case 12:
        x[0] = x[1] = x[2] = S(d, e);
        return mtf_einsum(3, x, MTF_SCALAR);
    case 13:
        x[0] = S(a, b);
        return mtf_einsum(1, x, MTF_SHAPE(b));
    case 14:
        x[0] = S(a, b);
        return mtf_einsum(1, x, MTF_SHAPE(d, b, a));
    case 15: /* scalars */
        return mtf_matmul(S(a, b), sample_normal(g, MTF_SCALAR), MTF_SHAPE(b));
    case 16:
        x[0] = sample_normal(g, MTF_SCALAR), x[1] = S(a, d), x[2] = sample_normal(g, MTF_SCALAR);
        return mtf_einsum(3, x, MTF_SHAPE(d, a, e));
    case 17:
        return mtf_matmul(sample_normal(g, MTF_SCALAR), sample_normal(g, MTF_SCALAR), MTF_SCALAR);
    case 18: /* dims of size 1 */
        return mtf_matmul(S({"a", 1}, {"b", 1}), S({"b", 1}, {"c", 1}),
                          MTF_SHAPE({"a", 1}, {"c", 1}));
    case 19:
        return mtf_matmul(S({"a", 1}, d), S(d, e), MTF_SHAPE(e, {"a", 1}));
    case 20:
        return mtf_matmul(S({"a", 1}, b, {"c", 1}), S({"a", 1}, {"c", 1}, d),
                          MTF_SHAPE({"a", 1}, b, d));
    case 21:
        return mtf_matmul(sample_integers(g, MTF_SHAPE(a, b)), sample_integers(g, MTF_SHAPE(b, d)),
                          MTF_SHAPE(a, d));
    }
#undef S
    return NULL;
}

const op op_einsum = {
    .name = "einsum",
    .doc = "out = product of the operands, summed over the dims that the output lacks",
    .example = "mtf_einsum(2, (mtf_tensor *[]){x, y}, MTF_SHAPE(a))",
    .nin = -1,
    .attr_size = sizeof(einsum_attr),
    .fields = fields,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .kernel = kernel,
    .accumulate = &op_add,
    .cost = cost,
    .lower = lower,
    .sample = sample,
};
