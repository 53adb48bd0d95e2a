/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/mem.h"
#include "base/pool.h"

enum { N = 1000, ROUNDS = 200 };

typedef struct work {
    pool *p;
    int *seen;
} work;

static void mark(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    int *seen = ctx;
    for (int64_t i = begin; i < end; i++)
        seen[i]++;
}

static void mark_nested(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    work *w = ctx;
    for (int64_t i = begin; i < end; i++)
        pool_for(w->p, 10, 1, mark, w->seen + 10 * i);
}

static void every_grain_runs_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        pool *p = pool_new(threads);
        for (int round = 0; round < ROUNDS; round++) {
            int *seen = mem_zalloc(N * sizeof *seen);
            pool_for(p, N, 1 + round % 17, mark, seen);
            for (int i = 0; i < N; i++)
                assert_int_equal(seen[i], 1);
            mem_free(seen);
        }
        pool_free(&p);
        assert_null(p);
    }
}

static void nested_calls_run_on_their_worker(void **state)
{
    (void)state;
    pool *p = pool_new(3);
    int *seen = mem_zalloc(N * sizeof *seen);
    work w = {.p = p, .seen = seen};
    pool_for(p, N / 10, 1, mark_nested, &w);
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    mem_free(seen);
    pool_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grain_runs_once),
        cmocka_unit_test(nested_calls_run_on_their_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
