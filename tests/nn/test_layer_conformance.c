/* SPDX-License-Identifier: Apache-2.0
 * Layers as samples, like those of rows: the value and the gradients of each under every legal
 * layout of six small meshes, and the gradients against finite differences. What the layouts move
 * is in golden/layer_volume.txt. An argument runs the layers of that name alone. */
#include "check.h"

#include <string.h>

#include "support/conform.h"
#include "support/layer_samples.h"

static const char *only;

static void layers_conform(void **state)
{
    (void)state;
    conform_layers(only, "layer_volume.txt");
}

static void layers_conform_in_bf16(void **state)
{
    (void)state;
    for (int i = 0; layer_sample(i); i++)
        for (int k = 0; !only || strcmp(only, layer_sample(i)->name) == 0; k++)
            if (!conform_sample_bf16(layer_sample(i), k)) break;
}

int main(int argc, char **argv)
{
    if (argc > 1) only = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_conform),
                                       cmocka_unit_test(layers_conform_in_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
