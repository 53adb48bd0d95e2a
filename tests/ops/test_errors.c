/* SPDX-License-Identifier: Apache-2.0
 * The message of every mistake that the builders know, one line each, in golden/op_errors.txt. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mtf/mtf.h"
#include "support/golden.h"

/* What the mistakes are made with. */
typedef struct parts {
    mtf_graph *g, *other;
    mtf_tensor *x, *y, *c; /* f32 [a=4 b=6], f32 [b=6], f32 [b=5] */
    mtf_tensor *i, *k;     /* i32 [a=4], bool [a=4] */
    mtf_tensor *d;         /* f64 [a=4 b=6] */
    mtf_tensor *w;         /* a variable, f32 [a=4 b=6] */
    mtf_tensor *foreign;   /* of another graph */
} parts;

static const mtf_dim a = {"a", 4}, b = {"b", 6};
#define AB MTF_SHAPE(a, b)

static parts parts_new(void)
{
    parts p = {.g = mtf_graph_new(), .other = mtf_graph_new()};
    p.x = mtf_placeholder(p.g, "x", AB, MTF_F32);
    p.y = mtf_placeholder(p.g, "y", MTF_SHAPE(b), MTF_F32);
    p.c = mtf_placeholder(p.g, "c", MTF_SHAPE({"b", 5}), MTF_F32);
    p.i = mtf_placeholder(p.g, "i", MTF_SHAPE(a), MTF_I32);
    p.k = mtf_placeholder(p.g, "k", MTF_SHAPE(a), MTF_BOOL);
    p.d = mtf_placeholder(p.g, "d", AB, MTF_F64);
    p.w = mtf_variable(p.g, "w", mtf_constant(p.g, 0, AB, MTF_F32), true);
    p.foreign = mtf_placeholder(p.other, "foreign", AB, MTF_F32);
    return p;
}

typedef mtf_tensor *mistake(parts *p);
#define MISTAKE(name, expr)                                                                        \
    static mtf_tensor *name(parts *p)                                                              \
    {                                                                                              \
        return expr;                                                                               \
    }

MISTAKE(no_name, mtf_placeholder(p->g, "t", MTF_SHAPE({"", 4}), MTF_F32))
MISTAKE(null_name, mtf_placeholder(p->g, "t", MTF_SHAPE({NULL, 4}), MTF_F32))
MISTAKE(space_in_name, mtf_placeholder(p->g, "t", MTF_SHAPE({"a b", 4}), MTF_F32))
MISTAKE(plus_in_name, mtf_placeholder(p->g, "t", MTF_SHAPE({"a+b", 4}), MTF_F32))
MISTAKE(long_name, mtf_placeholder(p->g, "t",
                                   MTF_SHAPE({"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
                                              "abcdefghijklmnop",
                                              4}),
                                   MTF_F32))
MISTAKE(size_zero, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", 0}), MTF_F32))
MISTAKE(size_negative, mtf_constant(p->g, 1, MTF_SHAPE({"a", -3}), MTF_F32))
MISTAKE(dim_twice, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", 4}, {"a", 4}), MTF_F32))
MISTAKE(dim_twice_two_sizes, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", 4}, {"a", 5}), MTF_F32))
MISTAKE(too_large, mtf_placeholder(p->g, "t", MTF_SHAPE({"a", INT64_MAX}, {"b", 4}), MTF_F32))
MISTAKE(negative_rank, mtf_placeholder(p->g, "t", (mtf_shape){.rank = -1}, MTF_F32))
static mtf_tensor *too_many_dims(parts *p)
{
    static char names[MTF_MAX_RANK + 1][16];
    mtf_shape s = MTF_SCALAR;
    for (int i = 0; i <= MTF_MAX_RANK; i++) {
        snprintf(names[i], sizeof names[i], "d%d", i);
        s = mtf_shape_with(s, (mtf_dim){names[i], 1});
    }
    return mtf_placeholder(p->g, "t", s, MTF_F32);
}

/* More dims in a result than a tensor may have, of operands that are each legal. */
static mtf_tensor *too_many_dims_together(parts *p)
{
    mtf_tensor *t[2];
    static char names[2][8][16];
    for (int k = 0; k < 2; k++) {
        mtf_shape s = MTF_SCALAR;
        for (int i = 0; i < 8; i++) {
            snprintf(names[k][i], sizeof names[k][i], "%c%d", 'a' + k, i);
            s = mtf_shape_with(s, (mtf_dim){names[k][i], 1});
        }
        t[k] = mtf_placeholder(p->g, "t", s, MTF_F32);
    }
    return mtf_add(t[0], t[1]);
}

/* The third operand meets a shape of the other two that is too large already. */
static mtf_tensor *too_many_dims_of_three(parts *p)
{
    mtf_tensor *t[3];
    static char names[3][8][16];
    for (int k = 0; k < 3; k++) {
        mtf_shape s = MTF_SCALAR;
        for (int i = 0; i < 8; i++) {
            snprintf(names[k][i], sizeof names[k][i], "%c%d", 'a' + k, i);
            s = mtf_shape_with(s, (mtf_dim){names[k][i], 1});
        }
        t[k] = mtf_placeholder(p->g, "t", s, k ? MTF_F32 : MTF_BOOL);
    }
    return mtf_where(t[0], t[1], t[2]);
}

MISTAKE(variable_of_mixed_types,
        mtf_variable_typed(p->g, "w", p->i, false,
                           (mtf_variable_types){MTF_I32, MTF_I32, MTF_BF16}))
MISTAKE(narrow_and_wide, mtf_add(p->x, mtf_cast(p->x, MTF_BF16)))
MISTAKE(narrow_product, mtf_einsum(2, (mtf_tensor *[]){mtf_cast(p->x, MTF_BF16), p->x}, AB))
MISTAKE(no_type, mtf_placeholder(p->g, "t", AB, (mtf_dtype)9))
MISTAKE(no_type_of_random, mtf_random_normal(p->g, "t", AB, (mtf_dtype)-1, 0, 1))
MISTAKE(cast_to_no_type, mtf_cast(p->x, MTF_NUM_DTYPES))
MISTAKE(null_dim_to_rename, mtf_rename(p->x, NULL, "c"))
MISTAKE(null_dim_to_gather, mtf_gather(p->x, p->i, NULL))
MISTAKE(null_dim_to_shift, mtf_shift(p->x, NULL, 1, false))
MISTAKE(null_dim_to_softmax, mtf_softmax(p->x, NULL))
MISTAKE(null_initial_value, mtf_variable(p->g, "v", NULL, true))
MISTAKE(foreign_initial_value, mtf_variable(p->g, "v", p->foreign, true))
static mtf_tensor *empty_full_batch(parts *p)
{
    mtf_graph_set_batch(p->g, "batch", 0);
    return mtf_exp(p->x);
}

MISTAKE(null_operand, mtf_add(p->x, NULL))
MISTAKE(null_first_operand, mtf_less(NULL, p->x))
MISTAKE(null_in_where, mtf_where(NULL, p->x, p->x))
MISTAKE(null_in_einsum, mtf_matmul(p->x, NULL, MTF_SHAPE(a)))
MISTAKE(null_in_gather, mtf_gather(p->x, NULL, "a"))
MISTAKE(null_in_scatter, mtf_scatter_add(NULL, p->i, "v", AB))
MISTAKE(null_in_add_n, mtf_add_n(2, (mtf_tensor *[]){p->x, NULL}))
MISTAKE(null_value_to_assign, mtf_assign(p->w, NULL))
MISTAKE(null_variable_to_assign, mtf_assign(NULL, p->x))
MISTAKE(other_graph, mtf_add(p->x, p->foreign))
MISTAKE(other_graph_in_einsum, mtf_matmul(p->x, p->foreign, MTF_SHAPE(a)))
MISTAKE(other_graph_in_assign, mtf_assign(p->foreign, p->x))
MISTAKE(two_sizes, mtf_add(p->x, p->c))
MISTAKE(two_sizes_in_einsum, mtf_matmul(p->x, p->c, MTF_SHAPE(a)))

MISTAKE(two_types, mtf_add(p->x, p->d))
MISTAKE(sum_of_bool, mtf_add(p->k, p->k))
MISTAKE(exp_of_integers, mtf_exp(p->i))
MISTAKE(quotient_of_integers, mtf_div(p->i, p->i))
MISTAKE(not_of_numbers, mtf_logical_not(p->x))
MISTAKE(and_of_numbers, mtf_logical_and(p->x, p->x))
MISTAKE(condition_is_no_bool, mtf_where(p->x, p->x, p->x))
MISTAKE(branches_differ, mtf_where(p->k, p->x, p->d))
MISTAKE(einsum_of_two_types, mtf_matmul(p->x, p->d, MTF_SHAPE(a)))
MISTAKE(einsum_of_bool, mtf_matmul(p->k, p->k, MTF_SCALAR))
MISTAKE(einsum_to_another_size, mtf_matmul(p->x, p->y, MTF_SHAPE({"a", 5})))
static mtf_tensor *einsum_of_too_many(parts *p)
{
    mtf_tensor *in[20];
    for (int i = 0; i < 20; i++)
        in[i] = p->x;
    return mtf_einsum(20, in, MTF_SHAPE(a));
}
MISTAKE(reduce_to_a_new_dim, mtf_reduce_sum(p->x, MTF_SHAPE({"z", 2})))
MISTAKE(reduce_to_another_size, mtf_reduce_max(p->x, MTF_SHAPE({"a", 5})))
MISTAKE(mean_of_integers, mtf_reduce_mean(p->i, MTF_SCALAR))
MISTAKE(sum_over_bool, mtf_reduce_sum(p->k, MTF_SCALAR))
MISTAKE(softmax_without_dim, mtf_softmax(p->x, "z"))
MISTAKE(log_softmax_without_dim, mtf_log_softmax(p->x, "z"))

MISTAKE(broadcast_loses_a_dim, mtf_broadcast(p->x, MTF_SHAPE(a)))
MISTAKE(broadcast_changes_a_size, mtf_broadcast(p->x, MTF_SHAPE({"a", 8}, b)))
MISTAKE(transpose_grows, mtf_transpose(p->x, MTF_SHAPE(a, b, {"c", 2})))
MISTAKE(reshape_changes_the_size, mtf_reshape(p->x, MTF_SHAPE({"c", 25})))
MISTAKE(rename_of_no_dim, mtf_rename(p->x, "z", "c"))
MISTAKE(rename_to_a_dim, mtf_rename(p->x, "a", "b"))
MISTAKE(rename_to_no_name, mtf_rename(p->x, "a", "a:b"))
MISTAKE(shift_of_no_dim, mtf_shift(p->x, "z", 1, false))

MISTAKE(gather_along_no_dim, mtf_gather(p->x, p->i, "z"))
MISTAKE(gather_along_a_dim_of_indices, mtf_gather(p->x, p->i, "a"))
MISTAKE(gather_with_floats, mtf_gather(p->x, p->y, "a"))
MISTAKE(scatter_without_dim, mtf_scatter_add(p->x, p->i, "v", MTF_SHAPE(b)))
MISTAKE(scatter_of_bool, mtf_scatter_add(p->k, p->i, "v", MTF_SHAPE({"v", 3})))
MISTAKE(one_hot_of_floats, mtf_one_hot(p->x, (mtf_dim){"v", 3}, 1, 0, MTF_F32))
MISTAKE(one_hot_to_a_dim, mtf_one_hot(p->i, a, 1, 0, MTF_F32))

MISTAKE(range_of_bool, mtf_range(p->g, a, MTF_BOOL))
MISTAKE(random_integers, mtf_random_normal(p->g, "r", AB, MTF_I32, 0, 1))
MISTAKE(rate_of_one, mtf_dropout(p->x, "drop", 1.0))
MISTAKE(negative_rate, mtf_dropout(p->x, "drop", -0.5))
MISTAKE(rate_is_nan, mtf_dropout(p->x, "drop", (double)NAN))
MISTAKE(assign_to_no_variable, mtf_assign(p->x, p->x))
MISTAKE(assign_another_shape, mtf_assign(p->w, p->y))
MISTAKE(assign_another_type, mtf_assign(p->w, p->d))
static mtf_tensor *scope_underflow(parts *p)
{
    mtf_scope_pop(p->g);
    return NULL;
}
static mtf_tensor *dim_of_tensor(parts *p)
{
    assert_int_equal(mtf_tensor_dim(p->x, "z").size, 1);
    return NULL;
}
static mtf_tensor *gradient_of_no_scalar(parts *p)
{
    mtf_tensor *dx;
    assert_int_equal(mtf_gradients(p->x, 1, &p->x, &dx), MTF_INVALID);
    return dx;
}
static mtf_tensor *gradient_by_integers(parts *p)
{
    mtf_tensor *dx;
    mtf_gradients(mtf_reduce_sum(p->x, MTF_SCALAR), 1, &p->i, &dx);
    return dx;
}
static mtf_tensor *gradient_by_null(parts *p)
{
    mtf_tensor *none = NULL, *dx;
    mtf_gradients(mtf_reduce_sum(p->x, MTF_SCALAR), 1, &none, &dx);
    return dx;
}
static mtf_tensor *gradient_by_another_graph(parts *p)
{
    mtf_tensor *dx;
    mtf_gradients(mtf_reduce_sum(p->x, MTF_SCALAR), 1, &p->foreign, &dx);
    return dx;
}

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *name;
    mistake *make;
} mistakes[] = {
    ROW(no_name),
    ROW(null_name),
    ROW(space_in_name),
    ROW(plus_in_name),
    ROW(long_name),
    ROW(size_zero),
    ROW(size_negative),
    ROW(dim_twice),
    ROW(dim_twice_two_sizes),
    ROW(too_large),
    ROW(negative_rank),
    ROW(too_many_dims),
    ROW(too_many_dims_together),
    ROW(too_many_dims_of_three),
    ROW(variable_of_mixed_types),
    ROW(narrow_and_wide),
    ROW(narrow_product),
    ROW(no_type),
    ROW(no_type_of_random),
    ROW(cast_to_no_type),
    ROW(null_dim_to_rename),
    ROW(null_dim_to_gather),
    ROW(null_dim_to_shift),
    ROW(null_dim_to_softmax),
    ROW(null_initial_value),
    ROW(foreign_initial_value),
    ROW(empty_full_batch),
    ROW(null_operand),
    ROW(null_first_operand),
    ROW(null_in_where),
    ROW(null_in_einsum),
    ROW(null_in_gather),
    ROW(null_in_scatter),
    ROW(null_in_add_n),
    ROW(null_value_to_assign),
    ROW(null_variable_to_assign),
    ROW(other_graph),
    ROW(other_graph_in_einsum),
    ROW(other_graph_in_assign),
    ROW(two_sizes),
    ROW(two_sizes_in_einsum),
    ROW(two_types),
    ROW(sum_of_bool),
    ROW(exp_of_integers),
    ROW(quotient_of_integers),
    ROW(not_of_numbers),
    ROW(and_of_numbers),
    ROW(condition_is_no_bool),
    ROW(branches_differ),
    ROW(einsum_of_two_types),
    ROW(einsum_of_bool),
    ROW(einsum_to_another_size),
    ROW(einsum_of_too_many),
    ROW(reduce_to_a_new_dim),
    ROW(reduce_to_another_size),
    ROW(mean_of_integers),
    ROW(sum_over_bool),
    ROW(softmax_without_dim),
    ROW(log_softmax_without_dim),
    ROW(broadcast_loses_a_dim),
    ROW(broadcast_changes_a_size),
    ROW(transpose_grows),
    ROW(reshape_changes_the_size),
    ROW(rename_of_no_dim),
    ROW(rename_to_a_dim),
    ROW(rename_to_no_name),
    ROW(shift_of_no_dim),
    ROW(gather_along_no_dim),
    ROW(gather_along_a_dim_of_indices),
    ROW(gather_with_floats),
    ROW(scatter_without_dim),
    ROW(scatter_of_bool),
    ROW(one_hot_of_floats),
    ROW(one_hot_to_a_dim),
    ROW(range_of_bool),
    ROW(random_integers),
    ROW(rate_of_one),
    ROW(negative_rate),
    ROW(rate_is_nan),
    ROW(assign_to_no_variable),
    ROW(assign_another_shape),
    ROW(assign_another_type),
    ROW(scope_underflow),
    ROW(dim_of_tensor),
    ROW(gradient_of_no_scalar),
    ROW(gradient_by_integers),
    ROW(gradient_by_null),
    ROW(gradient_by_another_graph),
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
        if (mistakes[i].make(&p)) fail_msg("%s is accepted", mistakes[i].name);
        if (mtf_graph_status(p.g, &err) != MTF_INVALID)
            fail_msg("%s leaves no message", mistakes[i].name);
        assert_int_equal(mtf_graph_status(p.other, NULL), MTF_OK);
        fprintf(f, "%s: %s\n", mistakes[i].name, err.text);
        mtf_graph_free(&p.g);
        mtf_graph_free(&p.other);
    }
    fclose(f);
    golden_check("op_errors.txt", text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_has_its_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
