/* SPDX-License-Identifier: Apache-2.0
 * The messages of dense layers, initial values, activations and convolutions, and of the
 * Transformer that is made of them. */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "support/mistakes.h"

static const mtf_dim a = {"a", 4}, b = {"b", 6}, h = {"h", 3}, e = {"e", 2};

/* ---- dense ---- */

static mtf_tensor *kernel_of(parts *p, mtf_dense_options o)
{
    if (!o.reduced.rank) o.reduced = MTF_SHAPE(b);
    if (!o.out.rank) o.out = MTF_SHAPE(h);
    return mtf_dense_variables(p->g, "d", &o, MTF_F32).kernel;
}

static mtf_shape many_dims(char (*names)[16], char letter)
{
    mtf_shape s = MTF_SCALAR;
    for (int i = 0; i < MTF_MAX_RANK - 1; i++) {
        snprintf(names[i], sizeof names[i], "%c%d", letter, i);
        s = mtf_shape_with(s, (mtf_dim){names[i], 1});
    }
    return s;
}

static mtf_tensor *kernel_of_too_many_dims(parts *p)
{
    static char names[2][MTF_MAX_RANK][16];
    return kernel_of(p, (mtf_dense_options){.reduced = many_dims(names[0], 'r'),
                                            .out = many_dims(names[1], 'o')});
}

/* The layer of b to h for every e, applied to x. */
static mtf_tensor *applied(parts *p, mtf_tensor *x)
{
    const mtf_dense_weights w = mtf_dense_variables(
        p->g, "d",
        &(mtf_dense_options){.reduced = MTF_SHAPE(b), .out = MTF_SHAPE(h), .expert = MTF_SHAPE(e)},
        MTF_F32);
    return mtf_dense_layer(x, &w);
}

static mtf_tensor *product_of(parts *p, int n, const char *const *activations)
{
    const mtf_dense_options o = {.reduced = MTF_SHAPE(b), .out = MTF_SHAPE(h)};
    const mtf_dense_product w = mtf_dense_product_variables(p->g, "p", &o, n, activations, MTF_F32);
    return mtf_dense_product_layer(p->x, &w);
}

static mtf_tensor *pair_of(parts *p, double rate, const char *shared)
{
    const mtf_dense_pair w = mtf_dense_pair_variables(p->g, "ffn", MTF_SHAPE(b), MTF_SHAPE(h), 1,
                                                      (const char *const[]){"relu"}, MTF_F32);
    return mtf_dense_pair_layer(p->x, &w, rate, shared);
}

static mtf_tensor *initialized(parts *p, mtf_initializer i, mtf_dtype type)
{
    return mtf_initialized(p->g, "w", MTF_SHAPE(b, h), MTF_SHAPE(b), MTF_SHAPE(h), &i, type);
}

static mtf_tensor *filter(parts *p, int64_t first, int64_t last)
{
    const mtf_separable_weights w =
        mtf_separable_variables(p->g, "s", b, h, first, last, true, MTF_F32);
    return w.pointwise.kernel;
}

static mtf_tensor *convolved(parts *p, const char *length)
{
    const mtf_separable_weights w = mtf_separable_variables(p->g, "s", b, h, -1, 1, true, MTF_F32);
    return mtf_separable_conv1d(p->x, &w, length);
}

MISTAKE(activation_unknown, mtf_activate(p->x, "gleu"))
MISTAKE(activation_of_a_layer_unknown, kernel_of(p, (mtf_dense_options){.activation = "rleu"}))
MISTAKE(activation_of_a_factor_unknown, product_of(p, 2, (const char *const[]){"relu", "gleu"}))
MISTAKE(expert_dim_is_new, kernel_of(p, (mtf_dense_options){.expert = MTF_SHAPE(h)}))
MISTAKE(expert_dim_is_reduced, kernel_of(p, (mtf_dense_options){.expert = MTF_SHAPE(b)}))
MISTAKE(kernel_of_integers,
        mtf_dense_variables(p->g, "d",
                            &(mtf_dense_options){.reduced = MTF_SHAPE(b), .out = MTF_SHAPE(h)},
                            MTF_I32)
            .kernel)
MISTAKE(reduced_dim_missing, applied(p, mtf_placeholder(p->g, "t", MTF_SHAPE(a, e), MTF_F32)))
MISTAKE(reduced_dim_of_another_size,
        applied(p, mtf_placeholder(p->g, "t", MTF_SHAPE({"b", 5}, e), MTF_F32)))
MISTAKE(expert_dim_missing, applied(p, p->x))
MISTAKE(new_dim_there_already, applied(p, mtf_placeholder(p->g, "t", MTF_SHAPE(b, e, h), MTF_F32)))
MISTAKE(input_of_another_type, applied(p, mtf_placeholder(p->g, "t", MTF_SHAPE(b, e), MTF_F64)))
MISTAKE(no_factor, product_of(p, 0, NULL))
MISTAKE(too_many_factors,
        product_of(p, 5, (const char *const[]){"relu", "relu", "relu", "relu", "relu"}))
MISTAKE(factors_below_zero, product_of(p, -1, NULL))
MISTAKE(shared_choice_of_no_dim, pair_of(p, 0.5, "a;z"))
MISTAKE(shared_choice_of_a_reduced_dim, pair_of(p, 0.5, "b"))
MISTAKE(hidden_rate_of_one, pair_of(p, 1, NULL))

MISTAKE(fan_out_with_unit_scaling,
        kernel_of(p, (mtf_dense_options){.unit_scaling = true, .kernel = {.fan = MTF_FAN_OUT}}))
MISTAKE(mean_fan_with_unit_values,
        initialized(p, (mtf_initializer){.unit = true, .fan = MTF_FAN_AVG}, MTF_F32))
MISTAKE(scale_below_zero, kernel_of(p, (mtf_dense_options){.kernel = {.scale = -1}}))
MISTAKE(scale_is_nan, initialized(p, (mtf_initializer){.scale = (double)NAN}, MTF_F32))
MISTAKE(no_distribution,
        initialized(p, (mtf_initializer){.distribution = (mtf_distribution)7}, MTF_F32))
MISTAKE(initial_integers, initialized(p, (mtf_initializer){0}, MTF_I32))
MISTAKE(unit_product_of_two_sizes, mtf_unit_einsum(2, (mtf_tensor *[]){p->x, p->c}, MTF_SHAPE(a)))
MISTAKE(unit_product_with_null, mtf_unit_einsum(2, (mtf_tensor *[]){p->x, NULL}, MTF_SHAPE(a)))

MISTAKE(filter_of_nothing, filter(p, 1, 0))
MISTAKE(filter_too_long, filter(p, -500, 500))
MISTAKE(filter_far_out, filter(p, INT64_MIN, INT64_MAX))
MISTAKE(convolution_along_no_dim, convolved(p, "z"))
MISTAKE(convolution_along_null, convolved(p, NULL))

/* ---- Transformers ---- */

static const mtf_transformer_options small = {
    .vocab = 7, .layers = 2, .d_model = 8, .heads = 2, .d_kv = 4, .d_ff = 12, .length = 6};

static mtf_tensor *transformer(parts *p, mtf_transformer_options o, int64_t batch, int64_t length)
{
    return mtf_transformer_apply(mtf_transformer_variables(p->g, &o), batch, length, true).loss_sum;
}

#define TRANSFORMER_MISTAKE(name, ...)                                                             \
    static mtf_tensor *name(parts *p)                                                              \
    {                                                                                              \
        mtf_transformer_options o = small;                                                         \
        o.__VA_ARGS__;                                                                             \
        return transformer(p, o, 2, 6);                                                            \
    }
TRANSFORMER_MISTAKE(no_vocabulary, vocab = 0)
TRANSFORMER_MISTAKE(no_layer, layers = 0)
TRANSFORMER_MISTAKE(model_of_nothing, d_model = -8)
TRANSFORMER_MISTAKE(no_head, heads = 0)
TRANSFORMER_MISTAKE(keys_of_nothing, d_kv = 0)
TRANSFORMER_MISTAKE(hidden_layer_of_nothing, d_ff = 0)
TRANSFORMER_MISTAKE(no_position, length = 0)
TRANSFORMER_MISTAKE(recompute_below_zero, recompute = -1)
TRANSFORMER_MISTAKE(transformer_of_integers, dtype = MTF_I32)
TRANSFORMER_MISTAKE(dropout_of_one, dropout = 1.0)
TRANSFORMER_MISTAKE(smoothing_above_one, loss.label_smoothing = 1.5)
MISTAKE(sequence_too_long, transformer(p, small, 2, 7))
MISTAKE(sequence_of_nothing, transformer(p, small, 2, 0))
MISTAKE(batch_of_nothing, transformer(p, small, 0, 6))

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const mistake_row rows[] = {
        MISTAKE_ROW(activation_unknown),
        MISTAKE_ROW(activation_of_a_layer_unknown),
        MISTAKE_ROW(activation_of_a_factor_unknown),
        MISTAKE_ROW(expert_dim_is_new),
        MISTAKE_ROW(expert_dim_is_reduced),
        MISTAKE_ROW(kernel_of_too_many_dims),
        MISTAKE_ROW(kernel_of_integers),
        MISTAKE_ROW(reduced_dim_missing),
        MISTAKE_ROW(reduced_dim_of_another_size),
        MISTAKE_ROW(expert_dim_missing),
        MISTAKE_ROW(new_dim_there_already),
        MISTAKE_ROW(input_of_another_type),
        MISTAKE_ROW(no_factor),
        MISTAKE_ROW(too_many_factors),
        MISTAKE_ROW(factors_below_zero),
        MISTAKE_ROW(shared_choice_of_no_dim),
        MISTAKE_ROW(shared_choice_of_a_reduced_dim),
        MISTAKE_ROW(hidden_rate_of_one),
        MISTAKE_ROW(fan_out_with_unit_scaling),
        MISTAKE_ROW(mean_fan_with_unit_values),
        MISTAKE_ROW(scale_below_zero),
        MISTAKE_ROW(scale_is_nan),
        MISTAKE_ROW(no_distribution),
        MISTAKE_ROW(initial_integers),
        MISTAKE_ROW(unit_product_of_two_sizes),
        MISTAKE_ROW(unit_product_with_null),
        MISTAKE_ROW(filter_of_nothing),
        MISTAKE_ROW(filter_too_long),
        MISTAKE_ROW(filter_far_out),
        MISTAKE_ROW(convolution_along_no_dim),
        MISTAKE_ROW(convolution_along_null),
        MISTAKE_ROW(no_vocabulary),
        MISTAKE_ROW(no_layer),
        MISTAKE_ROW(model_of_nothing),
        MISTAKE_ROW(no_head),
        MISTAKE_ROW(keys_of_nothing),
        MISTAKE_ROW(hidden_layer_of_nothing),
        MISTAKE_ROW(no_position),
        MISTAKE_ROW(recompute_below_zero),
        MISTAKE_ROW(transformer_of_integers),
        MISTAKE_ROW(dropout_of_one),
        MISTAKE_ROW(smoothing_above_one),
        MISTAKE_ROW(sequence_too_long),
        MISTAKE_ROW(sequence_of_nothing),
        MISTAKE_ROW(batch_of_nothing),
    };
    mistakes_check("dense_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes_have_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
