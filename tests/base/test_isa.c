/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>

#include "base/isa.h"
#include "base/vmath.h"

enum { N = 1003 };

typedef struct tile {
    const float *x;
    float *y;
    float *sum;
    int n;
} tile;

ISA_BODY void exp_body(const tile *t)
{
    const float *restrict x = t->x;
    float *restrict y = t->y;
    for (int i = 0; i < t->n; i++)
        y[i] = vexpf(x[i]);
}
ISA_VARIANTS(exp_tile, exp_body, (const tile *t), (t))

ISA_BODY void sum_body(const tile *t)
{
    float lane[ISA_LANES] = {0};
    const float *restrict x = t->x;
    int i = 0;
    for (; i + ISA_LANES <= t->n; i += ISA_LANES)
        for (int l = 0; l < ISA_LANES; l++)
            lane[l] += x[i + l] * x[i + l];
    for (int l = 0; i < t->n; i++, l++)
        lane[l] += x[i] * x[i];
    for (int width = ISA_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    *t->sum = lane[0];
}
ISA_VARIANTS(sum_tile, sum_body, (const tile *t), (t))

static void variants_give_the_same_bits(void **state)
{
    (void)state;
    float x[N], y[ISA_LEVELS][N], sum[ISA_LEVELS];
    for (int i = 0; i < N; i++)
        x[i] = vsinf((float)i * 1.7F) * 3.0F;
    for (int n = N - 40; n <= N; n++) {
        for (int level = ISA_BASE; level <= (int)isa_best(); level++) {
            isa_set((isa_level)level);
            assert_int_equal(isa_current(), level);
            const tile t = {.x = x, .y = y[level], .sum = &sum[level], .n = n};
            exp_tile(&t);
            sum_tile(&t);
            assert_memory_equal(y[level], y[0], (size_t)n * sizeof(float));
            assert_memory_equal(&sum[level], &sum[0], sizeof(float));
        }
        assert_true(sum[0] > 0.0F && y[0][n - 1] > 0.0F);
    }
}

static void the_level_is_clamped_and_named(void **state)
{
    (void)state;
    isa_set(ISA_AVX512);
    assert_int_equal(isa_current(), isa_best());
    isa_set(ISA_BASE);
    assert_int_equal(isa_current(), ISA_BASE);
    assert_string_equal(isa_name(ISA_BASE), "base");
    assert_string_equal(isa_name(ISA_AVX512), "avx512");
    isa_set(isa_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_give_the_same_bits),
        cmocka_unit_test(the_level_is_clamped_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
