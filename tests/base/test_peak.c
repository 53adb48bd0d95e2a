/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/peak.h"

/* No machine that runs this has a core below 1 GFLOP/s or above 1000. */
static void peaks_are_plausible(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        const double peak = peak_flops_f32(threads);
        assert_true(peak > 1.0 * threads);
        assert_true(peak < 1000.0 * threads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(peaks_are_plausible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
