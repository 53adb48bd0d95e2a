/* SPDX-License-Identifier: Apache-2.0
 * scatter_add: the transpose of gather. A block of a split dim takes the indices that fall into it.
 */
#include <string.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/lookup.h"
#include "ops/nest.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct scatter_attr {
    const char *dim;
    mtf_shape output;
    int at;    /* position of `dim` in the iteration space */
    int grain; /* the shared dim that is cut into grains, or -1 */
} scatter_attr;

static const op_field scatter_fields[] = {
    OP_FIELD(scatter_attr, dim, FIELD_NAME), OP_FIELD(scatter_attr, output, FIELD_SHAPE), {0}};

static bool scatter_infer(mtf_graph *g, mtf_node *n)
{
    scatter_attr *a = n->attr;
    const mtf_tensor *x = n->in[0], *indices = n->in[1];
    if (!lookup_indices_usable(g, n, indices) || !graph_check_shape(g, &a->output, n->name))
        return false;
    n->out[0].shape = a->output;
    n->out[0].dtype = mtf_dtype_of_sums(x->dtype);
    a->at = shape_find(&a->output, a->dim);
    bool ok = a->at >= 0 && shape_find(&x->shape, a->dim) < 0 &&
              shape_find(&indices->shape, a->dim) < 0 && x->dtype != MTF_BOOL;
    for (int i = 0; i < indices->shape.rank; i++)
        ok = ok && shape_find(&x->shape, indices->shape.dim[i].name) >= 0;
    a->grain = -1;
    int64_t most = 0;
    for (int i = 0; i < a->output.rank; i++) {
        if (i == a->at) continue;
        const int in_x = shape_find(&x->shape, a->output.dim[i].name);
        ok = ok && in_x >= 0 && x->shape.dim[in_x].size == a->output.dim[i].size;
        if (a->output.dim[i].size > most) most = a->output.dim[a->grain = i].size;
    }
    if (ok) return true;
    graph_fail(
        g,
        "scatter_add '%s': updates %s%s and indices %s do not fit the output %s along %s: the "
        "output has %s and dims of the updates; the updates have all dims of the indices",
        n->name, mtf_dtype_name(x->dtype), shape_text(&x->shape), shape_text(&indices->shape),
        shape_text(&a->output), a->dim, a->dim);
    return false;
}

typedef struct scatter {
    lookup l;
    mtf_dtype type; /* of the updates */
} scatter;

#define SCATTER(S, T, SUM)                                                                         \
    do {                                                                                           \
        const S *x = (const S *)(const void *)l->table + at[0];                                    \
        T *out = (T *)(void *)l->out + at[2];                                                      \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const int64_t i = l->index[at[1] + j * stride[1]] - l->first;                          \
            T *to = out + j * stride[2] + i * l->along;                                            \
            if (i >= 0 && i < l->count) *to = (T)(SUM);                                            \
        }                                                                                          \
    } while (0)

static void scatter_run(void *ctx, int64_t n, const int64_t *at, const int64_t *stride)
{
    const scatter *s = ctx;
    const lookup *l = &s->l;
    switch (s->type) {
    case MTF_F32:
        SCATTER(float, float, *to + x[j * stride[0]]);
        break;
    case MTF_F64:
        SCATTER(double, double, *to + x[j * stride[0]]);
        break;
    case MTF_BF16: /* into f32 */
        SCATTER(bf16, float, *to + bf16_to_f32(x[j * stride[0]]));
        break;
    default:
        SCATTER(int32_t, int32_t, (uint32_t)*to + (uint32_t)x[j * stride[0]]);
        break;
    }
}

enum { SCATTER_GRAIN = 64 };

static int64_t scatter_grains(const kernel_args *k)
{
    const scatter_attr *a = k->attr;
    return a->grain < 0 ? 1 : (k->dim[a->grain].local + SCATTER_GRAIN - 1) / SCATTER_GRAIN;
}

static void clear_run(void *ctx, int64_t n, const int64_t *at, const int64_t *stride)
{
    const lookup *l = ctx;
    char *out = l->out + at[0] * l->size;
    if (stride[0] == 1)
        memset(out, 0, (size_t)(n * l->size));
    else
        for (int64_t i = 0; i < n; i++)
            memset(out + i * stride[0] * l->size, 0, (size_t)l->size);
}

/* Elements [lo, hi) of the grain dim: cleared, then the updates added in row-major order. */
static void scatter_part(const kernel_args *k, const scatter_attr *a, int64_t lo, int64_t hi)
{
    const kernel_view *views[] = {&k->in[0], &k->in[1], &k->out[0]};
    nest add = {.views = 3}, clear = {.views = 1};
    int64_t base[3] = {0}, clear_base[1] = {0};
    for (int i = 0; i < k->in[0].rank; i++)
        nest_add(&add, k, k->in[0].dim[i], views);
    for (int d = 0; d < k->out[0].rank; d++)
        nest_add(&clear, k, d, views + 2);
    if (a->grain >= 0) {
        clear.n[a->grain] = hi - lo;
        clear_base[0] = lo * clear.stride[0][a->grain];
    }
    for (int i = 0; i < k->in[0].rank && a->grain >= 0; i++) {
        if (k->in[0].dim[i] != a->grain) continue;
        add.n[i] = hi - lo;
        for (int v = 0; v < 3; v++)
            base[v] = lo * add.stride[v][i];
    }
    scatter s = {.l = lookup_of(k, &k->out[0], &k->in[1], a->at, FAULT(FAULT_GATHER_OFFSET)),
                 .type = k->in[0].dtype};
    s.l.table = k->in[0].data;
    nest_run(&clear, clear_base, clear_run, &s.l);
    nest_run(&add, base, scatter_run, &s);
}

static void scatter_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    const scatter_attr *a = k->attr;
    const int64_t n = a->grain < 0 ? 1 : k->dim[a->grain].local;
    for (int64_t i = begin; i < end; i++) {
        const int64_t lo = i * SCATTER_GRAIN, hi = lo + SCATTER_GRAIN < n ? lo + SCATTER_GRAIN : n;
        scatter_part(k, a, lo, hi);
    }
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

static void scatter_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const scatter_attr *a = n->attr;
    mtf_tensor *dx0 = mtf_gather(dy[0], n->in[1], a->dim);
    dx[0] = mtf_broadcast(mtf_cast(dx0, n->in[0]->dtype), n->in[0]->shape);
}

static mtf_tensor *scatter_sample(mtf_graph *g, int k)
{
    const mtf_shape ad = MTF_SHAPE({"a", 9}, {"d", 4}), a9 = MTF_SHAPE({"a", 9});
    mtf_tensor *i;
    switch (k) {
    case 0:
        return mtf_scatter_add(sample_normal(g, ad), sample_integers(g, a9), "v",
                               MTF_SHAPE({"v", 6}, {"d", 4}));
    case 1:
        return mtf_scatter_add(sample_normal(g, a9), sample_integers(g, a9), "v",
                               MTF_SHAPE({"a", 9}, {"v", 10}));
    case 2:
        return mtf_scatter_add(sample_normal(g, a9), sample_integers(g, a9), "v",
                               MTF_SHAPE({"v", 6}));
    case 3: /* no index is in the result; all are one */
    case 4:
    case 5:
        i = mtf_offset(mtf_scale(sample_integers(g, a9), k == 5 ? 0 : 1), k == 3   ? 6
                                                                          : k == 4 ? -8
                                                                                   : 5);
        return mtf_scatter_add(sample_normal(g, ad), i, "v", MTF_SHAPE({"v", 6}, {"d", 4}));
    case 6: /* dims of which some processors have nothing */
        return mtf_scatter_add(sample_normal(g, MTF_SHAPE({"a", 3}, {"d", 1})),
                               sample_integers(g, MTF_SHAPE({"a", 3})), "v",
                               MTF_SHAPE({"d", 1}, {"v", 2}));
    case 7:
        return mtf_scatter_add(sample_normal(g, MTF_SHAPE({"d", 4})),
                               sample_integers(g, MTF_SCALAR), "v", MTF_SHAPE({"v", 6}, {"d", 4}));
    case 8:
        return mtf_scatter_add(sample_normal(g, MTF_SCALAR), sample_integers(g, MTF_SCALAR), "v",
                               MTF_SHAPE({"v", 1}));
    case 9:
        return mtf_scatter_add(sample_integers(g, ad), sample_integers(g, a9), "v",
                               MTF_SHAPE({"v", 6}, {"d", 4}));
    }
    return NULL;
}

/* One per element of the updates: the indexed dim is looked up, not walked. */
static double cost(const mtf_node *n, const kernel_args *k)
{
    const scatter_attr *a = n->attr;
    double elements = 1;
    for (int i = 0; i < k->space; i++)
        if (i != a->at) elements *= (double)k->dim[i].local;
    return elements;
}

const op op_scatter_add = {
    .name = "scatter_add",
    .doc = "out = sum of the updates whose index is dim's index",
    .example = "mtf_scatter_add(x, i, \"v\", MTF_SHAPE(v, b))",
    .nin = 2,
    .attr_size = sizeof(scatter_attr),
    .fields = scatter_fields,
    .infer = scatter_infer,
    .linear = linear,
    .grad = scatter_grad,
    .kernel = scatter_kernel,
    .grains = scatter_grains,
    .cost = cost,
    .sample = scatter_sample,
};

mtf_tensor *mtf_scatter_add(mtf_tensor *updates, mtf_tensor *indices, const char *dim,
                            mtf_shape output)
{
    mtf_tensor *const in[] = {updates, indices};
    mtf_graph *g = graph_of(2, in);
    if (!g) return NULL;
    const scatter_attr a = {.dim = graph_intern(g, dim), .output = output};
    mtf_tensor *sum = graph_add(g, &op_scatter_add, NULL, 2, in, &a);
    return sum ? mtf_cast(sum, updates->dtype) : NULL;
}
