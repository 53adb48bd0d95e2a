/* SPDX-License-Identifier: Apache-2.0
 * Adafactor (Shazeer and Stern 2018) with the options of Mesh-TensorFlow. All means are reductions
 * of whole tensors, so they come out right however the dims are split. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "nn/optimize.h"

/* ---- the decay of a step ---- */

double mtf_adafactor_decay(const mtf_adafactor_options *o, int64_t step)
{
    const double t = (double)(step - o->decay_offset > 1 ? step - o->decay_offset : 1);
    if (o->decay == MTF_DECAY_POW) return 1.0 - pow(t, -o->exponent);
    if (o->beta2 == 0) return 0;
    const double log_beta = log(o->beta2);
    return o->beta2 * expm1((t - 1) * log_beta) / expm1(t * log_beta);
}

/* ---- dims ---- */

/* The next name of a list of stacked dims, its length in *n, or NULL. */
static const char *next_name(const char *at, int *n)
{
    static const char separators[] = ";,. ";
    if (!at) return NULL;
    at += strspn(at, separators);
    *n = (int)strcspn(at, separators);
    return *n > 0 ? at : NULL;
}

static bool is_name(const char *dim, const char *at, int n)
{
    return strlen(dim) == (size_t)n && memcmp(dim, at, (size_t)n) == 0;
}

static bool is_stacked(const mtf_adafactor_options *o, const char *dim)
{
    int n = 0;
    for (const char *at = o->stacked_dims; (at = next_name(at, &n)); at += n)
        if (is_name(dim, at, n)) return true;
    return false;
}

static mtf_shape stacked_part(const mtf_adafactor_options *o, const mtf_shape *s)
{
    mtf_shape part = MTF_SCALAR;
    for (int i = 0; i < s->rank; i++)
        if (is_stacked(o, s->dim[i].name)) part = mtf_shape_with(part, s->dim[i]);
    return part;
}

/* The largest dim into d[0], the second largest into d[1]; of equal ones the first. */
static bool factored_dims(const mtf_adafactor_options *o, const mtf_shape *s, mtf_dim d[2])
{
    d[0] = d[1] = (mtf_dim){NULL, 0};
    for (int i = 0; i < s->rank; i++) {
        const mtf_dim now = s->dim[i];
        if (is_stacked(o, now.name) || now.size <= d[1].size) continue;
        const bool largest = now.size > d[0].size;
        d[1] = largest ? d[0] : now;
        if (largest) d[0] = now;
    }
    return o->factored && d[1].name && d[1].size >= o->min_dim_size_to_factor;
}

/* ---- slots ---- */

static void check_options(mtf_graph *g, const mtf_adafactor_options *o)
{
    const struct {
        const char *name, *range;
        double value;
        bool right;
    } checks[] = {
        {"exponent", "above 0", o->exponent, o->exponent > 0},
        {"beta2", "at least 0 and below 1", o->beta2, o->beta2 >= 0 && o->beta2 < 1},
        {"decay_offset", "at least 0", (double)o->decay_offset, o->decay_offset >= 0},
        {"beta1", "at least 0 and below 1", o->beta1, o->beta1 >= 0 && o->beta1 < 1},
        {"clipping_threshold", "at least 0", o->clipping_threshold, o->clipping_threshold >= 0},
        {"epsilon2", "a number of at least 0", o->epsilon2,
         o->epsilon2 >= 0 && isfinite(o->epsilon2)},
    };
    if ((unsigned)o->decay > MTF_DECAY_ADAM)
        graph_fail(g, "optimizer: there is no adafactor.decay of kind %d", (int)o->decay);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!checks[i].right)
            graph_fail(g, "optimizer: adafactor.%s is %g; it must be %s", checks[i].name,
                       checks[i].value, checks[i].range);
}

static bool has_dim(const mtf_optimizer *o, const char *name, int n)
{
    for (int i = 0; i < o->nvariables; i++) {
        const mtf_shape s = mtf_tensor_shape(o->variable[i]);
        for (int d = 0; d < s.rank; d++)
            if (is_name(s.dim[d].name, name, n)) return true;
    }
    return false;
}

static void begin(mtf_graph *g, mtf_optimizer *o)
{
    mtf_adafactor_options *a = &o->options.adafactor;
    int n = 0;
    check_options(g, a);
    optimizer_check_epsilon(g, o, "adafactor.epsilon1", a->epsilon1);
    for (const char *at = a->stacked_dims; (at = next_name(at, &n)); at += n)
        if (!has_dim(o, at, n))
            graph_fail(g, "optimizer adafactor: no variable has the stacked dim '%.*s'", n, at);
    if (a->exclude_from_parameter_scale &&
        !optimizer_match(g, "exclude_from_parameter_scale", a->exclude_from_parameter_scale,
                         o->nvariables, o->variable, o->scales))
        return;
    for (int i = 0; i < o->nvariables; i++)
        o->scales[i] = a->multiply_by_parameter_scale && !o->scales[i];
    o->decay = mtf_placeholder(g, "decay", MTF_SCALAR, optimizer_type(o));
    o->novelty = mtf_placeholder(g, "novelty", MTF_SCALAR, optimizer_type(o));
}

static void slots(mtf_graph *g, mtf_optimizer *o, int i)
{
    (void)g;
    const mtf_shape shape = mtf_tensor_shape(o->variable[i]);
    mtf_dim d[2];
    if (factored_dims(&o->options.adafactor, &shape, d)) {
        o->vr[i] = optimizer_slot(o, i, "vr", mtf_shape_without(shape, d[0].name));
        o->vc[i] = optimizer_slot(o, i, "vc", mtf_shape_without(shape, d[1].name));
    } else {
        o->v[i] = optimizer_slot(o, i, "v", shape);
    }
    if (o->options.adafactor.beta1 > 0) o->m[i] = optimizer_slot(o, i, "m", shape);
}

/* ---- a step ---- */

static mtf_tensor *rms(mtf_tensor *x, mtf_shape rest)
{
    return mtf_sqrt(mtf_reduce_mean(mtf_square(x), rest));
}

static mtf_tensor *at_least(mtf_tensor *x, double low)
{
    mtf_graph *g = mtf_tensor_graph(x);
    return g ? mtf_maximum(x, mtf_constant(g, low, MTF_SCALAR, mtf_tensor_dtype(x))) : NULL;
}

/* The slot's next value, assigned: decay slot + (1 - decay) now. Both shares are fed, for 1 - decay
 * has few digits in f32; and no difference is taken, so that what is above 0 stays so. */
static mtf_tensor *decayed(const mtf_optimizer *o, mtf_tensor *slot, mtf_tensor *now,
                           update_list *list)
{
    mtf_tensor *next = mtf_add(mtf_mul(slot, o->decay), mtf_mul(now, o->novelty));
    list->update[list->n++] = mtf_assign(slot, next);
    return next;
}

/* The gradient over the root of its mean square. */
static mtf_tensor *normalised(const mtf_optimizer *o, int i, mtf_tensor *gradient,
                              update_list *list)
{
    const mtf_adafactor_options *a = &o->options.adafactor;
    mtf_tensor *square = mtf_offset(mtf_square(gradient), a->epsilon1);
    if (o->v[i]) return mtf_mul(gradient, mtf_rsqrt(decayed(o, o->v[i], square, list)));
    const mtf_shape shape = mtf_tensor_shape(o->variable[i]), rows = mtf_tensor_shape(o->vr[i]);
    mtf_dim d[2];
    factored_dims(a, &shape, d);
    mtf_tensor *vr = decayed(o, o->vr[i], mtf_reduce_mean(square, rows), list);
    mtf_tensor *vc =
        decayed(o, o->vc[i], mtf_reduce_mean(square, mtf_tensor_shape(o->vc[i])), list);
    mtf_tensor *mean = mtf_reduce_mean(vr, mtf_shape_without(rows, d[1].name));
    return mtf_mul(mtf_mul(gradient, mtf_rsqrt(mtf_div(vr, mean))), mtf_rsqrt(vc));
}

static mtf_tensor *change(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list)
{
    const mtf_adafactor_options *a = &o->options.adafactor;
    const mtf_shape shape = mtf_tensor_shape(o->variable[i]);
    mtf_tensor *u = normalised(o, i, gradient, list), *size = optimizer_rate(o, i);
    if (a->clipping_threshold > 0)
        u = mtf_div(u, at_least(mtf_scale(rms(u, MTF_SCALAR), 1 / a->clipping_threshold), 1));
    if (o->scales[i])
        size = mtf_mul(size,
                       at_least(rms(optimizer_value(o, i), stacked_part(a, &shape)), a->epsilon2));
    u = mtf_mul(u, size);
    if (!o->m[i]) return u;
    mtf_tensor *m = mtf_add(mtf_scale(o->m[i], a->beta1), mtf_scale(u, 1 - a->beta1));
    list->update[list->n++] = mtf_assign(o->m[i], m);
    return m;
}

const optimizer_row optimizer_adafactor = {
    .name = "adafactor", .begin = begin, .slots = slots, .change = change};
