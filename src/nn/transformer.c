/* SPDX-License-Identifier: Apache-2.0
 * The decoder-only Transformer language model, pre-norm, with the dims of the Mesh-TensorFlow
 * paper.
 *
 * The residual stream has the dim stream_length where attention has length (queries, logits,
 * targets) and memory_length (keys), so that a layout can split each on its own. The renames
 * between them are free where no layout splits the names differently. */
#include <math.h>

#include "graph/graph.h"
#include "mtf/gradient.h"
#include "mtf/nn.h"

static const double epsilon = 1e-6;

/* ---- variables ---- */

static bool sizes_usable(mtf_graph *g, const mtf_transformer_options *o)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"vocab", o->vocab},  {"layers", o->layers}, {"d_model", o->d_model},
                 {"heads", o->heads},  {"d_kv", o->d_kv},     {"d_ff", o->d_ff},
                 {"length", o->length}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1) {
            graph_fail(g, "transformer: %s is %lld; it must be at least 1", sizes[i].name,
                       (long long)sizes[i].value);
            return false;
        }
    if (o->recompute < 0) {
        graph_fail(g, "transformer: recompute is %lld; 0 recomputes no layer, n every n-th",
                   (long long)o->recompute);
        return false;
    }
    if (mtf_dtype_is_float(o->dtype)) return true;
    graph_fail(g, "transformer: the type %s is not possible; use f32, f64 or bf16",
               mtf_dtype_name(o->dtype));
    return false;
}

static mtf_tensor *keep(mtf_transformer *m, mtf_tensor *variable)
{
    m->variable[m->nvariables++] = variable;
    return variable;
}

static mtf_norm norm_variables(mtf_graph *g, const char *name, const mtf_transformer_options *o,
                               mtf_variable_types t)
{
    return mtf_norm_variables_typed(g, name, MTF_SHAPE({"d_model", o->d_model}),
                                    MTF_NORM_SCALE | MTF_NORM_BIAS, t);
}

static mtf_norm keep_norm(mtf_transformer *m, mtf_norm norm)
{
    keep(m, norm.scale);
    keep(m, norm.bias);
    return norm;
}

/* Results of sublayers add up over 2 layers: their weights begin smaller, so that the sum keeps its
 * size whatever the depth. */
static mtf_transformer_layer layer_variables(mtf_graph *g, mtf_transformer *m, mtf_variable_types t)
{
    const mtf_transformer_options *o = &m->options;
    const mtf_dim model = {"d_model", o->d_model};
    const mtf_shape in = MTF_SHAPE(model), ff = MTF_SHAPE({"d_ff", o->d_ff}),
                    heads = MTF_SHAPE({"heads", o->heads}, {"d_kv", o->d_kv});
    const double small = 1.0 / sqrt(2.0 * (double)o->layers);
    mtf_transformer_layer l = {0};
    mtf_scope_push(g, "attention");
    l.attention_norm = keep_norm(m, norm_variables(g, "norm", o, t));
    l.wq = keep(m, mtf_dense_weight_typed(g, "wq", in, heads, 1.0, t));
    l.wk = keep(m, mtf_dense_weight_typed(g, "wk", in, heads, 1.0, t));
    l.wv = keep(m, mtf_dense_weight_typed(g, "wv", in, heads, 1.0, t));
    l.wo = keep(m, mtf_dense_weight_typed(g, "wo", heads, in, small, t));
    mtf_scope_pop(g);
    mtf_scope_push(g, "feed_forward");
    l.feed_forward_norm = keep_norm(m, norm_variables(g, "norm", o, t));
    l.wi = keep(m, mtf_dense_weight_typed(g, "wi", in, ff, 1.0, t));
    l.wo_of_ffn = keep(m, mtf_dense_weight_typed(g, "wo", ff, in, small, t));
    mtf_scope_pop(g);
    return l;
}

mtf_transformer *mtf_transformer_variables(mtf_graph *g, const mtf_transformer_options *o)
{
    if (mtf_graph_status(g, NULL) != MTF_OK || !sizes_usable(g, o)) return NULL;
    mtf_transformer *m = arena_alloc(g->mem, sizeof *m);
    const mtf_variable_types t = o->variables ? *o->variables : mtf_variable_types_for(o->dtype);
    m->options = *o;
    m->options.variables = NULL; /* the caller's; the variables know */
    m->layer = arena_alloc(g->mem, sizeof *m->layer * (size_t)o->layers);
    m->variable = arena_alloc(g->mem, sizeof(mtf_tensor *) * (size_t)(10 * o->layers + 5));
    const mtf_dim vocab = {"vocab", o->vocab}, model = {"d_model", o->d_model};
    m->embedding = keep(m, mtf_weight_typed(g, "embedding", MTF_SHAPE(vocab, model), 0.02, t));
    m->positions = keep(
        m, mtf_weight_typed(g, "positions", MTF_SHAPE({"max_length", o->length}, model), 0.02, t));
    for (int64_t i = 0; i < o->layers; i++) {
        mtf_scope_push(g, arena_printf(g->mem, "layer_%lld", (long long)i));
        m->layer[i] = layer_variables(g, m, t);
        mtf_scope_pop(g);
    }
    m->final_norm = keep_norm(m, norm_variables(g, "final_norm", o, t));
    m->softmax = o->tied ? m->embedding
                         : keep(m, mtf_dense_weight_typed(g, "softmax", MTF_SHAPE(model),
                                                          MTF_SHAPE(vocab), 1.0, t));
    return mtf_graph_status(g, NULL) == MTF_OK ? m : NULL;
}

/* ---- the model ---- */

static mtf_tensor *attention(mtf_tensor *x, const mtf_transformer_layer *l, mtf_tensor *bias,
                             double dropout)
{
    mtf_tensor *n = mtf_layer_norm(x, l->attention_norm, epsilon);
    mtf_tensor *queries = mtf_rename(n, "stream_length", "length"),
               *memory = mtf_rename(n, "stream_length", "memory_length");
    mtf_tensor *a = mtf_attention(mtf_dense(queries, l->wq), mtf_dense(memory, l->wk),
                                  mtf_dense(memory, l->wv), bias, "memory_length", "d_kv", dropout);
    mtf_tensor *y = mtf_rename(mtf_dense(a, l->wo), "length", "stream_length");
    return mtf_dropout(y, "result", dropout);
}

static mtf_tensor *feed_forward(mtf_tensor *x, const mtf_transformer_layer *l, mtf_activation a,
                                double dropout)
{
    mtf_tensor *n = mtf_layer_norm(x, l->feed_forward_norm, epsilon);
    n = mtf_rename(n, "stream_length", "length");
    mtf_tensor *y = mtf_feed_forward(n, l->wi, l->wo_of_ffn, a);
    return mtf_dropout(mtf_rename(y, "length", "stream_length"), "result", dropout);
}

static mtf_tensor *layer(mtf_tensor *x, const mtf_transformer_layer *l, mtf_activation a,
                         mtf_tensor *bias, double dropout)
{
    mtf_graph *g = mtf_tensor_graph(l->wi);
    mtf_scope_push(g, "attention");
    x = mtf_add(x, attention(x, l, bias, dropout));
    mtf_scope_pop(g);
    mtf_scope_push(g, "feed_forward");
    x = mtf_add(x, feed_forward(x, l, a, dropout));
    mtf_scope_pop(g);
    return x;
}

/* Rows of the table for the first `length` positions: all of them is the table itself. */
static mtf_tensor *positions(const mtf_transformer *m, int64_t length)
{
    mtf_tensor *table = mtf_variable_read(m->positions);
    if (length == m->options.length) return mtf_rename(table, "max_length", "stream_length");
    mtf_tensor *index =
        mtf_range(mtf_tensor_graph(table), (mtf_dim){"stream_length", length}, MTF_I32);
    return mtf_gather(table, index, "max_length");
}

static mtf_tensor *embed(const mtf_transformer *m, mtf_tensor *inputs, int64_t length,
                         double dropout)
{
    mtf_graph *g = mtf_tensor_graph(inputs);
    mtf_scope_push(g, "embed");
    mtf_tensor *x = mtf_embedding(m->embedding, inputs, "vocab");
    x = mtf_dropout(mtf_add(x, positions(m, length)), "result", dropout);
    mtf_scope_pop(g);
    return x;
}

static void loss(mtf_transformer_tensors *t, mtf_dtype type, const mtf_softmax_loss *o)
{
    mtf_graph *g = mtf_tensor_graph(t->targets);
    mtf_scope_push(g, "loss");
    mtf_tensor *each = mtf_softmax_cross_entropy(t->logits, t->targets, "vocab", o);
    t->loss_sum = mtf_reduce_sum(each, MTF_SCALAR);
    t->count = mtf_reduce_sum(mtf_real_tokens(t->targets, type), MTF_SCALAR);
    mtf_scope_pop(g);
}

mtf_transformer_tensors mtf_transformer_apply(const mtf_transformer *m, int64_t batch,
                                              int64_t length, bool training)
{
    mtf_transformer_tensors t = {0};
    if (!m) return t;
    const mtf_transformer_options *o = &m->options;
    mtf_graph *g = mtf_tensor_graph(m->embedding);
    if (length > o->length) {
        graph_fail(g, "transformer: %lld tokens in a sequence; the model has positions for %lld",
                   (long long)length, (long long)o->length);
        return t;
    }
    const double dropout = training ? o->dropout : 0.0;
    const mtf_dim sequences = {"batch", batch}, tokens = {"length", length};
    mtf_graph_repeat_streams(g);
    t.inputs =
        mtf_placeholder(g, "inputs", MTF_SHAPE(sequences, {"stream_length", length}), MTF_I32);
    t.targets = mtf_placeholder(g, "targets", MTF_SHAPE(sequences, tokens), MTF_I32);
    if (!t.inputs || !t.targets) return t;
    mtf_tensor *x = embed(m, t.inputs, length, dropout);
    mtf_tensor *bias = mtf_causal_bias(g, tokens, (mtf_dim){"memory_length", length}, o->dtype);
    for (int64_t i = 0; i < o->layers; i++) {
        const bool again = training && o->recompute && (i + 1) % o->recompute == 0;
        mtf_scope_push(g, arena_printf(g->mem, "layer_%lld", (long long)i));
        if (again) mtf_recompute_begin(g);
        x = layer(x, &m->layer[i], o->activation, bias, dropout);
        if (again) mtf_recompute_end(g);
        mtf_scope_pop(g);
    }
    x = mtf_rename(mtf_layer_norm(x, m->final_norm, epsilon), "stream_length", "length");
    t.logits = mtf_dense(x, m->softmax);
    loss(&t, mtf_dtype_of_sums(o->dtype), training ? &o->loss : NULL);
    return t;
}
