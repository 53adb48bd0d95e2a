/* SPDX-License-Identifier: Apache-2.0
 * Recompute regions: the gradients are those without them, bit for bit and on every layout, dropout
 * included; memory falls. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"
#include "spmd/program.h"
#include "support/eval.h"

static const struct {
    const char *mesh, *layout;
} cases[] = {
    {"", ""},
    {"x:2", "batch:x"},
    {"x:4", "width:x"},
    {"x:2", "inner:x"},
    {"x:3;y:2", "batch:x;inner:y"},
    {"x:2;y:2", "width:x;inner:y"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* x^2 + x, recomputed. */
static mtf_tensor *parabola(mtf_tensor *x)
{
    mtf_recompute_begin(mtf_tensor_graph(x));
    mtf_tensor *y = mtf_add(mtf_square(x), x);
    mtf_recompute_end(mtf_tensor_graph(x));
    return y;
}

/* Reference, section 8: recompute_grad of x^2 + x on 2 processors. */
static void a_parabola(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F32, 5, 10);
    mtf_tensor *dy = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F32, 2, 3);
    mtf_tensor *y = parabola(x), *dx;
    assert_int_equal(mtf_gradients_of(1, &y, &dy, 1, &x, &dx), MTF_OK);
    EXPECT_ON(&e, "all:2", "a:all", y, 0, 30, 110);
    EXPECT_ON(&e, "all:2", "a:all", dx, 0, 22, 63);
    /* Without seeds: ones. Of several ys: the sum. */
    mtf_tensor *ys[] = {y, x};
    assert_int_equal(mtf_gradients_of(2, ys, NULL, 1, &x, &dx), MTF_OK);
    EXPECT(&e, dx, 0, 12, 22);
    assert_int_equal(mtf_gradients_of(2, ys, (mtf_tensor *[]){NULL, dy}, 1, &x, &dx), MTF_OK);
    EXPECT(&e, dx, 0, 13, 24);
    eval_close(&e);
}

/* x^3 by regions of which one is within the other: its derivatives are 3 x^2, 6 x and 6. */
static void gradients_of_gradients(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 2, -3), *d[3];
    mtf_recompute_begin(e.g);
    mtf_recompute_begin(e.g);
    mtf_tensor *square = mtf_square(x);
    mtf_recompute_end(e.g);
    mtf_tensor *y = mtf_mul(square, x);
    mtf_recompute_end(e.g);
    assert_int_equal(y->node->region, square->node->region);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mtf_gradients_of(1, i ? &d[i - 1] : &y, NULL, 1, &x, &d[i]), MTF_OK);
    EXPECT(&e, d[0], 0, 12, 27);
    EXPECT(&e, d[1], 0, 12, -18);
    EXPECT(&e, d[2], 0, 6, 6);
    /* From a tensor in the middle of the region and to one. */
    assert_int_equal(mtf_gradients_of(1, &y, NULL, 1, &square, d), MTF_OK);
    EXPECT(&e, d[0], 0, 2, -3);
    assert_int_equal(mtf_gradients_of(1, &square, NULL, 1, &x, d), MTF_OK);
    EXPECT(&e, d[0], 0, 4, -6);
    eval_close(&e);
}

/* ---- a stack of layers ---- */

enum { BATCH = 16, WIDTH = 8, INNER = 64, MAX_DEPTH = 16 };
static const mtf_dim batch = {"batch", BATCH}, width = {"width", WIDTH}, inner = {"inner", INNER};

typedef struct stack {
    mtf_graph *g;
    mtf_tensor *x, *loss;
    int depth;
    mtf_tensor *w[MAX_DEPTH], *dropped[MAX_DEPTH], *dw[MAX_DEPTH];
} stack;

static mtf_tensor *layer(stack *s, int i, mtf_tensor *x)
{
    mtf_tensor *h = mtf_tanh(mtf_matmul(x, s->w[i], MTF_SHAPE(batch, inner)));
    s->dropped[i] = mtf_dropout(mtf_mul(h, mtf_sigmoid(h)), "drop", 0.3);
    return mtf_add(x, mtf_matmul(s->dropped[i], s->w[i], MTF_SHAPE(batch, width)));
}

static stack stack_new(int depth, bool recompute)
{
    stack s = {.g = mtf_graph_new(), .depth = depth};
    for (int i = 0; i < depth; i++)
        s.w[i] = mtf_random_normal(s.g, "w", MTF_SHAPE(width, inner), MTF_F64, 0, 0.2);
    mtf_tensor *x = s.x = mtf_random_normal(s.g, "x", MTF_SHAPE(batch, width), MTF_F64, 0, 1);
    for (int i = 0; i < depth; i++) {
        if (recompute) mtf_recompute_begin(s.g);
        x = layer(&s, i, x);
        if (recompute) mtf_recompute_end(s.g);
    }
    s.loss = mtf_reduce_sum(mtf_square(x), MTF_SCALAR);
    mtf_err err = {0};
    if (mtf_gradients(s.loss, depth, s.w, s.dw) != MTF_OK) {
        mtf_graph_status(s.g, &err);
        fail_msg("%s", err.text);
    }
    return s;
}

/* The loss and all gradients, one after another, into `out`; what the program takes. */
static mtf_totals run(const stack *s, const char *mesh, const char *layout, double *out)
{
    mtf_err err = {0};
    mtf_tensor *fetch[MAX_DEPTH + 1] = {s->loss};
    void *to[MAX_DEPTH + 1] = {out};
    for (int i = 0; i < s->depth; i++) {
        fetch[i + 1] = s->dw[i];
        to[i + 1] = out + 1 + (int64_t)i * WIDTH * INNER;
    }
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    mtf_program *p =
        mtf_compile(s->g, m, l, &(mtf_request){.nfetches = s->depth + 1, .fetches = fetch}, &err);
    if (!p) fail_msg("%s", err.text);
    const mtf_totals t = mtf_program_totals(p);
    mtf_session *session = mtf_session_new(1, &p, &(mtf_session_options){.threads = 1}, &err);
    if (!session || mtf_run(session, p, 0, NULL, to, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    mtf_session_free(&session);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return t;
}

enum { DEPTH = 4, NUMBERS = 1 + DEPTH * WIDTH * INNER };

static void equal_bits_on_every_layout(void **state)
{
    (void)state;
    stack plain = stack_new(DEPTH, false), again = stack_new(DEPTH, true);
    static double want[NUMBERS], got[NUMBERS], one[NUMBERS];
    run(&plain, "", "", one);
    for (int c = 0; c < CASES; c++) {
        const mtf_totals a = run(&plain, cases[c].mesh, cases[c].layout, want),
                         b = run(&again, cases[c].mesh, cases[c].layout, got);
        assert_true(b.flops > a.flops);
        if (memcmp(want, got, sizeof want) != 0)
            fail_msg("mesh '%s', layout '%s': recomputation changes numbers", cases[c].mesh,
                     cases[c].layout);
        for (int i = 0; i < NUMBERS; i++)
            assert_true(got[i] - one[i] < 1e-10 && one[i] - got[i] < 1e-10);
    }
    mtf_graph_free(&plain.g);
    mtf_graph_free(&again.g);
}

/* The copy of a dropout that the backward pass works with. */
static mtf_tensor *copy_of_dropout(const stack *s, const mtf_tensor *dropped)
{
    for (int64_t i = dropped->node->id + 1; i < s->g->nnodes; i++) {
        mtf_node *n = s->g->node[i];
        if (n->op == dropped->node->op && n->copy && strncmp(n->name, "recompute/", 10) == 0 &&
            strcmp(n->name + 10, dropped->node->name) == 0)
            return &n->out[0];
    }
    return NULL;
}

static void equal_masks(void **state)
{
    (void)state;
    stack s = stack_new(2, true);
    eval e = {.g = s.g};
    for (int i = 0; i < 2; i++) {
        mtf_tensor *copy = copy_of_dropout(&s, s.dropped[i]);
        assert_non_null(copy);
        for (int c = 0; c < CASES; c++) {
            static double a[BATCH * INNER], b[BATCH * INNER];
            int dropped = 0;
            eval_run(&e, cases[c].mesh, cases[c].layout, s.dropped[i], a);
            eval_run(&e, cases[c].mesh, cases[c].layout, copy, b);
            assert_memory_equal(a, b, sizeof a);
            for (int k = 0; k < BATCH * INNER; k++)
                dropped += a[k] == 0;
            assert_in_range(dropped, BATCH * INNER / 5, BATCH * INNER * 2 / 5);
        }
    }
    mtf_graph_free(&s.g);
}

static int64_t peak(int depth, bool recompute, const char *mesh, const char *layout)
{
    static double out[1 + MAX_DEPTH * WIDTH * INNER];
    stack s = stack_new(depth, recompute);
    const mtf_totals t = run(&s, mesh, layout, out);
    mtf_graph_free(&s.g);
    return t.peak_bytes;
}

/* What a layer keeps for the backward pass is its operand [batch width] instead of that and several
 * tensors [batch inner], which are 8 times as large. */
static void memory_falls(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        const char *m = cases[c].mesh, *l = cases[c].layout;
        const int64_t without = peak(16, false, m, l) - peak(8, false, m, l),
                      with = peak(16, true, m, l) - peak(8, true, m, l);
        if (!(2 * with < without))
            fail_msg("mesh '%s', layout '%s': 8 layers take %lld bytes, recomputed %lld", m, l,
                     (long long)without, (long long)with);
    }
}

/* Bytes at the peak of layers that draw noise inside their regions. */
static int64_t noisy_peak(int depth)
{
    eval e = eval_open();
    const mtf_shape shape = MTF_SHAPE(batch, inner);
    mtf_tensor *x = mtf_random_normal(e.g, "x", shape, MTF_F64, 0, 1), *y = x;
    for (int i = 0; i < depth; i++) {
        mtf_recompute_begin(e.g);
        y = mtf_tanh(mtf_mul(y, mtf_random_normal(e.g, "noise", shape, MTF_F64, 1, 0.1)));
        mtf_recompute_end(e.g);
    }
    mtf_tensor *dx = eval_gradient(y, x);
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse("", &err);
    mtf_layout *l = mtf_layout_parse("", m, true, NULL, &err);
    mtf_program *p = mtf_compile(e.g, m, l, &(mtf_request){.nfetches = 1, .fetches = &dx}, &err);
    if (!p) fail_msg("%s", err.text);
    const int64_t bytes = mtf_program_totals(p).peak_bytes;
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    eval_close(&e);
    return bytes;
}

/* The noise needs no operand, and is not kept all the same: a layer keeps its own operand alone. */
static void what_reads_nothing_is_made_again(void **state)
{
    (void)state;
    assert_int_equal(noisy_peak(12) - noisy_peak(8), 4 * BATCH * INNER * 8);
}

/* ---- order ---- */

static mtf_tensor *bottleneck(mtf_graph *g, mtf_tensor *x)
{
    mtf_recompute_begin(g);
    mtf_tensor *w = mtf_random_normal(g, "w", MTF_SHAPE(inner, width), MTF_F64, 0, 0.1);
    mtf_tensor *small = mtf_tanh(mtf_tanh(mtf_matmul(x, w, MTF_SHAPE(batch, width))));
    mtf_tensor *y = mtf_add(x, mtf_matmul(small, w, MTF_SHAPE(batch, inner)));
    mtf_recompute_end(g);
    return y;
}

/* First many large values, then their sums: the order by memory is better than this one. */
static mtf_tensor *wasteful(mtf_graph *g)
{
    enum { PARTS = 12 };
    mtf_tensor *large[PARTS], *sum = NULL;
    for (int i = 0; i < PARTS; i++)
        large[i] = mtf_random_normal(g, "r", MTF_SHAPE({"large", 8192}), MTF_F64, 0, 1);
    for (int i = 0; i < PARTS; i++) {
        mtf_tensor *part = mtf_reduce_sum(mtf_exp(large[i]), MTF_SCALAR);
        sum = sum ? mtf_add(sum, part) : part;
    }
    return sum;
}

/* Where the instructions of a recomputation begin, by position and by node. */
typedef struct start {
    int position, node;
} start;

static start start_of(const mtf_program *p, int copy)
{
    start s = {.position = INT32_MAX, .node = INT32_MAX};
    for (const instr *i = p->first; i; i = i->next) {
        if (i->node->copy != copy) continue;
        if (i->id < s.position) s.position = i->id;
        if (i->node->id < s.node) s.node = i->node->id;
    }
    return s;
}

/* An order by memory alone makes `early`, of which nothing is to be freed, last of all: then the
 * recomputations would come before it. */
static void regions_wait_for_their_turn(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = mtf_random_normal(e.g, "x", MTF_SHAPE(batch, inner), MTF_F64, 0, 1), *y = x,
               *sum = wasteful(e.g),
               *early = mtf_random_normal(e.g, "early", MTF_SHAPE({"large", 512}), MTF_F64, 0, 1);
    for (int i = 0; i < 4; i++)
        y = bottleneck(e.g, y);
    mtf_tensor *dx = eval_gradient(mtf_square(y), x);
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse("", &err);
    mtf_layout *l = mtf_layout_parse("", m, true, NULL, &err);
    mtf_program *p = mtf_compile(
        e.g, m, l, &(mtf_request){.nfetches = 3, .fetches = (mtf_tensor *[]){dx, sum, early}},
        &err);
    if (!p) fail_msg("%s", err.text);
    assert_true(p->slab_bytes < 4 * 8192 * 8); /* the order by memory was taken */
    int found = 0;
    for (int copy = 1; copy <= e.g->ncopies; copy++) {
        const start s = start_of(p, copy);
        found += s.node != INT32_MAX;
        for (const instr *i = p->first; i; i = i->next)
            if (i->node->id < s.node && i->id > s.position)
                fail_msg("'%s' comes behind a recomputation of later work", i->node->name);
    }
    assert_int_equal(found, 4);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parabola),
        cmocka_unit_test(gradients_of_gradients),
        cmocka_unit_test(equal_bits_on_every_layout),
        cmocka_unit_test(equal_masks),
        cmocka_unit_test(memory_falls),
        cmocka_unit_test(what_reads_nothing_is_made_again),
        cmocka_unit_test(regions_wait_for_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
