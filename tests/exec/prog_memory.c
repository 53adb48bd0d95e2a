/* SPDX-License-Identifier: Apache-2.0
 * Planned and used memory where each processor is a process: prog_memory plan prints the plans, in
 * one process, that are made without a session; under mpirun, prog_memory run prints for every case
 * that has as many processors what the session planned and the most that any rank used of it, as
 * painted memory shows. A line is: case, even or uneven; planned state, slab, scratch, workspace;
 * used slab, scratch, workspace; bytes written outside. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "comm/internal.h"
#include "support/painted.h"
#include "train/lm.h"
#include "train/step.h"

enum { PAINT = 0xA5, MOST_RANKS = 8 };

typedef struct setup {
    const char *mesh, *layout, *option;
    bool uneven; /* some dim is cut unevenly */
    bool moves;  /* reshapes between layouts instead of a Transformer */
} setup;

#define PAPER "batch:rows;vocab:cols;d_ff:cols;heads:cols"

static const setup setups[] = {
    {.mesh = "all:2", .layout = "batch:all"},
    {.mesh = "all:2", .layout = "vocab:all;d_ff:all;heads:all"},
    {.mesh = "all:2", .layout = "d_model:all", .option = "train.dtype=f64"},
    {.mesh = "all:2", .layout = "a:all;k:all;e:all", .moves = true},
    {.mesh = "rows:2;cols:2", .layout = PAPER},
    {.mesh = "rows:2;cols:2", .layout = PAPER, .option = "train.microbatches=2"},
    {.mesh = "rows:2;cols:2", .layout = PAPER ";stream_length:cols"},
    {.mesh = "rows:2;cols:2", .layout = "a:rows+cols;c:cols+rows;k:rows;e:cols", .moves = true},
    {.mesh = "rows:2;cols:2", .layout = PAPER, .option = "train.dtype=bf16"},
    {.mesh = "all:3", .layout = "batch:all", .uneven = true},
    {.mesh = "all:3",
     .layout = "vocab:all;d_ff:all;heads:all",
     .option = "train.dtype=bf16",
     .uneven = true},
    {.mesh = "all:3", .layout = "vocab:all;d_ff:all;heads:all", .uneven = true},
    {.mesh = "all:3", .layout = "a:all;k:all;e:all", .uneven = true, .moves = true},
};
enum { SETUPS = sizeof setups / sizeof *setups };

/* What a case runs: a model, or a graph of reshapes with its programs. */
typedef struct job {
    config c;
    lm *m;
    mtf_graph *g;
    mtf_mesh *mesh;
    mtf_layout *layout;
    mtf_program *program;
    mtf_tensor *x;
    mtf_session *session;
} job;

static void expect(mtf_status st, const mtf_err *err)
{
    MTF_CHECK(st == MTF_OK, "%s", err->text);
}

/* ---- a Transformer ---- */

static void open_model(job *j, const setup *u)
{
    static const char *const small[] = {"model.layers=2", "model.d_model=48", "model.heads=4",
                                        "model.d_kv=16",  "model.d_ff=192",   "model.length=32",
                                        "train.batch=8",  "model.dropout=0.1"};
    mtf_err err = {0};
    config_defaults(&j->c);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        expect(config_set(&j->c, small[i], &err), &err);
    if (u->option) expect(config_set(&j->c, u->option, &err), &err);
    const lm_request r = {.parts = LM_TRAIN,
                          .vocab = 512,
                          .strict = true,
                          .mesh = u->mesh,
                          .layout = u->layout,
                          .dtype = -1};
    expect(lm_open(&j->c, &r, &j->m, NULL, &err), &err);
}

static void run_model(job *j, painted *p)
{
    mtf_err err = {0};
    step_result r;
    expect(lm_initialise(j->m, &err), &err);
    painted_slabs(j->session, p);
    token_feed f = token_feed_new(NULL, j->c.model.length, j->m->vocab);
    expect(step_train(j->m, &f, 0, &r, &err), &err);
    token_feed_free(&f);
}

/* ---- reshapes ---- */

enum { A = 48, B = 40, E = 32, F = 60 };

/* The same elements as [a b], [c d], [h k] and [e f], which are cut in ways of their own. */
static void open_moves(job *j, const setup *u)
{
    mtf_err err = {0};
    j->g = mtf_graph_new();
    j->x = mtf_placeholder(j->g, "x", MTF_SHAPE(((mtf_dim){"a", A}), ((mtf_dim){"b", B})), MTF_F32);
    const mtf_shape other[] = {MTF_SHAPE(((mtf_dim){"c", A}), ((mtf_dim){"d", B})),
                               MTF_SHAPE(((mtf_dim){"h", A}), ((mtf_dim){"k", B})),
                               MTF_SHAPE(((mtf_dim){"e", E}), ((mtf_dim){"f", F}))};
    mtf_tensor *sum = NULL;
    for (int i = 0; i < 3; i++) {
        mtf_tensor *y = mtf_reshape(mtf_exp(j->x), other[i]);
        mtf_tensor *part = mtf_reduce_sum(mtf_square(y), MTF_SCALAR);
        sum = sum ? mtf_add(sum, part) : part;
    }
    j->mesh = mtf_mesh_parse(u->mesh, &err);
    j->layout = j->mesh ? mtf_layout_parse(u->layout, j->mesh, false, NULL, &err) : NULL;
    const mtf_request r = {.nfetches = 1, .fetches = &sum};
    j->program = j->layout ? mtf_compile(j->g, j->mesh, j->layout, &r, &err) : NULL;
    MTF_CHECK(j->program, "%s", err.text);
}

static void run_moves(job *j, painted *p)
{
    static float data[A * B], sum;
    mtf_err err = {0};
    for (int i = 0; i < A * B; i++)
        data[i] = (float)(i % 7) / 8;
    const mtf_feed feed = {.placeholder = j->x, .data = data};
    painted_slabs(j->session, p);
    expect(mtf_run(j->session, j->program, 1, &feed, (void *[]){&sum}, NULL, &err), &err);
    MTF_CHECK(sum > 0, "a sum of squares is %g", (double)sum);
}

/* ---- both ---- */

static void job_open(job *j, const setup *u)
{
    *j = (job){0};
    if (u->moves)
        open_moves(j, u);
    else
        open_model(j, u);
}

static void job_close(job *j)
{
    if (j->m) {
        lm_close(&j->m);
        config_free(&j->c);
        return;
    }
    mtf_session_free(&j->session);
    mtf_program_free(&j->program);
    mtf_layout_free(&j->layout);
    mtf_mesh_free(&j->mesh);
    mtf_graph_free(&j->g);
}

static void print_plan(const setup *u)
{
    job j;
    job_open(&j, u);
    const mtf_memory m = j.m ? lm_memory(j.m, 1, true) : mtf_plan_memory(1, &j.program, 1, true);
    printf("%d %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", (int)(u - setups),
           u->uneven ? "uneven" : "even", m.state, m.slab, m.scratch, m.workers);
    job_close(&j);
}

/* Used slab, scratch, workspace, and bytes outside: the most of all ranks. */
typedef struct usage {
    int64_t bytes[4];
} usage;

static usage most_of_ranks(comm *c, usage mine)
{
    usage all[MOST_RANKS];
    MTF_CHECK(c->ranks <= MOST_RANKS, "%d ranks", c->ranks);
    c->transport->gather(c->link, &mine, sizeof mine, all);
    for (int r = 0; r < c->ranks; r++)
        for (int k = 0; k < 4; k++)
            if (all[r].bytes[k] > mine.bytes[k]) mine.bytes[k] = all[r].bytes[k];
    return mine;
}

static void run_case(const setup *u)
{
    job j;
    mtf_err err = {0};
    job_open(&j, u);
    if (j.m)
        expect(lm_start(j.m, 1, &err), &err);
    else
        j.session = mtf_session_new(1, &j.program, &(mtf_session_options){.threads = 1}, &err);
    mtf_session *s = j.session = j.m ? j.m->session : j.session;
    MTF_CHECK(s, "%s", err.text);
    painted p = painted_new(s, PAINT);
    if (j.m)
        run_model(&j, &p);
    else
        run_moves(&j, &p);
    const usage used = most_of_ranks(
        s->comm, (usage){{painted_most(p.memory, p.n, s->plan.state, PAINT),
                          painted_most(p.scratch, p.n, 0, PAINT),
                          painted_most(p.work, p.workers, 0, PAINT), painted_outside(&p)}});
    const mtf_memory m = mtf_session_memory(s);
    if (mtf_session_is_root(s))
        printf("%d %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
               " %" PRId64 " %" PRId64 "\n",
               (int)(u - setups), u->uneven ? "uneven" : "even", m.state, m.slab, m.scratch,
               m.workers, used.bytes[0], used.bytes[1], used.bytes[2], used.bytes[3]);
    painted_free(s, &p);
    job_close(&j);
}

static int64_t processors(const setup *u)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(u->mesh, &err);
    const int64_t n = mtf_mesh_processors(m);
    mtf_mesh_free(&m);
    return n;
}

int main(int argc, char **argv)
{
    mtf_err err = {0};
    int ranks = 1;
    const bool plan = argc == 2 && strcmp(argv[1], "plan") == 0;
    if (argc != 2 || (!plan && strcmp(argv[1], "run") != 0))
        return fprintf(stderr, "usage: %s plan|run\n", argv[0]), 2;
    if (mtf_launch(&ranks, NULL, &err) != MTF_OK) return fprintf(stderr, "%s\n", err.text), 2;
    for (const setup *u = setups; u < setups + SETUPS; u++) {
        if (plan)
            print_plan(u);
        else if (processors(u) == ranks)
            run_case(u);
    }
    mtf_finish();
    return 0;
}
