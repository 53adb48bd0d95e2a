/* SPDX-License-Identifier: Apache-2.0
 * The memory plan of configurations S and L of bench/, under many layouts: within 3 % of the
 * largest live set, which is counted again here from where the values lie. Nothing runs. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "spmd/memory.h"
#include "train/lm.h"

static void expect(mtf_status st, const mtf_err *err)
{
    if (st != MTF_OK) fail_msg("%s", err->text);
}

typedef struct setup {
    const char *file, *mesh, *layout, *key; /* key: one more, or NULL */
    double most_mb;                         /* that the slab may take */
} setup;

static lm *open_plan(config *c, const setup *u)
{
    mtf_err err = {0};
    lm *m = NULL;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", getenv("MTF_SOURCE_DIR"), u->file);
    config_defaults(c);
    expect(config_read(c, path, &err), &err);
    if (u->key) expect(config_set(c, u->key, &err), &err);
    const lm_request r = {.parts = LM_TRAIN,
                          .vocab = c->model.vocab,
                          .strict = true,
                          .mesh = u->mesh,
                          .layout = u->layout,
                          .dtype = -1};
    expect(lm_open(c, &r, &m, NULL, &err), &err);
    return m;
}

/* ---- the bound, from places and uses ---- */

static int by_offset(const void *a, const void *b)
{
    const value *x = *(value *const *)a, *y = *(value *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Bytes of the slab that live values cover; sorts them. */
static int64_t covered(value **live, size_t n)
{
    int64_t bytes = 0, end = 0;
    qsort(live, n, sizeof *live, by_offset);
    for (size_t k = 0; k < n; k++) {
        const int64_t from = live[k]->offset > end ? live[k]->offset : end;
        const int64_t to = live[k]->offset + live[k]->bytes;
        if (to <= from) continue;
        bytes += to - from;
        end = to;
    }
    return bytes;
}

static void find_last_uses(const mtf_program *p, int *last)
{
    for (int64_t v = 0; v < p->nvalues; v++)
        last[v] = -1;
    for (const instr *i = p->first; i; i = i->next) {
        for (int k = 0; k < i->nout; k++)
            last[i->out[k]->id] = i->id;
        for (int k = 0; k < i->nin; k++)
            last[i->in[k]->id] = i->id;
    }
    for (int k = 0; k < p->nfetches; k++)
        last[p->fetch[k]->id] = p->ninstrs;
}

static int64_t largest_live_set(const mtf_program *p)
{
    int *last = mem_alloc(sizeof *last * (size_t)(p->nvalues + 1));
    value **live = mem_alloc(sizeof(value *) * (size_t)(p->nvalues + 1));
    size_t n = 0;
    int64_t most = 0;
    find_last_uses(p, last);
    for (int k = 0; k < p->nfeeds; k++)
        if (last[p->feed[k]->id] >= 0) live[n++] = p->feed[k];
    for (const instr *i = p->first; i; i = i->next) {
        for (int k = 0; k < i->nout; k++)
            if (!i->out[k]->in_state) live[n++] = i->out[k];
        const int64_t bytes = covered(live, n);
        if (bytes > most) most = bytes;
        size_t kept = 0;
        for (size_t k = 0; k < n; k++)
            if (last[live[k]->id] > i->id) live[kept++] = live[k];
        n = kept;
    }
    mem_free(last);
    mem_free(live);
    return most;
}

static void check_peak_list(const mtf_program *p)
{
    int64_t sum = 0;
    assert_true(p->npeak > 0);
    for (int k = 0; k < p->npeak; k++) {
        assert_non_null(p->peak[k].value);
        assert_true(k == 0 || p->peak[k].bytes <= p->peak[k - 1].bytes);
        sum += p->peak[k].bytes;
    }
    assert_true(p->npeak == PROGRAM_PEAK ? sum <= p->live_bytes : sum == p->live_bytes);
}

static int64_t check_program(const mtf_program *p, const char *what)
{
    const int64_t live = largest_live_set(p);
    if (p->live_bytes != live)
        fail_msg("%s: a bound of %lld bytes, counted %lld", what, (long long)p->live_bytes,
                 (long long)live);
    if ((double)p->slab_bytes > 1.03 * (double)live)
        fail_msg("%s: %lld bytes for a largest live set of %lld", what, (long long)p->slab_bytes,
                 (long long)live);
    check_peak_list(p);
    return p->slab_bytes;
}

#define S        "bench/s.yaml"
#define L        "bench/l.yaml"
#define PAPER    "batch:rows;vocab:cols;d_ff:cols;heads:cols"
#define MODEL    "vocab:all;d_ff:all;heads:all"
#define SEQUENCE PAPER ";stream_length:cols"
#define THREE    PAPER ";d_model:planes"
#define MICRO    "train.microbatches=4"
#define TIED     "model.tied=true"

static const setup setups[] = {
    {S, "", "", NULL, 292},
    {S, "all:8", "batch:all", NULL, 38},
    {S, "all:8", MODEL, NULL, 95},
    {S, "rows:2;cols:2", PAPER, NULL, 88},
    {S, "rows:2;cols:4", PAPER, NULL, 58},
    {S, "rows:2;cols:2;planes:2", THREE, NULL, 73},
    {S, "rows:2;cols:4", SEQUENCE, NULL, 44},
    {S, "rows:2;cols:2", SEQUENCE, TIED, 78},
    {S, "rows:2;cols:2", PAPER, MICRO, 22.1},
    {S, "rows:2;cols:2", PAPER, "train.optimizer=sgd", 88},
    {L, "", "", NULL, 702},
    {L, "all:8", "batch:all", NULL, 127},
    {L, "all:8", MODEL, NULL, 233},
    {L, "rows:2;cols:2", PAPER, NULL, 217},
    {L, "rows:2;cols:2;planes:2", THREE, NULL, 176},
    {L, "rows:2;cols:4", SEQUENCE, NULL, 109},
    {L, "rows:2;cols:2", SEQUENCE, TIED, 190},
    {L, "rows:2;cols:2", PAPER, MICRO, 56},
};

static void the_plan_is_near_its_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        const setup *u = &setups[i];
        config c;
        lm *m = open_plan(&c, u);
        const mtf_program *all[] = {m->micro[0].program, m->apply};
        int64_t slab = 0;
        for (int k = 0; k < 2; k++) {
            if (!all[k]) continue;
            const int64_t bytes = check_program(all[k], u->layout);
            if (bytes > slab) slab = bytes;
        }
        print_message("%s mesh '%s' layout '%s': %.2f MB\n", u->file, u->mesh, u->layout,
                      (double)slab / 1e6);
        assert_true((double)slab <= u->most_mb * 1e6);
        lm_close(&m);
        config_free(&c);
    }
}

/* ---- growth ---- */

typedef struct effort {
    int64_t blocks, steps;
} effort;

static effort pack_layers(const char *layers)
{
    const setup u = {S, "rows:2;cols:2", PAPER, layers, 0};
    config c;
    lm *m = open_plan(&c, &u);
    memory groups = memory_form(m->micro[0].program);
    pack_block *b;
    effort e = {0};
    e.blocks = memory_blocks(&groups, &b, NULL);
    pack_blocks(b, e.blocks, &e.steps);
    memory_free(&groups);
    mem_free(b);
    lm_close(&m);
    config_free(&c);
    return e;
}

/* Four times the layers, and so about four times the values and the values that live at once, may
 * take little more than four times the steps; work on every pair would take sixteen times. */
static void packing_is_not_quadratic(void **state)
{
    (void)state;
    const effort one = pack_layers("model.layers=8"), four = pack_layers("model.layers=32");
    print_message("%lld blocks: %lld steps; %lld blocks: %lld steps\n", (long long)one.blocks,
                  (long long)one.steps, (long long)four.blocks, (long long)four.steps);
    assert_true(four.blocks > 3 * one.blocks);
    assert_true(four.steps < 6 * one.steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_near_its_bound),
        cmocka_unit_test(packing_is_not_quadratic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
