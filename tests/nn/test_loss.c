/* SPDX-License-Identifier: Apache-2.0
 * Losses: the values of the reference, the messages for wrong operands, and what moves where the
 * classes are split. Values and gradients on layouts: test_layer_conformance, test_losses_golden.
 */
#include "check.h"

#include <math.h>

#include "mtf/mtf.h"
#include "spmd/program.h"
#include "support/eval.h"
#include "support/mistakes.h"

#define LOGITS MTF_SHAPE({"t", 1}, {"c", 4})

/* reference 3.4, [run]: logits [1, 2, 3, 4] and target 3. */
static void softmax_values(void **state)
{
    (void)state;
    static const char *const cuts[][2] = {{"", ""}, {"x:2", "c:x"}, {"x:3", "c:x"}, {"x:5", "c:x"}};
    const mtf_softmax_loss z = {.z_loss = 1e-2}, smooth = {.label_smoothing = 0.1};
    for (int c = 0; c < 4; c++) {
        const char *m = cuts[c][0], *l = cuts[c][1];
        eval e = eval_open();
        mtf_tensor *x = INPUT(&e, LOGITS, MTF_F64, 1, 2, 3, 4);
        mtf_tensor *zeros = INPUT(&e, LOGITS, MTF_F64, 0, 0, 0, 0);
        mtf_tensor *three = INPUT(&e, MTF_SHAPE({"t", 1}), MTF_I32, 3);
        mtf_tensor *smoothed = INPUT(&e, LOGITS, MTF_F64, .025, .025, .025, .925);
        EXPECT_ON(&e, m, l, mtf_softmax_cross_entropy(x, three, "c", NULL), 1e-6, 0.440190);
        EXPECT_ON(&e, m, l, mtf_softmax_cross_entropy(x, three, "c", &z), 1e-6, 0.637343);
        EXPECT_ON(&e, m, l, mtf_softmax_cross_entropy(x, three, "c", &smooth), 1e-6, 0.590190);
        EXPECT_ON(&e, m, l, mtf_softmax_cross_entropy(x, smoothed, "c", NULL), 1e-6, 0.590190);
        EXPECT_ON(&e, m, l, mtf_softmax_cross_entropy(zeros, three, "c", NULL), 1e-6, 1.386294);
        EXPECT_ON(&e, m, l, mtf_softmax_cross_entropy(zeros, three, "c", &z), 1e-6, 1.405512);
        eval_close(&e);
    }
}

/* Large logits do not overflow, and a target of probability 0 costs what its logit says. The
 * difference of numbers near 1000 is right to some epsilons of 1000. */
static void extremes(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, LOGITS, MTF_F64, 1000, -1000, 1000, 0);
    mtf_tensor *t[] = {INPUT(&e, MTF_SHAPE({"t", 1}), MTF_I32, 0),
                       INPUT(&e, MTF_SHAPE({"t", 1}), MTF_I32, 1)};
    EXPECT(&e, mtf_softmax_cross_entropy(x, t[0], "c", NULL), 4e-13, log(2));
    EXPECT(&e, mtf_softmax_cross_entropy(x, t[1], "c", NULL), 4e-13, 2000 + log(2));
    mtf_tensor *half = INPUT(&e, LOGITS, MTF_F64, 0.5, 0.5, 0.5, 0.5);
    EXPECT(&e, mtf_sigmoid_cross_entropy(x, half), 1e-15, 500, 500, 500, log(2));
    eval_close(&e);
}

/* An index that is no class has no loss and no gradient, however the loss is smoothed. */
static void no_class(void **state)
{
    (void)state;
    static const char *const cuts[][2] = {{"", ""}, {"x:3", "c:x"}, {"x:2", "t:x"}};
    const mtf_softmax_loss all = {.label_smoothing = 0.1, .z_loss = 0.5};
    eval e = eval_open();
    const mtf_shape shape = MTF_SHAPE({"t", 4}, {"c", 2});
    mtf_tensor *x = INPUT(&e, shape, MTF_F64, 0, 0, 0, 0, 0, 0, 0, 0);
    mtf_tensor *t = INPUT(&e, MTF_SHAPE({"t", 4}), MTF_I32, -1, 1, 2, INT32_MIN);
    mtf_tensor *plain = mtf_softmax_cross_entropy(x, t, "c", NULL);
    mtf_tensor *other = mtf_softmax_cross_entropy(x, t, "c", &all);
    for (int c = 0; c < 3; c++) {
        const char *m = cuts[c][0], *l = cuts[c][1];
        EXPECT_ON(&e, m, l, plain, 1e-15, 0, log(2), 0, 0);
        EXPECT_ON(&e, m, l, eval_gradient(plain, x), 1e-15, 0, 0, .5, -.5, 0, 0, 0, 0);
        EXPECT_ON(&e, m, l, other, 1e-15, 0, log(2) + 0.5 * log(2) * log(2), 0, 0);
    }
    eval_close(&e);
}

/* reference 3.4, [run]: [1, 2, 3, 4] against one-hot(3). */
static void sigmoid_values(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, LOGITS, MTF_F64, 1, 2, 3, 4);
    mtf_tensor *t = INPUT(&e, LOGITS, MTF_F64, 0, 0, 0, 1);
    mtf_tensor *zero = INPUT(&e, LOGITS, MTF_F64, 0, 0, 0, 0);
    EXPECT_ON(&e, "x:2", "c:x", mtf_sigmoid_cross_entropy(x, t), 1e-6, 1.313262, 2.126928, 3.048587,
              0.018150);
    EXPECT(&e, eval_gradient(mtf_sigmoid_cross_entropy(zero, t), zero), 1e-15, .5, .5, .5, -.5);
    eval_close(&e);
}

/* reference 3.4, [test]. */
static void nonzero_values(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape shape = MTF_SHAPE({"a", 2}, {"b", 3});
    EXPECT(&e, mtf_weights_nonzero(INPUT(&e, shape, MTF_I32, 3, 1, 0, 1, 0, 0), MTF_F32), 0, 1, 1,
           0, 1, 0, 0);
    EXPECT(&e, mtf_weights_nonzero(INPUT(&e, shape, MTF_F64, -3, 1, 0, .1, -0., 0), MTF_F64), 0, 1,
           1, 0, 1, 0, 0);
    eval_close(&e);
}

/* ---- what moves ---- */

enum { T = 6, C = 64 };

/* No operand of a collective may have the classes. */
static void expect_small(mtf_graph *g, int n, mtf_tensor *const *fetches, int most)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse("x:4", &err);
    mtf_layout *l = mtf_layout_parse("c:x", m, true, NULL, &err);
    mtf_program *p = mtf_compile(g, m, l, &(mtf_request){.nfetches = n, .fetches = fetches}, &err);
    if (!p) fail_msg("%s", err.text);
    int calls = 0;
    for (const instr *i = p->first; i; i = i->next) {
        if (!instr_is_collective(i)) continue;
        calls++;
        for (int k = 0; k < i->nin; k++)
            if (mtf_shape_size(&i->in[k]->shape) > T)
                fail_msg("%s of '%s' has the shape of classes", instr_name(i), i->node->name);
    }
    assert_in_range(calls, 1, most);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static void split_classes(void **state)
{
    (void)state;
    static const mtf_softmax_loss options[] = {
        {0}, {.z_loss = 1e-3}, {.label_smoothing = 0.1}, {.label_smoothing = 0.1, .z_loss = 1e-3}};
    for (int k = 0; k < 8; k++) {
        mtf_graph *g = mtf_graph_new();
        const mtf_shape shape = MTF_SHAPE({"t", T}, {"c", C});
        mtf_tensor *logits = mtf_placeholder(g, "logits", shape, MTF_F32);
        mtf_tensor *targets = k < 4 ? mtf_placeholder(g, "targets", MTF_SHAPE({"t", T}), MTF_I32)
                                    : mtf_placeholder(g, "targets", shape, MTF_F32);
        mtf_tensor *loss = mtf_softmax_cross_entropy(logits, targets, "c", &options[k % 4]);
        mtf_tensor *sum = mtf_reduce_sum(loss, MTF_SCALAR), *dx = NULL;
        mtf_gradients(sum, 1, &logits, &dx);
        /* The largest, the exponentials, the targets' logits, the mean, the targets. */
        expect_small(g, 2, (mtf_tensor *[]){sum, mtf_reduce_sum(dx, MTF_SHAPE({"c", C}))}, 5);
        mtf_graph_free(&g);
    }
}

/* ---- messages ---- */

/* Softmax over b of x [a=4 b=6]. */
static mtf_tensor *softmax_of(parts *p, mtf_tensor *targets, mtf_softmax_loss o)
{
    return mtf_softmax_cross_entropy(p->x, targets, "b", &o);
}
#define DEFAULTS ((mtf_softmax_loss){0})

MISTAKE(labels_of_other_dims,
        softmax_of(p, mtf_placeholder(p->g, "t", MTF_SHAPE({"s", 4}), MTF_I32), DEFAULTS))
MISTAKE(labels_of_another_size,
        softmax_of(p, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", 5}), MTF_I32), DEFAULTS))
MISTAKE(labels_with_classes,
        softmax_of(p, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", 4}, {"b", 6}), MTF_I32), DEFAULTS))
MISTAKE(shares_without_classes,
        softmax_of(p, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", 4}), MTF_F32), DEFAULTS))
MISTAKE(shares_of_another_type, softmax_of(p, p->d, DEFAULTS))
MISTAKE(flags_for_targets, softmax_of(p, p->k, DEFAULTS))
MISTAKE(no_such_classes, mtf_softmax_cross_entropy(p->x, p->i, "vocab", NULL))
MISTAKE(classes_without_a_name, mtf_softmax_cross_entropy(p->x, p->i, NULL, NULL))
MISTAKE(logits_of_integers, mtf_softmax_cross_entropy(p->i, p->i, "a", NULL))
MISTAKE(targets_of_another_graph, softmax_of(p, p->foreign, DEFAULTS))
MISTAKE(smoothing_above_one, softmax_of(p, p->i, (mtf_softmax_loss){.label_smoothing = 1.5}))
MISTAKE(smoothing_below_zero, softmax_of(p, p->i, (mtf_softmax_loss){.label_smoothing = -0.1}))
MISTAKE(smoothing_is_nan, softmax_of(p, p->i, (mtf_softmax_loss){.label_smoothing = (double)NAN}))
MISTAKE(z_loss_below_zero, softmax_of(p, p->i, (mtf_softmax_loss){.z_loss = -1}))
MISTAKE(z_loss_is_nan, softmax_of(p, p->i, (mtf_softmax_loss){.z_loss = (double)NAN}))
MISTAKE(sigmoid_of_labels, mtf_sigmoid_cross_entropy(p->x, p->i))
MISTAKE(sigmoid_of_other_dims, mtf_sigmoid_cross_entropy(p->x, p->y))
MISTAKE(sigmoid_of_another_type, mtf_sigmoid_cross_entropy(p->x, p->d))
MISTAKE(sigmoid_of_integers, mtf_sigmoid_cross_entropy(p->i, p->i))
MISTAKE(sigmoid_of_another_graph, mtf_sigmoid_cross_entropy(p->x, p->foreign))

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const mistake_row rows[] = {
        MISTAKE_ROW(labels_of_other_dims),   MISTAKE_ROW(labels_of_another_size),
        MISTAKE_ROW(labels_with_classes),    MISTAKE_ROW(shares_without_classes),
        MISTAKE_ROW(shares_of_another_type), MISTAKE_ROW(flags_for_targets),
        MISTAKE_ROW(no_such_classes),        MISTAKE_ROW(classes_without_a_name),
        MISTAKE_ROW(logits_of_integers),     MISTAKE_ROW(targets_of_another_graph),
        MISTAKE_ROW(smoothing_above_one),    MISTAKE_ROW(smoothing_below_zero),
        MISTAKE_ROW(smoothing_is_nan),       MISTAKE_ROW(z_loss_below_zero),
        MISTAKE_ROW(z_loss_is_nan),          MISTAKE_ROW(sigmoid_of_labels),
        MISTAKE_ROW(sigmoid_of_other_dims),  MISTAKE_ROW(sigmoid_of_another_type),
        MISTAKE_ROW(sigmoid_of_integers),    MISTAKE_ROW(sigmoid_of_another_graph),
    };
    mistakes_check("loss_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_values),        cmocka_unit_test(extremes),
        cmocka_unit_test(sigmoid_values),        cmocka_unit_test(nonzero_values),
        cmocka_unit_test(split_classes),         cmocka_unit_test(no_class),
        cmocka_unit_test(mistakes_have_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
