/* SPDX-License-Identifier: Apache-2.0
 * Reversible residual layers: the gradients of plain ones within rounding, on every layout and with
 * dropout, in memory that does not grow with the depth (reference 3.4). */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"
#include "support/eval.h"
#include "support/mistakes.h"

enum { BATCH = 16, WIDTH = 8, INNER = 64, MAX_DEPTH = 32 };
static const mtf_dim batch = {"batch", BATCH}, width = {"width", WIDTH}, inner = {"inner", INNER};

static const struct {
    const char *mesh, *layout;
} cases[] = {
    {"", ""},
    {"x:3", "batch:x"},
    {"x:4", "width:x"},
    {"x:2", "inner:x"},
    {"x:3;y:2", "batch:x;inner:y"},
    {"x:2;y:2", "width:x;inner:y"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* A stack, and the gradients by its operand and all weights. */
typedef struct stack {
    mtf_graph *g;
    int depth;
    mtf_tensor *x, *shared, *y;
    mtf_tensor *w[MAX_DEPTH], *d[MAX_DEPTH + 2];
} stack;

typedef struct context {
    stack *s;
    int layer;
} context;

/* Reads a weight of its own and one that all layers share. */
static mtf_tensor *f(void *c, mtf_tensor *x)
{
    const context *at = c;
    stack *s = at->s;
    mtf_tensor *h = mtf_tanh(mtf_matmul(x, s->w[at->layer], MTF_SHAPE(batch, inner)));
    h = mtf_dropout(mtf_mul(h, mtf_sigmoid(h)), "drop", 0.3);
    return mtf_mul(mtf_matmul(h, s->w[at->layer], MTF_SHAPE(batch, width)), s->shared);
}

static mtf_tensor *plain(stack *s)
{
    mtf_tensor *x1 = s->x, *x2 = s->x;
    for (int i = 0; i < s->depth; i++) {
        mtf_tensor *y = mtf_add(x1, f(&(context){s, i}, x2));
        x1 = x2;
        x2 = y;
    }
    return mtf_add(x1, x2);
}

static mtf_tensor *reversible(stack *s)
{
    mtf_reversible r = mtf_reversible_begin(s->x);
    for (int i = 0; i < s->depth; i++)
        r = mtf_reversible_layer(r, f, &(context){s, i});
    return mtf_reversible_end(r);
}

/* With weights that are variables, or values of every run. */
static stack stack_new(int depth, mtf_tensor *(*build)(stack *s), bool variables)
{
    stack s = {.g = mtf_graph_new(), .depth = depth};
    mtf_err err = {0};
    for (int i = 0; i < depth; i++) {
        s.w[i] = mtf_random_normal(s.g, "w", MTF_SHAPE(width, inner), MTF_F64, 0, 0.2);
        if (variables) s.w[i] = mtf_variable(s.g, "w", s.w[i], true);
    }
    s.x = mtf_random_normal(s.g, "x", MTF_SHAPE(batch, width), MTF_F64, 0, 1);
    s.shared = mtf_random_normal(s.g, "shared", MTF_SHAPE(width), MTF_F64, 1, 0.1);
    mtf_tensor *of[MAX_DEPTH + 2] = {s.x, s.shared};
    memcpy(of + 2, s.w, sizeof(mtf_tensor *) * (size_t)depth);
    s.y = build(&s);
    mtf_gradients(mtf_reduce_sum(mtf_square(s.y), MTF_SCALAR), depth + 2, of, s.d);
    if (mtf_graph_status(s.g, &err) != MTF_OK) fail_msg("%s", err.text);
    return s;
}

/* y and all gradients, one after another, into `out`. */
static void run(const stack *s, const char *mesh, const char *layout, double *out)
{
    mtf_err err = {0};
    const int n = s->depth + 3;
    mtf_tensor *fetch[MAX_DEPTH + 3] = {s->y};
    void *to[MAX_DEPTH + 3];
    memcpy(fetch + 1, s->d, sizeof(mtf_tensor *) * (size_t)(n - 1));
    for (int i = 0; i < n; i++) {
        to[i] = out;
        out += mtf_shape_size(&fetch[i]->shape);
    }
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    mtf_program *p = mtf_compile(s->g, m, l, &(mtf_request){.nfetches = n, .fetches = fetch}, &err);
    if (!p) fail_msg("%s", err.text);
    mtf_session *session = mtf_session_new(1, &p, &(mtf_session_options){.threads = 1}, &err);
    if (!session || mtf_run(session, p, 0, NULL, to, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
    mtf_session_free(&session);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

enum { DEPTH = 5, NUMBERS = 2 * BATCH * WIDTH + WIDTH + DEPTH * WIDTH * INNER };

static void gradients_of_plain_layers(void **state)
{
    (void)state;
    stack a = stack_new(DEPTH, plain, false), b = stack_new(DEPTH, reversible, false);
    static double want[NUMBERS], got[NUMBERS];
    run(&a, "", "", want);
    for (int c = 0; c < CASES; c++) {
        run(&b, cases[c].mesh, cases[c].layout, got);
        for (int i = 0; i < NUMBERS; i++)
            if (!(fabs(want[i] - got[i]) <= 1e-11 * (1 + fabs(want[i]))))
                fail_msg("mesh '%s', layout '%s': number %d is %.15g instead of %.15g",
                         cases[c].mesh, cases[c].layout, i, got[i], want[i]);
    }
    mtf_graph_free(&a.g);
    mtf_graph_free(&b.g);
}

/* Bytes at the peak beside the weights, for the result and the gradient by the operand. */
static int64_t activations(int depth, mtf_tensor *(*build)(stack *s), int c)
{
    stack s = stack_new(depth, build, true);
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(cases[c].mesh, &err);
    mtf_layout *l = mtf_layout_parse(cases[c].layout, m, true, NULL, &err);
    mtf_tensor *fetch[] = {s.y, s.d[0]};
    mtf_program *p = mtf_compile(s.g, m, l, &(mtf_request){.nfetches = 2, .fetches = fetch}, &err);
    if (!p) fail_msg("%s", err.text);
    const mtf_totals t = mtf_program_totals(p);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    mtf_graph_free(&s.g);
    return t.peak_bytes - t.state_bytes;
}

static void memory_does_not_grow_with_depth(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        const int64_t shallow = activations(4, reversible, c),
                      deep = activations(16, reversible, c), kept = activations(16, plain, c);
        if (!(deep <= shallow && 2 * deep < kept))
            fail_msg("mesh '%s', layout '%s': 4 reversible layers take %lld bytes, 16 take %lld; "
                     "plain ones %lld",
                     cases[c].mesh, cases[c].layout, (long long)shallow, (long long)deep,
                     (long long)kept);
    }
}

/* A reversible stack within a recompute region, and its second gradients. */
static void composes(void **state)
{
    (void)state;
    double sums[2][2];
    for (int again = 0; again < 2; again++) {
        stack s = {.g = mtf_graph_new(), .depth = 2};
        eval e = {.g = s.g};
        for (int i = 0; i < 2; i++)
            s.w[i] = mtf_random_normal(s.g, "w", MTF_SHAPE(width, inner), MTF_F64, 0, 0.2);
        s.x = mtf_random_normal(s.g, "x", MTF_SHAPE(batch, width), MTF_F64, 0, 1);
        s.shared = mtf_random_normal(s.g, "shared", MTF_SHAPE(width), MTF_F64, 1, 0.1);
        if (again) mtf_recompute_begin(s.g);
        mtf_tensor *y = again ? reversible(&s) : plain(&s);
        if (again) mtf_recompute_end(s.g);
        mtf_tensor *first = eval_gradient(mtf_square(y), s.x);
        mtf_tensor *second = eval_gradient(mtf_square(first), s.w[0]);
        eval_run(&e, "x:2", "batch:x", mtf_reduce_sum(mtf_square(first), MTF_SCALAR),
                 &sums[again][0]);
        eval_run(&e, "x:2", "batch:x", mtf_reduce_sum(mtf_square(second), MTF_SCALAR),
                 &sums[again][1]);
        eval_close(&e);
    }
    assert_true(fabs(sums[0][0] - sums[1][0]) < 1e-9 * sums[0][0]);
    assert_true(fabs(sums[0][1] - sums[1][1]) < 1e-9 * sums[0][1]);
    assert_true(sums[0][1] > 1);
}

/* What f gives need not be built by it: its argument, or a tensor from before. */
static mtf_tensor *given(void *t, mtf_tensor *x)
{
    return t ? t : x;
}

static void results_from_before(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 1, -2);
    mtf_tensor *w = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 3, 5);
    mtf_reversible s = mtf_reversible_layer(mtf_reversible_begin(x), given, w); /* x, x + w */
    s = mtf_reversible_layer(s, given, NULL);                                   /* x + w, 2 x + w */
    mtf_tensor *y = mtf_square(mtf_reversible_end(s));
    EXPECT(&e, y, 0, 81, 16);
    EXPECT(&e, eval_gradient(y, x), 0, 6 * 9, 6 * 4);
    EXPECT(&e, eval_gradient(y, w), 0, 4 * 9, 4 * 4);
    eval_close(&e);
}

/* Every mistake of this file with its message. */
static messages *wrong;

static int set_up(void **state)
{
    (void)state;
    wrong = messages_new("reversible_errors.txt");
    return 0;
}

/* Two layers on the same streams would both hand back what they have reconstructed. */
static void streams_go_on_once(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_err err = {0};
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 1, -2);
    const mtf_reversible first = mtf_reversible_begin(x);
    const mtf_reversible s = mtf_reversible_layer(first, given, NULL);
    assert_non_null(mtf_reversible_end(mtf_reversible_layer(first, given, NULL)));
    assert_non_null(mtf_reversible_end(mtf_reversible_layer(s, given, NULL)));
    assert_int_equal(mtf_graph_status(e.g, NULL), MTF_OK);
    assert_null(mtf_reversible_end(mtf_reversible_layer(s, given, NULL)));
    messages_add(wrong, "streams_used_twice", mtf_graph_status(e.g, &err), &err);
    eval_close(&e);
}

/* What is not a layer's own result would be reconstructed as if it were. */
static void streams_stay_as_they_are(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        eval e = eval_open();
        mtf_err err = {0};
        mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 2}), MTF_F64, 1, -2);
        mtf_reversible s = mtf_reversible_layer(mtf_reversible_begin(x), given, NULL);
        const mtf_reversible whole = s;
        if (k == 0) s.x1 = mtf_tanh(s.x1);
        if (k == 1) s.x1 = whole.x2, s.x2 = whole.x1;
        if (k == 2) s.back1 = NULL;
        assert_non_null(mtf_reversible_end(s));
        assert_null(mtf_reversible_end(mtf_reversible_layer(s, given, NULL)));
        static const char *const names[] = {"stream_changed", "streams_exchanged", "way_back_lost"};
        messages_add(wrong, names[k], mtf_graph_status(e.g, &err), &err);
        eval_close(&e);
    }
}

/* ---- mistakes ---- */

static mtf_tensor *other_shape(void *c, mtf_tensor *x)
{
    (void)c;
    return mtf_reduce_sum(x, MTF_SHAPE(batch));
}
static mtf_tensor *makes_a_variable(void *c, mtf_tensor *x)
{
    (void)c;
    mtf_graph *g = mtf_tensor_graph(x);
    return mtf_mul(x, mtf_variable(g, "w", mtf_constant(g, 1, MTF_SHAPE(width), MTF_F64), true));
}
static mtf_tensor *fails(void *c, mtf_tensor *x)
{
    (void)c;
    return mtf_softmax(x, "nothing");
}

static mtf_tensor *gives_nothing(void *c, mtf_tensor *x)
{
    (void)c, (void)x;
    return NULL;
}

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        mtf_layer_fn *f;
    } mistakes[] = {{"no_function", NULL},
                    {"other_shape", other_shape},
                    {"makes_a_variable", makes_a_variable},
                    {"gives_nothing", gives_nothing},
                    {"fails", fails}};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        mtf_err err = {0};
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(batch, width), MTF_F64);
        mtf_reversible r = mtf_reversible_layer(mtf_reversible_begin(x), mistakes[i].f, NULL);
        assert_null(mtf_reversible_end(mtf_reversible_layer(r, mistakes[i].f, NULL)));
        messages_add(wrong, mistakes[i].name, mtf_graph_status(g, &err), &err);
        mtf_graph_free(&g);
    }
    messages_check(&wrong);
    assert_null(mtf_reversible_end(mtf_reversible_layer(mtf_reversible_begin(NULL), f, NULL)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_plain_layers),
        cmocka_unit_test(memory_does_not_grow_with_depth),
        cmocka_unit_test(composes),
        cmocka_unit_test(results_from_before),
        cmocka_unit_test(streams_go_on_once),
        cmocka_unit_test(streams_stay_as_they_are),
        cmocka_unit_test(mistakes_have_messages),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
