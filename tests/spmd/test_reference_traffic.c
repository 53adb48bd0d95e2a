/* SPDX-License-Identifier: Apache-2.0
 * What Mesh-TensorFlow's own lowering moves in its known cases (reference 1.7, 2.4, 2.5, 2.8, 2.9
 * and the two-layer network of section 8), and what a program of ours moves: never more. Its
 * counters are elements of all processors together; those here are of the operand on one processor,
 * before the collective. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmd/program.h"
#include "support/eval.h"

/* What a program moves, "all_reduce p 8; ..", and its work. */
typedef struct traffic {
    char *text;          /* free with free */
    double sent;         /* bytes, of the busiest processor */
    double product_work; /* flops of products, of all processors together */
} traffic;

static traffic traffic_of(eval *e, const char *mesh, const char *layout, int n, mtf_tensor **t)
{
    mtf_err err = {0};
    traffic out = {0};
    size_t size = 0;
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    const mtf_request r = {.nfetches = n, .fetches = t, .no_buckets = true};
    mtf_program *p = mtf_compile(e->g, m, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    FILE *f = open_memstream(&out.text, &size);
    for (const instr *i = p->first; i; i = i->next) {
        const instr_cost cost = instr_cost_of(p, i);
        if (strcmp(instr_name(i), "einsum") == 0)
            out.product_work += cost.flops * (double)mtf_mesh_processors(m);
        if (!instr_is_collective(i)) continue;
        fprintf(f, "%s%s", ftell(f) ? "; " : "", instr_name(i));
        for (int a = 0; a < i->axes.n; a++)
            fprintf(f, "%c%s", a ? '+' : ' ', mtf_mesh_axis_name(m, i->axes.axis[a]));
        fprintf(f, " %lld", (long long)cost.elements);
    }
    fclose(f);
    out.sent = mtf_program_totals(p).sent_bytes;
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return out;
}

static void expect_moved(eval *e, const char *mesh, const char *layout, mtf_tensor *t,
                         const char *want)
{
    const traffic got = traffic_of(e, mesh, layout, 1, &t);
    if (strcmp(got.text, want) != 0)
        fail_msg("mesh '%s', layout '%s': '%s' instead of '%s'", mesh, layout, got.text, want);
    free(got.text);
}

static mtf_tensor *input(eval *e, const char *name, mtf_shape shape)
{
    return mtf_placeholder(e->g, name, shape, MTF_F32);
}

/* 1.7: (x y) + (x z) needs one all_reduce, their product two; of 8 elements on 2 processors. */
static void sums_wait(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape out = MTF_SHAPE({"a", 2}, {"c", 2});
    mtf_tensor *x = input(&e, "x", MTF_SHAPE({"a", 2}, {"b", 4}));
    mtf_tensor *y = input(&e, "y", MTF_SHAPE({"b", 4}, {"c", 2}));
    mtf_tensor *z = input(&e, "z", MTF_SHAPE({"b", 4}, {"c", 2}));
    mtf_tensor *xy = mtf_matmul(x, y, out), *xz = mtf_matmul(x, z, out);
    expect_moved(&e, "p:2", "b:p", mtf_add(xy, xz), "all_reduce p 4");
    expect_moved(&e, "p:2", "b:p", mtf_mul(xy, xz), "all_reduce p 4; all_reduce p 4");
    eval_close(&e);
}

/* 2.4: its counters say 16 and 24. */
static void products(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = input(&e, "x", MTF_SHAPE({"a", 4}, {"b", 6}));
    mtf_tensor *y = input(&e, "y", MTF_SHAPE({"b", 6}, {"c", 2}));
    mtf_tensor *p = mtf_matmul(x, y, MTF_SHAPE({"a", 4}, {"c", 2}));
    expect_moved(&e, "p:2", "b:p", p, "all_reduce p 8");
    expect_moved(&e, "p:2;q:3", "a:p;b:q", p, "all_reduce q 4");
    eval_close(&e);
}

/* 2.5: the table of reshapes. */
static void reshapes(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *ab = input(&e, "ab", MTF_SHAPE({"a", 4}, {"b", 6}));
    mtf_tensor *c = input(&e, "c", MTF_SHAPE({"c", 24}));
    mtf_tensor *wide = input(&e, "wide", MTF_SHAPE({"a", 3}, {"b", 8}));
    const mtf_shape xb = MTF_SHAPE({"x", 4}, {"b", 6}), xy = MTF_SHAPE({"x", 4}, {"y", 6});
    mtf_tensor *renamed = mtf_reshape(ab, xb), *both = mtf_reshape(ab, xy);
    mtf_tensor *flat = mtf_reshape(ab, MTF_SHAPE({"c", 24}));
    mtf_tensor *back = mtf_reshape(c, MTF_SHAPE({"a", 4}, {"b", 6}));
    mtf_tensor *other = mtf_reshape(wide, MTF_SHAPE({"x", 6}, {"y", 4}));
    /* Its counters say 48 for all_gather and 24 for all_to_all. */
    expect_moved(&e, "p:2", "a:p", renamed, "all_gather p 12");
    expect_moved(&e, "p:2", "x:p", renamed, "");
    expect_moved(&e, "p:2", "a:p;x:p", renamed, "");
    expect_moved(&e, "p:2;q:2", "a:p;x:q", renamed, "permute p+q 12"); /* 48, and wrong: C1 */
    expect_moved(&e, "p:2", "a:p;y:p", both, "all_to_all p 12");
    expect_moved(&e, "p:2", "b:p;x:p", both, "all_to_all p 12");
    expect_moved(&e, "p:2", "a:p;c:p", flat, "");
    expect_moved(&e, "p:2", "c:p", flat, "");
    expect_moved(&e, "p:2", "b:p", flat, "all_gather p 12");
    expect_moved(&e, "p:2", "b:p;c:p", flat, "all_to_all p 12");
    expect_moved(&e, "p:2", "a:p;c:p", back, "");
    expect_moved(&e, "p:2", "a:p", back, "");
    expect_moved(&e, "p:2", "b:p", back, "");
    expect_moved(&e, "p:2", "b:p;c:p", back, "all_to_all p 12"); /* refused there */
    expect_moved(&e, "p:2", "y:p", other, "");
    /* These three fail there (defect C2). */
    expect_moved(&e, "p:2", "x:p", other, "");
    expect_moved(&e, "p:2", "b:p;y:p", other, "exchange p 12");
    expect_moved(&e, "p:2", "b:p;x:p", other, "exchange p 12");
    eval_close(&e);
}

/* 2.8: rows of a table that is split along the vocabulary: its counters say 16 and 16. */
static void lookups(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *table = input(&e, "table", MTF_SHAPE({"v", 4}, {"d", 2}));
    mtf_tensor *ids = mtf_placeholder(e.g, "ids", MTF_SHAPE({"t", 4}), MTF_I32);
    mtf_tensor *rows = mtf_gather(table, ids, "v");
    expect_moved(&e, "p:2", "v:p", rows, "all_reduce p 8");
    expect_moved(&e, "p:2;q:2", "t:p;v:q", rows, "all_reduce q 4");
    eval_close(&e);
}

static void expect_sent(eval *e, const char *mesh, mtf_tensor *t, double elements)
{
    const traffic got = traffic_of(e, mesh, "a:p", 1, &t);
    assert_true(got.sent == elements * (double)sizeof(float));
    free(got.text);
}

/* 2.9: its counters, 4 + 4, 6 + 2 and 8, are of what stays as well. What a processor sends: */
static void shifts(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = input(&e, "x", MTF_SHAPE({"a", 8}));
    expect_sent(&e, "p:4", mtf_shift(x, "a", 1, false), 1);
    expect_sent(&e, "p:2", mtf_shift(x, "a", 1, false), 1);
    expect_sent(&e, "p:4", mtf_shift(x, "a", 2, false), 2);
    eval_close(&e);
}

/* Section 8: loss and gradients of a two-layer network. `duplicated`: work over that of one
 * processor alone. */
static void two_layers(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *layout, *moved;
        double duplicated;
    } rows[] = {
        {"p:4", "", "", 4},
        {"p:4", "batch:p", "all_reduce p 1; all_reduce p 2048; all_reduce p 4096", 1},
        {"p:4", "hidden:p", "all_reduce p 1024", 1},
        {"p:4", "io:p", "all_reduce p 8192", 16.0 / 7},
        /* It sums the gradient of the hidden layer, 8192. The sum may wait for dW1. */
        {"p:4", "classes:p", "all_reduce p 1; all_reduce p 4096", 19.0 / 7},
        {"p:2;q:2", "batch:p;hidden:q",
         "all_reduce q 512; all_reduce p 1; all_reduce p 1024; all_reduce p 2048", 1},
    };
    const mtf_dim batch = {"batch", 64}, io = {"io", 32}, hidden = {"hidden", 128},
                  classes = {"classes", 16};
    eval e = eval_open();
    mtf_tensor *x = input(&e, "x", MTF_SHAPE(batch, io));
    mtf_tensor *y = input(&e, "y", MTF_SHAPE(batch, classes));
    mtf_tensor *w[] = {input(&e, "w1", MTF_SHAPE(io, hidden)),
                       input(&e, "w2", MTF_SHAPE(hidden, classes))};
    mtf_tensor *h = mtf_relu(mtf_matmul(x, w[0], MTF_SHAPE(batch, hidden)));
    mtf_tensor *logits = mtf_matmul(h, w[1], MTF_SHAPE(batch, classes)), *results[3];
    results[2] = mtf_reduce_mean(mtf_square(mtf_sub(logits, y)), MTF_SCALAR);
    mtf_gradients(results[2], 2, w, results);
    traffic alone = traffic_of(&e, "", "", 3, results);
    free(alone.text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const traffic got = traffic_of(&e, rows[i].mesh, rows[i].layout, 3, results);
        assert_string_equal(got.text, rows[i].moved);
        if (got.product_work > rows[i].duplicated * alone.product_work * (1 + 1e-12))
            fail_msg("layout '%s': %g times the work", rows[i].layout,
                     got.product_work / alone.product_work);
        free(got.text);
    }
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_wait), cmocka_unit_test(products), cmocka_unit_test(reshapes),
        cmocka_unit_test(lookups),   cmocka_unit_test(shifts),   cmocka_unit_test(two_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
