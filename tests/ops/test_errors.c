/* SPDX-License-Identifier: Apache-2.0
 * The message of every mistake that the builders know, one line each, in golden/op_errors.txt. */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "support/mistakes.h"

static const mtf_dim a = {"a", 4}, b = {"b", 6};
#define AB MTF_SHAPE(a, b)

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

/* Five operands, every two of which have three dims in common that are summed. */
static mtf_tensor *too_many_dims_of_a_product(parts *p)
{
    mtf_tensor *t[5];
    static char names[5][5][3][16];
    for (int k = 0; k < 5; k++) {
        mtf_shape s = MTF_SCALAR;
        for (int j = 0; j < 5; j++)
            for (int i = 0; j != k && i < 3; i++) {
                char *name = names[k][j][i];
                snprintf(name, sizeof names[k][j][i], "%c%d", 'a' + (j < k ? j : k),
                         i + 3 * (j < k ? k : j));
                s = mtf_shape_with(s, (mtf_dim){name, 1});
            }
        t[k] = mtf_placeholder(p->g, "t", s, MTF_F32);
    }
    return mtf_einsum(5, t, MTF_SCALAR);
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
MISTAKE(mask_of_integers, mtf_causal_bias(p->g, a, b, MTF_I32))
MISTAKE(mask_over_one_dim, mtf_causal_bias(p->g, a, a, MTF_F32))
MISTAKE(range_beyond_i32, mtf_range(p->g, (mtf_dim){"a", 1ll << 32}, MTF_I32))
MISTAKE(random_integers, mtf_random_normal(p->g, "r", AB, MTF_I32, 0, 1))
MISTAKE(random_of_nan, mtf_random_uniform(p->g, "r", AB, MTF_BF16, (double)NAN, 1))
MISTAKE(random_of_infinity, mtf_random_normal(p->g, "r", AB, MTF_F32, 0, INFINITY))
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

static const mistake_row mistakes[] = {
    MISTAKE_ROW(no_name),
    MISTAKE_ROW(null_name),
    MISTAKE_ROW(space_in_name),
    MISTAKE_ROW(plus_in_name),
    MISTAKE_ROW(long_name),
    MISTAKE_ROW(size_zero),
    MISTAKE_ROW(size_negative),
    MISTAKE_ROW(dim_twice),
    MISTAKE_ROW(dim_twice_two_sizes),
    MISTAKE_ROW(too_large),
    MISTAKE_ROW(negative_rank),
    MISTAKE_ROW(too_many_dims),
    MISTAKE_ROW(too_many_dims_together),
    MISTAKE_ROW(too_many_dims_of_three),
    MISTAKE_ROW(variable_of_mixed_types),
    MISTAKE_ROW(narrow_and_wide),
    MISTAKE_ROW(narrow_product),
    MISTAKE_ROW(no_type),
    MISTAKE_ROW(no_type_of_random),
    MISTAKE_ROW(cast_to_no_type),
    MISTAKE_ROW(null_dim_to_rename),
    MISTAKE_ROW(null_dim_to_gather),
    MISTAKE_ROW(null_dim_to_shift),
    MISTAKE_ROW(null_dim_to_softmax),
    MISTAKE_ROW(null_initial_value),
    MISTAKE_ROW(foreign_initial_value),
    MISTAKE_ROW(empty_full_batch),
    MISTAKE_ROW(null_operand),
    MISTAKE_ROW(null_first_operand),
    MISTAKE_ROW(null_in_where),
    MISTAKE_ROW(null_in_einsum),
    MISTAKE_ROW(null_in_gather),
    MISTAKE_ROW(null_in_scatter),
    MISTAKE_ROW(null_in_add_n),
    MISTAKE_ROW(null_value_to_assign),
    MISTAKE_ROW(null_variable_to_assign),
    MISTAKE_ROW(other_graph),
    MISTAKE_ROW(other_graph_in_einsum),
    MISTAKE_ROW(other_graph_in_assign),
    MISTAKE_ROW(two_sizes),
    MISTAKE_ROW(two_sizes_in_einsum),
    MISTAKE_ROW(two_types),
    MISTAKE_ROW(sum_of_bool),
    MISTAKE_ROW(exp_of_integers),
    MISTAKE_ROW(quotient_of_integers),
    MISTAKE_ROW(not_of_numbers),
    MISTAKE_ROW(and_of_numbers),
    MISTAKE_ROW(condition_is_no_bool),
    MISTAKE_ROW(branches_differ),
    MISTAKE_ROW(einsum_of_two_types),
    MISTAKE_ROW(einsum_of_bool),
    MISTAKE_ROW(einsum_to_another_size),
    MISTAKE_ROW(einsum_of_too_many),
    MISTAKE_ROW(too_many_dims_of_a_product),
    MISTAKE_ROW(reduce_to_a_new_dim),
    MISTAKE_ROW(reduce_to_another_size),
    MISTAKE_ROW(mean_of_integers),
    MISTAKE_ROW(sum_over_bool),
    MISTAKE_ROW(softmax_without_dim),
    MISTAKE_ROW(log_softmax_without_dim),
    MISTAKE_ROW(broadcast_loses_a_dim),
    MISTAKE_ROW(broadcast_changes_a_size),
    MISTAKE_ROW(transpose_grows),
    MISTAKE_ROW(reshape_changes_the_size),
    MISTAKE_ROW(rename_of_no_dim),
    MISTAKE_ROW(rename_to_a_dim),
    MISTAKE_ROW(rename_to_no_name),
    MISTAKE_ROW(shift_of_no_dim),
    MISTAKE_ROW(gather_along_no_dim),
    MISTAKE_ROW(gather_along_a_dim_of_indices),
    MISTAKE_ROW(gather_with_floats),
    MISTAKE_ROW(scatter_without_dim),
    MISTAKE_ROW(scatter_of_bool),
    MISTAKE_ROW(one_hot_of_floats),
    MISTAKE_ROW(one_hot_to_a_dim),
    MISTAKE_ROW(range_of_bool),
    MISTAKE_ROW(mask_of_integers),
    MISTAKE_ROW(mask_over_one_dim),
    MISTAKE_ROW(range_beyond_i32),
    MISTAKE_ROW(random_integers),
    MISTAKE_ROW(random_of_nan),
    MISTAKE_ROW(random_of_infinity),
    MISTAKE_ROW(rate_of_one),
    MISTAKE_ROW(negative_rate),
    MISTAKE_ROW(rate_is_nan),
    MISTAKE_ROW(assign_to_no_variable),
    MISTAKE_ROW(assign_another_shape),
    MISTAKE_ROW(assign_another_type),
    MISTAKE_ROW(scope_underflow),
    MISTAKE_ROW(dim_of_tensor),
    MISTAKE_ROW(gradient_of_no_scalar),
    MISTAKE_ROW(gradient_by_integers),
    MISTAKE_ROW(gradient_by_null),
    MISTAKE_ROW(gradient_by_another_graph),
};

static void every_mistake_has_its_message(void **state)
{
    (void)state;
    mistakes_check("op_errors.txt", sizeof mistakes / sizeof *mistakes, mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_has_its_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
