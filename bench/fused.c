/* SPDX-License-Identifier: Apache-2.0
 * Rows that do in one pass what others do in several, beside the compositions that they stand for:
 * time, and planned memory beyond operands and result. Both run in turn, so what else the machine
 * does meets both alike; ratios below 1 are what a row gains.
 *
 *     build/bench/fused [REPEATS [NAME]] */
#include "measure.h"

#include <stdio.h>
#include <string.h>

#include "ops/rows.h"

enum {
    ROWS = 256,
    COLS = 16384,
    SIDE = 2048,
    VOCAB = 4096,
    WIDTH = 256,
    TOKENS = 1024,
    MOST = 101
};

/* x and y: [rows=256 cols=16384]; table: [vocab width]; ids: i32 [tokens] below vocab. */
typedef struct operands {
    mtf_graph *g;
    mtf_tensor *x, *y, *table, *updates, *ids;
} operands;

typedef mtf_tensor *build_fn(const operands *o);

static mtf_tensor *number(const operands *o, double value)
{
    return mtf_constant(o->g, value, MTF_SCALAR, MTF_F32);
}

static mtf_tensor *is_positive(const operands *o)
{
    return mtf_greater(o->x, number(o, 0));
}

#define EXPRESSION(name, ...)                                                                      \
    static mtf_tensor *name(const operands *o)                                                     \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

/* ---- activations ---- */

EXPRESSION(relu_row, mtf_relu(o->x))
EXPRESSION(relu_parts, mtf_maximum(o->x, number(o, 0)))
EXPRESSION(relu_grad_row, op_build_relu_grad(o->x, o->y))
EXPRESSION(relu_grad_parts, mtf_where(is_positive(o), o->y, number(o, 0)))
EXPRESSION(leaky_relu_row, mtf_leaky_relu(o->x, 0.1))
EXPRESSION(leaky_relu_parts, mtf_maximum(o->x, mtf_scale(o->x, 0.1)))
EXPRESSION(sigmoid_row, mtf_sigmoid(o->x))
EXPRESSION(sigmoid_parts, mtf_reciprocal(mtf_offset(mtf_exp(mtf_negative(o->x)), 1)))
EXPRESSION(swish_row, mtf_swish(o->x))
EXPRESSION(swish_parts, mtf_mul(o->x, mtf_sigmoid(o->x)))
EXPRESSION(softplus_row, mtf_softplus(o->x))
EXPRESSION(softplus_parts,
           mtf_add(mtf_relu(o->x), mtf_log(mtf_offset(mtf_exp(mtf_negative(mtf_abs(o->x))), 1))))
EXPRESSION(elu_row, mtf_elu(o->x))
EXPRESSION(elu_parts, mtf_where(is_positive(o), o->x, mtf_offset(mtf_exp(o->x), -1)))
EXPRESSION(selu_row, mtf_selu(o->x))
EXPRESSION(selu_parts,
           mtf_scale(mtf_where(is_positive(o), o->x,
                               mtf_scale(mtf_offset(mtf_exp(o->x), -1), 1.6732632423543772)),
                     1.0507009873554805))

#define GELU_C 0.7978845608028654
#define GELU_A 0.044715

static mtf_tensor *gelu_tanh(const operands *o)
{
    mtf_tensor *inner = mtf_offset(mtf_scale(mtf_square(o->x), GELU_A), 1);
    return mtf_tanh(mtf_scale(mtf_mul(o->x, inner), GELU_C));
}
EXPRESSION(gelu_row, mtf_gelu(o->x))
EXPRESSION(gelu_parts, mtf_scale(mtf_mul(o->x, mtf_offset(gelu_tanh(o), 1)), 0.5))
EXPRESSION(gelu_grad_row, op_build_gelu_grad(o->x, o->y))
static mtf_tensor *gelu_grad_parts(const operands *o)
{
    mtf_tensor *t = gelu_tanh(o);
    mtf_tensor *slope = mtf_offset(mtf_negative(mtf_square(t)), 1);
    mtf_tensor *inner = mtf_offset(mtf_scale(mtf_square(o->x), 3 * GELU_A), 1);
    mtf_tensor *rest = mtf_scale(mtf_mul(mtf_mul(o->x, slope), inner), 0.5 * GELU_C);
    return mtf_mul(o->y, mtf_add(mtf_scale(mtf_offset(t, 1), 0.5), rest));
}

/* ---- arithmetic ---- */

EXPRESSION(abs_row, mtf_abs(o->x))
EXPRESSION(abs_parts, mtf_maximum(o->x, mtf_negative(o->x)))
EXPRESSION(rsqrt_row, mtf_rsqrt(o->x))
EXPRESSION(rsqrt_parts, mtf_reciprocal(mtf_sqrt(o->x)))
EXPRESSION(not_equal_row, mtf_not_equal(o->x, o->y))
EXPRESSION(not_equal_parts, mtf_logical_not(mtf_equal(o->x, o->y)))
EXPRESSION(less_equal_row, mtf_less_equal(o->x, o->y))
EXPRESSION(less_equal_parts, mtf_logical_not(mtf_less(o->y, o->x)))

/* ---- random choices, masks and indices ---- */

#define SHAPE MTF_SHAPE({"rows", ROWS}, {"cols", COLS})
EXPRESSION(dropout_row, mtf_dropout(o->x, "drop", 0.1))
EXPRESSION(dropout_parts,
           mtf_mul(o->x,
                   mtf_scale(mtf_cast(mtf_greater_equal(mtf_random_uniform(o->g, "drop", SHAPE,
                                                                           MTF_F32, 0, 1),
                                                        number(o, 0.1)),
                                      MTF_F32),
                             1 / 0.9)))
static const mtf_dim query = {"query", SIDE}, memory = {"memory", SIDE};
EXPRESSION(causal_bias_row, mtf_causal_bias(o->g, query, memory, MTF_F32))
EXPRESSION(causal_bias_parts, mtf_where(mtf_less(mtf_broadcast(mtf_range(o->g, query, MTF_I32),
                                                               MTF_SHAPE(query, memory)),
                                                 mtf_range(o->g, memory, MTF_I32)),
                                        number(o, -1e9), number(o, 0)))

static const mtf_dim vocab = {"vocab", VOCAB}, width = {"width", WIDTH},
                     tokens = {"tokens", TOKENS};
EXPRESSION(one_hot_row, mtf_one_hot(o->ids, vocab, 1, 0, MTF_F32))
EXPRESSION(one_hot_parts, mtf_cast(mtf_equal(mtf_broadcast(o->ids, MTF_SHAPE(tokens, vocab)),
                                             mtf_range(o->g, vocab, MTF_I32)),
                                   MTF_F32))
EXPRESSION(gather_row, mtf_gather(o->table, o->ids, "vocab"))
EXPRESSION(gather_parts, mtf_matmul(one_hot_row(o), o->table, MTF_SHAPE(tokens, width)))
EXPRESSION(scatter_add_row, mtf_scatter_add(o->updates, o->ids, "vocab", MTF_SHAPE(vocab, width)))
EXPRESSION(scatter_add_parts, mtf_matmul(one_hot_row(o), o->updates, MTF_SHAPE(vocab, width)))

#define PAIR(name)                                                                                 \
    {                                                                                              \
#name, name##_row, name##_parts                                                            \
    }
static const struct {
    const char *name;
    build_fn *row, *parts;
} pairs[] = {
    PAIR(relu),        PAIR(relu_grad), PAIR(leaky_relu), PAIR(sigmoid),     PAIR(swish),
    PAIR(softplus),    PAIR(elu),       PAIR(selu),       PAIR(gelu),        PAIR(gelu_grad),
    PAIR(abs),         PAIR(rsqrt),     PAIR(not_equal),  PAIR(less_equal),  PAIR(dropout),
    PAIR(causal_bias), PAIR(one_hot),   PAIR(gather),     PAIR(scatter_add),
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* ---- one pair ---- */

typedef struct side {
    mtf_graph *g;
    measured m;
    double times[MOST];
    double megabytes; /* planned, but for state */
} side;

static mtf_tensor *state(mtf_graph *g, const char *name, mtf_shape s)
{
    return mtf_variable(g, name, mtf_random_uniform(g, name, s, MTF_F32, 0.1, 3), true);
}

static mtf_status side_open(side *s, build_fn *build, int threads, mtf_err *err)
{
    s->g = mtf_graph_new();
    operands o = {.g = s->g, .x = state(s->g, "x", SHAPE), .y = state(s->g, "y", SHAPE)};
    o.table = state(s->g, "table", MTF_SHAPE(vocab, width));
    o.updates = state(s->g, "updates", MTF_SHAPE(tokens, width));
    mtf_tensor *any = mtf_random_uniform(s->g, "ids", MTF_SHAPE(tokens), MTF_F32, 0, VOCAB);
    o.ids = mtf_variable(s->g, "ids", mtf_cast(any, MTF_I32), false);
    const mtf_status st = measured_open(&s->m, s->g, build(&o), threads, err);
    if (st != MTF_OK) return st;
    const mtf_totals t = mtf_program_totals(s->m.program);
    s->megabytes = 1e-6 * (double)(t.peak_bytes - t.state_bytes);
    return measured_run(&s->m, err) < 0 ? err->status : MTF_OK;
}

static void side_close(side *s)
{
    measured_close(&s->m);
    mtf_graph_free(&s->g);
}

/* Row and composition in turn. Returns false after an error. */
static bool measure(int pair, int threads, int repeats, mtf_err *err)
{
    static side row, parts;
    bool runs = side_open(&row, pairs[pair].row, threads, err) == MTF_OK;
    runs = side_open(&parts, pairs[pair].parts, threads, err) == MTF_OK && runs;
    for (int k = 0; runs && k < repeats; k++) {
        row.times[k] = measured_run(&row.m, err);
        parts.times[k] = measured_run(&parts.m, err);
        runs = row.times[k] >= 0 && parts.times[k] >= 0;
    }
    if (runs) {
        const double a = measure_median(row.times, repeats),
                     b = measure_median(parts.times, repeats);
        printf("%-14s %7d %9.2f %9.2f %8.2f %9.1f %9.1f\n", pairs[pair].name, threads, 1e3 * a,
               1e3 * b, a / b, row.megabytes, parts.megabytes);
    }
    side_close(&row);
    side_close(&parts);
    return runs;
}

int main(int argc, char **argv)
{
    const int repeats = argc > 1 ? atoi(argv[1]) : 9;
    if (argc > 3 || repeats < 1 || repeats > MOST)
        return fprintf(stderr, "fused: expected a number of repeats from 1 to %d and a name\n",
                       MOST),
               2;
    printf("%-14s %7s %9s %9s %8s %9s %9s\n", "", "threads", "row ms", "parts ms", "ratio",
           "row MB", "parts MB");
    for (int i = 0; i < PAIRS; i++) {
        if (argc > 2 && strcmp(argv[2], pairs[i].name) != 0) continue;
        mtf_err err = {0};
        for (int threads = 1; threads <= 2; threads++)
            if (!measure(i, threads, repeats, &err))
                return fprintf(stderr, "fused: %s: %s\n", pairs[i].name, err.text), 1;
    }
    return 0;
}
