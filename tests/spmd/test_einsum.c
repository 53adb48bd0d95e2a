/* SPDX-License-Identifier: Apache-2.0
 * Products of many operands: the order in which they are multiplied is the partitioner's affair, so
 * a user sees neither its products of two nor their limits, where any order is possible. */
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mtf/mtf.h"
#include "support/eval.h"

/* The first dims of d0, d1, ... of size 2, by their bits. */
static mtf_shape dims(unsigned mask)
{
    static char names[32][8];
    mtf_shape s = MTF_SCALAR;
    for (int i = 0; i < 32; i++) {
        snprintf(names[i], sizeof names[i], "d%d", i);
        if (mask >> i & 1) s = mtf_shape_with(s, (mtf_dim){names[i], 2});
    }
    return s;
}

static mtf_tensor *ones(mtf_graph *g, unsigned mask)
{
    return mtf_constant(g, 1, dims(mask), MTF_F64);
}

/* In [a c], which only a product of two operands has, both dims are cut over one axis. */
static void a_product_may_hold_two_dims_of_an_axis(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_dim a = {"a", 2}, b = {"b", 2}, c = {"c", 2}, d = {"d", 2};
    mtf_tensor *x[] = {INPUT(&e, MTF_SHAPE(a, b), MTF_F64, 1, 2, 3, 4),
                       INPUT(&e, MTF_SHAPE(b, c), MTF_F64, 5, 6, 7, 8),
                       INPUT(&e, MTF_SHAPE(c, d), MTF_F64, 9, 10, 11, 12)};
    mtf_tensor *y = mtf_einsum(3, x, MTF_SHAPE(a, d));
    EXPECT(&e, y, 0, 413, 454, 937, 1030);
    EXPECT_ON(&e, "x:2", "a:x;c:x", y, 0, 413, 454, 937, 1030);
    EXPECT_ON(&e, "x:2", "b:x;d:x", y, 0, 413, 454, 937, 1030);
    EXPECT_ON(&e, "x:2;y:3", "a:x+y;c:y+x", y, 0, 413, 454, 937, 1030);
    eval_close(&e);
}

/* The graph's one product and nothing else, on one processor. */
static mtf_program *compile(mtf_graph *g, mtf_tensor *t, mtf_err *err)
{
    static mtf_mesh *m;
    static mtf_layout *l;
    if (!m) m = mtf_mesh_parse("", err);
    if (!l) l = mtf_layout_parse("", m, true, NULL, err);
    assert_int_equal(mtf_graph_status(g, err), MTF_OK);
    return mtf_compile(g, m, l, &(mtf_request){.nfetches = 1, .fetches = &t}, err);
}

static void as_many_dims_as_a_tensor_has(void **state)
{
    (void)state;
    eval e = eval_open();
    const double all = 4096;
    eval_expect(&e, mtf_matmul(ones(e.g, 0xfff), ones(e.g, 0xfff), MTF_SCALAR), 1, &all, 0);
    eval_close(&e);
}

/* The product of the first two has 16 dims; with the third in between there are 12. */
static void an_order_without_too_many_dims(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x[] = {ones(e.g, 0x00ff), ones(e.g, 0xff00), ones(e.g, 0x3ffc)};
    double got[16];
    eval_run(&e, "", "", mtf_einsum(3, x, dims(0xc003)), got);
    for (int i = 0; i < 16; i++)
        assert_true(got[i] == 4096);
    eval_close(&e);
}

static void no_order_is_possible(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_err err = {0};
    mtf_tensor *x[] = {ones(g, 0x03ff), ones(g, 0x7fe0), ones(g, 0x7c1f)};
    assert_null(compile(g, mtf_einsum(3, x, dims(0x1ce7)), &err));
    assert_string_equal(err.text, "einsum 'einsum': in every order of the operands the product of "
                                  "some has more than 12 dims; multiply in parts");
    mtf_graph_free(&g);
}

static void sixteen_operands(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_err err = {0};
    mtf_tensor *x[16];
    for (int i = 0; i < 16; i++)
        x[i] = ones(g, 3u << i);
    const clock_t before = clock();
    mtf_program *p = compile(g, mtf_einsum(16, x, dims(0x10001)), &err);
    const double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    if (!p) fail_msg("%s", err.text);
    assert_true(seconds < 5);
    mtf_program_free(&p);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_may_hold_two_dims_of_an_axis),
        cmocka_unit_test(as_many_dims_as_a_tensor_has),
        cmocka_unit_test(an_order_without_too_many_dims),
        cmocka_unit_test(no_order_is_possible),
        cmocka_unit_test(sixteen_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
