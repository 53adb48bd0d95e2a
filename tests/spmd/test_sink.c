/* SPDX-License-Identifier: Apache-2.0
 * Sums that move past linear work: chains of operations have the same values under every layout,
 * and the sums are as few as they should be. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/mesh.h"
#include "spmd/program.h"
#include "support/eval.h"

static const mtf_dim a = {"a", 3}, b = {"b", 4}, c = {"c", 5}, d = {"d", 2}, v = {"v", 4};

static mtf_tensor *input(eval *e, mtf_shape shape)
{
    double values[64];
    for (int i = 0; i < 64; i++)
        values[i] = sin(1.7 * i + 3 * e->nfeeds);
    return eval_input(e, shape, MTF_F64, values);
}
#define S(...) input(e, MTF_SHAPE(__VA_ARGS__))

/* ---- chains ---- */

static mtf_tensor *two_products(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_matmul(xw, S(c, d), MTF_SHAPE(a, d));
}

static mtf_tensor *product_to_scalar(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_reduce_sum(mtf_mul(xw, S(c)), MTF_SCALAR);
}

static mtf_tensor *product_of_sums(eval *e)
{
    mtf_tensor *x = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    mtf_tensor *y = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_reduce_sum(mtf_mul(x, y), MTF_SCALAR);
}

static mtf_tensor *product_of_sums_over_two_dims(eval *e)
{
    mtf_tensor *x = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    mtf_tensor *y = mtf_matmul(S(a, d), S(d, c), MTF_SHAPE(a, c));
    return mtf_matmul(x, y, MTF_SHAPE(a));
}

static mtf_tensor *sum_of_products(eval *e)
{
    mtf_tensor *x = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    mtf_tensor *y = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_sub(mtf_scale(x, 3), mtf_add(y, S(a, c)));
}

static mtf_tensor *gather_and_back(eval *e)
{
    mtf_tensor *ids = eval_input(e, MTF_SHAPE(a), MTF_I32, (double[]){0, 3, 2});
    mtf_tensor *rows = mtf_gather(S(v, d), ids, "v");
    return mtf_scatter_add(rows, ids, "v", MTF_SHAPE(v, d));
}

static mtf_tensor *gather_of_a_product(eval *e)
{
    mtf_tensor *ids = eval_input(e, MTF_SHAPE(a), MTF_I32, (double[]){0, 3, 2});
    return mtf_gather(mtf_matmul(S(v, b), S(b, d), MTF_SHAPE(v, d)), ids, "v");
}

static mtf_tensor *views(eval *e)
{
    mtf_tensor *x = mtf_rename(mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c)), "c", "d");
    return mtf_reduce_mean(mtf_transpose(x, MTF_SHAPE({"d", 5}, a)), MTF_SHAPE(a));
}

static mtf_tensor *gradient(eval *e)
{
    mtf_tensor *x = S(a, b), *w = S(b, c);
    mtf_tensor *y = mtf_matmul(mtf_matmul(x, w, MTF_SHAPE(a, c)), S(c, d), MTF_SHAPE(a, d));
    return eval_gradient(mtf_square(y), w);
}

/* ---- sums with several readers ---- */

static mtf_tensor *sum(mtf_tensor *x)
{
    return mtf_reduce_sum(x, MTF_SCALAR);
}

/* Two readers whose results join: each alone costs as much as the sum of x w. */
static mtf_tensor *two_readers_that_join(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_tanh(sum(mtf_sub(mtf_mul(xw, S(c)), mtf_mul(xw, S(a)))));
}

/* Two readers whose results are smaller and meet in a product, so that each needs a sum. */
static mtf_tensor *two_readers_that_part(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_mul(mtf_reduce_sum(xw, MTF_SHAPE(a)), mtf_tanh(sum(xw)));
}

/* The same, but what is left of each joins another sum: two calls before, two after. */
static mtf_tensor *two_readers_that_join_others(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    mtf_tensor *yv = mtf_matmul(S(a, b), S(b, d), MTF_SHAPE(a, d));
    mtf_tensor *rows = mtf_add(mtf_reduce_sum(xw, MTF_SHAPE(a)), mtf_reduce_sum(yv, MTF_SHAPE(a)));
    return mtf_mul(mtf_tanh(rows), mtf_tanh(mtf_add(sum(xw), sum(mtf_scale(yv, 3)))));
}

/* One reader cannot work on parts, so the other has the sum for nothing. */
static mtf_tensor *one_reader_needs_all(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_mul(sum(mtf_square(xw)), sum(xw));
}

/* A sum that others need whole as well joins the next one all the same. */
static mtf_tensor *running_sum(eval *e)
{
    mtf_tensor *x = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    mtf_tensor *y = mtf_matmul(S(a, b), S(b), MTF_SHAPE(a)),
               *z = mtf_reduce_sum(S(a, b), MTF_SHAPE(a));
    mtf_tensor *rows = mtf_add(mtf_add(mtf_reduce_sum(x, MTF_SHAPE(a)), y), z);
    return mtf_mul(mtf_reduce_max(mtf_tanh(y), MTF_SCALAR), rows);
}

/* Parts of a maximum are no sums: the maximum of -2 x is not -2 times that of x. */
static mtf_tensor *maxima(eval *e)
{
    mtf_tensor *x = mtf_reduce_max(S(a, b), MTF_SHAPE(a)),
               *y = mtf_reduce_min(S(a, b), MTF_SHAPE(a));
    return sum(mtf_add(mtf_scale(x, -2), mtf_scale(y, -3)));
}

/* A sum over one axis passes work whose result is partial over another, and that sum. */
static mtf_tensor *sums_over_two_axes(eval *e)
{
    mtf_tensor *xw = mtf_matmul(S(a, b), S(b, c), MTF_SHAPE(a, c));
    return mtf_tanh(mtf_reduce_sum(mtf_scale(mtf_reduce_sum(xw, MTF_SHAPE(a)), 2), MTF_SCALAR));
}

static mtf_tensor *(*const chains[])(eval *) = {
    two_products,
    product_to_scalar,
    product_of_sums,
    product_of_sums_over_two_dims,
    sum_of_products,
    gather_and_back,
    gather_of_a_product,
    views,
    gradient,
    two_readers_that_join,
    two_readers_that_part,
    two_readers_that_join_others,
    one_reader_needs_all,
    running_sum,
    maxima,
    sums_over_two_axes,
};
enum { CHAINS = sizeof chains / sizeof *chains };

/* ---- every layout of two axes ---- */

static const char *const dims[] = {"a", "b", "c", "d", "v"};
static const char *const ways[] = {"", "p", "q", "p+q"};

static bool refused(const mtf_tensor *t, const char *mesh, const char *layout)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    mtf_tensor *fetch = (mtf_tensor *)(uintptr_t)t;
    const mtf_request r = {.nfetches = 1, .fetches = &fetch};
    mtf_program *p = mtf_compile(t->node->graph, m, l, &r, &err);
    const bool no = !p;
    if (no) assert_non_null(strstr(err.text, "are both split over mesh axis"));
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return no;
}

static void chains_agree(void **state)
{
    (void)state;
    for (int k = 0; k < CHAINS; k++) {
        eval e = eval_open();
        mtf_tensor *t = chains[k](&e);
        mtf_err err = {0};
        if (mtf_graph_status(e.g, &err) != MTF_OK) fail_msg("chain %d: %s", k, err.text);
        double want[64];
        eval_run(&e, "", "", t, want);
        const mtf_shape shape = mtf_tensor_shape(t);
        int legal = 0;
        for (int code = 0; code < 4 * 4 * 4 * 4 * 4; code++) {
            char layout[100] = "";
            for (int i = 0, rest = code; i < 5; i++, rest /= 4)
                if (rest % 4)
                    snprintf(layout + strlen(layout), sizeof layout - strlen(layout), "%s:%s;",
                             dims[i], ways[rest % 4]);
            if (refused(t, "p:2;q:2", layout)) continue;
            legal++;
            eval_expect_on(&e, "p:2;q:2", layout, t, (int)mtf_shape_size(&shape), want, 1e-12);
        }
        assert_true(legal > 50);
        eval_close(&e);
    }
}

/* ---- where sums go ---- */

/* Calls `see` for every collective of the program of `chain`. */
static void each_collective(mtf_tensor *(*chain)(eval *), const char *layout,
                            void (*see)(const mtf_program *p, const instr *i, void *ctx), void *ctx)
{
    eval e = eval_open();
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse("p:2;q:2", &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    mtf_tensor *t = chain(&e);
    const mtf_request r = {.nfetches = 1, .fetches = &t, .no_buckets = true};
    mtf_program *p = mtf_compile(e.g, m, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    for (const instr *i = p->first; i; i = i->next)
        if (instr_is_collective(i)) see(p, i, ctx);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    eval_close(&e);
}

typedef struct count {
    int calls;
    int64_t elements;
} count;

static void count_one(const mtf_program *p, const instr *i, void *ctx)
{
    count *sums = ctx;
    sums->calls++;
    sums->elements += instr_cost_of(p, i).elements;
}

static void expect_sums(mtf_tensor *(*chain)(eval *), const char *layout, int n, int64_t elements)
{
    count sums = {0};
    each_collective(chain, layout, count_one, &sums);
    assert_int_equal(sums.calls, n);
    assert_int_equal(sums.elements, elements);
}

static void sums_go_where_they_are_small(void **state)
{
    (void)state;
    expect_sums(two_products, "b:p", 1, 6);      /* [a d] instead of [a c] */
    expect_sums(two_products, "b:p;d:p", 1, 15); /* each processor has its own d: sum first */
    expect_sums(product_to_scalar, "b:p", 1, 1);
    expect_sums(product_of_sums, "b:p", 2, 16); /* one of the two moves to the scalar */
    expect_sums(sum_of_products, "b:p", 2, 30);
    expect_sums(maxima, "b:p", 2, 6);
}

/* A rule that moves one sum at a time past its one reader takes [a c], 15 elements, in the first of
 * these, and in the third 15 + 6: there every single move adds a call. */
static void sums_with_several_readers(void **state)
{
    (void)state;
    expect_sums(two_readers_that_join, "b:p", 1, 1);
    expect_sums(two_readers_that_part, "b:p", 1, 15); /* 4 elements, but in two calls */
    expect_sums(two_readers_that_join_others, "b:p", 2, 4);
    expect_sums(one_reader_needs_all, "b:p", 1, 15);
    expect_sums(running_sum, "b:p", 2, 6); /* y, and one for all three */
}

/* ---- the order of sums over several axes ---- */

typedef struct order {
    int n;
    int axis[4], in[4], out[4];
} order;

static void note_sum(const mtf_program *p, const instr *i, void *ctx)
{
    (void)p;
    order *o = ctx;
    assert_true(o->n < 4);
    o->axis[o->n] = i->axes.axis[0];
    o->in[o->n] = i->in[0]->id;
    o->out[o->n++] = i->out[0]->id;
}

/* Two sums of the scalar, over q and then over p, whichever axis was partial first. */
static void the_minor_axis_is_summed_first(void **state)
{
    (void)state;
    static const char *const layouts[] = {"b:p;a:q", "b:q;a:p", "b:p+q", "b:q+p"};
    for (int k = 0; k < 4; k++) {
        order o = {0};
        each_collective(sums_over_two_axes, layouts[k], note_sum, &o);
        assert_int_equal(o.n, 2);
        assert_int_equal(o.axis[0], 1);
        assert_int_equal(o.axis[1], 0);
        assert_int_equal(o.out[0], o.in[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_agree),
        cmocka_unit_test(sums_go_where_they_are_small),
        cmocka_unit_test(sums_with_several_readers),
        cmocka_unit_test(the_minor_axis_is_summed_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
