/* SPDX-License-Identifier: Apache-2.0
 * Samples of dense layers, losses, noise and the layers of a Transformer. */
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
    case 4: /* dims of size 1 and 3 */
        x = sample_normal(g, MTF_SHAPE({"a", 1}, {"b", 3}));
        w.kernel = sample_normal(g, MTF_SHAPE({"b", 3}, {"c", 1}));
        w.bias = sample_normal(g, MTF_SHAPE({"c", 1}));
        w.activation = "tanh";
        break;
    case 5: /* no dim stays */
        x = sample_normal(g, MTF_SHAPE(b));
        w.kernel = sample_normal(g, MTF_SHAPE(b, c));
        break;
    case 6: /* no dim is new, to a scalar */
        x = sample_normal(g, MTF_SHAPE(b));
        w.kernel = sample_normal(g, MTF_SHAPE(b));
        w.bias = sample_normal(g, MTF_SCALAR);
        w.activation = "square";
        break;
    case 7: /* no dim is summed over */
        x = sample_normal(g, MTF_SHAPE(a));
        w.nreduced = 0;
        w.kernel = sample_normal(g, MTF_SHAPE(c));
        w.unit_scaling = true;
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
    if (k > 4) return NULL;
    const mtf_dim a = {"a", 3}, b = {"b", k < 3 ? 6 : 1}, c = {"c", k < 3 ? 4 : 3};
    mtf_dense_product p = {.nfactors = k < 3 ? 2 : k == 3 ? 1 : MTF_MAX_DENSE_FACTORS};
    for (int i = 0; i < p.nfactors; i++)
        p.factor[i] = (mtf_dense_weights){.kernel = sample_normal(g, MTF_SHAPE(b, c)),
                                          .nreduced = 1,
                                          .activation = activations[k % 3][i % 2]};
    return mtf_dense_product_layer(sample_normal(g, MTF_SHAPE(a, b)), &p);
}

static mtf_tensor *dense_pair(mtf_graph *g, int k)
{
    static const struct {
        double rate;
        const char *shared;
    } dropout[] = {{0.4, NULL}, {0.4, "a"}, {0.4, "a;c"}, {0, "c"}, {0.4, NULL}};
    if (k > 4) return NULL;
    const mtf_dim a = {"a", 3}, b = {"b", k < 4 ? 6 : 3}, c = {"c", k < 4 ? 4 : 1};
    mtf_dense_pair p = {.wi = {.nfactors = 1}};
    p.wi.factor[0] = (mtf_dense_weights){
        .kernel = sample_normal(g, MTF_SHAPE(b, c)), .nreduced = 1, .activation = "softplus"};
    p.wo = (mtf_dense_weights){.kernel = sample_normal(g, MTF_SHAPE(c, b)), .nreduced = 1};
    return mtf_dense_pair_layer(sample_normal(g, MTF_SHAPE(a, b)), &p, dropout[k].rate,
                                dropout[k].shared);
}

static mtf_tensor *separable_conv1d(mtf_graph *g, int k)
{
    /* Around the element; all of them ahead; beyond the ends; one position; of size 1. */
    static const struct {
        int64_t first, length;
        int npositions;
    } of[] = {{2, 6, 3}, {-1, 6, 3}, {-9, 6, 3}, {1, 3, 1}, {0, 1, 2}};
    if (k > 4) return NULL;
    const mtf_dim t = {"t", of[k].length}, in = {"in", k < 4 ? 4 : 1}, out = {"out", 3};
    mtf_dense_weights depthwise[3];
    for (int i = 0; i < of[k].npositions; i++)
        depthwise[i] = (mtf_dense_weights){.kernel = sample_normal(g, MTF_SHAPE(in)), .nexpert = 1};
    depthwise[0].bias = sample_normal(g, MTF_SHAPE(in));
    const mtf_separable_weights w = {
        .first = of[k].first,
        .npositions = of[k].npositions,
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
    static const mtf_softmax_loss extremes[] = {{.label_smoothing = 1, .z_loss = 10},
                                                {.z_loss = 0},
                                                {.label_smoothing = 0.2, .z_loss = 0.1}};
    static const int64_t classes[] = {9, 1, 3};
    if (k > 9) return NULL;
    if (k > 3) { /* all of the smoothing, one class, few classes; no other dim, or one of size 1 */
        const mtf_dim few = {"c", classes[(k - 4) / 2]}, one = {"a", 1};
        const mtf_shape s = k % 2 ? MTF_SHAPE(few) : MTF_SHAPE(few, one);
        mtf_tensor *x = sample_normal(g, s);
        mtf_tensor *y = sample_integers(g, k % 2 ? MTF_SCALAR : MTF_SHAPE(one));
        return mtf_softmax_cross_entropy(x, y, "c", &extremes[(k - 4) / 2]);
    }
    const mtf_dim a = {"a", 2}, b = {"b", 3}, c = {"c", 9};
    mtf_tensor *logits = sample_normal(g, MTF_SHAPE(a, c, b));
    mtf_tensor *targets =
        k < 2 ? sample_integers(g, MTF_SHAPE(b, a)) : sample_normal(g, MTF_SHAPE(a, b, c));
    return mtf_softmax_cross_entropy(logits, targets, "c", &options[k]);
}

static mtf_tensor *sigmoid_cross_entropy(mtf_graph *g, int k)
{
    if (k > SAMPLE_EDGES) return NULL;
    const mtf_dim a = {"a", 4}, b = {"b", 9};
    if (k > 0)
        return mtf_sigmoid_cross_entropy(sample_normal(g, sample_edge(k - 1)),
                                         sample_normal(g, sample_edge(k - 1)));
    mtf_tensor *x = sample_normal(g, MTF_SHAPE(a, b));
    return mtf_sigmoid_cross_entropy(x, sample_normal(g, MTF_SHAPE(b, a)));
}

static mtf_tensor *weights_nonzero(mtf_graph *g, int k)
{
    if (k > 1 + SAMPLE_EDGES) return NULL;
    if (k > 1) return mtf_weights_nonzero(sample_integers(g, sample_edge(k - 2)), sample_float());
    if (k > 0) return mtf_weights_nonzero(sample_ties(g, MTF_SHAPE({"a", 9})), MTF_I32);
    return mtf_weights_nonzero(sample_integers(g, MTF_SHAPE({"a", 4}, {"b", 9})), sample_float());
}

static mtf_tensor *cross_entropy(mtf_graph *g, int k)
{
    if (k > 1) return NULL;
    const mtf_dim a = {"a", k ? 1 : 4}, c = {"c", k ? 3 : 9};
    return mtf_cross_entropy(sample_normal(g, MTF_SHAPE(a, c)), sample_integers(g, MTF_SHAPE(a)),
                             "c");
}

/* ---- noise ---- */

static mtf_tensor *dropout_shared(mtf_graph *g, int k)
{
    const mtf_dim a = {"a", 4}, b = {"b", 9}, c = {"c", 2};
    const mtf_shape noise[] = {MTF_SHAPE(b), MTF_SHAPE(c, a), MTF_SCALAR};
    static const double rate[] = {0, 0.999};
    if (k > 6) return NULL;
    if (k > 4)
        return mtf_dropout_shared(sample_normal(g, MTF_SHAPE(a, c)), "drop", rate[k - 5],
                                  MTF_SHAPE(a));
    if (k > 2)
        return mtf_dropout_shared(sample_normal(g, sample_edge(1)), "drop", 0.4,
                                  k == 3 ? MTF_SHAPE({"a", 1}) : MTF_SHAPE({"b", 3}));
    return mtf_dropout_shared(sample_normal(g, MTF_SHAPE(a, b, c)), "drop", 0.4, noise[k]);
}

static mtf_tensor *dropout_keep(mtf_graph *g, int k)
{
    const mtf_dim a = {"a", 4}, b = {"b", 9};
    const mtf_shape noise[] = {MTF_SHAPE(b), MTF_SHAPE(b, a)};
    static const double staying[] = {0.7, 0.7, 1, 0.001};
    if (k > 4) return NULL;
    mtf_tensor *keep = mtf_constant(g, k < 4 ? staying[k] : 0.5, MTF_SCALAR, sample_float());
    if (k == 4) return mtf_dropout_keep(sample_normal(g, sample_edge(1)), "drop", keep, MTF_SCALAR);
    return mtf_dropout_keep(sample_normal(g, MTF_SHAPE(a, b)), "drop", keep, noise[k % 2]);
}

static mtf_tensor *multiplicative_jitter(mtf_graph *g, int k)
{
    if (k == 1) return mtf_multiplicative_jitter(sample_normal(g, MTF_SHAPE({"a", 4})), "j", 0);
    if (k == 2) return mtf_multiplicative_jitter(sample_normal(g, MTF_SHAPE({"a", 4})), "j", 2);
    if (k > 2 + SAMPLE_EDGES) return NULL;
    if (k > 2) return mtf_multiplicative_jitter(sample_normal(g, sample_edge(k - 3)), "j", 0.1);
    return mtf_multiplicative_jitter(sample_normal(g, MTF_SHAPE({"a", 4}, {"b", 9})), "j", 0.1);
}

/* Of a limit that no gradient here reaches: beyond it the gradient is not that of the value. */
static mtf_tensor *clip_activation_gradient(mtf_graph *g, int k)
{
    if (k > SAMPLE_EDGES) return NULL;
    const mtf_shape s = k ? sample_edge(k - 1) : MTF_SHAPE({"a", 4}, {"b", 9});
    return mtf_clip_activation_gradient(mtf_square(sample_normal(g, s)), 1e6);
}

/* ---- the layers of a Transformer ---- */

static mtf_tensor *feed_forward(mtf_graph *g, int k)
{
    if (k > 2) return NULL;
    const mtf_dim t = {"t", k < 2 ? 5 : 1}, model = {"d_model", k < 2 ? 4 : 1},
                  hidden = {"d_ff", k < 2 ? 6 : 3};
    return mtf_feed_forward(
        sample_normal(g, MTF_SHAPE(t, model)), sample_normal(g, MTF_SHAPE(model, hidden)),
        sample_normal(g, MTF_SHAPE(hidden, model)), k == 1 ? MTF_RELU : MTF_GELU);
}

/* With a mask; with heads and dropout; with one key. */
static mtf_tensor *attention(mtf_graph *g, int k)
{
    if (k > 2) return NULL;
    const mtf_dim length = {"length", 3}, memory = {"memory", k < 2 ? 3 : 1}, heads = {"heads", 2},
                  width = {"d_kv", k < 2 ? 4 : 1};
    if (k == 1)
        return mtf_attention(sample_normal(g, MTF_SHAPE(length, heads, width)),
                             sample_normal(g, MTF_SHAPE(memory, heads, width)),
                             sample_normal(g, MTF_SHAPE(memory, heads, width)), NULL, "memory",
                             "d_kv", 0.3);
    return mtf_attention(sample_normal(g, MTF_SHAPE(length, width)),
                         sample_normal(g, MTF_SHAPE(memory, width)),
                         sample_normal(g, MTF_SHAPE(memory, width)),
                         mtf_causal_bias(g, length, memory, sample_float()), "memory", "d_kv", 0);
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
    CONFORM_LAYER(clip_activation_gradient),
    CONFORM_LAYER(feed_forward),
    CONFORM_LAYER(attention),
};
const int layer_samples_dense_count = sizeof layer_samples_dense / sizeof *layer_samples_dense;
