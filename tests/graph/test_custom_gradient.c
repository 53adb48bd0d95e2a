/* SPDX-License-Identifier: Apache-2.0
 * Gradients of one's own: they replace those of the operations, on every layout, in gradients of
 * gradients, and inside recompute regions; and what a part of the graph reads from outside. */
#include "check.h"

#include "graph/graph.h"
#include "support/eval.h"

static const mtf_shape ab = {.rank = 2, .dim = {{"a", 2}, {"b", 3}}};

/* Divides what flows back by a constant. */
static void damped(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                   mtf_tensor *const *dys, mtf_tensor **dxs)
{
    (void)ins, (void)outs;
    dxs[0] = mtf_scale(dys[0], *(const double *)context);
}

static void replaces_the_gradient(void **state)
{
    (void)state;
    eval e = eval_open();
    double factor = 0.25;
    mtf_tensor *x = INPUT(&e, ab, MTF_F64, 1, 2, 3, 4, 5, 6), *d[2];
    mtf_tensor *square = mtf_square(x);
    mtf_tensor *y = mtf_custom_gradient(1, &square, 1, &x, damped, &factor, sizeof factor, NULL);
    factor = 99; /* the context was copied */
    mtf_tensor *z = mtf_scale(y, 2);
    assert_int_equal(mtf_gradients_of(1, &z, NULL, 2, (mtf_tensor *[]){x, square}, d), MTF_OK);
    EXPECT(&e, y, 0, 1, 4, 9, 16, 25, 36);
    EXPECT(&e, d[0], 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5);
    EXPECT_ON(&e, "p:2;q:2", "a:p;b:q", d[0], 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5);
    EXPECT_ON(&e, "p:2;q:2", "a:q;b:p", y, 0, 1, 4, 9, 16, 25, 36);
    assert_null(d[1]); /* nothing flows into it by its own operations */
    /* x is read beside the custom operation as well: 2 x + 0.25. */
    z = mtf_add(y, square);
    assert_int_equal(mtf_gradients_of(1, &z, NULL, 1, &x, d), MTF_OK);
    EXPECT(&e, d[0], 0, 2.25, 4.25, 6.25, 8.25, 10.25, 12.25);
    eval_close(&e);
}

/* (s, p) = (x + y, x y): only what arrives is used, and y gets none. */
static void two_results(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                        mtf_tensor *const *dys, mtf_tensor **dxs)
{
    (void)context, (void)outs;
    assert_true(dys[0] || dys[1]);
    mtf_tensor *by_product = dys[1] ? mtf_mul(dys[1], ins[1]) : NULL;
    dxs[0] = dys[0] && by_product ? mtf_add(dys[0], by_product) : dys[0] ? dys[0] : by_product;
}

static void several_results(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape one = MTF_SHAPE({"a", 1});
    mtf_tensor *x = INPUT(&e, one, MTF_F64, 3), *y = INPUT(&e, one, MTF_F64, 5), *r[2], *d[2];
    mtf_tensor *outs[] = {mtf_add(x, y), mtf_mul(x, y)}, *ins[] = {x, y};
    const mtf_tensor *first = mtf_custom_gradient(2, outs, 2, ins, two_results, NULL, 0, r);
    assert_ptr_equal(first, r[0]);
    EXPECT(&e, r[0], 0, 8);
    EXPECT(&e, r[1], 0, 15);
    assert_int_equal(mtf_gradients_of(2, r, NULL, 2, ins, d), MTF_OK);
    EXPECT(&e, d[0], 0, 6);
    assert_null(d[1]);
    assert_int_equal(mtf_gradients_of(1, &r[0], NULL, 1, ins, d), MTF_OK);
    EXPECT(&e, d[0], 0, 1);
    /* The gradient by the product is y: its own gradient is that of an ordinary graph. */
    assert_int_equal(mtf_gradients_of(1, &r[1], NULL, 1, ins, d), MTF_OK);
    EXPECT(&e, d[0], 0, 5);
    assert_int_equal(mtf_gradients_of(1, &d[0], NULL, 1, &y, d + 1), MTF_OK);
    EXPECT(&e, d[1], 0, 1);
    eval_close(&e);
}

/* y dy, from the result that it is given. */
static void by_result(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                      mtf_tensor *const *dys, mtf_tensor **dxs)
{
    (void)context;
    assert_true(ins[0]->node->copy == outs[0]->node->copy);
    dxs[0] = mtf_mul(outs[0], dys[0]);
}

static void inside_a_region(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 1, 2), *dx;
    mtf_recompute_begin(e.g);
    mtf_tensor *twice = mtf_scale(x, 2), *y = mtf_exp(twice);
    y = mtf_custom_gradient(1, &y, 1, &twice, by_result, NULL, 0, NULL);
    y = mtf_square(y);
    mtf_recompute_end(e.g);
    assert_int_equal(mtf_gradients_of(1, &y, NULL, 1, &x, &dx), MTF_OK);
    EXPECT(&e, dx, 1e-12, 218.39260013257694, 11923.831948166908); /* 4 e^(4 x) */
    eval_close(&e);
}

/* Many operands: no kernel sees them. */
static void many_operands(void **state)
{
    (void)state;
    enum { MANY = 40 };
    eval e = eval_open();
    const double half = 0.5;
    mtf_tensor *x[MANY], *d[MANY];
    for (int i = 0; i < MANY; i++)
        x[i] = mtf_constant(e.g, i, MTF_SHAPE({i % 2 ? "a" : "b", 1 + i}), MTF_F64);
    mtf_tensor *y = mtf_scale(x[0], 3);
    y = mtf_custom_gradient(1, &y, MANY, x, damped, &half, sizeof half, NULL);
    assert_int_equal(mtf_gradients_of(1, &y, NULL, MANY, x, d), MTF_OK);
    EXPECT(&e, d[0], 0, 0.5);
    for (int i = 1; i < MANY; i++)
        assert_null(d[i]);
    eval_close(&e);
}

/* Reference 2.11: the floating-point tensors that operations read from outside. */
static void what_is_read_from_outside(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *w = mtf_variable(e.g, "w", mtf_constant(e.g, 1, ab, MTF_F64), true);
    mtf_tensor *i = mtf_placeholder(e.g, "i", MTF_SHAPE({"c", 4}), MTF_I32);
    mtf_tensor *x = mtf_placeholder(e.g, "x", ab, MTF_F64), *in[2];
    mtf_square(x);
    const int64_t begin = mtf_graph_mark(e.g);
    mtf_tensor *y = mtf_mul(mtf_exp(x), w);
    mtf_add(mtf_gather(y, i, "a"), mtf_gather(x, i, "a"));
    const int64_t end = mtf_graph_mark(e.g);
    mtf_square(y);
    assert_int_equal(mtf_external_inputs(e.g, begin, end, 2, in), 2);
    assert_ptr_equal(in[0], x);
    assert_ptr_equal(in[1], w);
    in[1] = NULL;
    assert_int_equal(mtf_external_inputs(e.g, begin, end, 1, in), 2);
    assert_null(in[1]);
    assert_int_equal(mtf_external_inputs(e.g, begin, begin, 0, NULL), 0);
    assert_int_equal(mtf_external_inputs(e.g, end, mtf_graph_mark(e.g), 2, in), 1);
    assert_ptr_equal(in[0], y);
    assert_int_equal(mtf_graph_status(e.g, NULL), MTF_OK);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_the_gradient),     cmocka_unit_test(several_results),
        cmocka_unit_test(inside_a_region),           cmocka_unit_test(many_operands),
        cmocka_unit_test(what_is_read_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
