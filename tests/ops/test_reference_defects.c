/* SPDX-License-Identifier: Apache-2.0
 * What Mesh-TensorFlow gets wrong (reference 9.1) is right here: a test per defect, named after its
 * number. Two stand where their subject is tested: C10, momentum, Adam's correction and rules of
 * learning rates, in nn_adafactor and nn_optimizers_golden; C14, annealed dropout, in nn_noise. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "support/eval.h"
#include "support/model.h"

#define VECTOR(n)    MTF_SHAPE({"a", n})
#define MATRIX(m, n) MTF_SHAPE({"a", m}, {"b", n})

/* 0, 1, 2 .. of a shape. */
static mtf_tensor *counted(eval *e, mtf_shape shape, mtf_dtype type)
{
    double values[64];
    for (int i = 0; i < 64; i++)
        values[i] = i;
    return eval_input(e, shape, type, values);
}

/* Fails unless t is 0, 1, 2 .. */
static void expect_counted(eval *e, const char *mesh, const char *layout, mtf_tensor *t, int n)
{
    double values[64];
    for (int i = 0; i < 64; i++)
        values[i] = i;
    eval_expect_on(e, mesh, layout, t, n, values, 0);
}

/* C1: one mesh axis leaves a dim and another one enters it: rows came out as 0, 2, 1, 3. */
static void c1_reshape_keeps_the_order(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = counted(&e, MATRIX(4, 6), MTF_F32);
    mtf_tensor *y = mtf_reshape(x, MTF_SHAPE({"x", 4}, {"b", 6}));
    expect_counted(&e, "p:2;q:2", "a:p;x:q", y, 24);
    expect_counted(&e, "p:2;q:2", "a:q;x:p", y, 24);
    expect_counted(&e, "p:2;q:2", "a:p;x:q", mtf_rename(x, "a", "x"), 24);
    mtf_tensor *four = counted(&e, VECTOR(4), MTF_F32);
    EXPECT_ON(&e, "p:2;q:2", "a:p;x:q", mtf_rename(four, "a", "x"), 0, 0, 1, 2, 3);
    eval_close(&e);
}

/* C2: legal layouts under which a reshape ended in an inner error, or was refused. */
static void c2_every_layout_of_a_reshape_works(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = counted(&e, MATRIX(3, 8), MTF_F32),
               *c = counted(&e, MTF_SHAPE({"c", 24}), MTF_F32);
    mtf_tensor *y = mtf_reshape(x, MTF_SHAPE({"x", 6}, {"y", 4})),
               *ab = mtf_reshape(c, MATRIX(4, 6));
    static const char *const layouts[] = {"y:p", "x:p", "b:p;y:p", "b:p;x:p", "a:p;x:p", "a:p;y:p"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        expect_counted(&e, "p:2", layouts[i], y, 24);
    expect_counted(&e, "p:2", "b:p;c:p", ab, 24);
    expect_counted(&e, "p:5", "a:p;c:p", ab, 24);
    eval_close(&e);
}

/* C3: the gradient of a broadcast operand had the shape of the result, and ties counted twice. */
static void c3_gradient_of_max_has_the_shape_of_its_operand(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MATRIX(2, 3), MTF_F64, 1, 2, 3, 4, 5, 6);
    mtf_tensor *y = INPUT(&e, MTF_SHAPE({"b", 3}), MTF_F64, 2, 2, 6);
    mtf_tensor *most = mtf_maximum(x, y), *least = mtf_minimum(x, y);
    static const char *const layouts[] = {"", "a:p", "b:p"};
    for (int i = 0; i < 3; i++) {
        const char *m = i ? "p:2" : "", *l = layouts[i];
        EXPECT_ON(&e, m, l, eval_gradient(most, y), 0, 1, 0.5, 1.5);
        EXPECT_ON(&e, m, l, eval_gradient(most, x), 0, 0, 0.5, 0, 1, 1, 0.5);
        EXPECT_ON(&e, m, l, eval_gradient(least, y), 0, 1, 1.5, 0.5);
        EXPECT_ON(&e, m, l, eval_gradient(least, x), 0, 1, 0.5, 1, 0, 0, 0.5);
    }
    eval_close(&e);
}

/* C4: every tied element got the whole gradient. */
static void c4_ties_share_the_gradient(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(6), MTF_F64, 1, 3, 3, 2, 2, 2);
    mtf_tensor *most = mtf_reduce_max(x, MTF_SCALAR);
    mtf_tensor *least = mtf_reduce_min(mtf_negative(x), MTF_SCALAR);
    mtf_tensor *pool = mtf_pool_1d(x, "a", 3, mtf_reduce_max);
    static const char *const meshes[] = {"", "p:2", "p:4"};
    for (int i = 0; i < 3; i++) {
        const char *l = i ? "a:p" : "";
        EXPECT_ON(&e, meshes[i], l, eval_gradient(most, x), 0, 0, 0.5, 0.5, 0, 0, 0);
        EXPECT_ON(&e, meshes[i], l, eval_gradient(least, x), 0, 0, -0.5, -0.5, 0, 0, 0);
        EXPECT_ON(&e, meshes[i], l, eval_gradient(pool, x), 1e-15, 0, 0.5, 0.5, 1.0 / 3, 1.0 / 3,
                  1.0 / 3);
    }
    eval_close(&e);
}

/* C5: `where` multiplied both branches, so that NaN and infinity got through; powers were those of
 * positive numbers alone. */
static void c5_where_chooses_and_pow_takes_negative_numbers(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(4), MTF_F64, 4, -1, 0, 9);
    mtf_tensor *zero = mtf_constant(e.g, 0, MTF_SCALAR, MTF_F64);
    mtf_tensor *positive = mtf_greater(x, zero);
    mtf_tensor *root = mtf_where(positive, mtf_sqrt(x), zero); /* the other branch: NaN */
    mtf_tensor *log = mtf_where(positive, mtf_log(x), zero);   /* and -infinity */
    mtf_tensor *safe = mtf_where(positive, x, mtf_constant(e.g, 1, MTF_SCALAR, MTF_F64));
    EXPECT(&e, root, 0, 2, 0, 0, 3);
    EXPECT(&e, log, 1e-15, log2(4) * M_LN2, 0, 0, 2 * log2(3) * M_LN2);
    EXPECT(&e, eval_gradient(mtf_where(positive, mtf_sqrt(safe), zero), x), 1e-15, 0.25, 0, 0,
           1.0 / 6);
    mtf_tensor *base = INPUT(&e, VECTOR(3), MTF_F64, -2, -3, 0);
    mtf_tensor *power = INPUT(&e, VECTOR(3), MTF_F64, 3, 2, 2);
    EXPECT(&e, mtf_pow(base, power), 1e-15, -8, 9, 0);
    EXPECT(&e, eval_gradient(mtf_pow(base, power), base), 1e-15, 12, -6, 0);
    eval_close(&e);
}

enum { DRAWN = 24 };

/* Draws on a layout with a seed of the session: a normal tensor, and ones after dropout. */
static void draw(const char *mesh, const char *layout, uint64_t seed, double out[2][DRAWN])
{
    mtf_graph *g = mtf_graph_new();
    const mtf_shape s = MATRIX(4, 6);
    mtf_tensor *fetch[] = {
        mtf_random_normal(g, "noise", s, MTF_F64, 0, 1),
        mtf_dropout(mtf_constant(g, 1, s, MTF_F64), "drop", 0.5),
    };
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    mtf_program *p = mtf_compile(g, m, l, &(mtf_request){.nfetches = 2, .fetches = fetch}, &err);
    if (!p) fail_msg("%s", err.text);
    mtf_session *session = mtf_session_new(1, &p, &(mtf_session_options){.seed = seed}, &err);
    if (mtf_run(session, p, 0, NULL, (void *[]){out[0], out[1]}, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    mtf_session_free(&session);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    mtf_graph_free(&g);
}

/* C6: what was drawn depended on the layout and on the process; there were no seeds. */
static void c6_random_numbers_depend_on_the_seed_alone(void **state)
{
    (void)state;
    static const char *const layouts[][2] = {
        {"", ""}, {"p:4", "a:p"}, {"p:5", "b:p"}, {"p:2;q:2", "b:p;a:q"}, {"p:2;q:3", "a:p+q"}};
    double first[2][DRAWN], again[2][DRAWN], other[2][DRAWN];
    draw("", "", 7, first);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        draw(layouts[i][0], layouts[i][1], 7, again);
        assert_memory_equal(again, first, sizeof first);
        draw(layouts[i][0], layouts[i][1], 8, other);
        for (int k = 0; k < 2; k++)
            assert_memory_not_equal(other[k], first[k], sizeof first[k]);
    }
}

/* C8: the gradient of unstack failed where a part had none; split had never run. */
static void c8_parts_without_a_gradient_are_zeros(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MATRIX(3, 4), MTF_F64, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    mtf_tensor *row[3], *part[3];
    static const int64_t sizes[] = {1, 2, 1};
    mtf_unstack(x, "a", row);
    mtf_split(x, "b", 3, sizes, part);
    static const char *const layouts[] = {"", "a:p", "b:p"};
    for (int i = 0; i < 3; i++) {
        const char *m = i ? "p:2" : "", *l = layouts[i];
        EXPECT_ON(&e, m, l, row[1], 0, 5, 6, 7, 8);
        EXPECT_ON(&e, m, l, part[1], 0, 2, 3, 6, 7, 10, 11);
        EXPECT_ON(&e, m, l, eval_gradient(mtf_square(row[1]), x), 0, 0, 0, 0, 0, 10, 12, 14, 16, 0,
                  0, 0, 0);
        EXPECT_ON(&e, m, l, eval_gradient(part[2], x), 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    }
    eval_close(&e);
}

/* C9: numbers of f32 were rounded to bf16 on the way from one layout to another. */
static void c9_moves_keep_every_bit(void **state)
{
    (void)state;
    eval e = eval_open();
    double values[24];
    for (int i = 0; i < 24; i++)
        values[i] = (1 << 23) + i; /* 24 bits: as many as an f32 holds */
    mtf_tensor *x = eval_input(&e, MATRIX(4, 6), MTF_F32, values);
    mtf_tensor *y = mtf_reshape(x, MTF_SHAPE({"x", 4}, {"y", 6}));
    static const char *const layouts[] = {"a:p;y:p", "b:p;x:p", "a:p", "y:p"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        eval_expect_on(&e, "p:2", layouts[i], y, 24, values, 0);
    eval_close(&e);
}

static void expect_message(mtf_graph *g, const char *message)
{
    mtf_err err = {0};
    assert_int_equal(mtf_graph_status(g, &err), MTF_INVALID);
    if (!strstr(err.text, message)) fail_msg("'%s' does not say '%s'", err.text, message);
    mtf_graph_free(&g);
}

/* C13: two dims of one name and several sizes were accepted, and failed where they were split. */
static void c13_a_name_stands_once_in_a_tensor(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    assert_null(mtf_placeholder(g, "x", MTF_SHAPE({"a", 4}, {"a", 5}), MTF_F32));
    expect_message(g, "dim a");
    g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MATRIX(4, 6), MTF_F32);
    assert_null(mtf_rename(x, "a", "b"));
    expect_message(g, "dim b");
    g = mtf_graph_new();
    x = mtf_placeholder(g, "x", VECTOR(4), MTF_F32);
    assert_null(mtf_stack(2, (mtf_tensor *[]){x, x}, "a", 0));
    expect_message(g, "dim a");
}

/* C14: a scalar that is reported was no tensor any more. Here it is fetched, and still one. */
static void c14_what_is_reported_stays_a_tensor(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(3), MTF_F64, 1, 2, 3);
    mtf_tensor *loss = mtf_reduce_sum(mtf_square(x), MTF_SCALAR), *twice = mtf_scale(loss, 2);
    double reported, result;
    machine m = machine_new(
        e.g, "p:2", "a:p", &(mtf_request){.nfetches = 2, .fetches = (mtf_tensor *[]){loss, twice}});
    mtf_err err = {0};
    if (mtf_run(m.session, m.program, 1, e.feed, (void *[]){&reported, &result}, NULL, &err) !=
        MTF_OK)
        fail_msg("%s", err.text);
    assert_true(reported == 14 && result == 28);
    machine_free(&m);
    EXPECT_ON(&e, "p:2", "a:p", eval_gradient(twice, x), 0, 4, 8, 12);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_reshape_keeps_the_order),
        cmocka_unit_test(c2_every_layout_of_a_reshape_works),
        cmocka_unit_test(c3_gradient_of_max_has_the_shape_of_its_operand),
        cmocka_unit_test(c4_ties_share_the_gradient),
        cmocka_unit_test(c5_where_chooses_and_pow_takes_negative_numbers),
        cmocka_unit_test(c6_random_numbers_depend_on_the_seed_alone),
        cmocka_unit_test(c8_parts_without_a_gradient_are_zeros),
        cmocka_unit_test(c9_moves_keep_every_bit),
        cmocka_unit_test(c13_a_name_stands_once_in_a_tensor),
        cmocka_unit_test(c14_what_is_reported_stays_a_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
