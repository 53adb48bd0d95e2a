/* SPDX-License-Identifier: Apache-2.0
 * A row with two outputs, defined here alone: sums of a matrix along its one dim and along its
 * other. One output keeps what the other reduces, so under a layout each is partial where the other
 * is not. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "support/eval.h"

/* Each output lacks a dim that the other has, which the roles of one iteration space cannot say:
 * both dims are WHOLE, and results are cut after. */
static role whole(const mtf_node *n, const char *dim)
{
    (void)n, (void)dim;
    return ROLE_WHOLE;
}

static bool infer(mtf_graph *g, mtf_node *n)
{
    (void)g;
    for (int o = 0; o < 2; o++) {
        n->out[o].dtype = MTF_F64;
        n->out[o].shape = (mtf_shape){.rank = 1, .dim = {n->in[0]->shape.dim[o]}};
    }
    return true;
}

/* Space: dim 0 of output 0, dim 0 of output 1. */
static void kernel(const kernel_args *k, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    const double *x = k->in[0].data;
    double *rows = k->out[0].data, *columns = k->out[1].data;
    memset(rows, 0, sizeof *rows * (size_t)k->dim[0].local);
    memset(columns, 0, sizeof *columns * (size_t)k->dim[1].local);
    for (int64_t i = 0; i < k->dim[0].local; i++)
        for (int64_t j = 0; j < k->dim[1].local; j++) {
            const double v = x[i * k->in[0].stride[0] + j * k->in[0].stride[1]];
            rows[i] += v;
            columns[j] += v;
        }
}

/* Either gradient may be missing. */
static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    for (int o = 0; o < 2; o++) {
        if (!dy[o]) continue;
        mtf_tensor *d = mtf_broadcast(dy[o], n->in[0]->shape);
        dx[0] = dx[0] ? mtf_add(dx[0], d) : d;
    }
}

static const op both_sums = {
    .name = "both_sums",
    .doc = "out[0][a] = sum x[a b] over b, out[1][b] = sum x[a b] over a",
    .nin = 1,
    .nout = 2,
    .infer = infer,
    .role = whole,
    .grad = grad,
    .kernel = kernel,
};

static const char *const layouts[][2] = {
    {"", ""},       {"x:2", "a:x"},         {"x:3", "b:x"},
    {"x:4", "a:x"}, {"x:2;y:2", "a:x;b:y"}, {"x:2;y:2", "b:x+y"}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static mtf_tensor *build(eval *e, mtf_tensor **x)
{
    *x = eval_input(e, MTF_SHAPE({"a", 3}, {"b", 4}), MTF_F64, values);
    return graph_add(e->g, &both_sums, NULL, 1, x, NULL);
}

static void both_outputs_under_layouts(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x, *rows = build(&e, &x), *columns = &rows->node->out[1];
    for (int i = 0; i < LAYOUTS; i++) {
        EXPECT_ON(&e, layouts[i][0], layouts[i][1], rows, 0, 10, 26, 42);
        EXPECT_ON(&e, layouts[i][0], layouts[i][1], columns, 0, 15, 18, 21, 24);
    }
    eval_close(&e);
}

static void gradients_of_one_and_of_both(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x, *rows = build(&e, &x), *columns = &rows->node->out[1];
    /* Twice the column's sum; and, as the sum of the two squares has shape [3 4], eight times the
     * row's and six times the column's. */
    mtf_tensor *one = eval_gradient(mtf_square(columns), x);
    mtf_tensor *two = eval_gradient(mtf_add(mtf_square(rows), mtf_square(columns)), x);
    for (int i = 0; i < LAYOUTS; i++) {
        EXPECT_ON(&e, layouts[i][0], layouts[i][1], one, 1e-12, 30, 36, 42, 48, 30, 36, 42, 48, 30,
                  36, 42, 48);
        EXPECT_ON(&e, layouts[i][0], layouts[i][1], two, 1e-12, 170, 188, 206, 224, 298, 316, 334,
                  352, 426, 444, 462, 480);
    }
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_outputs_under_layouts),
                                       cmocka_unit_test(gradients_of_one_and_of_both)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
