/* SPDX-License-Identifier: Apache-2.0
 * A stack of layers whose layout alternates: layers with even numbers go from the dim `even` to the
 * dim `odd`, the others back. Weights that are cut over rows in one layer are cut over columns in
 * the next, and what comes out of one layer is cut as the next one needs it. The stack learns to
 * give back its input. Prints the losses under several layouts, which are equal, and what they
 * move.
 *
 *     build/examples/alternate [STEPS [LAYERS]] */
#include <mtf/mtf.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, WIDTH = 128, MOST_LAYERS = 64 };

typedef struct row {
    const char *mesh, *layout, *why;
} row;

static const row rows[] = {
    {"", "", "one processor"},
    {"all:8", "batch:all", "data parallel: sums of all gradients"},
    {"all:8", "odd:all", "every second layer ends in a sum, no other moves anything"},
    {"all:8", "even:all", "the same, one layer later"},
    {"rows:2;cols:4", "even:rows;odd:cols", "weights in pieces both ways"},
    {"rows:2;cols:4", "batch:rows;odd:cols", "data and model parallel"},
    {"x:2;y:2;z:2", "batch:x;even:y;odd:z", "all three"},
};

typedef struct stack {
    mtf_graph *g;
    int layers;
    mtf_tensor *input, *loss, *weight[MOST_LAYERS], *update[MOST_LAYERS];
} stack;

static stack build(int layers)
{
    stack s = {.g = mtf_graph_new(), .layers = layers};
    const mtf_dim batch = {"batch", BATCH}, dim[] = {{"even", WIDTH}, {"odd", WIDTH}};
    s.input = mtf_placeholder(s.g, "input", MTF_SHAPE(batch, dim[0]), MTF_F32);
    mtf_tensor *x = s.input, *slope[MOST_LAYERS];
    for (int i = 0; i < layers; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer_%d", i);
        const mtf_shape from = {1, {dim[i % 2]}}, to = {1, {dim[(i + 1) % 2]}};
        s.weight[i] = mtf_dense_weight(s.g, name, from, to, 1.0, MTF_F32);
        x = mtf_dense(x, s.weight[i]);
    }
    mtf_tensor *error = mtf_sub(x, s.input); /* the number of layers is even */
    s.loss = mtf_scale(mtf_reduce_sum(mtf_square(error), MTF_SCALAR), 1.0 / BATCH);
    mtf_gradients(s.loss, layers, s.weight, slope);
    for (int i = 0; i < layers; i++)
        s.update[i] = mtf_assign(s.weight[i], mtf_sub(s.weight[i], mtf_scale(slope[i], 2e-3)));
    return s;
}

static mtf_status train(const stack *k, mtf_session *s, mtf_program *const *p, long steps,
                        float *first, float *last, mtf_err *err)
{
    static float input[BATCH * WIDTH];
    for (int i = 0; i < BATCH * WIDTH; i++)
        input[i] = (float)(i * 7919 % 2003) / 1001 - 1;
    const mtf_feed feed = {.placeholder = k->input, .data = input};
    mtf_status st = mtf_run(s, p[0], 0, NULL, NULL, NULL, err);
    for (long i = 0; i < steps && st == MTF_OK; i++)
        st = mtf_run(s, p[1], 1, &feed, (void *[]){i ? last : first}, NULL, err);
    return st;
}

static mtf_status run(const row *r, long steps, int layers, mtf_err *err)
{
    stack k = build(layers);
    float first = 0, last = 0;
    mtf_mesh *mesh = mtf_mesh_parse(r->mesh, err);
    mtf_layout *layout = mesh ? mtf_layout_parse(r->layout, mesh, true, NULL, err) : NULL;
    const mtf_request request = {
        .name = "step", .nfetches = 1, .fetches = &k.loss, .nupdates = layers, .updates = k.update};
    mtf_program *p[2] = {layout ? mtf_compile_initial(k.g, mesh, layout, err) : NULL, NULL};
    p[1] = p[0] ? mtf_compile(k.g, mesh, layout, &request, err) : NULL;
    mtf_session *s = p[1] ? mtf_session_new(2, p, NULL, err) : NULL;
    const mtf_status st = s ? train(&k, s, p, steps, &first, &last, err) : MTF_INVALID;
    if (st == MTF_OK) {
        const mtf_totals t = mtf_program_totals(p[1]);
        printf("%-14s %-22s %10.5f %10.5f %6lld %10.0f %10lld  %s\n", r->mesh, r->layout,
               (double)first, (double)last, (long long)t.calls, t.sent_bytes,
               (long long)t.state_bytes, r->why);
    }
    mtf_session_free(&s);
    mtf_program_free(&p[1]);
    mtf_program_free(&p[0]);
    mtf_layout_free(&layout);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&k.g);
    return st;
}

/* The number in argument i, `standard` without one, -1 where it is none or not in 1 .. most. */
static long number(int argc, char **argv, int i, long standard, long most)
{
    char *end = NULL;
    if (argc <= i) return standard;
    const long n = strtol(argv[i], &end, 10);
    return *end || n < 1 || n > most ? -1 : n;
}

int main(int argc, char **argv)
{
    mtf_err err = {0};
    const long steps = number(argc, argv, 1, 20, 1000000);
    const long layers = number(argc, argv, 2, 4, MOST_LAYERS);
    if (argc > 3 || steps < 2 || layers < 2 || layers % 2) {
        fprintf(stderr, "alternate: expected STEPS (2 to 1000000) and LAYERS (even, 2 to %d)\n",
                MOST_LAYERS);
        return 2;
    }
    printf("%-14s %-22s %10s %10s %6s %10s %10s\n", "mesh", "layout", "first loss", "last loss",
           "calls", "sent bytes", "weights");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (run(&rows[i], steps, (int)layers, &err) != MTF_OK)
            return fprintf(stderr, "alternate: %s\n", err.text), 2;
    return 0;
}
