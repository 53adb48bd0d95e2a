/* SPDX-License-Identifier: Apache-2.0
 * gather, scatter_add and one_hot. The indexed dim may be split: a block serves the indices that
 * fall into it, so a gather from a split table is a partial sum and nothing is gathered. */
#include <string.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/nest.h"
#include "ops/rows.h"
#include "ops/tile.h"

static bool indices_usable(mtf_graph *g, const mtf_node *n, const mtf_tensor *indices)
{
    if (indices->dtype == MTF_I32) return true;
    graph_fail(g, "%s '%s': the indices have the type %s; they must be i32", n->op->name, n->name,
               mtf_dtype_name(indices->dtype));
    return false;
}

/* Position of a dim in the iteration space of a node whose output 0 is listed first. */
static int space_of(const mtf_node *n, const char *dim)
{
    mtf_dim dims[KERNEL_MAX_SPACE];
    const int count = op_space(n, dims);
    for (int i = 0; i < count; i++)
        if (dims[i].name == dim) return i;
    return -1;
}

/* ---- gather ---- */

typedef struct gather_attr {
    const char *dim;
    int at; /* its position in the iteration space */
} gather_attr;

static const op_field gather_fields[] = {OP_FIELD(gather_attr, dim, FIELD_NAME), {0}};

static bool gather_infer(mtf_graph *g, mtf_node *n)
{
    gather_attr *a = n->attr;
    const mtf_tensor *table = n->in[0], *indices = n->in[1];
    if (!indices_usable(g, n, indices)) return false;
    if (shape_find(&table->shape, a->dim) < 0 || shape_find(&indices->shape, a->dim) >= 0) {
        graph_fail(g,
                   "gather '%s': dim %s must be a dim of the table %s and none of the indices %s",
                   n->name, a->dim, shape_text(&table->shape), shape_text(&indices->shape));
        return false;
    }
    const mtf_shape rest = mtf_shape_without(table->shape, a->dim);
    n->out[0].shape = indices->shape;
    for (int i = 0; i < rest.rank; i++)
        if (shape_find(&indices->shape, rest.dim[i].name) < 0)
            n->out[0].shape = mtf_shape_with(n->out[0].shape, rest.dim[i]);
    n->out[0].dtype = table->dtype;
    a->at = space_of(n, a->dim);
    return true;
}

/* Bools have no sum: each processor needs the whole of the indexed dim. */
static role gather_role(const mtf_node *n, const char *dim)
{
    if (shape_find(&n->out[0].shape, dim) >= 0) return ROLE_MAP;
    return n->out[0].dtype == MTF_BOOL ? ROLE_WHOLE : ROLE_SUM;
}

static bool gather_linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

typedef struct lookup {
    const char *table;
    const int32_t *index;
    char *out;
    int64_t size;         /* bytes of an element */
    int64_t along;        /* stride of the indexed dim in the table, in elements */
    int64_t first, count; /* the block of the indexed dim that is here */
} lookup;

static lookup lookup_of(const kernel_args *k, const kernel_view *table, const kernel_view *index,
                        int dim, bool forget_offset)
{
    return (lookup){.table = table->data,
                    .index = index->data,
                    .out = k->out[0].data,
                    .size = mtf_dtype_size(k->out[0].dtype),
                    .along = view_stride(table, dim),
                    .first = forget_offset ? 0 : k->dim[dim].offset,
                    .count = k->dim[dim].local};
}

/* One index for the whole run, or one per element of it. */
static void gather_run(void *ctx, int64_t n, const int64_t *at, const int64_t *stride)
{
    const lookup *l = ctx;
    char *out = l->out + at[2] * l->size;
    if (stride[1] == 0 && stride[0] == 1) {
        const int64_t i = l->index[at[1]] - l->first;
        if (i < 0 || i >= l->count)
            memset(out, 0, (size_t)(n * l->size));
        else
            memcpy(out, l->table + (at[0] + i * l->along) * l->size, (size_t)(n * l->size));
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        const int64_t i = l->index[at[1] + j * stride[1]] - l->first;
        if (i < 0 || i >= l->count)
            memset(out + j * l->size, 0, (size_t)l->size);
        else
            memcpy(out + j * l->size, l->table + (at[0] + j * stride[0] + i * l->along) * l->size,
                   (size_t)l->size);
    }
}

static int64_t first_dim_grains(const kernel_args *k)
{
    return k->out[0].rank ? k->dim[0].local : 1;
}

static void gather_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    const gather_attr *a = k->attr;
    const kernel_view *views[] = {&k->in[0], &k->in[1], &k->out[0]};
    nest s = {.views = 3};
    for (int d = 0; d < k->out[0].rank; d++)
        nest_add(&s, k, d, views);
    lookup l = lookup_of(k, &k->in[0], &k->in[1], a->at, FAULT(FAULT_GATHER_OFFSET));
    int64_t base[3] = {0};
    if (s.rank) {
        s.n[0] = end - begin;
        for (int v = 0; v < 3; v++)
            base[v] = begin * s.stride[v][0];
    }
    nest_run(&s, base, gather_run, &l);
}

static void gather_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const gather_attr *a = n->attr;
    dx[0] = mtf_scatter_add(dy[0], n->in[1], a->dim, n->in[0]->shape);
}

static mtf_tensor *gather_sample(mtf_graph *g, int k)
{
    const mtf_shape v = MTF_SHAPE({"v", 6}, {"d", 4}), av = MTF_SHAPE({"a", 4}, {"v", 7});
    switch (k) {
    case 0:
        return mtf_gather(sample_normal(g, v), sample_integers(g, MTF_SHAPE({"a", 5})), "v");
    case 1:
        return mtf_gather(sample_normal(g, v), sample_integers(g, MTF_SHAPE({"a", 3}, {"b", 2})),
                          "v");
    case 2:
        return mtf_gather(sample_normal(g, av), sample_integers(g, MTF_SHAPE({"a", 4})), "v");
    case 3:
        return mtf_gather(sample_normal(g, v), sample_integers(g, MTF_SCALAR), "v");
    case 4:
        return mtf_gather(sample_normal(g, MTF_SHAPE({"v", 6})),
                          sample_integers(g, MTF_SHAPE({"a", 5})), "v");
    case 5:
        return mtf_gather(sample_flags(g, v), sample_integers(g, MTF_SHAPE({"a", 5})), "v");
    }
    return NULL;
}

const op op_gather = {
    .name = "gather",
    .doc = "out = table at the index along dim; 0 where the index is outside",
    .nin = 2,
    .attr_size = sizeof(gather_attr),
    .fields = gather_fields,
    .infer = gather_infer,
    .role = gather_role,
    .linear = gather_linear,
    .grad = gather_grad,
    .kernel = gather_kernel,
    .grains = first_dim_grains,
    .sample = gather_sample,
};

mtf_tensor *mtf_gather(mtf_tensor *table, mtf_tensor *indices, const char *dim)
{
    mtf_tensor *const in[] = {table, indices};
    mtf_graph *g = graph_of(2, in);
    if (!g) return NULL;
    const gather_attr a = {.dim = graph_intern(g, dim)};
    return graph_add(g, &op_gather, NULL, 2, in, &a);
}

/* ---- scatter_add ---- */

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
    if (!indices_usable(g, n, indices) || !graph_check_shape(g, &a->output, n->name)) return false;
    n->out[0].shape = a->output;
    n->out[0].dtype = x->dtype;
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
    mtf_dtype type;
} scatter;

#define SCATTER(T, SUM)                                                                            \
    do {                                                                                           \
        const T *x = (const T *)(const void *)l->table + at[0];                                    \
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
        SCATTER(float, *to + x[j * stride[0]]);
        break;
    case MTF_F64:
        SCATTER(double, *to + x[j * stride[0]]);
        break;
    default:
        SCATTER(int32_t, (uint32_t)*to + (uint32_t)x[j * stride[0]]);
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
                 .type = k->out[0].dtype};
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

static void scatter_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const scatter_attr *a = n->attr;
    dx[0] = mtf_broadcast(mtf_gather(dy[0], n->in[1], a->dim), n->in[0]->shape);
}

static mtf_tensor *scatter_sample(mtf_graph *g, int k)
{
    const mtf_shape ad = MTF_SHAPE({"a", 5}, {"d", 4}), a5 = MTF_SHAPE({"a", 5});
    switch (k) {
    case 0:
        return mtf_scatter_add(sample_normal(g, ad), sample_integers(g, a5), "v",
                               MTF_SHAPE({"v", 6}, {"d", 4}));
    case 1:
        return mtf_scatter_add(sample_normal(g, a5), sample_integers(g, a5), "v",
                               MTF_SHAPE({"a", 5}, {"v", 7}));
    case 2:
        return mtf_scatter_add(sample_normal(g, a5), sample_integers(g, a5), "v",
                               MTF_SHAPE({"v", 6}));
    }
    return NULL;
}

const op op_scatter_add = {
    .name = "scatter_add",
    .doc = "out = sum of the updates whose index is dim's index",
    .nin = 2,
    .attr_size = sizeof(scatter_attr),
    .fields = scatter_fields,
    .infer = scatter_infer,
    .linear = gather_linear,
    .grad = scatter_grad,
    .kernel = scatter_kernel,
    .grains = scatter_grains,
    .sample = scatter_sample,
};

mtf_tensor *mtf_scatter_add(mtf_tensor *updates, mtf_tensor *indices, const char *dim,
                            mtf_shape output)
{
    mtf_tensor *const in[] = {updates, indices};
    mtf_graph *g = graph_of(2, in);
    if (!g) return NULL;
    const scatter_attr a = {.dim = graph_intern(g, dim), .output = output};
    return graph_add(g, &op_scatter_add, NULL, 2, in, &a);
}

/* ---- one_hot ---- */

typedef struct one_hot_attr {
    mtf_shape dim; /* of rank 1 */
    double on, off;
    mtf_dtype type;
} one_hot_attr;

static const op_field one_hot_fields[] = {OP_FIELD(one_hot_attr, dim, FIELD_SHAPE),
                                          OP_FIELD(one_hot_attr, on, FIELD_F64),
                                          OP_FIELD(one_hot_attr, off, FIELD_F64),
                                          OP_FIELD(one_hot_attr, type, FIELD_DTYPE),
                                          {0}};

static bool one_hot_infer(mtf_graph *g, mtf_node *n)
{
    one_hot_attr *a = n->attr;
    if (!indices_usable(g, n, n->in[0]) || !graph_check_shape(g, &a->dim, n->name)) return false;
    n->out[0].shape = mtf_shape_with(n->in[0]->shape, a->dim.dim[0]);
    n->out[0].dtype = a->type;
    return true;
}

static void put(const kernel_view *v, int64_t at, double x)
{
    switch (v->dtype) {
    case MTF_F32:
        ((float *)v->data)[at] = (float)x;
        break;
    case MTF_F64:
        ((double *)v->data)[at] = x;
        break;
    case MTF_I32:
        ((int32_t *)v->data)[at] = tile_to_i32(x);
        break;
    default:
        ((uint8_t *)v->data)[at] = x != 0;
        break;
    }
}

static void one_hot_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    const one_hot_attr *a = k->attr;
    const int last = k->out[0].rank - 1;
    const kernel_dim d = k->dim[last];
    const int64_t offset = FAULT(FAULT_ONE_HOT_OFFSET) ? 0 : d.offset;
    int64_t rows = 1;
    for (int i = 0; i < last; i++)
        rows *= k->dim[i].local;
    for (int64_t r = 0; r < rows; r++) {
        /* The operand is compact and its dims are the result's but the last. */
        const int64_t on = ((const int32_t *)k->in[0].data)[r] - offset;
        for (int64_t j = 0; j < d.local; j++)
            put(&k->out[0], r * d.local + j, j == on ? a->on : a->off);
    }
}

static mtf_tensor *one_hot_sample(mtf_graph *g, int k)
{
    const mtf_dim v = {"v", 6};
    switch (k) {
    case 0:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 5})), v, 1.0, 0.0, MTF_F64);
    case 1:
        return mtf_one_hot(sample_integers(g, MTF_SHAPE({"a", 3}, {"b", 2})), (mtf_dim){"v", 7},
                           0.9, 0.1, MTF_F64);
    case 2:
        return mtf_one_hot(sample_integers(g, MTF_SCALAR), v, 1.0, 0.0, MTF_I32);
    }
    return NULL;
}

const op op_one_hot = {
    .name = "one_hot",
    .doc = "out = on where dim's index is the index, else off",
    .nin = 1,
    .attr_size = sizeof(one_hot_attr),
    .fields = one_hot_fields,
    .infer = one_hot_infer,
    .kernel = one_hot_kernel,
    .sample = one_hot_sample,
};

mtf_tensor *mtf_one_hot(mtf_tensor *indices, mtf_dim dim, double on, double off, mtf_dtype type)
{
    if (!indices) return NULL;
    const one_hot_attr a = {.dim = {.rank = 1, .dim = {dim}}, .on = on, .off = off, .type = type};
    return graph_add(indices->node->graph, &op_one_hot, NULL, 1, &indices, &a);
}
