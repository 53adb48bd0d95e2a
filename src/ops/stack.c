/* SPDX-License-Identifier: Apache-2.0
 * stack: tensors of one shape side by side along a new dim. Where that dim is cut each processor
 * takes those of its block, and nothing moves. */
#include <string.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"
#include "ops/window.h"

typedef struct stack_attr {
    const char *dim;
    int axis; /* its position in the result */
} stack_attr;

static const op_field fields[] = {
    OP_FIELD(stack_attr, dim, FIELD_NAME), OP_FIELD(stack_attr, axis, FIELD_INT), {0}};

static mtf_shape with_dim(const mtf_shape *s, mtf_dim d, int axis)
{
    mtf_shape out = *s;
    out.rank++;
    for (int i = s->rank; i > axis; i--)
        out.dim[i] = s->dim[i - 1];
    out.dim[axis] = d;
    return out;
}

static bool infer(mtf_graph *g, mtf_node *n)
{
    const stack_attr *a = n->attr;
    const mtf_tensor *x = n->in[0];
    for (int k = 1; k < n->nin; k++) {
        const mtf_tensor *y = n->in[k];
        if (y->dtype == x->dtype && shape_equal(&y->shape, &x->shape)) continue;
        graph_fail(g,
                   "stack '%s': operand %d is %s%s and operand 0 is %s%s; all must have one type "
                   "and shape",
                   n->name, k, mtf_dtype_name(y->dtype), shape_text(&y->shape),
                   mtf_dtype_name(x->dtype), shape_text(&x->shape));
        return false;
    }
    if (a->axis < 0 || a->axis > x->shape.rank || x->shape.rank == MTF_MAX_RANK) {
        graph_fail(g, "stack '%s': place %d for the new dim of %s is not in 0..%d", n->name,
                   a->axis, shape_text(&x->shape),
                   x->shape.rank < MTF_MAX_RANK ? x->shape.rank : MTF_MAX_RANK - 1);
        return false;
    }
    n->out[0].shape = with_dim(&x->shape, (mtf_dim){a->dim, n->nin}, a->axis);
    n->out[0].dtype = x->dtype;
    return true;
}

/* Result [outer, local, inner], operands [outer, inner]. */
static void kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    const int axis = ((const stack_attr *)k->attr)->axis;
    int64_t outer = 1, inner = mtf_dtype_size(k->out[0].dtype);
    for (int d = 0; d < axis; d++)
        outer *= k->dim[d].local;
    for (int d = axis + 1; d < k->out[0].rank; d++)
        inner *= k->dim[d].local;
    const kernel_dim *own = &k->dim[axis];
    const int64_t first = FAULT(FAULT_STACK_OFFSET) ? 0 : own->offset;
    char *out = k->out[0].data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < own->local; i++, out += inner)
            memcpy(out, (const char *)k->in[first + i].data + o * inner, (size_t)inner);
}

static bool linear(const mtf_node *n, unsigned mask)
{
    return mask == (1u << n->nin) - 1;
}

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    mtf_unstack(dy[0], ((const stack_attr *)n->attr)->dim, dx);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    mtf_tensor *x[18];
    if (k == 5) { /* scalars */
        x[0] = sample_normal(g, MTF_SCALAR), x[1] = sample_normal(g, MTF_SCALAR);
        return mtf_stack(2, x, "k", 0);
    }
    if (k == 6) {
        x[0] = sample_normal(g, sample_edge(1)), x[1] = sample_normal(g, sample_edge(1));
        return mtf_stack(2, x, "k", 1);
    }
    if (k == 7) {
        x[0] = sample_integers(g, MTF_SHAPE({"a", 4})), x[1] = x[2] = x[0];
        return mtf_stack(3, x, "k", -1);
    }
    if (k > 7) return NULL;
    const int n = (int[]){4, 9, 3, 1, 18}[k], axis = (int[]){0, 1, -1, -2, 0}[k];
    for (int i = 0; i < n; i++)
        x[i] = i < 3 ? sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 3})) : x[i % 3];
    return mtf_stack(n, x, "k", axis);
}

const op op_stack = {
    .name = "stack",
    .doc = "out[.., k, ..] = operand k along the new dim",
    .example = "mtf_stack(2, (mtf_tensor *[]){y, y}, \"n\", 0)",
    .nin = -1,
    .attr_size = sizeof(stack_attr),
    .fields = fields,
    .infer = infer,
    .linear = linear,
    .grad = grad,
    .kernel = kernel,
    .sample = sample,
};

mtf_tensor *mtf_stack(int n, mtf_tensor *const *xs, const char *dim, int axis)
{
    mtf_graph *g = graph_of(n, xs);
    if (!g || !xs[0]) return NULL;
    const int place = axis < 0 ? axis + xs[0]->shape.rank + 1 : axis;
    const stack_attr a = {.dim = graph_intern(g, dim), .axis = place};
    mtf_tensor **part = arena_alloc(g->mem, sizeof *part * (size_t)(n / KERNEL_MAX_IN + 1));
    int parts = 0;
    for (int i = 0; i < n; i += KERNEL_MAX_IN) {
        mtf_tensor *in[KERNEL_MAX_IN];
        const int nin = n - i < KERNEL_MAX_IN ? n - i : KERNEL_MAX_IN;
        for (int k = 0; k < nin; k++)
            in[k] = window_ordered(xs[i + k], xs[0], NULL);
        part[parts++] = graph_add(g, &op_stack, NULL, nin, in, &a);
    }
    return mtf_concat(parts, part, dim);
}

void mtf_unstack(mtf_tensor *x, const char *dim, mtf_tensor **parts)
{
    if (!x) return;
    const int64_t size = mtf_tensor_dim(x, dim).size;
    if (size > INT32_MAX) {
        graph_fail(x->node->graph, "unstack of '%s': %s has %lld elements; there may be %d parts",
                   x->node->name, dim, (long long)size, INT32_MAX);
        return;
    }
    const int n = (int)size;
    const mtf_shape rest = mtf_shape_without(x->shape, dim);
    mtf_split(x, dim, n, NULL, parts);
    for (int i = 0; i < n && parts; i++)
        parts[i] = mtf_reshape(parts[i], rest);
}
