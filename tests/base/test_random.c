/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "base/random.h"

enum { N = 5000, MANY = 1 << 20 };
static const uint64_t SEED = 0x123456789abcdefU, STEP = 0x500000007U;

static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    static const uint32_t rows[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        const uint32_t *r = rows[i];
        const random_key key = {{r[4], r[5]}};
        const uint64_t group = (uint64_t)r[1] << 32 | r[0], step = (uint64_t)r[3] << 32 | r[2];
        uint32_t out[4]; /* group 2^62 and more wraps in the index, as unsigned numbers do */
        if (group < (uint64_t)1 << 62) {
            random_fill_u32(out, key, step, group * 4, 4);
            assert_memory_equal(out, r + 6, sizeof out);
        }
        const philox4x32_ctr_t counter = {{r[0], r[1], r[2], r[3]}};
        const philox4x32_key_t k = {{r[4], r[5]}};
        const philox4x32_ctr_t direct = philox4x32(counter, k);
        assert_memory_equal(direct.v, r + 6, sizeof out);
    }
}

static void single_values_follow_the_definition(void **state)
{
    (void)state;
    const uint64_t stream = random_stream("lm/embedding"), index = ((uint64_t)5 << 34) + 4 * 77 + 3;
    const philox4x32_key_t seed_key = {{(uint32_t)SEED, (uint32_t)(SEED >> 32)}};
    const philox4x32_ctr_t fold = {{(uint32_t)stream, (uint32_t)(stream >> 32), 0x6d746600, 0}};
    const philox4x32_ctr_t folded = philox4x32(fold, seed_key);
    const philox4x32_key_t key = {{folded.v[0], folded.v[1]}};
    const philox4x32_ctr_t counter = {{(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), 7, 5}};
    assert_int_equal(random_u32(SEED, stream, STEP, index), philox4x32(counter, key).v[3]);
}

/* Vector blocks and single groups agree, also where the low word of the counter wraps. */
static void fills_equal_single_values_on_every_level(void **state)
{
    (void)state;
    static uint32_t out[N];
    const uint64_t stream = random_stream("x"), wrap = ((uint64_t)1 << 34) - 1000;
    const random_key key = random_fold(SEED, stream);
    for (int level = 0; level <= (int)isa_best(); level++) {
        isa_set((isa_level)level);
        for (uint64_t first = wrap; first < wrap + 5; first++) {
            random_fill_u32(out, key, STEP, first, N);
            for (uint64_t i = 0; i < N; i++)
                assert_int_equal(out[i], random_u32(SEED, stream, STEP, first + i));
        }
    }
}

static void any_split_gives_equal_bits(void **state)
{
    (void)state;
    static float whole[4][N], part[4][N];
    static double whole64[4][N], part64[4][N];
    const random_key key = random_fold(1, 2);
    for (int cut = 0; cut <= N; cut += 1 + cut / 3) {
        for (int piece = 0; piece < 3; piece++) {
            const int begin = piece == 1 ? 0 : piece == 2 ? cut : 0;
            const int n = piece == 0 ? N : piece == 1 ? cut : N - cut;
            float(*f)[N] = piece ? part : whole;
            double(*d)[N] = piece ? part64 : whole64;
            const uint64_t first = 3 + (uint64_t)begin;
            random_fill_uniform_f32(f[0] + begin, key, 9, first, n);
            random_fill_normal_f32(f[1] + begin, key, 9, first, n);
            random_fill_truncated_f32(f[2] + begin, key, 9, first, n);
            random_fill_keep_f32(f[3] + begin, key, 9, first, n, 0.9, 2.0F);
            random_fill_uniform_f64(d[0] + begin, key, 9, first, n);
            random_fill_normal_f64(d[1] + begin, key, 9, first, n);
            random_fill_truncated_f64(d[2] + begin, key, 9, first, n);
            random_fill_keep_f64(d[3] + begin, key, 9, first, n, 0.9, 2.0);
        }
        assert_memory_equal(whole, part, sizeof whole);
        assert_memory_equal(whole64, part64, sizeof whole64);
        for (int i = 0; i < N; i++)
            for (int k = 0; k < 4; k++)
                assert_true(whole[k][i] == (float)whole64[k][i]);
    }
}

/* Mean and variance against those of the distribution, within five deviations of the estimate. */
static void assert_moments(const double *x, double mean, double variance, double fourth)
{
    double sum = 0, square = 0;
    for (int i = 0; i < MANY; i++)
        sum += x[i];
    const double m = sum / MANY;
    for (int i = 0; i < MANY; i++)
        square += (x[i] - mean) * (x[i] - mean);
    const double v = square / MANY;
    assert_true(fabs(m - mean) <= 5 * sqrt(variance / MANY));
    assert_true(fabs(v - variance) <= 5 * sqrt((fourth - variance * variance) / MANY));
}

static void moments_are_those_of_the_distribution(void **state)
{
    (void)state;
    static double x[MANY];
    const random_key key = random_fold(SEED, random_stream("moments"));
    random_fill_uniform_f64(x, key, 0, 0, MANY);
    assert_moments(x, 0.5, 1.0 / 12, 1.0 / 80);
    for (int i = 0; i < MANY; i++)
        assert_true(x[i] >= 0 && x[i] < 1);
    random_fill_normal_f64(x, key, 1, 0, MANY);
    assert_moments(x, 0, 1, 3);
    random_fill_truncated_f64(x, key, 2, 0, MANY);
    assert_moments(x, 0, 0.7737413, 1.416189);
    for (int i = 0; i < MANY; i++)
        assert_true(fabs(x[i]) <= 2.0);
    random_fill_keep_f64(x, key, 3, 0, MANY, 0.9, 1.0);
    assert_moments(x, 0.9, 0.09, 0.0657);
    random_fill_keep_f64(x, key, 3, 0, MANY, 1.0, 1.0);
    assert_moments(x, 1.0, 0, 0x1p-40);
    random_fill_keep_f64(x, key, 3, 0, MANY, 0.0, 1.0);
    assert_moments(x, 0.0, 0, 0x1p-40);
}

/* The values are part of the format of a run: they may never change. */
static void streams_and_values_are_stable(void **state)
{
    (void)state;
    assert_int_equal(random_stream(""), 0xefd01f60ba992926U);
    assert_int_not_equal(random_stream("block_0/wq"), random_stream("block_1/wq"));
    assert_int_not_equal(random_u32(1, 2, 3, 4), random_u32(2, 2, 3, 4));
    assert_int_not_equal(random_u32(1, 2, 3, 4), random_u32(1, 3, 3, 4));
    assert_int_not_equal(random_u32(1, 2, 3, 4), random_u32(1, 2, 4, 4));
    assert_int_not_equal(random_u32(1, 2, 3, 4), random_u32(1, 2, 3, 5));
    float x;
    random_fill_normal_f32(&x, random_fold(1, random_stream("w")), 0, 5, 1);
    const double p = (random_u32(1, random_stream("w"), 0, 5) + 0.5) * 0x1p-32;
    assert_true(fabs(0.5 * erfc(-(double)x * M_SQRT1_2) - p) < 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(single_values_follow_the_definition),
        cmocka_unit_test(fills_equal_single_values_on_every_level),
        cmocka_unit_test(any_split_gives_equal_bits),
        cmocka_unit_test(moments_are_those_of_the_distribution),
        cmocka_unit_test(streams_and_values_are_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
