/* SPDX-License-Identifier: Apache-2.0
 * A program may have signal handlers of its own: they run between the kernels of a deep product,
 * and neither side harms the other. */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include <mtf/mtf.h>

static volatile sig_atomic_t caught;

static void count(int number)
{
    (void)number;
    caught++;
}

static void interrupt_every(int microseconds)
{
    const struct itimerval t = {.it_interval = {.tv_usec = microseconds},
                                .it_value = {.tv_usec = microseconds}};
    assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

/* The gradient of a weight: both operands are read across a depth of many rows. */
static void test_deep_product(void **state)
{
    (void)state;
    const mtf_dim rows = {"rows", 8000}, in = {"in", 512}, out = {"out", 512};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_random_normal(g, "x", MTF_SHAPE(rows, in), MTF_F32, 0, 1);
    mtf_tensor *y = mtf_random_normal(g, "y", MTF_SHAPE(rows, out), MTF_F32, 0, 1);
    mtf_tensor *mean = mtf_reduce_mean(mtf_matmul(x, y, MTF_SHAPE(in, out)), MTF_SCALAR);
    mtf_err err = {0};
    mtf_mesh *mesh = mtf_mesh_parse("", &err);
    mtf_layout *layout = mtf_layout_parse("", mesh, true, NULL, &err);
    const mtf_request request = {.nfetches = 1, .fetches = &mean};
    mtf_program *p = mtf_compile(g, mesh, layout, &request, &err);
    mtf_session *s = mtf_session_new(1, &p, &(mtf_session_options){.threads = 2}, &err);
    if (!s) fail_msg("%s", err.text);

    float quiet = 0, value = 0;
    assert_int_equal(mtf_run(s, p, 0, NULL, (void *[]){&quiet}, NULL, &err), MTF_OK);
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_handler = count;
    act.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &act, NULL);
    interrupt_every(500);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(mtf_run(s, p, 0, NULL, (void *[]){&value}, NULL, &err), MTF_OK);
        assert_memory_equal(&value, &quiet, sizeof value);
    }
    interrupt_every(0);
    assert_true(caught > 10);
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&layout);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deep_product)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
