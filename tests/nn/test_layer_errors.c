/* SPDX-License-Identifier: Apache-2.0
 * Mistakes in building layers: what is missing, and numbers out of their range, have messages. None
 * is a crash, and none is carried on. */
#include "check.h"

#include <math.h>

#include "support/mistakes.h"

static const double inf = (double)INFINITY;
static const mtf_dim a = {"a", 4}, b = {"b", 6}, v = {"v", 9};

static mtf_tensor *vectors(parts *p, mtf_vocab_options o, mtf_dim of_ids)
{
    mtf_tensor *ids = mtf_placeholder(p->g, "ids", MTF_SHAPE(of_ids), MTF_I32);
    o.vocab = v;
    o.dtype = MTF_F32;
    return mtf_vocab_vectors(mtf_vocab_embedding_variables(p->g, "e", &o), ids);
}

static mtf_tensor *table(const mtf_vocab_embedding *e)
{
    return e ? e->part[0].table : NULL;
}

static mtf_tensor *normed(parts *p, double epsilon)
{
    return mtf_layer_norm(p->x, mtf_norm_variables(p->g, "n", MTF_SHAPE(b), 0, MTF_F32), epsilon);
}

static mtf_tensor *without_room(parts *p)
{
    const mtf_batch_stats s = mtf_batch_norm_variables(p->g, "n", MTF_SHAPE(b), false, MTF_F32);
    return mtf_batch_norm(p->x, s, 0.9, 1e-5, NULL);
}

static mtf_tensor *product(parts *p, const char *const *activations)
{
    const mtf_dense_options o = {.reduced = MTF_SHAPE(b), .out = MTF_SHAPE(v)};
    const mtf_dense_product d = mtf_dense_product_variables(p->g, "d", &o, 2, activations, MTF_F32);
    return mtf_dense_product_layer(p->x, &d);
}

MISTAKE(dense_of_nothing, mtf_dense_variables(p->g, "d", NULL, MTF_F32).kernel)
MISTAKE(product_of_nothing, product(p, NULL))
MISTAKE(initial_of_nothing,
        mtf_initialized(p->g, "i", MTF_SHAPE(a), MTF_SHAPE(a), MTF_SCALAR, NULL, MTF_F32))
MISTAKE(embedding_of_nothing, table(mtf_vocab_embedding_variables(p->g, "e", NULL)))
MISTAKE(clusters_are_null, vectors(p, (mtf_vocab_options){.model = b, .nclusters = 2}, a))
MISTAKE(ids_have_the_model, vectors(p, (mtf_vocab_options){.model = b}, b))
MISTAKE(ids_have_the_inner_dim,
        vectors(p, (mtf_vocab_options){.model = b, .inner = 2}, (mtf_dim){"inner", 2}))
MISTAKE(norm_by_infinity, normed(p, inf))
MISTAKE(batch_norm_without_room, without_room(p))
MISTAKE(infinite_jitter, mtf_multiplicative_jitter(p->x, "j", inf))
MISTAKE(dropout_of_integers,
        mtf_dropout_keep(p->i, "d", mtf_constant(p->g, 1, MTF_SCALAR, MTF_I32), MTF_SCALAR))
MISTAKE(negative_deviation, mtf_weight(p->g, "w2", MTF_SHAPE(a), -1.0, MTF_F32))
MISTAKE(deviation_is_nan,
        mtf_dense_weight(p->g, "w2", MTF_SHAPE(a), MTF_SHAPE(b), (double)NAN, MTF_F32))
MISTAKE(infinite_z_loss,
        mtf_softmax_cross_entropy(p->x, p->i, "b", &(mtf_softmax_loss){.z_loss = inf}))

static const mistake_row mistakes[] = {
    MISTAKE_ROW(dense_of_nothing),        MISTAKE_ROW(product_of_nothing),
    MISTAKE_ROW(initial_of_nothing),      MISTAKE_ROW(embedding_of_nothing),
    MISTAKE_ROW(clusters_are_null),       MISTAKE_ROW(ids_have_the_model),
    MISTAKE_ROW(ids_have_the_inner_dim),  MISTAKE_ROW(norm_by_infinity),
    MISTAKE_ROW(batch_norm_without_room), MISTAKE_ROW(infinite_jitter),
    MISTAKE_ROW(dropout_of_integers),     MISTAKE_ROW(negative_deviation),
    MISTAKE_ROW(deviation_is_nan),        MISTAKE_ROW(infinite_z_loss),
};

static void every_mistake_has_its_message(void **state)
{
    (void)state;
    mistakes_check("layer_errors.txt", sizeof mistakes / sizeof *mistakes, mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_has_its_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
