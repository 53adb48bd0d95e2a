/* SPDX-License-Identifier: Apache-2.0
 * Random tensors and dropout. A value is a function of the run's seed and step, the stream (a hash
 * of the path of its name) and the element's global index, so it is the same under every layout. */
#include "base/random.h"

#include <math.h>

#include "base/fault.h"
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"

typedef struct random_attr {
    tile_origin origin; /* first: TRAIT_INDEX */
    uint64_t stream;
    int seeded; /* draws from `seed`, not from the run's */
    uint64_t seed;
    double a, b; /* low and high; mean and stddev; rate */
    mtf_shape shape;
    mtf_dtype type;
} random_attr;

static const op_field random_fields[] = {
    OP_FIELD(random_attr, stream, FIELD_U64), OP_FIELD(random_attr, seeded, FIELD_INT),
    OP_FIELD(random_attr, seed, FIELD_U64),   OP_FIELD(random_attr, a, FIELD_F64),
    OP_FIELD(random_attr, b, FIELD_F64),      {0}};

static bool random_infer(mtf_graph *g, mtf_node *n)
{
    const random_attr *a = n->attr;
    n->out[0].shape = a->shape;
    n->out[0].dtype = a->type;
    if (!mtf_dtype_is_float(a->type))
        graph_fail(g, "%s '%s': the type %s is not possible; use f32, f64 or bf16", n->op->name,
                   n->name, mtf_dtype_name(a->type));
    else if (!isfinite(a->a) || !isfinite(a->b) || !isfinite(a->b - a->a))
        graph_fail(
            g, "%s '%s': its parameters are %g and %g; they and their difference must be finite",
            n->op->name, n->name, a->a, a->b);
    else
        return true;
    return false;
}

enum { RUN = 256 };

static random_key key_of(const tile_args *t)
{
    const random_attr *a = t->attr;
    return random_fold(a->seeded ? a->seed : t->run->seed, a->stream);
}

typedef void fill32_fn(float *, random_key, uint64_t, uint64_t, int64_t);
typedef void fill64_fn(double *, random_key, uint64_t, uint64_t, int64_t);

/* out = shift + factor * standard distribution. A bf16 is the f32 of the same place, rounded. */
static void fill(const tile_args *t, fill32_fn *fill32, fill64_fn *fill64, double shift,
                 double factor)
{
    const random_key key = key_of(t);
    if (t->dtype == MTF_F64) {
        double *o = t->out;
        fill64(o, key, t->run->step, t->index, t->n);
        for (int64_t i = 0; i < t->n; i++)
            o[i] = shift + factor * o[i];
        return;
    }
    float part[RUN];
    for (int64_t done = 0; done < t->n; done += RUN) {
        const int64_t n = t->n - done < RUN ? t->n - done : RUN;
        fill32(part, key, t->run->step, t->index + (uint64_t)done, n);
        for (int64_t i = 0; i < n; i++) {
            const float x = (float)(shift + factor * (double)part[i]);
            if (t->dtype == MTF_F32)
                ((float *)t->out)[done + i] = x;
            else
                ((bf16 *)t->out)[done + i] = bf16_from_f32(x);
        }
    }
}

static void uniform_tile(const tile_args *t)
{
    const random_attr *a = t->attr;
    fill(t, random_fill_uniform_f32, random_fill_uniform_f64, a->a, a->b - a->a);
}

static void normal_tile(const tile_args *t)
{
    const random_attr *a = t->attr;
    fill(t, random_fill_normal_f32, random_fill_normal_f64, a->a, a->b);
}

static void truncated_tile(const tile_args *t)
{
    const random_attr *a = t->attr;
    fill(t, random_fill_truncated_f32, random_fill_truncated_f64, a->a, a->b);
}

void mtf_graph_set_seed(mtf_graph *g, uint64_t seed)
{
    g->seeded = true;
    g->seed = seed;
}

void mtf_graph_clear_seed(mtf_graph *g)
{
    g->seeded = false;
    g->seed = 0;
}

static tile_origin origin_of(const mtf_graph *g, const mtf_shape *s)
{
    const int at = g->batch_name ? mtf_shape_find(s, g->batch_name) : -1;
    return (tile_origin){.batch_dim = at, .batch_full = at >= 0 ? g->batch_full : 0};
}

void mtf_graph_set_batch(mtf_graph *g, const char *name, int64_t full)
{
    if (full < 1)
        graph_fail(g, "the full batch of %s has size %lld; it must be at least 1",
                   name ? name : "NULL", (long long)full);
    g->batch_name = name ? graph_intern(g, name) : NULL;
    g->batch_full = full;
}

static mtf_tensor *build(mtf_graph *g, const op *row, const char *name, int nin, mtf_tensor **in,
                         random_attr a)
{
    if (g->err.status != MTF_OK) return NULL;
    const char *given = name && *name ? name : row->name;
    if (!a.stream) { /* a gradient comes with those of its node, whatever the batch is by now */
        a.origin = origin_of(g, &a.shape);
        a.stream = random_stream(graph_stream_name(g, given));
        a.seeded = g->seeded;
        a.seed = g->seed;
    }
    return graph_add(g, row, given, nin, in, &a);
}

static const mtf_shape ab = {.rank = 2, .dim = {{"a", 9}, {"b", 6}}};

/* [a=9 b=6], and the edges. */
static mtf_shape sample_shape(int k)
{
    return k ? sample_edge(k - 1) : ab;
}

static mtf_tensor *uniform_sample(mtf_graph *g, int k)
{
    if (k > 2 + SAMPLE_EDGES) return NULL;
    if (k == 1 + SAMPLE_EDGES) return mtf_random_uniform(g, "u", ab, sample_float(), 2.0, 2.0);
    if (k == 2 + SAMPLE_EDGES) return mtf_random_uniform(g, "u", ab, sample_float(), 3.0, -1.0);
    return mtf_random_uniform(g, "u", sample_shape(k), sample_float(), -1.0, 3.0);
}

static mtf_tensor *normal_sample(mtf_graph *g, int k)
{
    if (k == 1 + SAMPLE_EDGES) return mtf_random_normal(g, "n", ab, sample_float(), -1.0, 0.0);
    return k > SAMPLE_EDGES ? NULL
                            : mtf_random_normal(g, "n", sample_shape(k), sample_float(), 0.0, 1.0);
}

static mtf_tensor *truncated_sample(mtf_graph *g, int k)
{
    if (k == 1 + SAMPLE_EDGES)
        return mtf_random_truncated_normal(g, "t", ab, sample_float(), -1.0, 0.0);
    if (k > SAMPLE_EDGES) return NULL;
    return mtf_random_truncated_normal(g, "t", sample_shape(k), sample_float(), 1.0, 0.5);
}

#define ROW(fn, documentation, tile_function, sampler)                                             \
    const op op_random_##fn = {                                                                    \
        .name = "random_" #fn,                                                                     \
        .doc = documentation,                                                                      \
        .example = "mtf_random_" #fn "(g, \"r\", MTF_SHAPE(a, b), MTF_F32, 0, 1)",                 \
        .nin = 0,                                                                                  \
        .traits = TRAIT_TILE | TRAIT_INDEX | TRAIT_RANDOM,                                         \
        .attr_size = sizeof(random_attr),                                                          \
        .fields = random_fields,                                                                   \
        .infer = random_infer,                                                                     \
        .tile = tile_function,                                                                     \
        .sample = sampler,                                                                         \
    };                                                                                             \
    mtf_tensor *mtf_random_##fn(mtf_graph *g, const char *name, mtf_shape shape, mtf_dtype type,   \
                                double first, double second)                                       \
    {                                                                                              \
        const random_attr a = {.a = first, .b = second, .shape = shape, .type = type};             \
        return build(g, &op_random_##fn, name, 0, NULL, a);                                        \
    }

ROW(uniform, "out = uniform in [a, b)", uniform_tile, uniform_sample)
ROW(normal, "out = normal with mean a and standard deviation b", normal_tile, normal_sample)
ROW(truncated_normal, "out = normal with mean a and standard deviation b, within 2 b of a",
    truncated_tile, truncated_sample)

/* ---- dropout ---- */

/* Not faster than a random tensor, a comparison and a product, but none of them is in memory.
 * Selected, not multiplied: an infinite x that is dropped gives 0, not NaN. */
#define DROP(T, M, suffix)                                                                         \
    do {                                                                                           \
        M mask[RUN];                                                                               \
        for (int64_t done = 0; done < t->n; done += RUN) {                                         \
            const int64_t n = t->n - done < RUN ? t->n - done : RUN, s = t->stride[0];             \
            const T *x = (const T *)t->in[0] + done * s;                                           \
            T *o = (T *)t->out + done;                                                             \
            random_fill_keep_##suffix(mask, key, t->run->step, index + (uint64_t)done, n, keep,    \
                                      (M)(1.0 / keep));                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                o[i] = TILE_AS_##T(mask[i] > 0 ? TILE_LOAD_##T(x[i * s]) * mask[i] : 0);           \
        }                                                                                          \
    } while (0)

static void dropout_tile(const tile_args *t)
{
    const random_attr *a = t->attr;
    const random_key key = key_of(t);
    const double keep = 1.0 - a->a;
    const uint64_t index = FAULT(FAULT_DROPOUT_OFFSET) ? 0 : t->index;
    if (t->dtype == MTF_F64)
        DROP(double, double, f64);
    else if (t->dtype == MTF_BF16)
        DROP(bf16, float, f32);
    else
        DROP(float, float, f32);
}

static bool dropout_linear(const mtf_node *n, unsigned mask)
{
    (void)n;
    return mask == 1;
}

static void dropout_grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    mtf_tensor *d = dy[0];
    dx[0] = build(n->graph, &op_dropout, NULL, 1, &d, *(const random_attr *)n->attr);
}

static mtf_tensor *dropout_sample(mtf_graph *g, int k)
{
    static const double rate[] = {0, 1e-9, 0.999}; /* of nothing, of hardly any, of nearly all */
    if (k <= SAMPLE_EDGES) return mtf_dropout(sample_normal(g, sample_shape(k)), "drop", 0.4);
    k -= SAMPLE_EDGES + 1;
    return k < 3 ? mtf_dropout(sample_normal(g, ab), "drop", rate[k]) : NULL;
}

const op op_dropout = {
    .name = "dropout",
    .doc = "out = 0 with probability a, else x / (1 - a)",
    .example = "mtf_dropout(x, \"drop\", 0.1)",
    .nin = 1,
    .traits = TRAIT_TILE | TRAIT_INDEX | TRAIT_RANDOM | TRAIT_INPLACE,
    .attr_size = sizeof(random_attr),
    .fields = random_fields,
    .infer = random_infer,
    .linear = dropout_linear,
    .grad = dropout_grad,
    .tile = dropout_tile,
    .sample = dropout_sample,
};

mtf_tensor *mtf_dropout(mtf_tensor *x, const char *name, double rate)
{
    if (!x) return NULL;
    if (!(rate >= 0.0 && rate < 1.0))
        return graph_fail(x->node->graph, "dropout '%s': the rate is %g; it must be in [0, 1)",
                          name ? name : "", rate);
    if (rate == 0.0) return x;
    const random_attr a = {.a = rate, .shape = x->shape, .type = x->dtype};
    return build(x->node->graph, &op_dropout, name, 1, &x, a);
}
