/* SPDX-License-Identifier: Apache-2.0
 * Embeddings of a vocabulary. Every kind is a list of parts (one, or one per cluster), each a table
 * or two factors of one; a mixture of softmaxes stands before them. A part's dim of tokens has the
 * name of the vocabulary's, so one rule of a layout cuts them all. */
#include "mtf/embedding.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "mtf/nn.h"

enum { MAX_PARTS = 16 }; /* operands of one concat */

/* ---- options ---- */

static bool clusters_usable(mtf_graph *g, const char *name, const mtf_vocab_options *o)
{
    int64_t tokens = 0;
    if (o->nclusters < 0 || o->nclusters > MAX_PARTS) {
        graph_fail(g, "embedding '%s': %d clusters; there may be 0 to %d", name, o->nclusters,
                   MAX_PARTS);
        return false;
    }
    for (int k = 0; k < o->nclusters; k++) {
        const mtf_vocab_cluster c = o->clusters[k];
        if (c.tokens < 1 || c.inner < 0 || c.tokens > o->vocab.size) {
            graph_fail(g,
                       "embedding '%s': cluster %d has %lld tokens and inner size %lld; it needs 1 "
                       "to %lld tokens and an inner size of at least 0",
                       name, k, (long long)c.tokens, (long long)c.inner, (long long)o->vocab.size);
            return false;
        }
        tokens += c.tokens;
    }
    if (o->nclusters == 0 || tokens == o->vocab.size) return true;
    graph_fail(g,
               "embedding '%s': the clusters have %lld tokens together; the vocabulary %s has %lld",
               name, (long long)tokens, o->vocab.name, (long long)o->vocab.size);
    return false;
}

static bool options_usable(mtf_graph *g, const char *name, const mtf_vocab_options *o)
{
    if (!o || (o->nclusters > 0 && !o->clusters)) {
        graph_fail(g, "embedding '%s': %s is NULL", name,
                   o ? "the list of clusters" : "the struct of options");
        return false;
    }
    mtf_shape table = MTF_SHAPE(o->vocab, o->model);
    if (!graph_check_shape(g, &table, name)) return false;
    if (o->inner < 0 || o->softmaxes < 0 || o->softmaxes > INT32_MAX) {
        graph_fail(g, "embedding '%s': inner is %lld and softmaxes %lld; they must be at least 0",
                   name, (long long)o->inner, (long long)o->softmaxes);
        return false;
    }
    if (o->inner && o->nclusters) {
        graph_fail(g,
                   "embedding '%s': inner is %lld and there are %d clusters, each of which has an "
                   "inner size of its own; leave inner 0",
                   name, (long long)o->inner, o->nclusters);
        return false;
    }
    return clusters_usable(g, name, o);
}

/* ---- variables ---- */

static mtf_tensor *keep(mtf_vocab_embedding *e, mtf_graph *g, const char *name, mtf_shape shape,
                        double stddev)
{
    mtf_scope_push(g, name);
    const mtf_variable_types types = mtf_variable_types_for(e->options.dtype);
    mtf_tensor *initial = mtf_random_normal(g, "initial", shape, types.stored, 0.0, stddev);
    mtf_scope_pop(g);
    return e->variable[e->nvariables++] = mtf_variable_typed(g, name, initial, true, types);
}

/* The deviation of what multiplies vectors of the model's size. */
static double deviation(const mtf_vocab_options *o)
{
    return o->scale_variable_like_classifier_weights ? 1.0 / sqrt((double)o->model.size) : 1.0;
}

static mtf_vocab_part part_variables(mtf_vocab_embedding *e, mtf_graph *g, int64_t first,
                                     int64_t tokens, int64_t inner_size)
{
    const mtf_vocab_options *o = &e->options;
    const mtf_dim vocab = {o->vocab.name, tokens}, inner = {"inner", inner_size};
    mtf_vocab_part p = {.first = first};
    if (inner_size == 0 || inner_size == o->model.size) {
        p.table = keep(e, g, "table", MTF_SHAPE(vocab, o->model), deviation(o));
        return p;
    }
    const double each = pow((double)inner_size, -0.25);
    p.table = keep(e, g, "table", MTF_SHAPE(vocab, inner), each);
    p.factor = keep(e, g, "factor", MTF_SHAPE(inner, o->model), each * deviation(o));
    return p;
}

static void cluster_variables(mtf_vocab_embedding *e, mtf_graph *g, const mtf_vocab_cluster *c)
{
    int64_t first = 0;
    for (int k = 0; k < e->nparts; k++) {
        mtf_scope_push(g, arena_printf(g->mem, "cluster_%d", k));
        e->part[k] = part_variables(e, g, first, c[k].tokens, c[k].inner);
        mtf_scope_pop(g);
        first += c[k].tokens;
    }
}

static void mixture_variables(mtf_vocab_embedding *e, mtf_graph *g)
{
    const mtf_vocab_options *o = &e->options;
    const mtf_dim k = {"softmaxes", o->softmaxes},
                  context = {arena_printf(g->mem, "%s_context", o->model.name), o->model.size};
    e->mixture = keep(e, g, "mixture", MTF_SHAPE(k, o->model), deviation(o));
    e->context = keep(e, g, "context", MTF_SHAPE(k, o->model, context), deviation(o));
}

mtf_vocab_embedding *mtf_vocab_embedding_variables(mtf_graph *g, const char *name,
                                                   const mtf_vocab_options *o)
{
    if (g->err.status != MTF_OK || !options_usable(g, name ? name : "", o)) return NULL;
    mtf_vocab_embedding *e = arena_alloc(g->mem, sizeof *e);
    e->options = *o;
    e->options.clusters = NULL;
    e->options.vocab.name = graph_intern(g, o->vocab.name);
    e->options.model.name = graph_intern(g, o->model.name);
    e->nparts = o->nclusters ? o->nclusters : 1;
    e->part = arena_alloc(g->mem, sizeof *e->part * (size_t)e->nparts);
    e->variable = arena_alloc(g->mem, sizeof *e->variable * (size_t)(2 * e->nparts + 2));
    mtf_scope_push(g, name);
    if (o->nclusters)
        cluster_variables(e, g, o->clusters);
    else
        e->part[0] = part_variables(e, g, 0, o->vocab.size, o->inner);
    if (o->softmaxes) mixture_variables(e, g);
    mtf_scope_pop(g);
    return g->err.status == MTF_OK ? e : NULL;
}

/* Products sum over every dim that both have, and lookups match them: but for `shared` (NULL: none)
 * t may have no dim of a variable. */
static bool lacks_dims(const mtf_tensor *t, const mtf_vocab_embedding *e, const char *shared,
                       const char *what)
{
    for (int v = 0; v < e->nvariables; v++) {
        const mtf_tensor *weight = e->variable[v];
        for (int i = 0; i < weight->shape.rank; i++) {
            const char *name = weight->shape.dim[i].name;
            if (name == shared || shape_find(&t->shape, name) < 0) continue;
            graph_fail(
                t->node->graph,
                "%s of '%s': it has the dim %s, which the weights '%s' have as well; rename it",
                what, t->node->name, name, weight->node->name);
            return false;
        }
    }
    return true;
}

/* ---- vectors ---- */

/* Zeros where an id is not of this part: gather gives them for indices outside of its table. */
static mtf_tensor *part_vectors(const mtf_vocab_embedding *e, const mtf_vocab_part *p,
                                mtf_tensor *ids)
{
    if (p->first) {
        mtf_tensor *first =
            mtf_constant(mtf_tensor_graph(ids), (double)p->first, MTF_SCALAR, MTF_I32);
        ids = mtf_sub(ids, first);
    }
    mtf_tensor *v = mtf_embedding(p->table, ids, e->options.vocab.name);
    return p->factor ? mtf_dense(v, p->factor) : v;
}

mtf_tensor *mtf_vocab_vectors(const mtf_vocab_embedding *e, mtf_tensor *ids)
{
    if (!e || !ids || !lacks_dims(ids, e, NULL, "vectors")) return NULL;
    mtf_tensor *part[MAX_PARTS];
    for (int k = 0; k < e->nparts; k++)
        part[k] = part_vectors(e, &e->part[k], ids);
    mtf_tensor *v = e->nparts > 1 ? mtf_add_n(e->nparts, part) : part[0];
    const double size = (double)e->options.model.size;
    return e->options.scale_variable_like_classifier_weights ? mtf_scale(v, sqrt(size)) : v;
}

/* ---- logits ---- */

static mtf_tensor *table_logits(const mtf_vocab_embedding *e, mtf_tensor *hidden)
{
    mtf_tensor *part[MAX_PARTS];
    for (int k = 0; k < e->nparts; k++) {
        const mtf_vocab_part *p = &e->part[k];
        part[k] = mtf_dense(p->factor ? mtf_dense(hidden, p->factor) : hidden, p->table);
    }
    return e->nparts > 1 ? mtf_concat(e->nparts, part, e->options.vocab.name) : part[0];
}

static mtf_tensor *mixture_logits(const mtf_vocab_embedding *e, mtf_tensor *hidden)
{
    const char *model = e->options.model.name;
    mtf_tensor *prior = mtf_log_softmax(mtf_dense(hidden, e->mixture), "softmaxes");
    const mtf_shape of_context = mtf_tensor_shape(e->context);
    mtf_tensor *context = mtf_dense(hidden, e->context);
    context = mtf_tanh(mtf_rename(context, of_context.dim[2].name, model));
    mtf_tensor *each = mtf_log_softmax(table_logits(e, context), e->options.vocab.name);
    mtf_tensor *joint = mtf_add(each, prior);
    return mtf_reduce_logsumexp(joint, mtf_shape_without(mtf_tensor_shape(joint), "softmaxes"));
}

static bool hidden_usable(const mtf_vocab_embedding *e, const mtf_tensor *hidden)
{
    const mtf_dim model = e->options.model;
    const int at = mtf_shape_find(&hidden->shape, model.name);
    if (at < 0 || hidden->shape.dim[at].size != model.size) {
        graph_fail(hidden->node->graph, "logits of '%s': it has %s and must have %s=%lld",
                   hidden->node->name, shape_text(&hidden->shape), model.name,
                   (long long)model.size);
        return false;
    }
    return lacks_dims(hidden, e, model.name, "logits");
}

mtf_tensor *mtf_vocab_logits(const mtf_vocab_embedding *e, mtf_tensor *hidden)
{
    if (!e || !hidden || !hidden_usable(e, hidden)) return NULL;
    const mtf_vocab_options *o = &e->options;
    if (!o->scale_variable_like_classifier_weights)
        hidden = mtf_scale(hidden, 1.0 / sqrt((double)o->model.size));
    return o->softmaxes ? mixture_logits(e, hidden) : table_logits(e, hidden);
}
