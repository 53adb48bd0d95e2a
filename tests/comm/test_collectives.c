/* SPDX-License-Identifier: Apache-2.0
 * All processors in one process, on pools of 1, 2 and 3 threads. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "support/comm_cases.h"

static void all_meshes(int threads)
{
    pool *p = pool_new(threads);
    int64_t compared = 0, reordered = 0;
    for (int i = 0; i < cases_num_meshes; i++) {
        comm *c = NULL;
        assert_int_equal(comm_new_local(&cases_meshes[i], p, &c, NULL), MTF_OK);
        const cases_result r = cases_run(c, &cases_meshes[i], true);
        assert_int_equal(r.wrong, 0);
        compared += r.compared;
        reordered += r.reordered;
        comm_free(&c);
        assert_null(c);
    }
    /* The reference means something only where another order would give other bits. */
    assert_true(compared > 1000000);
    assert_true(reordered > 1000);
    pool_free(&p);
}

static void one_thread(void **state)
{
    (void)state;
    all_meshes(1);
}

static void two_threads(void **state)
{
    (void)state;
    all_meshes(2);
}

static void three_threads(void **state)
{
    (void)state;
    all_meshes(3);
}

static void many_processors_agree_with_one_sum(void **state)
{
    (void)state;
    const comm_mesh m = {.naxes = 2, .size = {64, 8}};
    comm *c = NULL;
    assert_int_equal(comm_new_local(&m, NULL, &c, NULL), MTF_OK);
    double value[512];
    void *buf[512];
    int64_t count[512];
    for (int i = 0; i < 512; i++) {
        value[i] = i;
        buf[i] = &value[i];
        count[i] = 1;
    }
    const comm_axes rows = {.n = 1, .axis = {0}}, both = {.n = 2, .axis = {1, 0}};
    comm_all_reduce(c, rows, COMM_SUM, MTF_F64, buf, count, NULL);
    for (int i = 0; i < 512; i++)
        assert_true(value[i] == 8.0 * 63 * 32 + 64.0 * (i % 8));
    comm_all_reduce(c, both, COMM_MAX, MTF_F64, buf, count, NULL);
    for (int i = 0; i < 512; i++)
        assert_true(value[i] == 8.0 * 63 * 32 + 64.0 * 7);
    comm_free(&c);
}

static void nan_wins_from_any_processor(void **state)
{
    (void)state;
    const comm_mesh m = {.naxes = 1, .size = {7}};
    const comm_axes axes = {.n = 1};
    comm *c = NULL;
    assert_int_equal(comm_new_local(&m, NULL, &c, NULL), MTF_OK);
    for (int at = 0; at < 7; at++)
        for (int op = COMM_MAX; op <= COMM_MIN; op++) {
            float value[7];
            void *buf[7];
            int64_t count[7];
            for (int i = 0; i < 7; i++) {
                value[i] = i == at ? NAN : (float)i;
                buf[i] = &value[i];
                count[i] = 1;
            }
            comm_all_reduce(c, axes, (comm_op)op, MTF_F32, buf, count, NULL);
            for (int i = 0; i < 7; i++)
                assert_true(isnan(value[i]));
        }
    comm_free(&c);
}

static void collectives_allocate_nothing(void **state)
{
    (void)state;
    const comm_mesh m = {.naxes = 1, .size = {4}};
    const comm_axes axes = {.n = 1};
    comm *c = NULL;
    assert_int_equal(comm_new_local(&m, NULL, &c, NULL), MTF_OK);
    float value[4] = {1, 2, 3, 4};
    void *buf[4] = {&value[0], &value[1], &value[2], &value[3]};
    const int64_t count[4] = {1, 1, 1, 1};
    const int64_t before = mem_count();
    comm_all_reduce(c, axes, COMM_SUM, MTF_F32, buf, count, NULL);
    assert_int_equal(mem_count(), before);
    assert_true(value[0] == 10.0f && value[3] == 10.0f);
    comm_free(&c);
}

static void one_process_agrees_with_itself(void **state)
{
    (void)state;
    const comm_mesh m = {.naxes = 2, .size = {2, 3}};
    comm *c = NULL;
    assert_int_equal(comm_new_local(&m, NULL, &c, NULL), MTF_OK);
    assert_int_equal(comm_size(c), 6);
    assert_int_equal(comm_first(c), 0);
    assert_int_equal(comm_nhosted(c), 6);
    assert_true(comm_is_root(c));
    assert_int_equal(comm_coord(c, 5, 0), 1);
    assert_int_equal(comm_coord(c, 4, 1), 1);
    mtf_err err = {0};
    assert_int_equal(comm_agree(c, MTF_OK, &err), MTF_OK);
    err_set(&err, MTF_FAILED, "the disk is full");
    assert_int_equal(comm_agree(c, MTF_FAILED, &err), MTF_FAILED);
    assert_string_equal(err.text, "the disk is full");
    int data = 5;
    comm_broadcast(c, &data, sizeof data);
    assert_int_equal(data, 5);
    assert_true(comm_equal(c, 7));
    assert_int_equal(comm_any(c, 0), 0);
    assert_int_equal(comm_any(c, 15), 15);
    comm_free(&c);
}

static void a_mesh_that_is_none_is_refused(void **state)
{
    (void)state;
    const comm_mesh empty = {.naxes = 2, .size = {4, 0}};
    const comm_mesh huge = {.naxes = 2, .size = {1 << 20, 1 << 20}};
    mtf_err err = {0};
    comm *c = NULL;
    assert_int_equal(comm_new_local(&empty, NULL, &c, &err), MTF_INVALID);
    assert_null(c);
    assert_int_equal(comm_new_local(&huge, NULL, &c, &err), MTF_INVALID);
    assert_non_null(strstr(err.text, "2 axes"));
    comm_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),
        cmocka_unit_test(two_threads),
        cmocka_unit_test(three_threads),
        cmocka_unit_test(many_processors_agree_with_one_sum),
        cmocka_unit_test(nan_wins_from_any_processor),
        cmocka_unit_test(collectives_allocate_nothing),
        cmocka_unit_test(one_process_agrees_with_itself),
        cmocka_unit_test(a_mesh_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
