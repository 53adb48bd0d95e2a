/* SPDX-License-Identifier: Apache-2.0
 * Samples of norms, embeddings and reversible layers. */
#include "mtf/mtf.h"
#include "ops/tile.h"
#include "support/conform.h"
#include "support/layer_samples.h"

/* ---- norms ---- */

static const mtf_shape ab = {.rank = 2, .dim = {{"a", 4}, {"b", 6}}},
                       abc = {.rank = 3, .dim = {{"a", 3}, {"b", 1}, {"c", 9}}};

/* Along one dim; along two, of which one has size 1; without variables; along all; along a dim of
 * size 1 alone, of 3, along none. */
enum { NORMS = 7 };
static const struct {
    mtf_shape x, along;
    bool scale, bias;
} norms[NORMS] = {
    {{.rank = 2, .dim = {{"a", 4}, {"b", 6}}}, {.rank = 1, .dim = {{"b", 6}}}, true, true},
    {{.rank = 3, .dim = {{"a", 3}, {"b", 1}, {"c", 9}}},
     {.rank = 2, .dim = {{"c", 9}, {"b", 1}}},
     true,
     false},
    {{.rank = 2, .dim = {{"a", 4}, {"b", 6}}}, {.rank = 1, .dim = {{"a", 4}}}, false, false},
    {{.rank = 1, .dim = {{"a", 4}}}, {.rank = 1, .dim = {{"a", 4}}}, false, true},
    {{.rank = 2, .dim = {{"a", 1}, {"b", 3}}}, {.rank = 1, .dim = {{"a", 1}}}, true, true},
    {{.rank = 2, .dim = {{"a", 1}, {"b", 3}}}, {.rank = 1, .dim = {{"b", 3}}}, true, true},
    {{.rank = 1, .dim = {{"a", 3}}}, {.rank = 0}, true, true},
};

static mtf_norm sample_norm(mtf_graph *g, int k)
{
    mtf_norm n = {.along = norms[k].along};
    if (norms[k].scale) n.scale = sample_normal(g, n.along);
    if (norms[k].bias) n.bias = sample_normal(g, n.along);
    return n;
}

static mtf_tensor *layer_norm(mtf_graph *g, int k)
{
    return k < NORMS ? mtf_layer_norm(sample_normal(g, norms[k].x), sample_norm(g, k), 0.1) : NULL;
}

static mtf_tensor *rms_norm(mtf_graph *g, int k)
{
    return k < NORMS ? mtf_rms_norm(sample_normal(g, norms[k].x), sample_norm(g, k), 0.1) : NULL;
}

/* Channels b over a; a and c over b of size 1, whose variance is 0; no channels; one. */
static mtf_tensor *batch_norm(mtf_graph *g, int k)
{
    static const mtf_shape channels[] = {{.rank = 1, .dim = {{"b", 6}}},
                                         {.rank = 2, .dim = {{"a", 3}, {"c", 9}}},
                                         {.rank = 0},
                                         {.rank = 1, .dim = {{"b", 1}}}};
    if (k > 7) return NULL;
    mtf_batch_stats s = {.channels = channels[k % 4]};
    s.scale = sample_normal(g, s.channels);
    s.bias = sample_normal(g, s.channels);
    mtf_tensor *x = sample_normal(g, k % 2 ? abc : ab), *zero, *update[2];
    if (k > 3) {
        s.mean = sample_normal(g, s.channels);
        s.variance = sample_positive(g, s.channels);
        return mtf_batch_norm_inference(x, s, 0.1);
    }
    zero = mtf_constant(g, 0, s.channels, sample_float());
    s.mean = mtf_variable(g, "mean", zero, false);
    s.variance = mtf_variable(g, "variance", zero, false);
    return mtf_batch_norm(x, s, 0.9, 0.1, update);
}

/* ---- embeddings ---- */

enum { VOCAB = 7 };

static mtf_vocab_part sample_part(mtf_graph *g, int64_t first, int64_t tokens, int64_t inner)
{
    const mtf_dim vocab = {"vocab", tokens}, width = {"d", 4}, in = {"inner", inner};
    mtf_vocab_part p = {.first = first};
    if (!inner) {
        p.table = sample_normal(g, MTF_SHAPE(vocab, width));
        return p;
    }
    p.table = sample_normal(g, MTF_SHAPE(vocab, in));
    p.factor = sample_normal(g, MTF_SHAPE(in, width));
    return p;
}

/* Plain; factors of inner size 2 and 1; clusters of 4 + 2 + 1 tokens; a mixture of two softmaxes.
 */
static mtf_vocab_embedding sample_embedding(mtf_graph *g, int k, mtf_vocab_part *part)
{
    static const int64_t inner[] = {0, 2, 1};
    mtf_vocab_embedding e = {
        .options = {.vocab = {"vocab", VOCAB}, .model = {"d", 4}, .dtype = sample_float()},
        .nparts = 1,
        .part = part};
    e.options.scale_variable_like_classifier_weights = k == 2;
    if (k < 3) {
        part[0] = sample_part(g, 0, VOCAB, inner[k]);
        return e;
    }
    if (k == 3) {
        e.nparts = 3;
        part[0] = sample_part(g, 0, 4, 0);
        part[1] = sample_part(g, 4, 2, 2);
        part[2] = sample_part(g, 6, 1, 1);
        return e;
    }
    part[0] = sample_part(g, 0, VOCAB, 0);
    e.options.softmaxes = 2;
    e.mixture = sample_normal(g, MTF_SHAPE({"softmaxes", 2}, {"d", 4}));
    e.context = sample_normal(g, MTF_SHAPE({"softmaxes", 2}, {"d", 4}, {"d_context", 4}));
    return e;
}

static mtf_tensor *vocab_vectors(mtf_graph *g, int k)
{
    mtf_vocab_part part[3];
    if (k > 6) return NULL;
    const mtf_shape of[] = {MTF_SHAPE({"t", 5}), MTF_SCALAR, MTF_SHAPE({"t", 1}, {"u", 3})};
    const mtf_vocab_embedding e = sample_embedding(g, k < 4 ? k : 3 * (k - 4) / 2, part);
    return mtf_vocab_vectors(&e, sample_integers(g, of[k < 4 ? 0 : 1 + k % 2]));
}

static mtf_tensor *vocab_logits(mtf_graph *g, int k)
{
    mtf_vocab_part part[3];
    if (k > 4) return NULL;
    const mtf_vocab_embedding e = sample_embedding(g, k, part);
    return mtf_vocab_logits(&e, sample_normal(g, MTF_SHAPE({"t", k == 4 ? 1 : 5}, {"d", 4})));
}

/* ---- reversible layers ---- */

static mtf_tensor *half(void *weight, mtf_tensor *x)
{
    mtf_tensor *y = mtf_dropout(mtf_tanh(mtf_mul(x, weight)), "drop", 0.3);
    return mtf_mul(y, mtf_reduce_sum(y, MTF_SHAPE({"a", 4})));
}

static mtf_tensor *reversible(mtf_graph *g, int k)
{
    if (k > 2) return NULL; /* the last: of no layer */
    const mtf_dim b = {"b", k == 1 ? 1 : 6};
    mtf_reversible r = mtf_reversible_begin(sample_normal(g, MTF_SHAPE({"a", 4}, b)));
    for (int i = 0; i < 3 && k < 2; i++)
        r = mtf_reversible_layer(r, half, sample_normal(g, MTF_SHAPE(b)));
    return mtf_reversible_end(r);
}

const op layer_samples_norm[] = {
    CONFORM_LAYER(layer_norm),    CONFORM_LAYER(rms_norm),     CONFORM_LAYER(batch_norm),
    CONFORM_LAYER(vocab_vectors), CONFORM_LAYER(vocab_logits), CONFORM_LAYER(reversible),
};
const int layer_samples_norm_count = sizeof layer_samples_norm / sizeof *layer_samples_norm;
