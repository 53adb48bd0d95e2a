/* SPDX-License-Identifier: Apache-2.0
 * Embeddings of a vocabulary: the values of the original's tests (reference 6.6) on every cut of
 * the vocabulary, initial values, what a split vocabulary moves, wrong options. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "spmd/program.h"
#include "support/eval.h"
#include "support/mistakes.h"
#include "support/model.h"

static const char *const cuts[][2] = {
    {"", ""},           {"x:2", "vocab:x"},       {"x:3", "vocab:x"},
    {"x:2", "model:x"}, {"x:2;y:2", "vocab:x+y"}, {"x:2;y:3", "token:x;vocab:y"}};
enum { CUTS = sizeof cuts / sizeof *cuts };

/* An embedding of hand-made parts. */
static mtf_vocab_embedding embedding(int64_t tokens, int64_t width, int nparts,
                                     mtf_vocab_part *part)
{
    return (mtf_vocab_embedding){
        .options = {.vocab = {"vocab", tokens}, .model = {"model", width}, .dtype = MTF_F64},
        .nparts = nparts,
        .part = part};
}

#define IDS(e, ...)    INPUT(e, MTF_SHAPE({"token", 4}), MTF_I32, __VA_ARGS__)
#define HIDDEN(e, ...) INPUT(e, MTF_SHAPE({"token", 4}, {"model", 2}), MTF_F64, __VA_ARGS__)

/* E = [1, 2, 3]^T [1, 2]. */
static void factorised(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_vocab_part part = {
        .table = INPUT(&e, MTF_SHAPE({"vocab", 3}, {"inner", 1}), MTF_F64, 1, 2, 3),
        .factor = INPUT(&e, MTF_SHAPE({"inner", 1}, {"model", 2}), MTF_F64, 1, 2)};
    mtf_vocab_embedding v = embedding(3, 2, 1, &part);
    mtf_tensor *vectors = mtf_vocab_vectors(&v, IDS(&e, 0, 1, 2, 1));
    mtf_tensor *logits = mtf_vocab_logits(&v, HIDDEN(&e, 1, 0, 0, 1, 1, 1, 2, 1));
    const double s = sqrt(0.5);
    for (int c = 0; c < CUTS; c++) {
        const char *m = cuts[c][0], *l = cuts[c][1];
        EXPECT_ON(&e, m, l, vectors, 1e-12, 1, 2, 2, 4, 3, 6, 2, 4);
        EXPECT_ON(&e, m, l, logits, 1e-12, s, 2 * s, 3 * s, 2 * s, 4 * s, 6 * s, 3 * s, 6 * s,
                  9 * s, 4 * s, 8 * s, 12 * s);
    }
    /* Scaled as the weights of a classifier: the factor goes to the vectors. */
    v.options.scale_variable_like_classifier_weights = true;
    EXPECT(&e, mtf_vocab_vectors(&v, IDS(&e, 0, 1, 2, -1)), 1e-12, sqrt(2), sqrt(8), sqrt(8),
           sqrt(32), sqrt(18), sqrt(72), 0, 0);
    EXPECT(&e, mtf_vocab_logits(&v, HIDDEN(&e, 1, 0, 0, 1, 1, 1, 2, 1)), 1e-12, 1, 2, 3, 2, 4, 6, 3,
           6, 9, 4, 8, 12);
    eval_close(&e);
}

/* Two tokens with whole vectors, three with an inner size of 1. */
static void adaptive(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_vocab_part part[] = {
        {.table = INPUT(&e, MTF_SHAPE({"vocab", 2}, {"model", 2}), MTF_F64, 0, 1, 2, 0)},
        {.first = 2,
         .table = INPUT(&e, MTF_SHAPE({"vocab", 3}, {"inner", 1}), MTF_F64, 1, 2, 3),
         .factor = INPUT(&e, MTF_SHAPE({"inner", 1}, {"model", 2}), MTF_F64, 1, 2)}};
    mtf_vocab_embedding v = embedding(5, 2, 2, part);
    mtf_tensor *ids = INPUT(&e, MTF_SHAPE({"token", 6}), MTF_I32, 0, 1, 2, 3, 4, 0);
    mtf_tensor *vectors = mtf_vocab_vectors(&v, ids);
    mtf_tensor *logits =
        mtf_scale(mtf_vocab_logits(&v, HIDDEN(&e, 1, 0, 0, 1, 1, 1, 2, 1)), sqrt(2));
    for (int c = 0; c < CUTS; c++) {
        const char *m = cuts[c][0], *l = cuts[c][1];
        EXPECT_ON(&e, m, l, vectors, 1e-12, 0, 1, 2, 0, 1, 2, 2, 4, 3, 6, 0, 1);
        EXPECT_ON(&e, m, l, logits, 1e-12, 0, 2, 1, 2, 3, 1, 0, 2, 4, 6, 1, 2, 3, 6, 9, 1, 4, 4, 8,
                  12);
    }
    eval_close(&e);
}

/* The hidden vector is [1, 1, 2] once it is divided by sqrt(3). */
static void mixture_of_softmaxes(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_dim vocab = {"vocab", 4}, width = {"model", 3}, two = {"softmaxes", 2};
    mtf_vocab_part part = {
        .table = INPUT(&e, MTF_SHAPE(vocab, width), MTF_F64, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1)};
    mtf_vocab_embedding v = embedding(4, 3, 1, &part);
    v.options.softmaxes = 2;
    v.mixture = INPUT(&e, MTF_SHAPE(two, width), MTF_F64, 1, 0, 0, 0, 1, 1);
    v.context = INPUT(&e, MTF_SHAPE(two, width, {"model_context", 3}), MTF_F64, 1, 0, 0, 0, 1, 0, 0,
                      0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0);
    const double s = sqrt(3);
    mtf_tensor *h = INPUT(&e, MTF_SHAPE({"token", 1}, width), MTF_F64, s, s, 2 * s);
    mtf_tensor *logits = mtf_vocab_logits(&v, h);
    for (int c = 0; c < CUTS; c++)
        EXPECT_ON(&e, cuts[c][0], cuts[c][1], logits, 1e-6, -1.265559, -1.446902, -1.421672,
                  -1.421672);
    mtf_tensor *ids = INPUT(&e, MTF_SHAPE({"token", 2}), MTF_I32, 3, 1);
    EXPECT(&e, mtf_vocab_vectors(&v, ids), 0, 0, 0, 1, 0, 1, 0);
    eval_close(&e);
}

/* ---- variables ---- */

static void expect_deviation(mtf_tensor *t, const char *name, mtf_shape shape, double want)
{
    static float data[1 << 16];
    mtf_err err = {0};
    assert_string_equal(mtf_tensor_name(t), name);
    const mtf_shape is = mtf_tensor_shape(t);
    assert_int_equal(is.rank, shape.rank);
    for (int i = 0; i < is.rank; i++) {
        assert_string_equal(is.dim[i].name, shape.dim[i].name);
        assert_int_equal(is.dim[i].size, shape.dim[i].size);
    }
    machine m =
        machine_new(mtf_tensor_graph(t), "", "", &(mtf_request){.nfetches = 1, .fetches = &t});
    assert_int_equal(mtf_run(m.session, m.program, 0, NULL, (void *[]){data}, NULL, &err), MTF_OK);
    double sum = 0;
    for (int64_t i = 0; i < mtf_shape_size(&is); i++)
        sum += (double)data[i] * data[i];
    const double got = sqrt(sum / (double)mtf_shape_size(&is));
    if (!(fabs(got - want) < 0.1 * want)) fail_msg("'%s': deviation %g, not %g", name, got, want);
    machine_free(&m);
}

static void variables_begin_as_normal_numbers(void **state)
{
    (void)state;
    const mtf_dim vocab = {"vocab", 500}, width = {"model", 16};
    const mtf_vocab_cluster clusters[] = {{100, 16}, {400, 4}};
    for (int scaled = 0; scaled < 2; scaled++) {
        mtf_graph *g = mtf_graph_new();
        const double d = scaled ? 0.25 : 1;
        mtf_vocab_options o = {
            .vocab = vocab, .model = width, .scale_variable_like_classifier_weights = scaled};
        mtf_vocab_embedding *plain = mtf_vocab_embedding_variables(g, "plain", &o);
        o.inner = 4;
        o.softmaxes = 3;
        mtf_vocab_embedding *factors = mtf_vocab_embedding_variables(g, "factors", &o);
        o.inner = 0;
        o.softmaxes = 0;
        o.nclusters = 2;
        o.clusters = clusters;
        mtf_vocab_embedding *clustered = mtf_vocab_embedding_variables(g, "parts", &o);
        assert_int_equal(mtf_graph_status(g, NULL), MTF_OK);
        assert_true(plain->nvariables == 1 && factors->nvariables == 4 &&
                    clustered->nvariables == 3);
        expect_deviation(plain->variable[0], "plain/table", MTF_SHAPE(vocab, width), d);
        const double inner = pow(4, -0.25);
        expect_deviation(factors->part[0].table, "factors/table", MTF_SHAPE(vocab, {"inner", 4}),
                         inner);
        expect_deviation(factors->part[0].factor, "factors/factor", MTF_SHAPE({"inner", 4}, width),
                         inner * d);
        expect_deviation(factors->context, "factors/context",
                         MTF_SHAPE({"softmaxes", 3}, width, {"model_context", 16}), d);
        expect_deviation(clustered->part[0].table, "parts/cluster_0/table",
                         MTF_SHAPE({"vocab", 100}, width), d);
        expect_deviation(clustered->part[1].table, "parts/cluster_1/table",
                         MTF_SHAPE({"vocab", 400}, {"inner", 4}), inner);
        assert_true(clustered->part[1].first == 100 && !clustered->part[0].factor);
        mtf_graph_free(&g);
    }
}

/* ---- what is moved ---- */

enum { TOKENS = 16, VOCAB = 256, MODEL = 8 };

/* The largest local operand of a collective in the loss of an embedding (and its gradients by all
 * variables) over a split vocabulary. There are but sums, and exchanges where clusters are put
 * together. */
static int64_t largest_move(const mtf_vocab_options *o, bool forward_only)
{
    mtf_graph *g = mtf_graph_new();
    mtf_vocab_embedding *e = mtf_vocab_embedding_variables(g, "e", o);
    mtf_tensor *ids = mtf_placeholder(g, "ids", MTF_SHAPE({"token", TOKENS}), MTF_I32);
    mtf_tensor *logits = mtf_vocab_logits(e, mtf_vocab_vectors(e, ids));
    mtf_tensor *loss = mtf_reduce_sum(mtf_cross_entropy(logits, ids, "vocab"), MTF_SCALAR);
    mtf_tensor *fetch[8] = {loss};
    mtf_gradients(loss, e->nvariables, e->variable, fetch + 1);
    machine m = machine_new(
        g, "x:4", "vocab:x",
        &(mtf_request){.nfetches = forward_only ? 1 : 1 + e->nvariables, .fetches = fetch});
    int64_t largest = 0;
    for (const instr *i = m.program->first; i; i = i->next) {
        if (!instr_is_collective(i)) continue;
        const int64_t elements = instr_cost_of(m.program, i).elements;
        if (i->kind == INSTR_WINDOW && o->nclusters > 1) continue;
        if (i->kind != INSTR_ALL_REDUCE)
            fail_msg("%s of %lld elements", instr_name(i), (long long)elements);
        largest = elements > largest ? elements : largest;
    }
    machine_free(&m);
    mtf_graph_free(&g);
    return largest;
}

/* Sums of vectors, [token model], and of one number per token; never a table or logits. */
static void a_split_vocabulary_is_not_gathered(void **state)
{
    (void)state;
    mtf_vocab_options o = {.vocab = {"vocab", VOCAB}, .model = {"model", MODEL}};
    assert_in_range(largest_move(&o, true), 1, TOKENS * MODEL);
    assert_in_range(largest_move(&o, false), 1, TOKENS * MODEL);
    o.inner = 2;
    assert_in_range(largest_move(&o, true), 1, TOKENS * MODEL);
    assert_in_range(largest_move(&o, false), 1, TOKENS * MODEL);
    o.inner = 0;
    o.softmaxes = 3;
    assert_in_range(largest_move(&o, true), 1, 3 * TOKENS * MODEL);
    assert_in_range(largest_move(&o, false), 1, 3 * TOKENS * MODEL);
    o.softmaxes = 0;
    o.nclusters = 3;
    o.clusters = (mtf_vocab_cluster[]){{32, 0}, {64, 4}, {160, 2}};
    assert_in_range(largest_move(&o, true), 1, TOKENS * MODEL);
    assert_in_range(largest_move(&o, false), 1, TOKENS * MODEL);
}

/* ---- mistakes ---- */

static mtf_tensor *with(parts *p, mtf_vocab_options o)
{
    if (!o.vocab.name) o.vocab = (mtf_dim){"vocab", 10};
    if (!o.model.name) o.model = (mtf_dim){"b", 6};
    const mtf_vocab_embedding *e = mtf_vocab_embedding_variables(p->g, "table", &o);
    return e ? e->part[0].table : NULL;
}

static mtf_tensor *logits_of(parts *p, mtf_tensor *hidden)
{
    const mtf_vocab_options o = {.vocab = {"vocab", 10}, .model = {"b", 6}, .softmaxes = 2};
    return mtf_vocab_logits(mtf_vocab_embedding_variables(p->g, "table", &o), hidden);
}

static mtf_tensor *vectors_of(parts *p, mtf_tensor *ids)
{
    const mtf_vocab_options o = {.vocab = {"vocab", 10}, .model = {"b", 6}};
    return mtf_vocab_vectors(mtf_vocab_embedding_variables(p->g, "table", &o), ids);
}

#define CLUSTERS(n, ...)                                                                           \
    .nclusters = n, .clusters = (mtf_vocab_cluster[])                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
MISTAKE(no_tokens, with(p, (mtf_vocab_options){.vocab = {"vocab", 0}}))
MISTAKE(vocabulary_called_as_model, with(p, (mtf_vocab_options){.vocab = {"b", 10}}))
MISTAKE(inner_below_zero, with(p, (mtf_vocab_options){.inner = -1}))
MISTAKE(softmaxes_below_zero, with(p, (mtf_vocab_options){.softmaxes = -2}))
MISTAKE(inner_and_clusters, with(p, (mtf_vocab_options){.inner = 2, CLUSTERS(1, {10, 2})}))
MISTAKE(clusters_below_zero, with(p, (mtf_vocab_options){.nclusters = -1}))
MISTAKE(too_many_clusters, with(p, (mtf_vocab_options){CLUSTERS(17, {1, 0})}))
MISTAKE(clusters_too_small, with(p, (mtf_vocab_options){CLUSTERS(2, {4, 0}, {5, 2})}))
MISTAKE(clusters_too_large, with(p, (mtf_vocab_options){CLUSTERS(2, {4, 0}, {7, 2})}))
MISTAKE(cluster_of_nothing, with(p, (mtf_vocab_options){CLUSTERS(2, {0, 0}, {10, 2})}))
MISTAKE(cluster_with_inner_below_zero, with(p, (mtf_vocab_options){CLUSTERS(1, {10, -2})}))
MISTAKE(table_of_integers, with(p, (mtf_vocab_options){.dtype = MTF_I32}))
MISTAKE(ids_of_floats, vectors_of(p, mtf_placeholder(p->g, "ids", MTF_SHAPE({"a", 4}), MTF_F32)))
MISTAKE(hidden_without_model, logits_of(p, mtf_reduce_sum(p->x, MTF_SHAPE({"a", 4}))))
MISTAKE(hidden_of_another_size, logits_of(p, p->c))
MISTAKE(hidden_with_vocabulary, logits_of(p, mtf_rename(p->x, "a", "vocab")))
MISTAKE(hidden_with_softmaxes, logits_of(p, mtf_rename(p->x, "a", "softmaxes")))
MISTAKE(hidden_of_another_type, logits_of(p, p->d))

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const mistake_row rows[] = {
        MISTAKE_ROW(no_tokens),
        MISTAKE_ROW(vocabulary_called_as_model),
        MISTAKE_ROW(inner_below_zero),
        MISTAKE_ROW(softmaxes_below_zero),
        MISTAKE_ROW(inner_and_clusters),
        MISTAKE_ROW(clusters_below_zero),
        MISTAKE_ROW(too_many_clusters),
        MISTAKE_ROW(clusters_too_small),
        MISTAKE_ROW(clusters_too_large),
        MISTAKE_ROW(cluster_of_nothing),
        MISTAKE_ROW(cluster_with_inner_below_zero),
        MISTAKE_ROW(table_of_integers),
        MISTAKE_ROW(ids_of_floats),
        MISTAKE_ROW(hidden_without_model),
        MISTAKE_ROW(hidden_of_another_size),
        MISTAKE_ROW(hidden_with_vocabulary),
        MISTAKE_ROW(hidden_with_softmaxes),
        MISTAKE_ROW(hidden_of_another_type),
    };
    mistakes_check("embedding_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factorised),
        cmocka_unit_test(adaptive),
        cmocka_unit_test(mixture_of_softmaxes),
        cmocka_unit_test(variables_begin_as_normal_numbers),
        cmocka_unit_test(a_split_vocabulary_is_not_gathered),
        cmocka_unit_test(mistakes_have_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
