/* SPDX-License-Identifier: Apache-2.0
 * Every row, every sample: gradients, and every legal layout on small meshes. An argument runs the
 * rows of that name alone. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/conform.h"
#include "support/golden.h"

static const char *only;

static void rows_conform(void **state)
{
    (void)state;
    coverage *c = coverage_new();
    int found = 0;
    for (int r = 0; r < op_count; r++) {
        if (only && strcmp(only, op_rows[r]->name) != 0) continue;
        int k = 0;
        found++;
        while (conform_sample(op_rows[r], k, c))
            k++;
        const bool needs_sample = !(op_rows[r]->traits & (TRAIT_FEED | TRAIT_STATE | TRAIT_ASSIGN));
        if (needs_sample && k == 0) fail_msg("row %s has no sample", op_rows[r]->name);
    }
    if (!found) fail_msg("no row is called '%s'", only);
    char gap[200];
    if (!only) {
        if (coverage_has_gap(c, gap, sizeof gap)) fail_msg("%s", gap);
        char *text = coverage_text(c);
        golden_check("coverage.txt", text);
        golden_check("volume.txt", coverage_volume(c));
        free(text);
    }
    coverage_free(&c);
}

static void rows_conform_in_bf16(void **state)
{
    (void)state;
    for (int r = 0; r < op_count; r++)
        for (int k = 0; !only || strcmp(only, op_rows[r]->name) == 0; k++)
            if (!conform_sample_bf16(op_rows[r], k)) break;
}

int main(int argc, char **argv)
{
    if (argc > 1) only = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_conform),
                                       cmocka_unit_test(rows_conform_in_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
