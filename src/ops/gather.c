/* SPDX-License-Identifier: Apache-2.0
 * gather: a table at indices. The indexed dim may be split: a block serves the indices that fall
 * into it, so a gather from a split table is a partial sum and nothing is gathered. */
#include <string.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/lookup.h"
#include "ops/nest.h"
#include "ops/rows.h"
#include "ops/tile.h"

/* Position of a dim in the iteration space of a node whose output 0 is listed first. */
static int space_of(const mtf_node *n, const char *dim)
{
    mtf_dim dims[KERNEL_MAX_SPACE];
    const int count = op_space(n, dims);
    for (int i = 0; i < count; i++)
        if (dims[i].name == dim) return i;
    return -1;
}

typedef struct gather_attr {
    const char *dim;
    int at; /* its position in the iteration space */
} gather_attr;

static const op_field gather_fields[] = {OP_FIELD(gather_attr, dim, FIELD_NAME), {0}};

static bool gather_infer(mtf_graph *g, mtf_node *n)
{
    gather_attr *a = n->attr;
    const mtf_tensor *table = n->in[0], *indices = n->in[1];
    if (!lookup_indices_usable(g, n, indices)) return false;
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

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

/* Elements of one size, an index for each. */
#define EACH(T)                                                                                    \
    do {                                                                                           \
        const T *table = (const T *)(const void *)l->table + at[0];                                \
        T *to = (T *)(void *)l->out + at[2];                                                       \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const int64_t i = l->index[at[1] + j * stride[1]] - l->first;                          \
            to[j] = i >= 0 && i < l->count ? table[j * stride[0] + i * l->along] : 0;              \
        }                                                                                          \
    } while (0)

/* One index for the whole run, or one per element of it. The result is compact. */
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
    switch (l->size) {
    case 8:
        EACH(uint64_t);
        break;
    case 4:
        EACH(uint32_t);
        break;
    case 2:
        EACH(uint16_t);
        break;
    default:
        EACH(uint8_t);
        break;
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
    const mtf_shape v = MTF_SHAPE({"v", 6}, {"d", 4}), av = MTF_SHAPE({"a", 4}, {"v", 10});
    mtf_tensor *i;
    switch (k) {
    case 0:
        return mtf_gather(sample_normal(g, v), sample_integers(g, MTF_SHAPE({"a", 9})), "v");
    case 1:
        return mtf_gather(sample_normal(g, v), sample_integers(g, MTF_SHAPE({"a", 3}, {"b", 2})),
                          "v");
    case 2:
        return mtf_gather(sample_normal(g, av), sample_integers(g, MTF_SHAPE({"a", 4})), "v");
    case 3:
        return mtf_gather(sample_normal(g, v), sample_integers(g, MTF_SCALAR), "v");
    case 4:
        return mtf_gather(sample_normal(g, MTF_SHAPE({"v", 6})),
                          sample_integers(g, MTF_SHAPE({"a", 9})), "v");
    case 5:
        return mtf_gather(sample_flags(g, v), sample_integers(g, MTF_SHAPE({"a", 9})), "v");
    case 6: /* no index is in the table; all are one */
    case 7:
    case 8:
        i = mtf_offset(mtf_scale(sample_integers(g, MTF_SHAPE({"a", 9})), k == 8 ? 0 : 1),
                       k == 6   ? 6
                       : k == 7 ? -8
                                : 5);
        return mtf_gather(sample_normal(g, v), i, "v");
    case 9: /* dims of which some processors have nothing */
        return mtf_gather(sample_normal(g, MTF_SHAPE({"d", 1}, {"v", 3})),
                          sample_integers(g, MTF_SHAPE({"a", 1}, {"b", 2})), "v");
    case 10:
        return mtf_gather(sample_normal(g, MTF_SHAPE({"v", 1})), sample_integers(g, MTF_SCALAR),
                          "v");
    case 11:
        return mtf_gather(sample_integers(g, v), sample_integers(g, MTF_SHAPE({"a", 4})), "v");
    }
    return NULL;
}

/* One per element of the result: the indexed dim is looked up, not walked. */
static double cost(const mtf_node *n, const kernel_args *k)
{
    const gather_attr *a = n->attr;
    double elements = 1;
    for (int i = 0; i < k->space; i++)
        if (i != a->at) elements *= (double)k->dim[i].local;
    return elements;
}

const op op_gather = {
    .name = "gather",
    .doc = "out = table at the index along dim; 0 where the index is outside",
    .example = "mtf_gather(x, mtf_one_hot(i, v, 1, 0, MTF_I32), \"b\")",
    .nin = 2,
    .attr_size = sizeof(gather_attr),
    .fields = gather_fields,
    .infer = gather_infer,
    .role = gather_role,
    .linear = linear,
    .grad = gather_grad,
    .kernel = gather_kernel,
    .grains = first_dim_grains,
    .cost = cost,
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
