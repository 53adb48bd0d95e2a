/* SPDX-License-Identifier: Apache-2.0
 * Mistakes in building layers, optimisers and clipping: what is missing, and numbers out of their
 * range, have messages. None is a crash, and none is carried on. */
#include "check.h"

#include <math.h>

#include "support/mistakes.h"

static const double inf = (double)INFINITY, nan_ = (double)NAN;
static const mtf_dim a = {"a", 4}, b = {"b", 6}, v = {"v", 9};

/* ---- optimisers ---- */

static mtf_tensor *first_variable(const mtf_optimizer *o)
{
    return o ? o->variable[0] : NULL;
}

static mtf_tensor *optimizer(parts *p, mtf_optimizer_options o)
{
    return first_variable(mtf_optimizer_new(p->g, &o, 1, &p->w));
}

#define OPTIMIZER(...) optimizer(p, (mtf_optimizer_options){__VA_ARGS__})

MISTAKE(momentum_of_one, OPTIMIZER(.kind = MTF_MOMENTUM, .momentum = 1))
MISTAKE(momentum_below_zero, OPTIMIZER(.kind = MTF_NESTEROV, .momentum = -0.5))
MISTAKE(beta1_of_one, OPTIMIZER(.kind = MTF_ADAM, .beta1 = 1))
MISTAKE(beta2_is_nan, OPTIMIZER(.kind = MTF_ADAM, .beta2 = nan_))
MISTAKE(epsilon_below_zero, OPTIMIZER(.kind = MTF_ADAM, .epsilon = -1))
MISTAKE(epsilon_of_zero, OPTIMIZER(.kind = MTF_ADAMW))
MISTAKE(epsilon_is_zero_in_f32, OPTIMIZER(.kind = MTF_ADAM, .epsilon = 1e-60))
MISTAKE(infinite_decay, OPTIMIZER(.kind = MTF_ADAMW, .weight_decay = inf))
MISTAKE(rules_are_null, OPTIMIZER(.kind = MTF_SGD, .nrules = 1))
MISTAKE(pattern_is_null, OPTIMIZER(.kind = MTF_SGD, .nrules = 1, .rules = &(mtf_rate_rule){0}))
MISTAKE(infinite_rate,
        OPTIMIZER(.schedule = {.nfactors = 1, .factor = {{.narguments = 1, .argument = {inf}}}}))
MISTAKE(no_options, first_variable(mtf_optimizer_new(p->g, NULL, 1, &p->w)))
MISTAKE(no_variables, first_variable(mtf_optimizer_new(p->g, &(mtf_optimizer_options){0}, 1, NULL)))

static mtf_tensor *epsilon1_is_zero_in_f32(parts *p)
{
    mtf_optimizer_options o = {.kind = MTF_ADAFACTOR, .adafactor = MTF_ADAFACTOR_DEFAULTS};
    o.adafactor.epsilon1 = 1e-60;
    return optimizer(p, o);
}

static mtf_tensor *of_another_graph(parts *p)
{
    mtf_tensor *w =
        mtf_variable(p->other, "w", mtf_constant(p->other, 0, MTF_SCALAR, MTF_F32), true);
    return first_variable(mtf_optimizer_new(p->g, &(mtf_optimizer_options){0}, 1, &w));
}

static mtf_tensor *updates(parts *p, mtf_tensor *const *gradients)
{
    mtf_tensor *list[MTF_MAX_VARIABLE_UPDATES] = {NULL};
    const mtf_optimizer *o = mtf_optimizer_new(p->g, &(mtf_optimizer_options){0}, 1, &p->w);
    return mtf_optimizer_updates(o, gradients, list) ? list[0] : NULL;
}

MISTAKE(gradient_is_repeated, updates(p, &p->y))
MISTAKE(gradient_of_another_graph, updates(p, &p->foreign))
MISTAKE(no_gradients, updates(p, NULL))

/* ---- clipping ---- */

static mtf_tensor *clip(parts *p, const mtf_clip *c)
{
    mtf_tensor *out;
    return mtf_clip_gradients(1, &p->x, NULL, c, &out);
}

MISTAKE(clip_below_zero, clip(p, &(mtf_clip){.norm = -1}))
MISTAKE(clip_by_nan, clip(p, &(mtf_clip){.value = nan_}))
MISTAKE(no_limits, clip(p, NULL))
MISTAKE(factor_of_nothing, mtf_clip_factor(mtf_global_norm(1, &p->x), 0))

/* ---- layers ---- */

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
MISTAKE(
    positions_overflow,
    mtf_separable_variables(p->g, "s", a, b, INT64_MIN, INT64_MAX, false, MTF_F32).pointwise.kernel)
MISTAKE(infinite_jitter, mtf_multiplicative_jitter(p->x, "j", inf))
MISTAKE(dropout_of_integers,
        mtf_dropout_keep(p->i, "d", mtf_constant(p->g, 1, MTF_SCALAR, MTF_I32), MTF_SCALAR))
MISTAKE(infinite_z_loss,
        mtf_softmax_cross_entropy(p->x, p->i, "b", &(mtf_softmax_loss){.z_loss = inf}))

static const mistake_row mistakes[] = {
    MISTAKE_ROW(momentum_of_one),
    MISTAKE_ROW(momentum_below_zero),
    MISTAKE_ROW(beta1_of_one),
    MISTAKE_ROW(beta2_is_nan),
    MISTAKE_ROW(epsilon_below_zero),
    MISTAKE_ROW(epsilon_of_zero),
    MISTAKE_ROW(epsilon_is_zero_in_f32),
    MISTAKE_ROW(epsilon1_is_zero_in_f32),
    MISTAKE_ROW(infinite_decay),
    MISTAKE_ROW(rules_are_null),
    MISTAKE_ROW(pattern_is_null),
    MISTAKE_ROW(infinite_rate),
    MISTAKE_ROW(no_options),
    MISTAKE_ROW(no_variables),
    MISTAKE_ROW(of_another_graph),
    MISTAKE_ROW(gradient_is_repeated),
    MISTAKE_ROW(gradient_of_another_graph),
    MISTAKE_ROW(no_gradients),
    MISTAKE_ROW(clip_below_zero),
    MISTAKE_ROW(clip_by_nan),
    MISTAKE_ROW(no_limits),
    MISTAKE_ROW(factor_of_nothing),
    MISTAKE_ROW(dense_of_nothing),
    MISTAKE_ROW(product_of_nothing),
    MISTAKE_ROW(initial_of_nothing),
    MISTAKE_ROW(embedding_of_nothing),
    MISTAKE_ROW(clusters_are_null),
    MISTAKE_ROW(ids_have_the_model),
    MISTAKE_ROW(ids_have_the_inner_dim),
    MISTAKE_ROW(norm_by_infinity),
    MISTAKE_ROW(batch_norm_without_room),
    MISTAKE_ROW(positions_overflow),
    MISTAKE_ROW(infinite_jitter),
    MISTAKE_ROW(dropout_of_integers),
    MISTAKE_ROW(infinite_z_loss),
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
