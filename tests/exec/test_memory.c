/* SPDX-License-Identifier: Apache-2.0
 * Planned memory is used memory, and a step allocates nothing.
 *
 * The memory of every processor is replaced by a painted block with guards on both sides of it;
 * then a training step runs. What "equal" means: every value takes a multiple of 64 bytes, so the
 * last byte that is written, rounded up to 64, must be the planned size, on the processor with the
 * largest blocks (where a dim is cut unevenly, the others stay below). A byte that is written with
 * what was painted does not show, so each case runs with two paints that differ in every bit. */
#include "check.h"

#include <string.h>

#include "base/mem.h"
#include "support/painted.h"
#include "train/lm.h"
#include "train/step.h"

static int64_t planned_slab(const lm *m)
{
    const mtf_program *all[] = {m->micro[0].program, m->micro[1].program, m->apply};
    int64_t most = 0;
    for (int i = 0; i < 3; i++)
        if (all[i] && all[i]->slab_bytes > most) most = all[i]->slab_bytes;
    return most;
}

static void set(config *c, const char *assignment)
{
    mtf_err err = {0};
    if (config_set(c, assignment, &err) != MTF_OK) fail_msg("%s", err.text);
}

static void expect(mtf_status st, const mtf_err *err)
{
    if (st != MTF_OK) fail_msg("%s", err->text);
}

typedef struct setup {
    const char *mesh, *layout, *options[6];
    int threads;
    bool
        own; /* products run in kernels of our own, which use all the workspace that they ask for */
} setup;

static lm *open_model(const setup *u, config *c)
{
    mtf_err err = {0};
    lm *m = NULL;
    config_defaults(c);
    static const char *const small[] = {"model.layers=2", "model.d_model=48", "model.heads=3",
                                        "model.d_kv=16",  "model.d_ff=80",    "model.length=20",
                                        "train.batch=7",  "model.dropout=0.1"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        set(c, small[i]);
    for (int i = 0; u->options[i]; i++)
        set(c, u->options[i]);
    const lm_request r = {.parts = LM_TRAIN,
                          .vocab = 101,
                          .strict = true,
                          .mesh = u->mesh,
                          .layout = u->layout,
                          .dtype = -1};
    expect(lm_open(c, &r, &m, NULL, &err), &err);
    expect(lm_start(m, u->threads, &err), &err);
    return m;
}

/* The session has what was planned before it was there, and no more is used. */
static void check_plan(const lm *m, int threads)
{
    const mtf_memory plan = lm_memory(m, threads, false), got = mtf_session_memory(m->session);
    assert_int_equal(plan.state, got.state);
    assert_int_equal(plan.slab, got.slab);
    assert_int_equal(plan.scratch, got.scratch);
    assert_int_equal(plan.workers, got.workers);
    assert_int_equal(plan.scratch, 0);
}

static void check_step(const setup *u, int paint)
{
    config c;
    mtf_err err = {0};
    lm *m = open_model(u, &c);
    mtf_session *s = m->session;
    check_plan(m, u->threads);
    painted p = painted_new(s, paint);
    expect(lm_initialise(m, &err), &err);
    painted_slabs(s, &p);
    token_feed f = token_feed_new(NULL, c.model.length, m->vocab);
    step_result r;
    expect(step_train(m, &f, 0, &r, &err), &err);
    assert_int_equal(painted_outside(&p), 0);
    assert_int_equal(painted_most(p.memory, p.n, s->plan.state, paint), planned_slab(m));
    assert_true(planned_slab(m) > 0);
    const int64_t work = painted_most(p.work, p.workers, 0, paint);
    assert_true(work > 0 || !u->own);
    assert_true(u->own ? work == s->plan.work : work <= s->plan.work);
    token_feed_free(&f);
    painted_free(s, &p);
    lm_close(&m);
    config_free(&c);
}

static void check_allocations(const setup *u)
{
    config c;
    mtf_err err = {0};
    lm *m = open_model(u, &c);
    expect(lm_initialise(m, &err), &err);
    token_feed f = token_feed_new(NULL, c.model.length, m->vocab);
    int64_t before = 0;
    for (int64_t step = 0; step < 7; step++) {
        step_result r;
        if (step == 2) before = mem_count();
        expect(step_train(m, &f, step, &r, &err), &err);
    }
    assert_int_equal(mem_count(), before);
    token_feed_free(&f);
    lm_close(&m);
    config_free(&c);
}

#define PAPER "batch:rows;vocab:cols;d_ff:cols;heads:cols"

static const setup setups[] = {
    {.mesh = "", .layout = "", .threads = 2},
    {.mesh = "",
     .layout = "",
     .threads = 1,
     .options = {"model.tied=true", "train.dtype=f64", "model.d_model=64", "model.d_ff=256"},
     .own = true},
    {.mesh = "rows:2;cols:2", .layout = PAPER, .threads = 2},
    {.mesh = "rows:2;cols:3", .layout = PAPER, .threads = 2},
    {.mesh = "all:4", .layout = "d_model:all", .threads = 1},
    {.mesh = "all:3", .layout = "batch:all", .threads = 2, .options = {"train.microbatches=3"}},
    {.mesh = "rows:2;cols:2",
     .layout = PAPER,
     .threads = 2,
     .options = {"train.microbatches=2", "train.optimizer=sgd", "train.clip_norm=0"}},
    {.mesh = "rows:2;cols:2", .layout = PAPER, .threads = 2, .options = {"train.dtype=bf16"}},
    {.mesh = "rows:3;cols:2",
     .layout = "batch:rows;d_model:cols",
     .threads = 1,
     .options = {"train.dtype=bf16", "train.stored_dtype=bf16", "train.master_dtype=bf16",
                 "train.microbatches=2", "model.recompute=1"}},
};

static void planned_memory_is_used_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        print_message("mesh '%s', layout '%s'\n", setups[i].mesh, setups[i].layout);
        check_step(&setups[i], 0xA5);
        check_step(&setups[i], 0x5A);
    }
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        check_allocations(&setups[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_memory_is_used_memory),
        cmocka_unit_test(a_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
