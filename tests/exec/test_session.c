/* SPDX-License-Identifier: Apache-2.0
 * What may go wrong between a program and its session: misuse is an error with a message that names
 * the thing, and memory that is shared by names is never overwritten while it is read. */
#include "check.h"

#include <string.h>

#include "mtf/mtf.h"
#include "support/eval.h"
#include "support/mistakes.h"

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

/* Every mistake with its message, one golden file. */
static messages *mistakes;

static int set_up(void **state)
{
    (void)state;
    err = (mtf_err){0};
    mesh = mtf_mesh_parse("x:2", &err);
    mistakes = messages_new("session_errors.txt");
    return mesh ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    mtf_mesh_free(&mesh);
    return 0;
}

/* ---- misuse ---- */

/* What mtf_compile says of a request. */
static void refuse(const char *name, mtf_graph *g, const mtf_layout *l, const mtf_request *r)
{
    assert_null(mtf_compile(g, mesh, l, r, &err));
    messages_add(mistakes, name, err.status, &err);
}

static void requests(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new(), *other = mtf_graph_new();
    mtf_mesh *another = mtf_mesh_parse("p:1;q:3", &err);
    mtf_layout *foreign = mtf_layout_parse("a:q", another, true, NULL, &err);
    mtf_layout *l = layout_of("a:x"), *both = layout_of("a:x;b:x");
    const mtf_shape s = MTF_SHAPE({"a", 4});
    mtf_tensor *w = mtf_variable(g, "w", mtf_constant(g, 1, s, MTF_F32), true);
    mtf_tensor *one = mtf_assign(w, mtf_scale(w, 2)), *two = mtf_assign(w, mtf_scale(w, 3));
    mtf_tensor *const t = mtf_scale(w, 4), *const none = NULL, *elsewhere[2];
    mtf_tensor *square = mtf_broadcast(w, MTF_SHAPE({"a", 4}, {"b", 4}));
    elsewhere[0] = mtf_constant(other, 1, s, MTF_F32);
    elsewhere[1] = mtf_assign(mtf_variable(other, "w", elsewhere[0], true), elsewhere[0]);
    refuse("layout_of_another_mesh", g, foreign, &(mtf_request){.name = "p", 1, &t});
    refuse("fetch_of_nothing", g, l, &(mtf_request){.name = "p", 1, &none});
    refuse("fetch_of_an_assignment", g, l, &(mtf_request){.name = "p", 1, &one});
    refuse("fetch_from_another_graph", g, l, &(mtf_request){.name = "p", 1, elsewhere});
    refuse("update_of_nothing", g, l, &(mtf_request){.name = "p", .nupdates = 1, .updates = &none});
    refuse("update_that_is_a_value", g, l,
           &(mtf_request){.name = "p", .nupdates = 1, .updates = &t});
    refuse("update_of_another_graph", g, l,
           &(mtf_request){.name = "p", .nupdates = 1, .updates = elsewhere + 1});
    refuse("assigned_twice", g, l,
           &(mtf_request){.name = "p", .nupdates = 2, .updates = (mtf_tensor *[]){one, two}});
    refuse("limit_below_zero", g, l, &(mtf_request){.name = "p", 1, &t, .max_value_bytes = -1});
    refuse("two_dims_on_one_axis", g, both, &(mtf_request){.name = "p", 1, &square});
    mtf_add(w, mtf_constant(g, 1, MTF_SHAPE({"a", 5}), MTF_F32));
    refuse("graph_with_a_mistake", g, l, &(mtf_request){.name = "p", 1, &t});
    mtf_layout_free(&l);
    mtf_layout_free(&both);
    mtf_layout_free(&foreign);
    mtf_mesh_free(&another);
    mtf_graph_free(&g);
    mtf_graph_free(&other);
}

/* Not one element of k of x and y can be gathered. */
static void limit_too_low(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_mesh *const before = mesh;
    mesh = mtf_mesh_parse("rows:2;cols:2", &err);
    mtf_layout *l = layout_of("m:rows;k1:cols;k2:rows;n:cols");
    const mtf_dim m = {"m", 8}, n = {"n", 8};
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(m, {"k1", 6}), MTF_F32),
               *y = mtf_placeholder(g, "y", MTF_SHAPE({"k2", 6}, n), MTF_F32),
               *z = mtf_matmul(mtf_rename(x, "k1", "k"), mtf_rename(y, "k2", "k"), MTF_SHAPE(m, n));
    refuse("limit_too_low", g, l, &(mtf_request){.name = "p", 1, &z, .max_value_bytes = 15});
    mtf_layout_free(&l);
    mtf_mesh_free(&mesh);
    mesh = before;
    mtf_graph_free(&g);
}

/* Twelve dims in each of three operands, of which every two have one in common. */
static void product_of_too_many_dims(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_layout *l = layout_of("");
    enum { EACH = MTF_MAX_RANK / 3 };
    char names[6][EACH][32];
    static const int groups[4][3] = {{0, 1, 2}, {0, 3, 4}, {1, 3, 5}, {2, 4, 5}};
    mtf_tensor *x[4];
    for (int k = 0; k < 4; k++) {
        mtf_shape s = MTF_SCALAR;
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < EACH; i++) {
                char *name = names[groups[k][j]][i];
                snprintf(name, sizeof names[0][0], "d%d_%d", groups[k][j], i);
                s = mtf_shape_with(s, (mtf_dim){name, 2});
            }
        x[k] = mtf_placeholder(g, "x", s, MTF_F32);
    }
    mtf_tensor *y = mtf_einsum(4, x, MTF_SCALAR);
    refuse("product_of_too_many_dims", g, l, &(mtf_request){.name = "p", 1, &y});
    mtf_layout_free(&l);
    mtf_graph_free(&g);
}

/* What mtf_session_new says of programs. */
static void refuse_session(const char *name, int n, mtf_program *const *p, int threads)
{
    assert_null(mtf_session_new(n, p, &(mtf_session_options){.threads = threads}, &err));
    messages_add(mistakes, name, err.status, &err);
}

static void programs_that_do_not_belong_together(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new(), *other = mtf_graph_new();
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 4});
    mtf_tensor *w = mtf_variable(g, "w", mtf_constant(g, 1, s, MTF_F32), true);
    mtf_tensor *v = mtf_variable(other, "w", mtf_constant(other, 1, s, MTF_F32), true);
    mtf_mesh *first = mesh, *second = mtf_mesh_parse("x:2", &err);
    mtf_layout *by_a = layout_of("a:x"), *by_b = layout_of("b:x");
    mtf_program *one = program_of(g, by_a, "one", w), *two = program_of(g, by_b, "two", w),
                *graph = program_of(other, by_a, "graph", v);
    mtf_variable(g, "late", mtf_constant(g, 1, s, MTF_F32), true);
    mtf_program *late = program_of(g, by_a, "late", w);
    mesh = second;
    mtf_layout *on_second = layout_of("a:x");
    mtf_program *elsewhere = program_of(g, on_second, "elsewhere", w);
    mesh = first;
    refuse_session("no_program", 0, NULL, 0);
    refuse_session("programs_of_two_layouts", 2, (mtf_program *[]){one, two}, 0);
    refuse_session("program_before_a_variable", 2, (mtf_program *[]){one, late}, 0);
    refuse_session("programs_of_two_graphs", 2, (mtf_program *[]){one, graph}, 0);
    refuse_session("programs_of_two_meshes", 2, (mtf_program *[]){one, elsewhere}, 0);
    refuse_session("threads_below_zero", 1, &one, -1);
    refuse_session("too_many_threads", 1, &one, 5999);
    mtf_session *session = mtf_session_new(1, &one, NULL, &err);
    float value[16];
    messages_add(mistakes, "run_of_another_program",
                 mtf_run(session, two, 0, NULL, NULL, NULL, &err), &err);
    messages_add(mistakes, "get_what_is_no_variable",
                 mtf_state_get(session, mtf_scale(w, 2), value, &err), &err);
    messages_add(mistakes, "set_what_another_session_has", mtf_state_set(session, v, value, &err),
                 &err);
    mtf_session_free(&session);
    mtf_program *const all[] = {one, two, graph, late, elsewhere};
    for (int i = 0; i < 5; i++)
        mtf_program_free(&(mtf_program *){all[i]});
    mtf_layout_free(&by_a);
    mtf_layout_free(&by_b);
    mtf_layout_free(&on_second);
    mtf_mesh_free(&second);
    mtf_graph_free(&g);
    mtf_graph_free(&other);
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
    messages_add(mistakes, "feed_twice", mtf_run(s, p, 2, twice, NULL, NULL, &err), &err);
    messages_add(mistakes, "feed_of_nothing", mtf_run(s, p, 1, &empty, NULL, NULL, &err), &err);
    messages_add(mistakes, "feed_missing", mtf_run(s, p, 1, more, NULL, NULL, &err), &err);
    assert_int_equal(mtf_run(s, p, 2, more, (void *[]){got}, NULL, &err), MTF_OK);
    assert_true(got[0] == 2 && got[1] == 4 && got[2] == 6);
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_graph_free(&g);
}

static void mistakes_have_messages(void **state)
{
    (void)state;
    messages_check(&mistakes);
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
        cmocka_unit_test(requests),
        cmocka_unit_test(limit_too_low),
        cmocka_unit_test(product_of_too_many_dims),
        cmocka_unit_test(programs_that_do_not_belong_together),
        cmocka_unit_test(feeds),
        cmocka_unit_test(mistakes_have_messages),
        cmocka_unit_test(operand_and_its_view),
        cmocka_unit_test(microbatches_draw_alike),
        cmocka_unit_test(dropout_keeps_its_batch),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
