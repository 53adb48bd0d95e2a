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
#include "train/lm.h"
#include "train/step.h"

enum { GUARD = 4096, ALIGN = 64 };

typedef struct block {
    char *whole; /* guard, bytes, guard */
    int64_t bytes;
} block;

static block block_new(int64_t bytes, int paint)
{
    block b = {.whole = mem_aligned((size_t)(bytes + 2 * GUARD)), .bytes = bytes};
    memset(b.whole, paint, (size_t)(bytes + 2 * GUARD));
    return b;
}

static char *inside(const block *b)
{
    return b->whole + GUARD;
}

static void check_guards(const block *b, int paint, const char *what)
{
    for (int64_t i = 0; i < GUARD; i++) {
        if (b->whole[i] != (char)paint)
            fail_msg("%s: written %d bytes before", what, (int)(GUARD - i));
        if (inside(b)[b->bytes + i] != (char)paint)
            fail_msg("%s: written %d bytes behind", what, (int)i);
    }
}

/* One more than the last byte from `from` on that is not as painted, rounded up; 0: none. */
static int64_t high_water(const block *b, int64_t from, int paint)
{
    int64_t end = b->bytes;
    while (end > from && inside(b)[end - 1] == (char)paint)
        end--;
    return (end - from + ALIGN - 1) / ALIGN * ALIGN;
}

/* All memory of a session, replaced. */
typedef struct painted {
    int n, workers;
    block memory[8], scratch[8], work[8];
} painted;

static void swap(block *b, char **place, int64_t bytes, int paint)
{
    *b = block_new(bytes, paint);
    mem_free(*place);
    *place = inside(b);
}

static painted paint_all(mtf_session *s, int paint)
{
    painted p = {.n = s->nhosted, .workers = pool_threads(s->pool)};
    assert_true(p.n <= 8 && p.workers <= 8);
    for (int h = 0; h < p.n; h++) {
        char *scratch = s->scratch[h];
        swap(&p.memory[h], &s->memory[h], s->state_bytes + s->slab_bytes, paint);
        swap(&p.scratch[h], &scratch, s->scratch_bytes, paint);
        s->scratch[h] = scratch;
    }
    for (int w = 0; w < p.workers; w++)
        swap(&p.work[w], &s->work[w], s->work_bytes, paint);
    return p;
}

/* The session frees what is in its places. */
static void give_back(mtf_session *s, painted *p)
{
    for (int h = 0; h < p->n; h++) {
        mem_free(p->memory[h].whole);
        mem_free(p->scratch[h].whole);
        s->memory[h] = NULL;
        s->scratch[h] = NULL;
    }
    for (int w = 0; w < p->workers; w++) {
        mem_free(p->work[w].whole);
        s->work[w] = NULL;
    }
}

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

static void check_step(const setup *u, int paint)
{
    config c;
    mtf_err err = {0};
    lm *m = open_model(u, &c);
    mtf_session *s = m->session;
    painted p = paint_all(s, paint);
    expect(lm_initialise(m, &err), &err);
    for (int h = 0; h < p.n; h++) /* what the initial program left in the slab */
        memset(inside(&p.memory[h]) + s->state_bytes, paint, (size_t)s->slab_bytes);
    token_feed f = token_feed_new(NULL, c.model.length, m->vocab);
    step_result r;
    expect(step_train(m, &f, 0, &r, &err), &err);
    int64_t most = 0;
    for (int h = 0; h < p.n; h++) {
        const int64_t used = high_water(&p.memory[h], s->state_bytes, paint);
        if (used > most) most = used;
        check_guards(&p.memory[h], paint, "the slab");
        check_guards(&p.scratch[h], paint, "the collectives' scratch");
    }
    for (int w = 0; w < p.workers; w++)
        check_guards(&p.work[w], paint, "a worker's workspace");
    assert_int_equal(most, planned_slab(m));
    assert_true(most > 0);
    token_feed_free(&f);
    give_back(s, &p);
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
    {.mesh = "", .layout = "", .threads = 1, .options = {"model.tied=true", "train.dtype=f64"}},
    {.mesh = "rows:2;cols:2", .layout = PAPER, .threads = 2},
    {.mesh = "rows:2;cols:3", .layout = PAPER, .threads = 2},
    {.mesh = "all:4", .layout = "d_model:all", .threads = 1},
    {.mesh = "all:3", .layout = "batch:all", .threads = 2, .options = {"train.microbatches=3"}},
    {.mesh = "rows:2;cols:2",
     .layout = PAPER,
     .threads = 2,
     .options = {"train.microbatches=2", "train.optimizer=sgd", "train.clip_norm=0"}},
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
