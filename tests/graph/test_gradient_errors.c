/* SPDX-License-Identifier: Apache-2.0
 * The message of every mistake with gradients, custom gradients and recompute regions, one line
 * each, in golden/gradient_errors.txt. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "mtf/mtf.h"
#include "support/golden.h"

typedef struct parts {
    mtf_graph *g, *other;
    mtf_tensor *x, *y; /* f32 [a=4 b=6]; y = x^2 */
    mtf_tensor *i;     /* i32 [a=4] */
    mtf_tensor *foreign;
    mtf_tensor *d; /* where gradients go */
} parts;

static const mtf_shape ab = {.rank = 2, .dim = {{"a", 4}, {"b", 6}}};

static parts parts_new(void)
{
    parts p = {.g = mtf_graph_new(), .other = mtf_graph_new()};
    p.x = mtf_placeholder(p.g, "x", ab, MTF_F32);
    p.y = mtf_square(p.x);
    p.i = mtf_placeholder(p.g, "i", MTF_SHAPE({"a", 4}), MTF_I32);
    p.foreign = mtf_placeholder(p.other, "foreign", ab, MTF_F32);
    return p;
}

static void of(parts *p, mtf_tensor *y, mtf_tensor *dy)
{
    assert_int_equal(mtf_gradients_of(1, &y, &dy, 1, &p->x, &p->d), MTF_INVALID);
    assert_null(p->d);
}

static void y_of_integers(parts *p)
{
    of(p, p->i, NULL);
}
static void one_y_is_null(parts *p)
{
    mtf_tensor *ys[] = {p->y, NULL};
    mtf_gradients_of(2, ys, NULL, 1, &p->x, &p->d);
}
static void one_y_of_another_graph(parts *p)
{
    mtf_tensor *ys[] = {p->y, p->foreign};
    mtf_gradients_of(2, ys, NULL, 1, &p->x, &p->d);
}
static void seed_of_another_shape(parts *p)
{
    of(p, p->y, mtf_constant(p->g, 1, MTF_SHAPE({"a", 4}), MTF_F32));
}
static void seed_of_another_type(parts *p)
{
    of(p, p->y, mtf_constant(p->g, 1, ab, MTF_F64));
}
static void seed_of_another_graph(parts *p)
{
    of(p, p->y, p->foreign);
}

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

static void returns(parts *p, mistake_of_fn what)
{
    const custom_context c = {what, p->foreign};
    of(p, mtf_custom_gradient(1, &p->y, 1, &p->x, wrong, &c, sizeof c, NULL), NULL);
}
static void gradient_of_another_shape(parts *p)
{
    returns(p, OTHER_SHAPE);
}
static void gradient_of_another_type(parts *p)
{
    returns(p, OTHER_TYPE);
}
static void gradient_of_another_graph(parts *p)
{
    returns(p, OTHER_GRAPH);
}
static void gradient_function_fails(parts *p)
{
    returns(p, FAILS);
}
static void no_function(parts *p)
{
    mtf_custom_gradient(1, &p->y, 1, &p->x, NULL, NULL, 0, NULL);
}
static void no_results(parts *p)
{
    mtf_custom_gradient(0, NULL, 1, &p->x, wrong, NULL, 0, NULL);
}
static void operands_below_zero(parts *p)
{
    mtf_custom_gradient(1, &p->y, -1, &p->x, wrong, NULL, 0, NULL);
}
static void no_room(parts *p)
{
    mtf_custom_gradient(2, (mtf_tensor *[]){p->y, p->y}, 1, &p->x, wrong, NULL, 0, NULL);
}
static void a_result_is_null(parts *p)
{
    mtf_tensor *nothing = NULL;
    mtf_custom_gradient(1, &nothing, 1, &p->x, wrong, NULL, 0, NULL);
}
static void an_operand_is_null(parts *p)
{
    mtf_tensor *nothing = NULL;
    mtf_custom_gradient(1, &p->y, 1, &nothing, wrong, NULL, 0, NULL);
}
static void an_operand_of_another_graph(parts *p)
{
    mtf_custom_gradient(1, &p->y, 1, &p->foreign, wrong, NULL, 0, NULL);
}
static void an_operand_of_integers(parts *p)
{
    mtf_custom_gradient(1, &p->y, 1, &p->i, wrong, NULL, 0, NULL);
}

/* ---- regions and marks ---- */

static void variable_in_a_region(parts *p)
{
    mtf_recompute_begin(p->g);
    mtf_variable(p->g, "w", mtf_constant(p->g, 0, ab, MTF_F32), true);
}
static void open_region(parts *p)
{
    mtf_recompute_begin(p->g);
    of(p, mtf_square(p->x), NULL);
}
static void end_without_begin(parts *p)
{
    mtf_recompute_begin(p->g);
    mtf_recompute_end(p->g);
    mtf_recompute_end(p->g);
}
static void marks_out_of_order(parts *p)
{
    assert_int_equal(mtf_external_inputs(p->g, 2, 1, 1, &p->d), 0);
}
static void mark_beyond_the_graph(parts *p)
{
    assert_int_equal(mtf_external_inputs(p->g, 0, 1000, 1, &p->d), 0);
}
static void variable_between_marks(parts *p)
{
    mtf_tensor *initial = mtf_constant(p->g, 0, ab, MTF_F32);
    const int64_t begin = mtf_graph_mark(p->g);
    mtf_variable(p->g, "w", initial, true);
    mtf_external_inputs(p->g, begin, mtf_graph_mark(p->g), 1, &p->d);
}

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *name;
    void (*make)(parts *p);
} mistakes[] = {
    ROW(y_of_integers),
    ROW(one_y_is_null),
    ROW(one_y_of_another_graph),
    ROW(seed_of_another_shape),
    ROW(seed_of_another_type),
    ROW(seed_of_another_graph),
    ROW(gradient_of_another_shape),
    ROW(gradient_of_another_type),
    ROW(gradient_of_another_graph),
    ROW(gradient_function_fails),
    ROW(no_function),
    ROW(no_results),
    ROW(operands_below_zero),
    ROW(no_room),
    ROW(a_result_is_null),
    ROW(an_operand_is_null),
    ROW(an_operand_of_another_graph),
    ROW(an_operand_of_integers),
    ROW(variable_in_a_region),
    ROW(open_region),
    ROW(end_without_begin),
    ROW(marks_out_of_order),
    ROW(mark_beyond_the_graph),
    ROW(variable_between_marks),
};

static void every_mistake_has_its_message(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        parts p = parts_new();
        mtf_err err = {0};
        assert_int_equal(mtf_graph_status(p.g, &err), MTF_OK);
        mistakes[i].make(&p);
        if (mtf_graph_status(p.g, &err) != MTF_INVALID)
            fail_msg("%s leaves no message", mistakes[i].name);
        assert_int_equal(mtf_graph_status(p.other, NULL), MTF_OK);
        fprintf(f, "%s: %s\n", mistakes[i].name, err.text);
        mtf_graph_free(&p.g);
        mtf_graph_free(&p.other);
    }
    fclose(f);
    golden_check("gradient_errors.txt", text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_has_its_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
