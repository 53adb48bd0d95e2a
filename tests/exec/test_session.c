/* SPDX-License-Identifier: Apache-2.0
 * What may go wrong between a program and its session: misuse is an error with a message that names
 * the thing, and memory that is shared by names is never overwritten while it is read. */
#include "check.h"

#include <string.h>

#include "mtf/mtf.h"
#include "support/eval.h"

static mtf_mesh *mesh;
static mtf_err err;

static mtf_layout *layout_of(const char *text)
{
    mtf_layout *l = mtf_layout_parse(text, mesh, true, NULL, &err);
    assert_non_null(l);
    return l;
}

static mtf_program *program_of(mtf_graph *g, const mtf_layout *l, const char *name, mtf_tensor *t)
{
    const mtf_request r = {.name = name, .nfetches = 1, .fetches = &t};
    mtf_program *p = mtf_compile(g, mesh, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    return p;
}

static void expect_error(const char *text)
{
    assert_int_equal(err.status, MTF_INVALID);
    if (!strstr(err.text, text)) fail_msg("the message is '%s', without '%s'", err.text, text);
    err = (mtf_err){0};
}

static int set_up(void **state)
{
    (void)state;
    err = (mtf_err){0};
    mesh = mtf_mesh_parse("x:2", &err);
    return mesh ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    mtf_mesh_free(&mesh);
    return 0;
}

/* ---- misuse ---- */

static void layout_of_another_mesh(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_mesh *other = mtf_mesh_parse("p:1;q:3", &err);
    mtf_layout *l = mtf_layout_parse("a:q", other, true, NULL, &err);
    mtf_tensor *t = mtf_constant(g, 1, MTF_SHAPE({"a", 4}), MTF_F32);
    const mtf_request r = {.name = "train", .nfetches = 1, .fetches = &t};
    assert_null(mtf_compile(g, mesh, l, &r, &err));
    expect_error(
        "program 'train': the layout 'a:q' was read for the mesh 'p:1;q:3', not for 'x:2'");
    mtf_layout_free(&l);
    mtf_mesh_free(&other);
    mtf_graph_free(&g);
}

static void programs_that_do_not_belong_together(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 4});
    mtf_tensor *w = mtf_variable(g, "w", mtf_constant(g, 1, s, MTF_F32), true);
    mtf_layout *by_a = layout_of("a:x"), *by_b = layout_of("b:x");
    mtf_program *p[3] = {program_of(g, by_a, "one", w), program_of(g, by_b, "two", w), NULL};
    assert_null(mtf_session_new(0, NULL, NULL, &err));
    expect_error("at least one program");
    assert_null(mtf_session_new(2, p, NULL, &err));
    expect_error("programs 'one' and 'two' of one session need the same variables under the same");
    mtf_variable(g, "late", mtf_constant(g, 1, s, MTF_F32), true);
    p[2] = program_of(g, by_a, "three", w);
    assert_null(mtf_session_new(2, (mtf_program *[]){p[0], p[2]}, NULL, &err));
    expect_error("programs 'one' and 'three'");
    mtf_session *session = mtf_session_new(1, p, NULL, &err);
    assert_int_equal(mtf_run(session, p[1], 0, NULL, NULL, NULL, &err), MTF_INVALID);
    expect_error("program 'two' is none of the session's");
    mtf_session_free(&session);
    for (int i = 0; i < 3; i++)
        mtf_program_free(&p[i]);
    mtf_layout_free(&by_a);
    mtf_layout_free(&by_b);
    mtf_graph_free(&g);
}

static void feeds(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_layout *l = layout_of("a:x");
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE({"a", 3}), MTF_F32);
    mtf_tensor *unused = mtf_placeholder(g, "unused", MTF_SHAPE({"a", 3}), MTF_F32);
    mtf_program *p = program_of(g, l, "p", mtf_scale(x, 2));
    mtf_session *s = mtf_session_new(1, &p, NULL, &err);
    const float data[3] = {1, 2, 3};
    float got[3];
    const mtf_feed twice[] = {{.placeholder = x, .data = data}, {.placeholder = x, .data = data}};
    const mtf_feed empty = {.placeholder = x};
    const mtf_feed more[] = {{.placeholder = unused}, {.placeholder = x, .data = data}};
    assert_int_equal(mtf_run(s, p, 2, twice, NULL, NULL, &err), MTF_INVALID);
    expect_error("program 'p': placeholder 'x' has two feeds");
    assert_int_equal(mtf_run(s, p, 1, &empty, NULL, NULL, &err), MTF_INVALID);
    expect_error("program 'p': the feed for placeholder 'x' has neither data nor a callback");
    assert_int_equal(mtf_run(s, p, 1, more, NULL, NULL, &err), MTF_INVALID);
    expect_error("program 'p' needs a feed for placeholder 'x'[a=3]");
    assert_int_equal(mtf_run(s, p, 2, more, (void *[]){got}, NULL, &err), MTF_OK);
    assert_true(got[0] == 2 && got[1] == 4 && got[2] == 6);
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_graph_free(&g);
}

/* ---- memory under two names ---- */

/* x and its view with exchanged names are the same memory, read in two orders. */
static void operand_and_its_view(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_dim a = {"a", 2}, b = {"b", 2};
    mtf_tensor *x = mtf_scale(INPUT(&e, MTF_SHAPE(a, b), MTF_F64, 1, 2, 3, 4), 10);
    mtf_tensor *y = mtf_reshape(x, MTF_SHAPE(b, a));
    EXPECT(&e, mtf_add(x, y), 0, 20, 50, 50, 80);
    EXPECT_ON(&e, "x:2", "a:x", mtf_add(x, y), 0, 20, 50, 50, 80);
    eval_close(&e);
}

/* Random numbers of a batch cut into microbatches are those of the whole, also where the batch is
 * no tensor's first dim, and both in one program differ. */
static void microbatches_draw_alike(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_layout *l = layout_of("batch:x");
    const mtf_dim a = {"a", 3}, b = {"b", 2};
    mtf_graph_set_batch(g, NULL, 5);
    mtf_tensor *whole = mtf_random_uniform(g, "u", MTF_SHAPE(a, {"batch", 5}, b), MTF_F64, 0, 1);
    mtf_tensor *part[2];
    for (int i = 0; i < 2; i++) { /* in a batch of 5, and in one of 9 */
        mtf_graph_repeat_streams(g);
        mtf_graph_set_batch(g, "batch", i ? 9 : 5);
        part[i] = mtf_random_uniform(g, "u", MTF_SHAPE(a, {"batch", 3}, b), MTF_F64, 0, 1);
    }
    mtf_tensor *const fetch[] = {whole, part[0], part[1]};
    const mtf_request r = {.nfetches = 3, .fetches = fetch};
    mtf_program *p = mtf_compile(g, mesh, l, &r, &err);
    mtf_session *s = mtf_session_new(1, &p, NULL, &err);
    double w[3][5][2], m[3][3][2], n[3][3][2];
    const mtf_run_values at = {.step = 1, .batch_offset = 2};
    assert_int_equal(mtf_run(s, p, 0, NULL, (void *[]){NULL, m, n}, &at, &err), MTF_OK);
    const mtf_run_values start = {.step = 1};
    assert_int_equal(mtf_run(s, p, 0, NULL, (void *[]){w, NULL, NULL}, &start, &err), MTF_OK);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++) {
                assert_true(m[i][j][k] == w[i][j + 2][k]);
                assert_true(i == 0 || m[i][j][k] != n[i][j][k]);
            }
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_graph_free(&g);
}

/* The gradient drops what the forward pass dropped, whatever batch is set in between. */
static void dropout_keeps_its_batch(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_layout *l = layout_of("batch:x");
    mtf_graph_set_batch(g, "batch", 8);
    const mtf_shape s = MTF_SHAPE({"a", 7}, {"batch", 4});
    mtf_tensor *x = mtf_constant(g, 1, s, MTF_F64), *y = mtf_dropout(x, "drop", 0.5), *dx = NULL;
    mtf_graph_set_batch(g, "batch", 16);
    mtf_gradients(mtf_reduce_sum(y, MTF_SCALAR), 1, &x, &dx);
    const mtf_request r = {.nfetches = 2, .fetches = (mtf_tensor *[]){y, dx}};
    mtf_program *p = mtf_compile(g, mesh, l, &r, &err);
    mtf_session *session = mtf_session_new(1, &p, NULL, &err);
    double forward[28], backward[28];
    const mtf_run_values at = {.step = 1, .batch_offset = 4};
    void *out[] = {forward, backward};
    assert_int_equal(mtf_run(session, p, 0, NULL, out, &at, &err), MTF_OK);
    assert_memory_equal(forward, backward, sizeof forward);
    mtf_session_free(&session);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_of_another_mesh),
        cmocka_unit_test(programs_that_do_not_belong_together),
        cmocka_unit_test(feeds),
        cmocka_unit_test(operand_and_its_view),
        cmocka_unit_test(microbatches_draw_alike),
        cmocka_unit_test(dropout_keeps_its_batch),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
