/* SPDX-License-Identifier: Apache-2.0
 * Rows without operands: placeholder, variable, constant, range; and assign. */
#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct source_attr {
    mtf_shape shape;
    mtf_dtype type;
} source_attr;

static bool source_infer(mtf_graph *g, mtf_node *n)
{
    const source_attr *a = n->attr;
    (void)g;
    n->out[0].shape = a->shape;
    n->out[0].dtype = a->type;
    return true;
}

static const op_field source_fields[] = {{0}};

/* ---- placeholder ---- */

const op op_placeholder = {
    .name = "placeholder",
    .doc = "out = a value that the caller gives for every run",
    .example = "mtf_placeholder(g, \"p\", MTF_SHAPE(a, b), MTF_F32)",
    .nin = 0,
    .traits = TRAIT_FEED,
    .attr_size = sizeof(source_attr),
    .fields = source_fields,
    .infer = source_infer,
};

mtf_tensor *mtf_placeholder(mtf_graph *g, const char *name, mtf_shape shape, mtf_dtype type)
{
    const source_attr a = {.shape = shape, .type = type};
    return graph_add(g, &op_placeholder, name, 0, NULL, &a);
}

/* ---- variable and assign ---- */

static const op_field variable_fields[] = {OP_FIELD(variable_attr, trainable, FIELD_INT), {0}};

static bool variable_infer(mtf_graph *g, mtf_node *n)
{
    const variable_attr *a = n->attr;
    (void)g;
    n->out[0].shape = a->initial->shape;
    n->out[0].dtype = a->initial->dtype;
    return true;
}

const op op_variable = {
    .name = "variable",
    .doc = "out = the state before the run",
    .example = "mtf_variable(g, \"w\", mtf_constant(g, 0, MTF_SHAPE(b), MTF_F32), true)",
    .nin = 0,
    .traits = TRAIT_STATE,
    .attr_size = sizeof(variable_attr),
    .fields = variable_fields,
    .infer = variable_infer,
};

static bool types_usable(mtf_graph *g, const char *name, mtf_variable_types t)
{
    if (t.master == t.stored && t.stored == t.activation) return true;
    if (mtf_dtype_is_float(t.master) && mtf_dtype_is_float(t.stored) &&
        mtf_dtype_is_float(t.activation))
        return true;
    graph_fail(g,
               "variable '%s': the types are %s (master), %s (stored) and %s (activation); only "
               "f32, f64 and bf16 may be mixed",
               name ? name : "", mtf_dtype_name(t.master), mtf_dtype_name(t.stored),
               mtf_dtype_name(t.activation));
    return false;
}

mtf_tensor *mtf_variable_typed(mtf_graph *g, const char *name, mtf_tensor *initial, bool trainable,
                               mtf_variable_types types)
{
    if (!initial || initial->node->graph != g)
        return graph_fail(g, "variable '%s': the initial value is NULL or of another graph",
                          name ? name : "");
    if (g->open)
        return graph_fail(
            g,
            "variable '%s': it is made inside a recompute region, which would make it "
            "again; make it before mtf_recompute_begin",
            name ? name : "");
    if (!types_usable(g, name, types)) return NULL;
    const variable_attr a = {.trainable = trainable,
                             .initial = mtf_cast(initial, types.stored),
                             .master = types.master,
                             .activation = types.activation};
    return a.initial ? graph_add(g, &op_variable, name, 0, NULL, &a) : NULL;
}

mtf_tensor *mtf_variable(mtf_graph *g, const char *name, mtf_tensor *initial, bool trainable)
{
    const mtf_dtype t = mtf_tensor_dtype(initial);
    return mtf_variable_typed(g, name, initial, trainable, (mtf_variable_types){t, t, t});
}

mtf_variable_types mtf_variable_types_for(mtf_dtype activation)
{
    const mtf_dtype kept = mtf_dtype_of_sums(activation);
    return (mtf_variable_types){.master = kept, .stored = kept, .activation = activation};
}

static bool is_variable(const mtf_tensor *t)
{
    return t->node->op->traits & TRAIT_STATE;
}

mtf_tensor *mtf_variable_read(mtf_tensor *x)
{
    return x && is_variable(x) ? mtf_cast(x, ((const variable_attr *)x->node->attr)->activation)
                               : x;
}

mtf_dtype graph_master_type(const mtf_tensor *variable)
{
    return ((const variable_attr *)variable->node->attr)->master;
}

static bool assign_infer(mtf_graph *g, mtf_node *n)
{
    const mtf_tensor *v = ((const assign_attr *)n->attr)->variable, *x = n->in[0];
    if (!is_variable(v)) {
        graph_fail(g, "assign: '%s' is no variable", v->node->name);
        return false;
    }
    if (!shape_equal(&v->shape, &x->shape) || v->dtype != x->dtype) {
        graph_fail(g, "assign '%s': the variable is %s%s and the value %s%s", v->node->name,
                   mtf_dtype_name(v->dtype), shape_text(&v->shape), mtf_dtype_name(x->dtype),
                   shape_text(&x->shape));
        return false;
    }
    n->out[0].shape = x->shape;
    n->out[0].dtype = x->dtype;
    return true;
}

static const op_field assign_fields[] = {{0}};

const op op_assign = {
    .name = "assign",
    .doc = "the variable's next state = x",
    .example =
        "mtf_assign(mtf_variable(g, \"w\", mtf_constant(g, 0, MTF_SHAPE(b), MTF_F32), true), y)",
    .nin = 1,
    .traits = TRAIT_ASSIGN,
    .attr_size = sizeof(assign_attr),
    .fields = assign_fields,
    .infer = assign_infer,
};

mtf_tensor *mtf_assign(mtf_tensor *variable, mtf_tensor *value)
{
    mtf_graph *g = graph_of(2, (mtf_tensor *[]){value, variable});
    if (!g) return NULL;
    if (!variable || variable->node->graph != g)
        return graph_fail(g, "assign: the variable is NULL or of another graph");
    return graph_add(g, &op_assign, NULL, 1, &value, &(assign_attr){variable});
}

mtf_tensor *graph_initial_assign(mtf_graph *g, mtf_tensor *variable)
{
    (void)g;
    return mtf_assign(variable, ((const variable_attr *)variable->node->attr)->initial);
}

const mtf_node *graph_assigned_variable(const mtf_node *assign)
{
    return ((const assign_attr *)assign->attr)->variable->node;
}

/* ---- constant ---- */

typedef struct constant_attr {
    double value;
    mtf_shape shape;
    mtf_dtype type;
} constant_attr;

static const op_field constant_fields[] = {OP_FIELD(constant_attr, value, FIELD_F64), {0}};

static bool constant_infer(mtf_graph *g, mtf_node *n)
{
    const constant_attr *a = n->attr;
    (void)g;
    n->out[0].shape = a->shape;
    n->out[0].dtype = a->type;
    return true;
}

static void constant_tile(const tile_args *t)
{
    const double v = ((const constant_attr *)t->attr)->value;
    for (int64_t i = 0; i < t->n; i++)
        element_put(t->out, t->dtype, i, v);
}

static mtf_tensor *constant_sample(mtf_graph *g, int k)
{
    const mtf_shape ab = MTF_SHAPE({"a", 4}, {"b", 6});
    const mtf_dtype types[] = {sample_float(), MTF_I32, MTF_BOOL};
    if (k < 3) return mtf_constant(g, k ? 1 : 1.25, ab, types[k]);
    k -= 3;
    return k < SAMPLE_EDGES ? mtf_constant(g, -1e6, sample_edge(k), sample_float()) : NULL;
}

const op op_constant = {
    .name = "constant",
    .doc = "out = value",
    .example = "mtf_constant(g, 0.5, MTF_SHAPE(a, b), MTF_F32)",
    .nin = 0,
    .traits = TRAIT_TILE,
    .attr_size = sizeof(constant_attr),
    .fields = constant_fields,
    .infer = constant_infer,
    .tile = constant_tile,
    .sample = constant_sample,
};

mtf_tensor *mtf_constant(mtf_graph *g, double value, mtf_shape shape, mtf_dtype type)
{
    const constant_attr a = {.value = value, .shape = shape, .type = type};
    return graph_add(g, &op_constant, NULL, 0, NULL, &a);
}

/* ---- range ---- */

static bool range_infer(mtf_graph *g, mtf_node *n)
{
    if (!source_infer(g, n)) return false;
    const mtf_dim d = n->out[0].shape.dim[0];
    if (n->out[0].dtype == MTF_BOOL)
        graph_fail(g, "range: the type bool is not possible; use i32, f32, f64 or bf16");
    else if (n->out[0].dtype == MTF_I32 && d.size - 1 > INT32_MAX)
        graph_fail(g, "range: %s has %lld elements, more than an i32 counts; use f64", d.name,
                   (long long)d.size);
    else
        return true;
    return false;
}

static void range_kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    const kernel_dim d = k->dim[0];
    const int64_t offset = FAULT(FAULT_RANGE_OFFSET) ? 0 : d.offset;
    for (int64_t i = 0; i < d.local; i++)
        element_put(k->out[0].data, k->out[0].dtype, i, (double)(offset + i));
}

static mtf_tensor *range_sample(mtf_graph *g, int k)
{
    switch (k) {
    case 0:
        return mtf_range(g, (mtf_dim){"a", 10}, sample_float());
    case 1:
        return mtf_range(g, (mtf_dim){"a", 6}, MTF_I32);
    case 2:
        return mtf_range(g, (mtf_dim){"a", 1}, sample_float());
    case 3:
        return mtf_range(g, (mtf_dim){"a", 3}, MTF_I32);
    }
    return NULL;
}

const op op_range = {
    .name = "range",
    .doc = "out[d] = d",
    .example = "mtf_range(g, a, MTF_I32)",
    .nin = 0,
    .attr_size = sizeof(source_attr),
    .fields = source_fields,
    .infer = range_infer,
    .kernel = range_kernel,
    .sample = range_sample,
};

mtf_tensor *mtf_range(mtf_graph *g, mtf_dim dim, mtf_dtype type)
{
    const source_attr a = {.shape = {.rank = 1, .dim = {dim}}, .type = type};
    return graph_add(g, &op_range, NULL, 0, NULL, &a);
}
