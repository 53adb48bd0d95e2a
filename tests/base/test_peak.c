/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/peak.h"

/* No machine that runs this has a core below 0.5 GFLOP/s or above 1000. */
static void peaks_are_plausible(void **state)
{
    (void)state;
    static const mtf_dtype types[] = {MTF_F32, MTF_F64, MTF_BF16};
    for (int k = 0; k < 3; k++)
        for (int threads = 1; threads <= 3; threads++) {
            const double peak = peak_flops(types[k], threads);
            assert_true(peak > (types[k] == MTF_F64 ? 0.5 : 1.0) * threads);
            assert_true(peak < 1000.0 * threads);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(peaks_are_plausible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
