/* SPDX-License-Identifier: Apache-2.0
 * bf16: every value there and back, and rounding to the nearest, ties to even, from f32 and f64. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/bfloat.h"
#include "mtf/types.h"

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static bf16 value(int bits)
{
    return (bf16){(uint16_t)bits};
}

static bool is_nan(int bits)
{
    return (bits & 0x7fff) > 0x7f80;
}

static void every_value_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < 65536; i++) {
        const float f = bf16_to_f32(value(i));
        const int want = is_nan(i) ? i | 0x40 : i; /* a NaN comes back quiet */
        assert_true(isnan(f) == is_nan(i));
        assert_int_equal(bf16_from_f32(f).bits, want);
        assert_int_equal(bf16_from_f64((double)f).bits, want);
    }
}

/* Between every two neighbours of one sign: what lies halfway goes to the even one, and a bit more
 * or less to the nearer one, also where the next f32 could not tell it from halfway. */
static void halves_go_to_the_even_neighbour(void **state)
{
    (void)state;
    for (int i = 0; i < 65536; i++) {
        if (is_nan(i) || is_nan(i + 1) || (i & 0x7fff) == 0x7f80) continue;
        const uint32_t half = (uint32_t)i << 16 | 0x8000;
        const int even = i & 1 ? i + 1 : i; /* beyond the largest lies infinity */
        const double middle = (double)of_bits(half);
        assert_int_equal(bf16_from_f32(of_bits(half)).bits, even);
        assert_int_equal(bf16_from_f32(of_bits(half - 1)).bits, i);
        assert_int_equal(bf16_from_f32(of_bits(half + 1)).bits, i + 1);
        assert_int_equal(bf16_from_f64(middle).bits, even);
        assert_int_equal(bf16_from_f64(middle * (1 - 0x1p-50)).bits, i);
        assert_int_equal(bf16_from_f64(middle * (1 + 0x1p-50)).bits, i + 1);
    }
}

static void far_numbers(void **state)
{
    (void)state;
    assert_int_equal(bf16_from_f64(1e300).bits, 0x7f80);
    assert_int_equal(bf16_from_f64(-1e300).bits, 0xff80);
    assert_int_equal(bf16_from_f64(1e-300).bits, 0);
    assert_int_equal(bf16_from_f64(-1e-300).bits, 0x8000);
    assert_int_equal(bf16_from_f64(3.39617752923046e38).bits, 0x7f80); /* max + half a step */
    assert_int_equal(bf16_from_f64(3.39617752923045e38).bits, 0x7f7f);
    assert_int_equal(bf16_from_f32(of_bits(0x7f800001)).bits, 0x7fc0); /* a signalling NaN */
    assert_int_equal(bf16_from_f32(of_bits(0x7fffffff)).bits, 0x7fff);
    assert_int_equal(bf16_from_f64(257).bits, 0x4380); /* 256 */
    assert_int_equal(bf16_from_f64(259).bits, 0x4382); /* 260 */
}

static void the_type_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(mtf_dtype_name(MTF_BF16), "bf16");
    assert_int_equal(mtf_dtype_size(MTF_BF16), 2);
    assert_string_equal(mtf_dtype_name(MTF_NUM_DTYPES), "unknown");
    assert_int_equal(mtf_dtype_size(MTF_NUM_DTYPES), 0);
    assert_int_equal(mtf_dtype_of_sums(MTF_NUM_DTYPES), MTF_NUM_DTYPES);
    const mtf_dtype floats[] = {MTF_F32, MTF_F64, MTF_BF16};
    const mtf_dtype others[] = {MTF_I32, MTF_BOOL, MTF_NUM_DTYPES};
    for (int i = 0; i < 3; i++) {
        assert_true(mtf_dtype_is_float(floats[i]));
        assert_false(mtf_dtype_is_float(others[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_comes_back),
        cmocka_unit_test(halves_go_to_the_even_neighbour),
        cmocka_unit_test(far_numbers),
        cmocka_unit_test(the_type_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
