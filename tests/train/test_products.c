/* SPDX-License-Identifier: Apache-2.0
 * Every matrix product of the training steps of configurations S and L runs in a fast kernel: the
 * implementations are listed, and none is a reference one. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/lm.h"

static int list_products(const lm *m, const bound *b)
{
    int products = 0;
    for (int i = 0; i < b->nsteps; i++) {
        const exec_step *t = &b->step[i];
        if (t->instr->kind != INSTR_COMPUTE || strcmp(t->instr->op->name, "einsum") != 0) continue;
        kernel_args k;
        assert_non_null(t->fast);
        step_args(m->session, b, t, 0, &k);
        const char *name = t->fast->implementation(&k);
        printf("%-45s %s\n", t->instr->node->name, name);
        if (strncmp(name, "ref", 3) == 0)
            fail_msg("'%s' runs in the reference implementation %s", t->instr->node->name, name);
        products++;
    }
    return products;
}

static void check(const char *file, const char *mesh, const char *layout)
{
    char path[2048];
    mtf_err err = {0};
    config c;
    lm *m = NULL;
    snprintf(path, sizeof path, "%s/bench/%s", getenv("MTF_SOURCE_DIR"), file);
    config_defaults(&c);
    if (config_read(&c, path, &err) != MTF_OK) fail_msg("%s", err.text);
    const lm_request r = {.parts = LM_TRAIN,
                          .vocab = c.model.vocab,
                          .strict = true,
                          .mesh = mesh,
                          .layout = layout,
                          .dtype = -1};
    if (lm_open(&c, &r, &m, NULL, &err) != MTF_OK) fail_msg("%s", err.text);
    if (lm_start(m, 1, &err) != MTF_OK) fail_msg("%s", err.text);
    int products = 0;
    for (int i = 0; i < m->session->nbound; i++) {
        const bound *b = &m->session->bound[i];
        if (b->p == m->micro[0].program) products = list_products(m, b);
    }
    /* Six in the forward pass of a layer (q, k, v, scores, values, output), two of the
     * feed-forward, and the logits; twice as many backward. */
    assert_int_equal(products, 3 * (8 * (int)c.model.layers + 1));
    lm_close(&m);
    config_free(&c);
}

static void configuration_s(void **state)
{
    (void)state;
    check("s.yaml", "", "");
    check("s.yaml", "rows:2;cols:2", "batch:rows;vocab:cols;d_ff:cols;heads:cols");
}

static void configuration_l(void **state)
{
    (void)state;
    check("l.yaml", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(configuration_s),
                                       cmocka_unit_test(configuration_l)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
