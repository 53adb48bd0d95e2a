/* SPDX-License-Identifier: Apache-2.0
 * One small Transformer under five layouts: data, model, mixed in two and three dimensions, and
 * sequence parallelism. Prints losses (equal), planned and measured memory, traffic and time.
 *
 *     build/examples/layouts [STEPS]
 *
 * Each layout runs in a process of its own, so that its memory can be measured. */
#define _POSIX_C_SOURCE 200809L
#include <mtf/mtf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct row {
    const char *name, *mesh, *layout;
} row;

static const row rows[] = {
    {"one processor", "", ""},
    {"data", "all:8", "batch:all"},
    {"model", "all:8", "vocab:all;d_ff:all;heads:all"},
    {"mixed 2-D", "rows:2;cols:4", "batch:rows;vocab:cols;d_ff:cols;heads:cols"},
    {"mixed 3-D", "rows:2;cols:2;planes:2",
     "batch:rows;vocab:cols;d_ff:cols;heads:cols;d_model:planes"},
    {"sequence", "rows:2;cols:4", "batch:rows;vocab:cols;d_ff:cols;heads:cols;stream_length:cols"},
};
enum { ROWS = sizeof rows / sizeof *rows, LENGTH = 64, BATCH = 16, VOCAB = 256, VARIABLES = 64 };

typedef struct result {
    double first, last;       /* losses, nats per token */
    double planned, measured; /* bytes of all processors together */
    double sent;              /* bytes per processor and step */
    double seconds;           /* per step */
} result;

/* A training step over one set of variables: plain gradient descent on the mean loss. */
typedef struct model {
    mtf_graph *g;
    mtf_transformer_tensors t;
    int n;
    mtf_tensor *update[VARIABLES];
} model;

static model build(void)
{
    model m = {.g = mtf_graph_new()};
    const mtf_transformer_options o = {.vocab = VOCAB,
                                       .layers = 2,
                                       .d_model = 128,
                                       .heads = 8,
                                       .d_kv = 16,
                                       .d_ff = 512,
                                       .length = LENGTH,
                                       .activation = MTF_GELU,
                                       .dtype = MTF_F32};
    const mtf_transformer *w = mtf_transformer_variables(m.g, &o);
    if (!w) return m;
    m.t = mtf_transformer_apply(w, BATCH, LENGTH, true);
    mtf_tensor *d[VARIABLES];
    mtf_gradients(m.t.loss_sum, w->nvariables, w->variable, d);
    for (int i = 0; i < w->nvariables; i++) {
        mtf_tensor *step = mtf_scale(d[i], 0.3 / (BATCH * LENGTH));
        m.update[m.n++] = mtf_assign(w->variable[i], mtf_sub(w->variable[i], step));
    }
    return m;
}

/* Tokens with something to learn: each follows from the one before it. */
static void fill(int32_t *inputs, int32_t *targets)
{
    for (int b = 0; b < BATCH; b++) {
        int32_t token = b * 7 % VOCAB;
        for (int i = 0; i < LENGTH; i++) {
            inputs[b * LENGTH + i] = token;
            token = (token * 5 + 3) % VOCAB;
            targets[b * LENGTH + i] = token;
        }
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double resident(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return 1024.0 * (double)u.ru_maxrss;
}

static mtf_status train(model *m, mtf_session *s, mtf_program *const *p, int steps, result *r,
                        mtf_err *err)
{
    int32_t inputs[BATCH * LENGTH], targets[BATCH * LENGTH];
    fill(inputs, targets);
    const mtf_feed feeds[] = {{.placeholder = m->t.inputs, .data = inputs},
                              {.placeholder = m->t.targets, .data = targets}};
    mtf_status st = mtf_run(s, p[0], 0, NULL, NULL, NULL, err);
    const double begin = now();
    for (int i = 0; i < steps && st == MTF_OK; i++) {
        float loss = 0;
        st = mtf_run(s, p[1], 2, feeds, (void *[]){&loss}, NULL, err);
        r->last = (double)loss / (BATCH * LENGTH);
        if (i == 0) r->first = r->last;
    }
    r->seconds = (now() - begin) / steps;
    return st;
}

static mtf_status measure(const row *w, int steps, result *r, mtf_err *err)
{
    model m = build();
    mtf_mesh *mesh = mtf_mesh_parse(w->mesh, err);
    mtf_layout *layout = mesh ? mtf_layout_parse(w->layout, mesh, true, NULL, err) : NULL;
    if (!layout) return MTF_INVALID;
    const mtf_request request = {.name = "step",
                                 .nfetches = 1,
                                 .fetches = &m.t.loss_sum,
                                 .nupdates = m.n,
                                 .updates = m.update};
    mtf_program *p[2] = {mtf_compile_initial(m.g, mesh, layout, err), NULL};
    p[1] = p[0] ? mtf_compile(m.g, mesh, layout, &request, err) : NULL;
    const double before = resident();
    mtf_session *s = p[1] ? mtf_session_new(2, p, NULL, err) : NULL;
    if (!s) return MTF_INVALID;
    const mtf_status st = train(&m, s, p, steps, r, err);
    const mtf_memory memory = mtf_session_memory(s);
    r->planned =
        (double)mtf_mesh_processors(mesh) * (double)(memory.state + memory.slab + memory.scratch) +
        (double)memory.workers;
    r->measured = resident() - before;
    r->sent = mtf_program_totals(p[1]).sent_bytes;
    mtf_session_free(&s);
    for (int i = 0; i < 2; i++)
        mtf_program_free(&p[i]);
    mtf_layout_free(&layout);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&m.g);
    return st;
}

/* In a child, which sends its result through a pipe. */
static int run_row(const row *w, int steps, result *r)
{
    int ends[2], code = 1;
    if (pipe(ends) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
        mtf_err err = {0};
        const mtf_status st = measure(w, steps, r, &err);
        if (st != MTF_OK) fprintf(stderr, "layouts: %s: %s\n", w->name, err.text);
        if (write(ends[1], r, sizeof *r) != (ssize_t)sizeof *r) _exit(1);
        _exit((int)st);
    }
    close(ends[1]);
    const bool got = read(ends[0], r, sizeof *r) == (ssize_t)sizeof *r;
    close(ends[0]);
    if (child > 0 && waitpid(child, &code, 0) == child && WIFEXITED(code)) code = WEXITSTATUS(code);
    return got ? code : 1;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 20;
    if (argc > 2 || steps < 1 || steps > 100000 || (end && *end)) {
        fprintf(stderr,
                "layouts: expected at most one argument, a number of steps from 1 to 100000\n");
        return 2;
    }
    printf("%-14s %-24s %10s %10s %12s %12s %12s %8s\n", "layout", "mesh", "first loss",
           "last loss", "planned MB", "measured MB", "sent MB/step", "s/step");
    for (int i = 0; i < ROWS; i++) {
        result r = {0};
        fflush(stdout);
        const int code = run_row(&rows[i], (int)steps, &r);
        if (code) return code;
        printf("%-14s %-24s %10.6f %10.6f %12.2f %12.2f %12.3f %8.4f\n", rows[i].name, rows[i].mesh,
               r.first, r.last, r.planned / 1e6, r.measured / 1e6, r.sent / 1e6, r.seconds);
    }
    return 0;
}
