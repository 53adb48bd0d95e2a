/* SPDX-License-Identifier: Apache-2.0
 * Shapes and gradients that elementwise rows share, and the operands of samples. */
#include "ops/tile.h"

#include "mtf/ops.h"

static bool type_allowed(mtf_graph *g, const mtf_node *n, mtf_dtype t, unsigned types)
{
    if (types & (1u << t)) return true;
    graph_fail(g, "%s '%s': the type %s is not possible here; cast the operand", n->op->name,
               n->name, mtf_dtype_name(t));
    return false;
}

bool tile_infer_unary(mtf_graph *g, mtf_node *n, unsigned types)
{
    n->out[0].shape = n->in[0]->shape;
    n->out[0].dtype = n->in[0]->dtype;
    return type_allowed(g, n, n->in[0]->dtype, types);
}

bool tile_infer_nary(mtf_graph *g, mtf_node *n, int first, unsigned types)
{
    const int last = n->nin - 1;
    mtf_shape s = n->in[last]->shape;
    for (int i = last - 1; i >= 0; i--)
        s = tile_broadcast(&n->in[i]->shape, &s);
    for (int i = first; i < n->nin; i++)
        if (n->in[i]->dtype != n->in[last]->dtype) {
            graph_fail(g, "%s '%s': the operands have the types %s and %s; cast one of them",
                       n->op->name, n->name, mtf_dtype_name(n->in[i]->dtype),
                       mtf_dtype_name(n->in[last]->dtype));
            return false;
        }
    n->out[0].shape = s;
    n->out[0].dtype = n->in[last]->dtype;
    return type_allowed(g, n, n->in[last]->dtype, types);
}

bool tile_infer_float1(mtf_graph *g, mtf_node *n)
{
    return tile_infer_unary(g, n, TYPES_FLOAT);
}

bool tile_infer_number1(mtf_graph *g, mtf_node *n)
{
    return tile_infer_unary(g, n, TYPES_NUMBER);
}

bool tile_infer_float2(mtf_graph *g, mtf_node *n)
{
    return tile_infer_nary(g, n, 0, TYPES_FLOAT);
}

bool tile_infer_number2(mtf_graph *g, mtf_node *n)
{
    return tile_infer_nary(g, n, 0, TYPES_NUMBER);
}

static bool contains(const mtf_shape *a, const mtf_shape *b)
{
    for (int i = 0; i < b->rank; i++)
        if (shape_find(a, b->dim[i].name) < 0) return false;
    return true;
}

mtf_shape tile_broadcast(const mtf_shape *a, const mtf_shape *b)
{
    if (b->rank > MTF_MAX_RANK) return *b; /* of three operands; refused as the result's shape */
    if (contains(a, b)) return *a;
    if (contains(b, a)) return *b;
    mtf_shape s = *a;
    for (int i = 0; i < b->rank; i++)
        if (shape_find(a, b->dim[i].name) < 0) s = mtf_shape_with(s, b->dim[i]);
    return s;
}

mtf_tensor *tile_reduce_to(mtf_tensor *dy, const mtf_tensor *x)
{
    return dy && shape_equal(&dy->shape, &x->shape) ? dy : mtf_reduce_sum(dy, x->shape);
}

static mtf_dtype sample_type = MTF_F64;

mtf_dtype sample_float(void)
{
    return sample_type;
}

void sample_use_float(mtf_dtype type)
{
    sample_type = type;
}

static sample_wrap *sample_wrapper;
static void *sample_context;

void sample_use_wrap(sample_wrap *fn, void *context)
{
    sample_wrapper = fn;
    sample_context = context;
}

mtf_shape sample_edge(int k)
{
    const mtf_shape edges[SAMPLE_EDGES] = {MTF_SCALAR, MTF_SHAPE({"a", 1}, {"b", 3}),
                                           MTF_SHAPE({"a", 1}, {"b", 1})};
    return edges[k];
}

static mtf_tensor *sample_of(mtf_graph *g, const char *name, mtf_shape s)
{
    mtf_tensor *t = mtf_placeholder(g, name, s, MTF_F64);
    if (sample_wrapper) t = sample_wrapper(sample_context, t);
    return mtf_cast(t, sample_type);
}

mtf_tensor *sample_normal(mtf_graph *g, mtf_shape s)
{
    return sample_of(g, "normal", s);
}

mtf_tensor *sample_positive(mtf_graph *g, mtf_shape s)
{
    return sample_of(g, "positive", s);
}

mtf_tensor *sample_ties(mtf_graph *g, mtf_shape s)
{
    return sample_of(g, "ties", s);
}

mtf_tensor *sample_integers(mtf_graph *g, mtf_shape s)
{
    return mtf_placeholder(g, "integers", s, MTF_I32);
}

mtf_tensor *sample_flags(mtf_graph *g, mtf_shape s)
{
    return mtf_placeholder(g, "flags", s, MTF_BOOL);
}
