/* SPDX-License-Identifier: Apache-2.0
 * State across runs: updates see the state from before the run, C makes the loops, variables are
 * set and read as wholes, and feeds may be asked for block by block. On several layouts. */
#include "check.h"

#include <string.h>

#include "support/model.h"

enum { A = 5, B = 6, N = A * B };
#define AB MTF_SHAPE({"a", A}, {"b", B})

static const char *const layouts[][2] = {
    {"", ""}, {"p:2", "a:p"}, {"p:7", "b:p"}, {"p:2;q:3", "a:p;b:q"}, {"p:2;q:2", "a:q+p"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void run(machine *m, int nfeeds, const mtf_feed *feeds, void *const *fetched)
{
    mtf_err err = {0};
    if (mtf_run(m->session, m->program, nfeeds, feeds, fetched, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
}

static void expect_state(machine *m, const mtf_tensor *variable, const double *want)
{
    mtf_err err = {0};
    double got[N];
    if (mtf_state_get(m->session, variable, got, &err) != MTF_OK) fail_msg("%s", err.text);
    for (int i = 0; i < N; i++)
        if (got[i] != want[i])
            fail_msg("%s, element %d: %g instead of %g", mtf_tensor_name(variable), i, got[i],
                     want[i]);
}

static mtf_tensor *variable(mtf_graph *g, const char *name, double value)
{
    return mtf_variable(g, name, mtf_constant(g, value, AB, MTF_F64), true);
}

/* Two variables change places, and others are added to and taken from, all by their old values. */
static void updates_see_the_old_state(void **state)
{
    (void)state;
    static const double sums[] = {3, 4, 6, 7}; /* of z: adds x, which is 1, 2, 1 */
    for (int l = 0; l < LAYOUTS; l++) {
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *x = variable(g, "x", 1), *y = variable(g, "y", 2), *z = variable(g, "z", 3);
        mtf_tensor *update[] = {mtf_assign(x, y), mtf_assign(y, x), mtf_assign(z, mtf_add(z, x))};
        machine m = machine_new(
            g, layouts[l][0], layouts[l][1],
            &(mtf_request){.nfetches = 1, .fetches = &z, .nupdates = 3, .updates = update});
        double before[N], want[3][N];
        for (int step = 1; step <= 3; step++) {
            run(&m, 0, NULL, (void *[]){before});
            for (int i = 0; i < N; i++) {
                want[0][i] = 1 + step % 2;
                want[1][i] = 2 - step % 2;
                want[2][i] = sums[step];
                assert_true(before[i] == sums[step - 1]);
            }
            expect_state(&m, x, want[0]);
            expect_state(&m, y, want[1]);
            expect_state(&m, z, want[2]);
        }
        machine_free(&m);
        mtf_graph_free(&g);
    }
}

/* A while loop: x is halved while its largest element is above 1. An accumulator adds a product in
 * every iteration, whose dim `a` is summed between processors. */
static void a_loop_around_a_program(void **state)
{
    (void)state;
    for (int l = 0; l < LAYOUTS; l++) {
        mtf_graph *g = mtf_graph_new();
        const mtf_shape b = MTF_SHAPE({"b", B});
        mtf_tensor *x = variable(g, "x", 100);
        mtf_tensor *sum = mtf_variable(g, "sum", mtf_constant(g, 0, b, MTF_F64), false);
        mtf_tensor *ones = mtf_constant(g, 1, MTF_SHAPE({"a", A}), MTF_F64);
        mtf_tensor *half = mtf_scale(x, 0.5), *largest = mtf_reduce_max(half, MTF_SCALAR);
        mtf_tensor *update[] = {mtf_assign(x, half),
                                mtf_assign(sum, mtf_add(sum, mtf_matmul(x, ones, b)))};
        machine m = machine_new(
            g, layouts[l][0], layouts[l][1],
            &(mtf_request){.nfetches = 1, .fetches = &largest, .nupdates = 2, .updates = update});
        double most = 100, added = 0, got[B];
        int iterations = 0;
        for (; most > 1; iterations++) {
            added += A * most;
            run(&m, 0, NULL, (void *[]){&most});
        }
        assert_int_equal(iterations, 7);
        mtf_err err = {0};
        assert_int_equal(mtf_state_get(m.session, sum, got, &err), MTF_OK);
        for (int i = 0; i < B; i++)
            assert_true(got[i] == added);
        machine_free(&m);
        mtf_graph_free(&g);
    }
}

static void variables_are_set_and_read(void **state)
{
    (void)state;
    for (int l = 0; l < LAYOUTS; l++) {
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *x = variable(g, "x", 1), *y = mtf_square(x);
        double set[N], got[N];
        for (int i = 0; i < N; i++)
            set[i] = i - 7;
        machine m = machine_new(g, layouts[l][0], layouts[l][1],
                                &(mtf_request){.nfetches = 1, .fetches = &y});
        mtf_err err = {0};
        assert_int_equal(mtf_state_set(m.session, x, set, &err), MTF_OK);
        expect_state(&m, x, set);
        run(&m, 0, NULL, (void *[]){got});
        for (int i = 0; i < N; i++)
            assert_true(got[i] == set[i] * set[i]);
        assert_int_equal(mtf_state_get(m.session, y, got, &err), MTF_INVALID);
        assert_int_equal(mtf_state_set(m.session, NULL, set, &(mtf_err){0}), MTF_INVALID);
        machine_free(&m);
        mtf_graph_free(&g);
    }
}

/* What a callback is asked for. */
typedef struct asked {
    int calls;
    int64_t elements;
} asked;

static mtf_status fill(void *ctx, const int64_t *offset, const int64_t *extent, void *block,
                       mtf_err *err)
{
    (void)err;
    asked *a = ctx;
    double *out = block;
    a->calls++;
    a->elements += extent[0] * extent[1];
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++)
            *out++ = (double)((offset[0] + i) * B + offset[1] + j);
    return MTF_OK;
}

static mtf_status refuse(void *ctx, const int64_t *offset, const int64_t *extent, void *block,
                         mtf_err *err)
{
    (void)ctx, (void)offset, (void)extent, (void)block;
    *err = (mtf_err){.status = MTF_FAILED, .text = "the file is gone"};
    return MTF_FAILED;
}

static void feeds_are_asked_for_blocks(void **state)
{
    (void)state;
    for (int l = 0; l < LAYOUTS; l++) {
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *x = mtf_placeholder(g, "x", AB, MTF_F64), *y = mtf_scale(x, 2);
        machine m = machine_new(g, layouts[l][0], layouts[l][1],
                                &(mtf_request){.nfetches = 1, .fetches = &y});
        asked a = {0};
        double got[N];
        run(&m, 1, &(mtf_feed){.placeholder = x, .fn = fill, .ctx = &a}, (void *[]){got});
        for (int i = 0; i < N; i++)
            assert_true(got[i] == 2 * i);
        const bool one_is_empty = strcmp(layouts[l][0], "p:7") == 0;
        assert_int_equal(a.calls, mtf_mesh_processors(m.mesh) - one_is_empty);
        assert_int_equal(a.elements, N); /* no layout of these leaves a replica */
        mtf_err err = {0};
        const mtf_feed broken = {.placeholder = x, .fn = refuse};
        assert_int_equal(mtf_run(m.session, m.program, 1, &broken, (void *[]){got}, NULL, &err),
                         MTF_FAILED);
        if (!strstr(err.text, "the file is gone")) fail_msg("%s", err.text);
        machine_free(&m);
        mtf_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_see_the_old_state),
        cmocka_unit_test(a_loop_around_a_program),
        cmocka_unit_test(variables_are_set_and_read),
        cmocka_unit_test(feeds_are_asked_for_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
