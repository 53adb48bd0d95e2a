/* SPDX-License-Identifier: Apache-2.0
 * The messages of the operations that take other elements of a dim, and of those that order and
 * sample. */
#include "check.h"

#include <math.h>

#include "support/mistakes.h"

MISTAKE(slice_of_no_dim, mtf_slice(p->x, "z", 0, 1))
MISTAKE(slice_of_null, mtf_slice(p->x, NULL, 0, 1))
MISTAKE(slice_before_the_first, mtf_slice(p->x, "a", -1, 2))
MISTAKE(slice_beyond_the_last, mtf_slice(p->x, "a", 2, 3))
MISTAKE(slice_of_nothing, mtf_slice(p->x, "a", 2, 0))
MISTAKE(slice_far_out, mtf_slice(p->x, "a", INT64_MAX, INT64_MAX))
MISTAKE(slice_of_one_of_two, mtf_slice_dims(p->x, 2, (mtf_window[]){{"a", 0, 2}, {"b", 6, 1}}))
MISTAKE(pad_of_no_dim, mtf_pad(p->x, "z", 1, 1))
MISTAKE(pad_by_less_than_nothing, mtf_pad(p->x, "a", -1, 1))
MISTAKE(pad_by_too_much, mtf_pad(p->x, "a", INT64_MAX, 1))
MISTAKE(pad_to_too_much, mtf_pad(p->x, "a", INT64_MAX / 2, 0))
MISTAKE(concat_along_no_dim, mtf_concat(2, (mtf_tensor *[]){p->x, p->x}, "z"))
MISTAKE(concat_of_two_types, mtf_concat(2, (mtf_tensor *[]){p->x, p->d}, "a"))
MISTAKE(concat_of_two_shapes, mtf_concat(2, (mtf_tensor *[]){p->y, p->x}, "b"))
MISTAKE(concat_with_null, mtf_concat(2, (mtf_tensor *[]){p->x, NULL}, "a"))
MISTAKE(concat_of_two_graphs, mtf_concat(2, (mtf_tensor *[]){p->x, p->foreign}, "a"))
MISTAKE(concat_of_one_along_no_dim, mtf_concat(1, &p->x, "z"))
MISTAKE(slices_are_null, mtf_slice_dims(p->x, 1, NULL))
MISTAKE(paddings_are_null, mtf_pad_dims(p->x, 1, NULL))
MISTAKE(stack_along_a_dim, mtf_stack(2, (mtf_tensor *[]){p->x, p->x}, "a", 0))
MISTAKE(stack_of_two_shapes, mtf_stack(2, (mtf_tensor *[]){p->x, p->y}, "n", 0))
MISTAKE(stack_of_two_types, mtf_stack(2, (mtf_tensor *[]){p->x, p->d}, "n", 0))
MISTAKE(stack_beyond_the_last_place, mtf_stack(2, (mtf_tensor *[]){p->x, p->x}, "n", 3))
MISTAKE(stack_before_the_first_place, mtf_stack(2, (mtf_tensor *[]){p->x, p->x}, "n", -4))
MISTAKE(stack_without_a_name, mtf_stack(1, &p->x, NULL, 0))

static mtf_tensor *split_as(parts *p, const char *dim, int n, const int64_t *sizes)
{
    mtf_tensor *part[8];
    mtf_split(p->x, dim, n, sizes, part);
    return part[0];
}

/* As an int the size would be 4. */
static mtf_tensor *unstack_into_too_many(parts *p)
{
    mtf_tensor *part[4] = {NULL};
    mtf_unstack(mtf_placeholder(p->g, "z", MTF_SHAPE({"z", (1ll << 32) + 4}), MTF_F32), "z", part);
    return part[0];
}

MISTAKE(dynamic_shift_beyond_i32,
        mtf_dynamic_shift(mtf_placeholder(p->g, "z", MTF_SHAPE({"z", 1ll << 32}), MTF_F32),
                          mtf_placeholder(p->g, "by", MTF_SCALAR, MTF_I32), "z", true))

static mtf_tensor *split_without_room(parts *p)
{
    mtf_split(p->x, "b", 2, NULL, NULL);
    return NULL;
}

MISTAKE(split_of_no_dim, split_as(p, "z", 2, NULL))
MISTAKE(split_unevenly, split_as(p, "b", 4, NULL))
MISTAKE(split_into_too_little, split_as(p, "b", 2, (int64_t[]){1, 4}))
MISTAKE(split_into_too_much, split_as(p, "b", 2, (int64_t[]){1, 6}))
MISTAKE(split_into_nothing, split_as(p, "b", 2, (int64_t[]){6, 0}))
MISTAKE(split_into_less, split_as(p, "b", 3, (int64_t[]){8, -4, 2}))

MISTAKE(dynamic_shift_by_floats, mtf_dynamic_shift(p->x, p->y, "a", false))
MISTAKE(dynamic_shift_by_its_own_dim, mtf_dynamic_shift(p->x, p->i, "a", false))
MISTAKE(dynamic_shift_of_no_dim, mtf_dynamic_shift(p->x, p->i, "z", false))
MISTAKE(dynamic_shift_by_another_dim, mtf_dynamic_shift(p->y, p->i, "b", false))
MISTAKE(halo_of_no_dim, mtf_halo_exchange(p->x, "a", "z", 1, 1, false))
MISTAKE(halo_of_one_dim, mtf_halo_exchange(p->x, "a", "a", 1, 1, false))
MISTAKE(halo_is_negative, mtf_halo_exchange(p->x, "a", "b", -1, 1, false))
MISTAKE(halo_of_too_many_blocks, mtf_halo_exchange(p->x, "a", "b", 1800, 0, true))

MISTAKE(cumsum_of_no_dim, mtf_cumsum(p->x, "z", false, false))
MISTAKE(cumsum_of_bool, mtf_cumsum(p->k, "a", false, false))
MISTAKE(all_of_numbers, mtf_reduce_all(p->x, MTF_SCALAR))
MISTAKE(any_of_numbers, mtf_reduce_any(p->i, MTF_SCALAR))
MISTAKE(pool_by_no_divisor, mtf_pool_1d(p->x, "a", 3, mtf_reduce_sum))
MISTAKE(pool_of_no_dim, mtf_pool_1d(p->x, "z", 2, mtf_reduce_sum))
MISTAKE(pool_by_null, mtf_pool_1d(p->x, "a", 2, NULL))
MISTAKE(stride_of_nothing, mtf_stride_1d(p->x, "a", 0))
MISTAKE(first_of_no_dim, mtf_reduce_first(p->x, "z"))

static mtf_tensor *top(mtf_tensor *x, const char *dim, mtf_dim k)
{
    mtf_tensor *values, *indices;
    mtf_top_k(x, dim, k, false, &values, &indices);
    return values ? values : indices;
}

MISTAKE(top_of_no_dim, top(p->x, "z", (mtf_dim){"k", 1}))
MISTAKE(top_of_more_than_all, top(p->x, "a", (mtf_dim){"k", 5}))
MISTAKE(top_of_none, top(p->x, "a", (mtf_dim){"k", 0}))
MISTAKE(top_of_bool, top(p->k, "a", (mtf_dim){"k", 1}))
MISTAKE(top_to_a_dim, top(p->x, "a", (mtf_dim){"b", 1}))
MISTAKE(top_to_no_name, top(p->x, "a", (mtf_dim){NULL, 1}))
MISTAKE(argmax_of_no_dim, mtf_argmax(p->x, "z"))
MISTAKE(nth_of_fewer, mtf_nth_largest(p->x, "a", 4))
MISTAKE(nth_is_negative, mtf_nth_smallest(p->x, "a", -1))
MISTAKE(sort_of_no_dim, mtf_sort(p->x, NULL, false, NULL))

MISTAKE(sample_of_no_dim, mtf_sample(p->x, "s", "z", &(mtf_sampling){.temperature = 1}))
MISTAKE(sample_of_integers, mtf_sample(p->i, "s", "a", &(mtf_sampling){.temperature = 1}))
MISTAKE(sample_too_cold, mtf_sample(p->x, "s", "a", &(mtf_sampling){.temperature = -1}))
MISTAKE(sample_almost_frozen, mtf_sample(p->x, "s", "a", &(mtf_sampling){.temperature = 1e-40}))
MISTAKE(sample_in_no_way, mtf_sample(p->x, "s", "a", NULL))
MISTAKE(sample_infinitely_hot,
        mtf_sample(p->x, "s", "a", &(mtf_sampling){.temperature = (double)INFINITY}))
MISTAKE(sample_of_less_than_none,
        mtf_sample(p->x, "s", "a", &(mtf_sampling){.temperature = 1, .top_k = -1}))
MISTAKE(sample_of_more_than_all,
        mtf_sample(p->x, "s", "a", &(mtf_sampling){.temperature = 1, .top_p = 1.5}))

static const mistake_row mistakes[] = {
    MISTAKE_ROW(slice_of_no_dim),
    MISTAKE_ROW(slice_of_null),
    MISTAKE_ROW(slice_before_the_first),
    MISTAKE_ROW(slice_beyond_the_last),
    MISTAKE_ROW(slice_of_nothing),
    MISTAKE_ROW(slice_far_out),
    MISTAKE_ROW(slice_of_one_of_two),
    MISTAKE_ROW(pad_of_no_dim),
    MISTAKE_ROW(pad_by_less_than_nothing),
    MISTAKE_ROW(pad_by_too_much),
    MISTAKE_ROW(pad_to_too_much),
    MISTAKE_ROW(concat_along_no_dim),
    MISTAKE_ROW(concat_of_two_types),
    MISTAKE_ROW(concat_of_two_shapes),
    MISTAKE_ROW(concat_with_null),
    MISTAKE_ROW(concat_of_two_graphs),
    MISTAKE_ROW(concat_of_one_along_no_dim),
    MISTAKE_ROW(slices_are_null),
    MISTAKE_ROW(paddings_are_null),
    MISTAKE_ROW(stack_along_a_dim),
    MISTAKE_ROW(stack_of_two_shapes),
    MISTAKE_ROW(stack_of_two_types),
    MISTAKE_ROW(stack_beyond_the_last_place),
    MISTAKE_ROW(stack_before_the_first_place),
    MISTAKE_ROW(stack_without_a_name),
    MISTAKE_ROW(split_of_no_dim),
    MISTAKE_ROW(split_unevenly),
    MISTAKE_ROW(split_into_too_little),
    MISTAKE_ROW(split_into_too_much),
    MISTAKE_ROW(split_into_nothing),
    MISTAKE_ROW(split_into_less),
    MISTAKE_ROW(split_without_room),
    MISTAKE_ROW(unstack_into_too_many),
    MISTAKE_ROW(dynamic_shift_beyond_i32),
    MISTAKE_ROW(dynamic_shift_by_floats),
    MISTAKE_ROW(dynamic_shift_by_its_own_dim),
    MISTAKE_ROW(dynamic_shift_of_no_dim),
    MISTAKE_ROW(dynamic_shift_by_another_dim),
    MISTAKE_ROW(halo_of_no_dim),
    MISTAKE_ROW(halo_of_one_dim),
    MISTAKE_ROW(halo_is_negative),
    MISTAKE_ROW(halo_of_too_many_blocks),
    MISTAKE_ROW(cumsum_of_no_dim),
    MISTAKE_ROW(cumsum_of_bool),
    MISTAKE_ROW(all_of_numbers),
    MISTAKE_ROW(any_of_numbers),
    MISTAKE_ROW(pool_by_no_divisor),
    MISTAKE_ROW(pool_of_no_dim),
    MISTAKE_ROW(pool_by_null),
    MISTAKE_ROW(stride_of_nothing),
    MISTAKE_ROW(first_of_no_dim),
    MISTAKE_ROW(top_of_no_dim),
    MISTAKE_ROW(top_of_more_than_all),
    MISTAKE_ROW(top_of_none),
    MISTAKE_ROW(top_of_bool),
    MISTAKE_ROW(top_to_a_dim),
    MISTAKE_ROW(top_to_no_name),
    MISTAKE_ROW(argmax_of_no_dim),
    MISTAKE_ROW(nth_of_fewer),
    MISTAKE_ROW(nth_is_negative),
    MISTAKE_ROW(sort_of_no_dim),
    MISTAKE_ROW(sample_of_no_dim),
    MISTAKE_ROW(sample_of_integers),
    MISTAKE_ROW(sample_too_cold),
    MISTAKE_ROW(sample_almost_frozen),
    MISTAKE_ROW(sample_in_no_way),
    MISTAKE_ROW(sample_infinitely_hot),
    MISTAKE_ROW(sample_of_less_than_none),
    MISTAKE_ROW(sample_of_more_than_all),
};

static void every_mistake_has_its_message(void **state)
{
    (void)state;
    mistakes_check("op_window_errors.txt", sizeof mistakes / sizeof *mistakes, mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_has_its_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
