/* SPDX-License-Identifier: Apache-2.0
 * Draws: seeds of one's own hold in every session, and sampling has the probabilities that it says.
 */
#include "check.h"

#include <math.h>
#include <string.h>

#include "support/eval.h"

/* ---- seeds ---- */

/* The values of t in a session with `seed`, in step `step`. */
static void draw(mtf_tensor *t, const char *mesh, const char *layout, uint64_t seed, uint64_t step,
                 void *out)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    const mtf_request r = {.nfetches = 1, .fetches = &t};
    mtf_program *p = mtf_compile(mtf_tensor_graph(t), m, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    const mtf_session_options o = {.threads = 1, .seed = seed};
    mtf_session *s = mtf_session_new(1, &p, &o, &err);
    const mtf_run_values values = {.step = step};
    assert_int_equal(mtf_run(s, p, 0, NULL, (void *[]){out}, &values, &err), MTF_OK);
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static void seeds_hold_in_every_session(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    const mtf_shape shape = MTF_SHAPE({"a", 50});
    float x[6][50];
    mtf_tensor *free = mtf_random_normal(g, "r", shape, MTF_F32, 0, 1);
    mtf_graph_repeat_streams(g);
    mtf_graph_set_seed(g, 1);
    mtf_tensor *one = mtf_random_normal(g, "r", shape, MTF_F32, 0, 1);
    mtf_tensor *other_stream = mtf_random_normal(g, "r", shape, MTF_F32, 0, 1);
    mtf_graph_repeat_streams(g);
    mtf_graph_set_seed(g, 2);
    mtf_tensor *two = mtf_random_normal(g, "r", shape, MTF_F32, 0, 1);
    mtf_graph_clear_seed(g);
    mtf_graph_repeat_streams(g);
    mtf_tensor *free_again = mtf_random_normal(g, "r", shape, MTF_F32, 0, 1);

    draw(one, "", "", 7, 0, x[0]);
    draw(one, "p:3", "a:p", 8, 0, x[1]);
    assert_memory_equal(x[0], x[1], sizeof x[0]); /* whatever session and layout */
    draw(free, "", "", 1, 0, x[1]);
    assert_memory_equal(x[0], x[1], sizeof x[0]); /* as a session with this seed */
    draw(free, "", "", 7, 0, x[2]);
    draw(free_again, "", "", 7, 0, x[3]);
    assert_memory_equal(x[2], x[3], sizeof x[0]);
    draw(one, "", "", 7, 1, x[1]);
    draw(two, "", "", 7, 0, x[3]);
    draw(other_stream, "", "", 7, 0, x[4]);
    for (int k = 1; k < 5; k++) /* another step, session, seed, stream */
        assert_memory_not_equal(x[0], x[k], sizeof x[0]);
    mtf_graph_free(&g);
}

static void dropouts_have_seeds_too(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    float x[3][200];
    mtf_tensor *ones = mtf_constant(g, 1, MTF_SHAPE({"a", 200}), MTF_F32);
    mtf_graph_set_seed(g, 5);
    mtf_tensor *dropped = mtf_dropout(ones, "drop", 0.5);
    mtf_graph_clear_seed(g);
    mtf_tensor *free = mtf_dropout(ones, "drop", 0.5);
    draw(dropped, "", "", 1, 0, x[0]);
    draw(dropped, "p:7", "a:p", 2, 0, x[1]);
    draw(free, "", "", 1, 0, x[2]);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_not_equal(x[0], x[2], sizeof x[0]);
    mtf_graph_free(&g);
}

/* ---- probabilities ---- */

enum { DRAWS = 40000, CLASSES = 5 };

/* The chi-squared statistic of the draws against `want`, which has zeros where nothing may come. */
static double distance(const int32_t *drawn, const double *want)
{
    double seen[CLASSES] = {0}, sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        assert_in_range(drawn[i], 0, CLASSES - 1);
        assert_true(want[drawn[i]] > 0);
        seen[drawn[i]]++;
    }
    for (int c = 0; c < CLASSES; c++)
        if (want[c] > 0) sum += pow(seen[c] - DRAWS * want[c], 2) / (DRAWS * want[c]);
    return sum;
}

/* softmax(logits / temperature) of the classes in `left`, which are bits. */
static void probabilities(const double *logits, double temperature, unsigned left, double *out)
{
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        out[c] = left >> c & 1 ? exp(logits[c] / temperature) : 0;
        sum += out[c];
    }
    for (int c = 0; c < CLASSES; c++)
        out[c] /= sum;
}

/* With p = .236, .087, .644, .032, .002: what top_p leaves is where the sum before is below it. */
static void sampling_is_true(void **state)
{
    (void)state;
    static const double logits[CLASSES] = {3, 2, 4, 1, -2};
    static const struct {
        mtf_sampling o;
        unsigned left;
    } of[] = {
        {{.temperature = 1}, 31},
        {{.temperature = 2}, 31},
        {{.temperature = 1, .top_k = 3}, 7},
        {{.temperature = 0.7, .top_k = 2}, 5},
        {{.temperature = 1, .top_p = 0.5}, 4},
        {{.temperature = 1, .top_p = 0.7}, 5},
        {{.temperature = 1, .top_p = 0.95}, 7},
        {{.temperature = 1, .top_k = 4, .top_p = 0.999}, 15},
        {{.temperature = 1, .top_k = 1}, 4},
        {{.temperature = 0}, 4},
    };
    static int32_t drawn[DRAWS], again[DRAWS];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        mtf_graph *g = mtf_graph_new();
        mtf_tensor *row[CLASSES];
        for (int c = 0; c < CLASSES; c++)
            row[c] = mtf_constant(g, logits[c], MTF_SHAPE({"n", DRAWS}), MTF_F32);
        mtf_tensor *x = mtf_stack(CLASSES, row, "class", -1);
        mtf_tensor *t = mtf_sample(x, "draw", "class", &of[i].o);
        double want[CLASSES];
        draw(t, "", "", 3, 0, drawn);
        draw(t, "p:2;q:3", "n:p;class:q", 3, 0, again);
        assert_memory_equal(drawn, again, sizeof drawn);
        probabilities(logits, of[i].o.temperature > 0 ? of[i].o.temperature : 1, of[i].left, want);
        /* Four degrees of freedom: beyond 30 once in 200,000 times, and the seed is fixed. */
        const double d = distance(drawn, want);
        if (d > 30) fail_msg("sampling %d is %g away from its probabilities", (int)i, d);
        mtf_graph_free(&g);
    }
}

/* Equal logits: the lowest indexes are those that top_k leaves. */
static void ties_go_to_the_lowest(void **state)
{
    (void)state;
    int32_t drawn[64];
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_constant(g, 1.5, MTF_SHAPE({"n", 64}, {"class", 9}), MTF_F32);
    mtf_tensor *t = mtf_sample(x, "draw", "class", &(mtf_sampling){.temperature = 1, .top_k = 2});
    unsigned seen = 0;
    draw(t, "p:4", "class:p", 1, 0, drawn);
    for (int i = 0; i < 64; i++)
        seen |= 1u << drawn[i];
    assert_int_equal(seen, 3);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_hold_in_every_session),
        cmocka_unit_test(dropouts_have_seeds_too),
        cmocka_unit_test(sampling_is_true),
        cmocka_unit_test(ties_go_to_the_lowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
