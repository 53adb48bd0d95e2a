/* SPDX-License-Identifier: Apache-2.0
 * Samples of dense layers, losses and noise. */
#include "mtf/mtf.h"
#include "ops/tile.h"
#include "support/conform.h"
#include "support/layer_samples.h"

/* ---- dense ---- */

static mtf_tensor *dense(mtf_graph *g, int k)
{
    const mtf_dim a = {"a", 3}, b = {"b", 6}, c = {"c", 4}, d = {"d", 5};
    mtf_tensor *x = NULL;
    mtf_dense_weights w = {.nreduced = 1};
    switch (k) {
    case 0: /* bias and activation */
        x = sample_normal(g, MTF_SHAPE(a, b));
        w.kernel = sample_normal(g, MTF_SHAPE(b, c));
        w.bias = sample_normal(g, MTF_SHAPE(c));
        w.activation = "gelu";
        break;
    case 1: /* several dims at either side */
        x = sample_normal(g, MTF_SHAPE(a, b));
        w.nreduced = 2;
        w.kernel = sample_normal(g, MTF_SHAPE(b, a, c, d));
        w.unit_scaling = true;
        break;
    case 2: /* experts */
        x = sample_normal(g, MTF_SHAPE(d, a, b));
        w.nexpert = 1;
        w.kernel = sample_normal(g, MTF_SHAPE(a, b, c));
        w.bias = sample_normal(g, MTF_SHAPE(a, c));
        break;
    case 3: /* a square matrix */
        x = sample_normal(g, MTF_SHAPE(a, b));
        w.kernel = sample_normal(g, MTF_SHAPE({"_b", 6}, b));
        break;
    default:
        return NULL;
    }
    return mtf_dense_layer(x, &w);
}

static mtf_tensor *dense_product(mtf_graph *g, int k)
{
    static const char *const activations[][2] = {
        {"linear", "sigmoid"}, {"gelu", "linear"}, {"swish", "linear"}};
    if (k == 3) return NULL;
    const mtf_dim a = {"a", 3}, b = {"b", 6}, c = {"c", 4};
    mtf_dense_product p = {.nfactors = 2};
    for (int i = 0; i < 2; i++)
        p.factor[i] = (mtf_dense_weights){.kernel = sample_normal(g, MTF_SHAPE(b, c)),
                                          .nreduced = 1,
                                          .activation = activations[k][i]};
    return mtf_dense_product_layer(sample_normal(g, MTF_SHAPE(a, b)), &p);
}

static mtf_tensor *dense_pair(mtf_graph *g, int k)
{
    if (k == 2) return NULL;
    const mtf_dim a = {"a", 3}, b = {"b", 6}, c = {"c", 4};
    mtf_dense_pair p = {.wi = {.nfactors = 1}};
    p.wi.factor[0] = (mtf_dense_weights){
        .kernel = sample_normal(g, MTF_SHAPE(b, c)), .nreduced = 1, .activation = "softplus"};
    p.wo = (mtf_dense_weights){.kernel = sample_normal(g, MTF_SHAPE(c, b)), .nreduced = 1};
    return mtf_dense_pair_layer(sample_normal(g, MTF_SHAPE(a, b)), &p, 0.4, k ? "a" : NULL);
}

static mtf_tensor *separable_conv1d(mtf_graph *g, int k)
{
    if (k == 2) return NULL;
    const mtf_dim t = {"t", 6}, in = {"in", 4}, out = {"out", 3};
    mtf_dense_weights depthwise[3];
    for (int i = 0; i < 3; i++)
        depthwise[i] = (mtf_dense_weights){.kernel = sample_normal(g, MTF_SHAPE(in)), .nexpert = 1};
    depthwise[0].bias = sample_normal(g, MTF_SHAPE(in));
    const mtf_separable_weights w = {
        .first = k ? -1 : 2, /* around the element; all of them ahead */
        .npositions = 3,
        .depthwise = depthwise,
        .pointwise = {.kernel = sample_normal(g, MTF_SHAPE(in, out)), .nreduced = 1}};
    return mtf_separable_conv1d(sample_normal(g, MTF_SHAPE(t, in)), &w, "t");
}

/* ---- losses ---- */

/* Integer targets from -2 to 7: those that are no class are as good as any here. */
static mtf_tensor *softmax_cross_entropy(mtf_graph *g, int k)
{
    static const mtf_softmax_loss options[] = {
        {0}, {.label_smoothing = 0.2, .z_loss = 0.1}, {.z_loss = 0.1}, {.label_smoothing = 0.2}};
    if (k == 4) return NULL;
    const mtf_dim a = {"a", 2}, b = {"b", 3}, c = {"c", 9};
    mtf_tensor *logits = sample_normal(g, MTF_SHAPE(a, c, b));
    mtf_tensor *targets =
        k < 2 ? sample_integers(g, MTF_SHAPE(b, a)) : sample_normal(g, MTF_SHAPE(a, b, c));
    return mtf_softmax_cross_entropy(logits, targets, "c", &options[k]);
}

static mtf_tensor *sigmoid_cross_entropy(mtf_graph *g, int k)
{
    if (k == 1) return NULL;
    const mtf_dim a = {"a", 4}, b = {"b", 9};
    mtf_tensor *x = sample_normal(g, MTF_SHAPE(a, b));
    return mtf_sigmoid_cross_entropy(x, sample_normal(g, MTF_SHAPE(b, a)));
}

static mtf_tensor *weights_nonzero(mtf_graph *g, int k)
{
    if (k == 1) return NULL;
    return mtf_weights_nonzero(sample_integers(g, MTF_SHAPE({"a", 4}, {"b", 9})), sample_float());
}

static mtf_tensor *cross_entropy(mtf_graph *g, int k)
{
    if (k == 1) return NULL;
    const mtf_dim a = {"a", 4}, c = {"c", 9};
    return mtf_cross_entropy(sample_normal(g, MTF_SHAPE(a, c)), sample_integers(g, MTF_SHAPE(a)),
                             "c");
}

/* ---- noise ---- */

static mtf_tensor *dropout_shared(mtf_graph *g, int k)
{
    const mtf_dim a = {"a", 4}, b = {"b", 9}, c = {"c", 2};
    const mtf_shape noise[] = {MTF_SHAPE(b), MTF_SHAPE(c, a), MTF_SCALAR};
    if (k == 3) return NULL;
    return mtf_dropout_shared(sample_normal(g, MTF_SHAPE(a, b, c)), "drop", 0.4, noise[k]);
}

static mtf_tensor *dropout_keep(mtf_graph *g, int k)
{
    const mtf_dim a = {"a", 4}, b = {"b", 9};
    const mtf_shape noise[] = {MTF_SHAPE(b), MTF_SHAPE(b, a)};
    if (k == 2) return NULL;
    mtf_tensor *keep = mtf_constant(g, 0.7, MTF_SCALAR, sample_float());
    return mtf_dropout_keep(sample_normal(g, MTF_SHAPE(a, b)), "drop", keep, noise[k]);
}

static mtf_tensor *multiplicative_jitter(mtf_graph *g, int k)
{
    if (k == 1) return NULL;
    return mtf_multiplicative_jitter(sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 9})), "j", 0.1);
}

const op layer_samples_dense[] = {
    CONFORM_LAYER(dense),
    CONFORM_LAYER(dense_product),
    CONFORM_LAYER(dense_pair),
    CONFORM_LAYER(separable_conv1d),
    CONFORM_LAYER(softmax_cross_entropy),
    CONFORM_LAYER(sigmoid_cross_entropy),
    CONFORM_LAYER(weights_nonzero),
    CONFORM_LAYER(cross_entropy),
    CONFORM_LAYER(dropout_shared),
    CONFORM_LAYER(dropout_keep),
    CONFORM_LAYER(multiplicative_jitter),
};
const int layer_samples_dense_count = sizeof layer_samples_dense / sizeof *layer_samples_dense;
