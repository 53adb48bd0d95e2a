/* SPDX-License-Identifier: Apache-2.0
 * A multi-layer perceptron that reads digits: pictures of 12 x 12 with one of ten digits somewhere
 * in them, under noise, made up as they are needed. Any mesh and layout gives the same losses.
 *
 *     build/examples/digits [STEPS [MESH [LAYOUT]]]
 *     build/examples/digits 800 "rows:2;cols:2" "batch:rows;hidden_1:cols;digit:cols"
 *
 * Dims: batch, y, x, hidden_1, hidden_2, digit. */
#include <mtf/mtf.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 100, SIDE = 12, HIDDEN = 64, DIGITS = 10, VARIABLES = 6, TEST_STEPS = 10 };

/* Seven rows of five points each; the highest bit is the leftmost point. */
static const unsigned char glyph[DIGITS][7] = {
    {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},  {14, 17, 1, 2, 4, 8, 31},
    {31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2}, {31, 16, 30, 1, 1, 17, 14},
    {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},   {14, 17, 17, 14, 17, 17, 14},
    {14, 17, 17, 15, 1, 2, 12},
};

static unsigned draw(unsigned n) /* in 0 .. n - 1; the same on every machine */
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static void make_pictures(float *pictures, int32_t *digits)
{
    for (int b = 0; b < BATCH; b++) {
        float *p = pictures + b * SIDE * SIDE;
        const unsigned digit = draw(DIGITS), top = draw(SIDE - 6), left = draw(SIDE - 4);
        for (int i = 0; i < SIDE * SIDE; i++)
            p[i] = (float)draw(1000) / 2000; /* noise up to half of a point */
        for (unsigned y = 0; y < 7; y++)
            for (unsigned x = 0; x < 5; x++)
                p[(top + y) * SIDE + left + x] += (float)(glyph[digit][y] >> (4 - x) & 1);
        digits[b] = (int32_t)digit;
    }
}

typedef struct model {
    mtf_graph *g;
    mtf_tensor *pictures, *digits, *variable[VARIABLES], *loss, *right;
    mtf_optimizer *optimizer;
    int nupdates;
    mtf_tensor *update[VARIABLES * MTF_MAX_VARIABLE_UPDATES];
} model;

/* Weights and bias of layer k, from the dims `in` to the dim `out`. */
static mtf_tensor *layer(model *m, int k, mtf_tensor *x, mtf_shape in, mtf_dim out)
{
    char name[16];
    snprintf(name, sizeof name, "layer_%d", k);
    mtf_scope_push(m->g, name);
    m->variable[2 * k] = mtf_dense_weight(m->g, "kernel", in, (mtf_shape){1, {out}}, 1.0, MTF_F32);
    m->variable[2 * k + 1] = mtf_weight(m->g, "bias", (mtf_shape){1, {out}}, 0.0, MTF_F32);
    mtf_scope_pop(m->g);
    return mtf_add(mtf_dense(x, m->variable[2 * k]), m->variable[2 * k + 1]);
}

static model build(void)
{
    model m = {.g = mtf_graph_new()};
    const mtf_dim batch = {"batch", BATCH}, y = {"y", SIDE}, x = {"x", SIDE};
    const mtf_dim hidden_1 = {"hidden_1", HIDDEN}, hidden_2 = {"hidden_2", HIDDEN};
    m.pictures = mtf_placeholder(m.g, "pictures", MTF_SHAPE(batch, y, x), MTF_F32);
    m.digits = mtf_placeholder(m.g, "digits", MTF_SHAPE(batch), MTF_I32);
    mtf_tensor *h = mtf_relu(layer(&m, 0, m.pictures, MTF_SHAPE(y, x), hidden_1));
    h = mtf_relu(layer(&m, 1, h, MTF_SHAPE(hidden_1), hidden_2));
    mtf_tensor *logits = layer(&m, 2, h, MTF_SHAPE(hidden_2), (mtf_dim){"digit", DIGITS});
    m.loss = mtf_reduce_mean(mtf_cross_entropy(logits, m.digits, "digit"), MTF_SCALAR);
    mtf_tensor *hits = mtf_equal(mtf_argmax(logits, "digit"), m.digits);
    m.right = mtf_reduce_mean(mtf_cast(hits, MTF_F32), MTF_SCALAR);
    const mtf_optimizer_options o = {
        .kind = MTF_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    mtf_tensor *gradients[VARIABLES];
    mtf_gradients(m.loss, VARIABLES, m.variable, gradients);
    m.optimizer = mtf_optimizer_new(m.g, &o, VARIABLES, m.variable);
    m.nupdates = mtf_optimizer_updates(m.optimizer, gradients, m.update);
    return m;
}

/* One step: programs[1] trains, programs[2] does not. */
static mtf_status run(model *m, mtf_session *s, const mtf_program *p, int64_t step, float *loss,
                      float *right, mtf_err *err)
{
    static float pictures[BATCH * SIDE * SIDE];
    static int32_t digits[BATCH];
    make_pictures(pictures, digits);
    const mtf_optimizer *o = m->optimizer;
    const float rate = 2e-3f, correction[2] = {(float)mtf_adam_correction(0.9, step),
                                               (float)mtf_adam_correction(0.999, step)};
    const mtf_feed feeds[] = {{.placeholder = m->pictures, .data = pictures},
                              {.placeholder = m->digits, .data = digits},
                              {.placeholder = o->rate[0], .data = &rate},
                              {.placeholder = o->correction[0], .data = &correction[0]},
                              {.placeholder = o->correction[1], .data = &correction[1]}};
    return mtf_run(s, p, 5, feeds, (void *[]){loss, right}, NULL, err);
}

int main(int argc, char **argv)
{
    mtf_err err = {0};
    char *end = NULL;
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 800;
    if (argc > 4 || steps < 1 || steps > 1000000 || (end && *end))
        return fprintf(stderr, "digits: expected STEPS (1 to 1000000), MESH and LAYOUT\n"), 2;
    model m = build();
    mtf_mesh *mesh = mtf_mesh_parse(argc > 2 ? argv[2] : "", &err);
    mtf_layout *l = mesh ? mtf_layout_parse(argc > 3 ? argv[3] : "", mesh, true, NULL, &err) : NULL;
    const bool ok = l && mtf_layout_check_dims(l, m.g, true, NULL, &err) == MTF_OK;
    mtf_tensor *const fetches[] = {m.loss, m.right};
    mtf_request request = {.name = "test", .nfetches = 2, .fetches = fetches};
    mtf_program *p[3] = {ok ? mtf_compile_initial(m.g, mesh, l, &err) : NULL};
    p[2] = p[0] ? mtf_compile(m.g, mesh, l, &request, &err) : NULL;
    request = (mtf_request){"train", 2, fetches, .nupdates = m.nupdates, .updates = m.update};
    p[1] = p[2] ? mtf_compile(m.g, mesh, l, &request, &err) : NULL;
    mtf_session *s = p[1] ? mtf_session_new(3, p, NULL, &err) : NULL;
    mtf_status st = s ? mtf_run(s, p[0], 0, NULL, NULL, NULL, &err) : MTF_INVALID;
    float loss = 0, right = 0, sum = 0;
    for (long i = 1; i <= steps && st == MTF_OK; i++) {
        st = run(&m, s, p[1], i, &loss, &right, &err);
        if (i == 1 || i % 50 == 0 || i == steps)
            printf("step %ld loss %.6f right %.2f\n", i, (double)loss, (double)right);
    }
    for (int i = 0; i < TEST_STEPS && st == MTF_OK; i++, sum += right)
        st = run(&m, s, p[2], 1, &loss, &right, &err);
    if (st == MTF_OK)
        printf("of 1000 new pictures %.1f %% are read right\n", 100.0 * (double)sum / TEST_STEPS);
    else
        fprintf(stderr, "digits: %s\n", err.text);
    mtf_session_free(&s);
    for (int i = 0; i < 3; i++)
        mtf_program_free(&p[i]);
    mtf_layout_free(&l);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&m.g);
    return (int)st;
}
