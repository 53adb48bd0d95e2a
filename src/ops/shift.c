/* SPDX-License-Identifier: Apache-2.0
 * shift: elements move along one dim, which is WHOLE. */
#include <string.h>

#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct shift_attr {
    const char *dim;
    int64_t offset;
    int wrap;
    int at; /* position of `dim`, set by infer */
} shift_attr;

static const op_field fields[] = {OP_FIELD(shift_attr, dim, FIELD_NAME),
                                  OP_FIELD(shift_attr, offset, FIELD_I64),
                                  OP_FIELD(shift_attr, wrap, FIELD_INT),
                                  {0}};

static bool infer(mtf_graph *g, mtf_node *n)
{
    shift_attr *a = n->attr;
    n->out[0].shape = n->in[0]->shape;
    n->out[0].dtype = n->in[0]->dtype;
    a->at = shape_find(&n->in[0]->shape, a->dim);
    if (a->at >= 0) {
        /* Offsets beyond the dim are equal to nearer ones, which cannot overflow. */
        const int64_t size = n->in[0]->shape.dim[a->at].size;
        if (a->wrap) a->offset %= size;
        if (a->offset > size) a->offset = size;
        if (a->offset < -size) a->offset = -size;
        return true;
    }
    graph_fail(g, "shift '%s': no dim is called %s in %s", n->name, a->dim,
               shape_text(&n->in[0]->shape));
    return false;
}

static role shift_role(const mtf_node *n, const char *dim)
{
    return dim == ((const shift_attr *)n->attr)->dim ? ROLE_WHOLE : ROLE_MAP;
}

static bool linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

/* Operand and result have the same dims and are both compact here: [outer, n, inner]. */
static void kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    const shift_attr *a = k->attr;
    const int at = a->at;
    const int64_t n = k->dim[at].local, size = mtf_dtype_size(k->out[0].dtype);
    int64_t outer = 1, inner = size;
    for (int d = 0; d < at; d++)
        outer *= k->dim[d].local;
    for (int d = at + 1; d < k->out[0].rank; d++)
        inner *= k->dim[d].local;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++) {
            int64_t from = i - a->offset;
            if (a->wrap) from = ((from % n) + n) % n;
            char *out = (char *)k->out[0].data + (o * n + i) * inner;
            if (from < 0 || from >= n)
                memset(out, 0, (size_t)inner);
            else
                memcpy(out, (const char *)k->in[0].data + (o * n + from) * inner, (size_t)inner);
        }
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const shift_attr *a = n->attr;
    dx[0] = mtf_shift(dy[0], a->dim, -a->offset, a->wrap);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    static const int64_t offsets[] = {1, -2, 3, 9, -9};
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 10});
    if (k >= 10) return NULL;
    return mtf_shift(sample_normal(g, s), k % 2 ? "a" : "b", offsets[k / 2], k % 4 == 1);
}

const op op_shift = {
    .name = "shift",
    .doc = "out[i] = x[i - offset], zeros or the other end coming in",
    .nin = 1,
    .attr_size = sizeof(shift_attr),
    .fields = fields,
    .infer = infer,
    .role = shift_role,
    .linear = linear,
    .grad = grad,
    .kernel = kernel,
    .sample = sample,
};

mtf_tensor *mtf_shift(mtf_tensor *x, const char *dim, int64_t offset, bool wrap)
{
    if (!x) return NULL;
    const shift_attr a = {.dim = graph_intern(x->node->graph, dim), .offset = offset, .wrap = wrap};
    return graph_add(x->node->graph, &op_shift, NULL, 1, &x, &a);
}
