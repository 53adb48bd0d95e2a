/* SPDX-License-Identifier: Apache-2.0
 * The message of every mistake with gradients, custom gradients and recompute regions, one line
 * each, in golden/gradient_errors.txt. */
#include "check.h"

#include "support/mistakes.h"

static const mtf_shape ab = {.rank = 2, .dim = {{"a", 4}, {"b", 6}}};

/* What there is of the gradients of y by x. */
static mtf_tensor *of(parts *p, mtf_tensor *y, mtf_tensor *dy)
{
    mtf_tensor *d = NULL;
    assert_int_equal(mtf_gradients_of(1, &y, &dy, 1, &p->x, &d), MTF_INVALID);
    return d;
}

static mtf_tensor *of_two(parts *p, mtf_tensor *y, mtf_tensor *z)
{
    mtf_tensor *d = NULL, *ys[] = {y, z};
    assert_int_equal(mtf_gradients_of(2, ys, NULL, 1, &p->x, &d), MTF_INVALID);
    return d;
}

MISTAKE(y_of_integers, of(p, p->i, NULL))
static mtf_tensor *of_no_arguments(parts *p)
{
    mtf_tensor *dx;
    mtf_gradients_of(1, &p->x, NULL, 1, NULL, &dx);
    return NULL;
}

MISTAKE(one_y_is_null, of_two(p, mtf_square(p->x), NULL))
MISTAKE(one_y_of_another_graph, of_two(p, mtf_square(p->x), p->foreign))
MISTAKE(seed_of_another_shape,
        of(p, mtf_square(p->x), mtf_constant(p->g, 1, MTF_SHAPE({"a", 4}), MTF_F32)))
MISTAKE(seed_of_another_type, of(p, mtf_square(p->x), mtf_constant(p->g, 1, ab, MTF_F64)))
MISTAKE(seed_of_another_graph, of(p, mtf_square(p->x), p->foreign))

/* ---- custom gradients ---- */

typedef enum mistake_of_fn { OTHER_SHAPE, OTHER_TYPE, OTHER_GRAPH, FAILS } mistake_of_fn;
typedef struct custom_context {
    mistake_of_fn what;
    mtf_tensor *foreign;
} custom_context;

static void wrong(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,
                  mtf_tensor *const *dys, mtf_tensor **dxs)
{
    const custom_context *c = context;
    (void)outs;
    switch (c->what) {
    case OTHER_SHAPE:
        dxs[0] = mtf_reduce_sum(dys[0], MTF_SHAPE({"a", 4}));
        break;
    case OTHER_TYPE:
        dxs[0] = mtf_cast(dys[0], MTF_F64);
        break;
    case OTHER_GRAPH:
        dxs[0] = c->foreign;
        break;
    case FAILS:
        dxs[0] = mtf_softmax(ins[0], "nothing");
        break;
    }
}

static mtf_tensor *custom(parts *p, mtf_tensor *y, int nin, mtf_tensor *x, mtf_gradient_fn *f)
{
    (void)p;
    return mtf_custom_gradient(1, &y, nin, &x, f, NULL, 0, NULL);
}

/* The gradient of x^2 through a function that makes a mistake. */
static mtf_tensor *returns(parts *p, mistake_of_fn what)
{
    const custom_context c = {what, p->foreign};
    mtf_tensor *y = mtf_square(p->x);
    return of(p, mtf_custom_gradient(1, &y, 1, &p->x, wrong, &c, sizeof c, NULL), NULL);
}

MISTAKE(gradient_of_another_shape, returns(p, OTHER_SHAPE))
MISTAKE(gradient_of_another_type, returns(p, OTHER_TYPE))
MISTAKE(gradient_of_another_graph, returns(p, OTHER_GRAPH))
MISTAKE(gradient_function_fails, returns(p, FAILS))
MISTAKE(no_function, custom(p, p->d, 1, p->x, NULL))
MISTAKE(no_results, mtf_custom_gradient(0, NULL, 1, &p->x, wrong, NULL, 0, NULL))
MISTAKE(operands_below_zero, custom(p, p->d, -1, p->x, wrong))
MISTAKE(no_room,
        mtf_custom_gradient(2, (mtf_tensor *[]){p->x, p->d}, 1, &p->x, wrong, NULL, 0, NULL))
MISTAKE(operands_are_null, mtf_custom_gradient(1, &p->d, 1, NULL, wrong, NULL, 0, NULL))
MISTAKE(results_are_null, mtf_custom_gradient(1, NULL, 1, &p->d, wrong, NULL, 0, NULL))
MISTAKE(context_is_null, mtf_custom_gradient(1, &p->d, 1, &p->d, wrong, NULL, 8, NULL))
MISTAKE(a_result_is_null, custom(p, NULL, 1, p->x, wrong))
MISTAKE(an_operand_is_null, custom(p, p->d, 1, NULL, wrong))
MISTAKE(an_operand_of_another_graph, custom(p, p->d, 1, p->foreign, wrong))
MISTAKE(an_operand_of_integers, custom(p, p->d, 1, p->i, wrong))

/* ---- regions and marks ---- */

static mtf_tensor *variable_in_a_region(parts *p)
{
    mtf_recompute_begin(p->g);
    return mtf_variable(p->g, "v", mtf_constant(p->g, 0, ab, MTF_F32), true);
}

static mtf_tensor *open_region(parts *p)
{
    mtf_recompute_begin(p->g);
    return of(p, mtf_square(p->x), NULL);
}

static mtf_tensor *end_without_begin(parts *p)
{
    mtf_recompute_begin(p->g);
    mtf_recompute_end(p->g);
    mtf_recompute_end(p->g);
    return NULL;
}

static mtf_tensor *between(parts *p, int64_t begin, int64_t end)
{
    mtf_tensor *in = NULL;
    assert_int_equal(mtf_external_inputs(p->g, begin, end, 1, &in), 0);
    return in;
}

MISTAKE(marks_out_of_order, between(p, 2, 1))
MISTAKE(mark_beyond_the_graph, between(p, 0, 1000))

static mtf_tensor *variable_between_marks(parts *p)
{
    mtf_tensor *initial = mtf_constant(p->g, 0, ab, MTF_F32);
    const int64_t begin = mtf_graph_mark(p->g);
    mtf_variable(p->g, "v", initial, true);
    return between(p, begin, mtf_graph_mark(p->g));
}

static const mistake_row rows[] = {
    MISTAKE_ROW(y_of_integers),
    MISTAKE_ROW(of_no_arguments),
    MISTAKE_ROW(one_y_is_null),
    MISTAKE_ROW(one_y_of_another_graph),
    MISTAKE_ROW(seed_of_another_shape),
    MISTAKE_ROW(seed_of_another_type),
    MISTAKE_ROW(seed_of_another_graph),
    MISTAKE_ROW(gradient_of_another_shape),
    MISTAKE_ROW(gradient_of_another_type),
    MISTAKE_ROW(gradient_of_another_graph),
    MISTAKE_ROW(gradient_function_fails),
    MISTAKE_ROW(no_function),
    MISTAKE_ROW(no_results),
    MISTAKE_ROW(operands_below_zero),
    MISTAKE_ROW(no_room),
    MISTAKE_ROW(operands_are_null),
    MISTAKE_ROW(results_are_null),
    MISTAKE_ROW(context_is_null),
    MISTAKE_ROW(a_result_is_null),
    MISTAKE_ROW(an_operand_is_null),
    MISTAKE_ROW(an_operand_of_another_graph),
    MISTAKE_ROW(an_operand_of_integers),
    MISTAKE_ROW(variable_in_a_region),
    MISTAKE_ROW(open_region),
    MISTAKE_ROW(end_without_begin),
    MISTAKE_ROW(marks_out_of_order),
    MISTAKE_ROW(mark_beyond_the_graph),
    MISTAKE_ROW(variable_between_marks),
};

static void every_mistake_has_its_message(void **state)
{
    (void)state;
    mistakes_check("gradient_errors.txt", sizeof rows / sizeof *rows, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_has_its_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
