/* SPDX-License-Identifier: Apache-2.0
 * What other elements of a dim cost: what crosses borders and nothing else, and windows that look
 * alike are not taken for one. */
#include "check.h"

#include <stdio.h>

#include "spmd/program.h"
#include "support/eval.h"

typedef struct compiled {
    mtf_mesh *mesh;
    mtf_layout *layout;
    mtf_program *program;
} compiled;

static compiled compile(eval *e, const char *mesh, const char *layout, mtf_tensor *t)
{
    mtf_err err = {0};
    compiled c = {.mesh = mtf_mesh_parse(mesh, &err)};
    c.layout = mtf_layout_parse(layout, c.mesh, true, NULL, &err);
    const mtf_request r = {.nfetches = 1, .fetches = &t};
    c.program = mtf_compile(e->g, c.mesh, c.layout, &r, &err);
    if (!c.program) fail_msg("%s", err.text);
    return c;
}

static void release(compiled *c)
{
    mtf_program_free(&c->program);
    mtf_layout_free(&c->layout);
    mtf_mesh_free(&c->mesh);
}

static void expect_sent(eval *e, mtf_tensor *t, double calls, double bytes)
{
    compiled c = compile(e, "p:4", "a:p", t);
    const mtf_totals totals = mtf_program_totals(c.program);
    assert_int_equal(totals.calls, calls);
    assert_int_equal(totals.sent_bytes, bytes);
    release(&c);
}

/* 64 rows of 3 numbers in f64 over four processors. */
static void only_what_crosses_travels(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = mtf_placeholder(e.g, "x", MTF_SHAPE({"a", 64}, {"b", 3}), MTF_F64);
    const double row = 3 * 8;
    expect_sent(&e, mtf_shift(x, "a", 1, false), 1, row);
    expect_sent(&e, mtf_shift(x, "a", -2, true), 1, 2 * row);
    expect_sent(&e, mtf_shift(x, "a", 16, true), 1, 16 * row);
    expect_sent(&e, mtf_shift(x, "a", 64, false), 1, 0);
    expect_sent(&e, mtf_shift(x, "b", 1, true), 0, 0); /* whole on every processor */
    expect_sent(&e, mtf_slice(x, "a", 0, 64), 0, 0);
    expect_sent(&e, mtf_slice(x, "a", 2, 62), 1, row);
    expect_sent(&e, mtf_slice(x, "b", 1, 2), 0, 0);
    expect_sent(&e, mtf_pad(x, "b", 1, 1), 0, 0);
    expect_sent(&e, mtf_stack(2, (mtf_tensor *[]){x, x}, "n", 0), 0, 0);
    /* The sums of four blocks, one row each, to everybody; and their two largest with indices. */
    expect_sent(&e, mtf_cumsum(x, "a", false, false), 1, 3 * row);
    mtf_tensor *top;
    mtf_top_k(x, "a", (mtf_dim){"k", 2}, false, &top, NULL);
    expect_sent(&e, top, 2, 3 * 2 * 3 * (8 + 4));
    eval_close(&e);
}

static void halos_travel_alone(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = mtf_placeholder(e.g, "x", MTF_SHAPE({"a", 4}, {"block", 100}), MTF_F32);
    expect_sent(&e, mtf_halo_exchange(x, "a", "block", 2, 3, false), 2, (2 + 3) * 4);
    expect_sent(&e, mtf_halo_exchange(x, "a", "block", 0, 1, true), 1, 4);
    eval_close(&e);
}

/* One shift along a and one along b of a square: operands, results and cuts are equal. */
static void windows_of_two_dims_are_two(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}, {"b", 2}), MTF_F64, 1, 2, 3, 4);
    mtf_tensor *both =
        mtf_sub(mtf_scale(mtf_shift(x, "a", 1, false), 10), mtf_shift(x, "b", 1, false));
    EXPECT(&e, both, 0, 0, -1, 10, 17);
    EXPECT_ON(&e, "p:2;q:2", "a:p;b:q", both, 0, 0, -1, 10, 17);
    mtf_tensor *apart =
        mtf_add(mtf_shift(x, "a", 1, true), mtf_scale(mtf_shift(x, "a", 1, false), 10));
    EXPECT_ON(&e, "p:2", "a:p", apart, 0, 3, 4, 11, 22);
    eval_close(&e);
}

/* A window of a partial sum is a partial sum: one reduction of the smaller value. */
static void sums_pass_windows(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = mtf_placeholder(e.g, "x", MTF_SHAPE({"a", 8}, {"k", 8}), MTF_F64);
    mtf_tensor *y = mtf_placeholder(e.g, "y", MTF_SHAPE({"k", 8}, {"b", 50}), MTF_F64);
    mtf_tensor *p = mtf_matmul(x, y, MTF_SHAPE({"a", 8}, {"b", 50}));
    compiled c = compile(&e, "p:4", "k:p", mtf_slice(p, "b", 10, 5));
    const mtf_totals totals = mtf_program_totals(c.program);
    assert_int_equal(totals.calls, 1);
    assert_int_equal(totals.sent_bytes, 2 * 3 * 8 * 5 * 8 / 4);
    release(&c);
    eval_close(&e);
}

/* The dims that we add to those of the user have names of their own, however theirs are called. */
static void names_do_not_meet(void **state)
{
    (void)state;
    static const char longest[] = "a23456789b123456789c123456789d123456789e123456789f123456789g123";
    const char *const along[] = {"b", longest}, *const beside[] = {"@blocks", "@order",
                                                                   "@blocks_1"};
    for (int k = 0; k < 6; k++) {
        eval e = eval_open();
        const mtf_dim d = {along[k / 3], 3}, other = {beside[k % 3], 2};
        mtf_tensor *x = INPUT(&e, MTF_SHAPE(d, other), MTF_F64, 3, 10, 1, 20, 2, 15), *top;
        mtf_tensor *column = mtf_reduce_first(x, other.name);
        char layout[80];
        snprintf(layout, sizeof layout, "%s:p", d.name);
        EXPECT_ON(&e, "p:2", layout, mtf_cumsum(x, d.name, false, false), 0, 3, 10, 4, 30, 6, 45);
        EXPECT_ON(&e, "p:2", layout, mtf_argmax(x, d.name), 0, 0, 1);
        mtf_top_k(column, d.name, (mtf_dim){other.name, 2}, false, &top, NULL);
        EXPECT_ON(&e, "p:2", layout, top, 0, 3, 2);
        eval_close(&e);
    }
}

/* A layout's rule for a dim of the user is none for a dim of ours. */
static void rules_hold_for_dims_of_the_user(void **state)
{
    (void)state;
    eval e = eval_open();
    static const char layout[] = "a:p;group:p;order:p;rank:p;whole:p;blocks:p";
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}, {"b", 4}), MTF_F64, 4, 3, 1, 2, 7, 8, 6, 5);
    mtf_tensor *one = INPUT(&e, MTF_SCALAR, MTF_I32, 1);
    const mtf_sampling cold = {.temperature = 0.01, .top_k = 2};
    EXPECT_ON(&e, "p:2", layout, mtf_pool_1d(x, "b", 2, mtf_reduce_max), 0, 4, 2, 8, 6);
    EXPECT_ON(&e, "p:2", layout, mtf_argmax(x, "b"), 0, 0, 1);
    EXPECT_ON(&e, "p:2", layout, mtf_nth_smallest(x, "b", 1), 0, 2, 6);
    EXPECT_ON(&e, "p:2", layout, mtf_sort(x, "b", false, NULL), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    EXPECT_ON(&e, "p:2", layout, mtf_sample(x, "draw", "b", &cold), 0, 0, 1);
    EXPECT_ON(&e, "p:2", layout, mtf_dynamic_shift(x, one, "b", true), 0, 2, 4, 3, 1, 5, 7, 8, 6);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_crosses_travels),
        cmocka_unit_test(halos_travel_alone),
        cmocka_unit_test(windows_of_two_dims_are_two),
        cmocka_unit_test(sums_pass_windows),
        cmocka_unit_test(names_do_not_meet),
        cmocka_unit_test(rules_hold_for_dims_of_the_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
