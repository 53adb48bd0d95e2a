/* SPDX-License-Identifier: Apache-2.0
 * Known values of the operations that take other elements of a dim, of those that order, of running
 * sums and of pooling: those of the reference's sections 2.4, 2.7 to 2.9 and 8, on several meshes.
 */
#include "check.h"

#include <math.h>

#include "support/eval.h"

#define VECTOR(n)    MTF_SHAPE({"a", n})
#define MATRIX(m, n) MTF_SHAPE({"a", m}, {"b", n})

static const char *const meshes[] = {"", "p:2", "p:3", "p:4", "p:11"};
enum { MESHES = sizeof meshes / sizeof *meshes };

/* reference 2.7, and over split dims, where the original refuses */
static void shape_surgery(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MATRIX(2, 4), MTF_F64, 1, 2, 3, 4, 5, 6, 7, 8);
    mtf_tensor *y = INPUT(&e, MATRIX(2, 1), MTF_F64, 10, 20), *part[2], *twice = mtf_scale(y, 2);
    mtf_tensor *flags = INPUT(&e, VECTOR(3), MTF_BOOL, 1, 0, 1);
    static const int64_t sizes[] = {1, 3};
    mtf_split(x, "b", 2, sizes, part);
    mtf_tensor *row[4];
    mtf_unstack(x, "b", row);
    mtf_tensor *last = mtf_add(row[3], mtf_scale(row[0], 2));
    for (int i = 0; i < MESHES; i++) {
        const char *m = meshes[i], *l = i ? "b:p" : "", *la = i ? "a:p" : "", *ln = i ? "n:p" : "";
        EXPECT_ON(&e, m, l, mtf_slice(x, "b", 1, 2), 0, 2, 3, 6, 7);
        EXPECT_ON(&e, m, la, mtf_slice(x, "a", 1, 1), 0, 5, 6, 7, 8);
        EXPECT_ON(&e, m, l, mtf_pad(x, "b", 1, 2), 0, 0, 1, 2, 3, 4, 0, 0, 0, 5, 6, 7, 8, 0, 0);
        EXPECT_ON(&e, m, l, mtf_concat(3, (mtf_tensor *[]){y, x, y}, "b"), 0, 10, 1, 2, 3, 4, 10,
                  20, 5, 6, 7, 8, 20);
        EXPECT_ON(&e, m, l, part[0], 0, 1, 5);
        EXPECT_ON(&e, m, l, part[1], 0, 2, 3, 4, 6, 7, 8);
        EXPECT_ON(&e, m, l, last, 0, 6, 18);
        EXPECT_ON(&e, m, l, eval_gradient(part[1], x), 0, 0, 1, 1, 1, 0, 1, 1, 1);
        /* Parts that have no gradient are zeros in that of the whole, where the original fails. */
        EXPECT_ON(&e, m, l, eval_gradient(last, x), 0, 2, 0, 0, 1, 2, 0, 0, 1);
        EXPECT_ON(&e, m, ln, mtf_stack(2, (mtf_tensor *[]){y, twice}, "n", -1), 0, 10, 20, 20, 40);
        EXPECT_ON(&e, m, ln, mtf_stack(2, (mtf_tensor *[]){y, twice}, "n", 0), 0, 10, 20, 20, 40);
        EXPECT_ON(&e, m, la, mtf_shift(flags, "a", 1, true), 0, 1, 1, 0);
    }
    const mtf_window w[] = {{"a", 1, 1}, {"b", 2, 2}};
    const mtf_padding p[] = {{"a", 0, 1}, {"b", 1, 0}};
    EXPECT_ON(&e, "p:2;q:3", "a:p;b:q", mtf_slice_dims(x, 2, w), 0, 7, 8);
    EXPECT_ON(&e, "p:2;q:3", "a:p;b:q", mtf_pad_dims(mtf_slice_dims(x, 2, w), 2, p), 0, 0, 7, 8, 0,
              0, 0);
    eval_close(&e);
}

/* reference 2.9 */
static void dynamic_shifts(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(5), MTF_F64, 0, 1, 2, 3, 4);
    mtf_tensor *two = INPUT(&e, MTF_SCALAR, MTF_I32, 2);
    mtf_tensor *m = INPUT(&e, MATRIX(3, 2), MTF_F64, 1, 2, 3, 4, 5, 6);
    mtf_tensor *each = INPUT(&e, MTF_SHAPE({"b", 2}), MTF_I32, -1, 100000);
    mtf_tensor *far =
        INPUT(&e, MTF_SHAPE({"b", 2}), MTF_I32, INT32_MIN, INT32_MAX); /* 1, 1 mod 3 */
    for (int i = 0; i < MESHES; i++) {
        const char *l = i ? "a:p" : "";
        EXPECT_ON(&e, meshes[i], l, mtf_dynamic_shift(x, two, "a", false), 0, 0, 0, 0, 1, 2);
        EXPECT_ON(&e, meshes[i], l, mtf_dynamic_shift(x, two, "a", true), 0, 3, 4, 0, 1, 2);
        EXPECT_ON(&e, meshes[i], l, mtf_dynamic_shift(m, each, "a", false), 0, 3, 0, 5, 0, 0, 0);
        EXPECT_ON(&e, meshes[i], l, mtf_dynamic_shift(m, each, "a", true), 0, 3, 6, 5, 2, 1, 4);
        EXPECT_ON(&e, meshes[i], l, mtf_dynamic_shift(m, far, "a", false), 0, 0, 0, 0, 0, 0, 0);
        EXPECT_ON(&e, meshes[i], l, mtf_dynamic_shift(m, far, "a", true), 0, 5, 6, 1, 2, 3, 4);
    }
    eval_close(&e);
}

/* reference 2.9 */
static void halos(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x =
        INPUT(&e, MTF_SHAPE({"blocks", 4}, {"block", 2}), MTF_F64, 1, 2, 3, 4, 5, 6, 7, 8);
#define HALO(left, right, wrap) mtf_halo_exchange(x, "blocks", "block", left, right, wrap)
    for (int i = 0; i < MESHES; i++) {
        const char *m = meshes[i], *l = i ? "blocks:p" : "";
        EXPECT_ON(&e, m, l, HALO(1, 1, false), 0, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 0);
        EXPECT_ON(&e, m, l, HALO(1, 1, true), 0, 8, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 1);
        EXPECT_ON(&e, m, l, HALO(3, 3, false), 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 6, 7, 2,
                  3, 4, 5, 6, 7, 8, 0, 4, 5, 6, 7, 8, 0, 0, 0);
        EXPECT_ON(&e, m, l, HALO(2, 0, false), 0, 0, 0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6, 7, 8);
        EXPECT_ON(&e, m, l, HALO(0, 0, false), 0, 1, 2, 3, 4, 5, 6, 7, 8);
        EXPECT_ON(&e, m, l, eval_gradient(HALO(1, 1, false), x), 0, 1, 2, 2, 2, 2, 2, 2, 1);
    }
    eval_close(&e);
}

/* reference 2.8 and 8 */
static void the_largest(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *v = INPUT(&e, VECTOR(4), MTF_F64, 3, 1, 2, 3), *values, *indices;
    mtf_top_k(v, "a", (mtf_dim){"k", 2}, false, &values, &indices);
    mtf_tensor *m = INPUT(&e, MATRIX(6, 2), MTF_F32, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6, 6, 5);
    mtf_tensor *top, *at;
    mtf_top_k(m, "a", (mtf_dim){"k", 2}, false, &top, &at);
    mtf_tensor *d = INPUT(&e, MTF_SHAPE({"b", 2}, {"k", 2}), MTF_F32, 11, 12, 13, 14), *dm;
    mtf_gradients(mtf_reduce_sum(mtf_mul(top, d), MTF_SCALAR), 1, &m, &dm);
    for (int i = 0; i < MESHES; i++) {
        const char *p = meshes[i], *l = i ? "a:p" : "";
        EXPECT_ON(&e, p, l, values, 0, 3, 3);
        EXPECT_ON(&e, p, l, indices, 0, 0, 3); /* ties to the lowest index */
        EXPECT_ON(&e, p, l, top, 0, 6, 5, 10, 9);
        EXPECT_ON(&e, p, l, at, 0, 5, 4, 0, 1);
        EXPECT_ON(&e, p, l, dm, 0, 0, 13, 0, 14, 0, 0, 0, 0, 12, 0, 11, 0);
        EXPECT_ON(&e, p, l, mtf_nth_largest(m, "a", 1), 0, 5, 9);
        EXPECT_ON(&e, p, i ? "b:p" : "", mtf_nth_smallest(m, "b", 0), 0, 1, 2, 3, 4, 5, 5);
        EXPECT_ON(&e, p, l, mtf_argmax(m, "a"), 0, 5, 0);
        EXPECT_ON(&e, p, l, mtf_argmin(m, "a"), 0, 0, 5);
    }
    EXPECT_ON(&e, "rows:2;cols:2", "a:rows;b:cols", top, 0, 6, 5, 10, 9);
    EXPECT_ON(&e, "rows:2;cols:2", "a:rows;b:cols", dm, 0, 0, 13, 0, 14, 0, 0, 0, 0, 12, 0, 11, 0);
    EXPECT_ON(&e, "all:2", "a:all", mtf_nth_largest(m, "a", 1), 0, 5, 9);
    eval_close(&e);
}

/* Infinities are numbers like others, NaN is above them, zeros of both signs are equal. */
static void order_of_edges(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(7), MTF_F32, -INFINITY, NAN, -0.0, 0.0, INFINITY, NAN, 1), *up,
               *down;
    mtf_sort(x, "a", false, &up);
    mtf_sort(x, "a", true, &down);
    mtf_tensor *ints = INPUT(&e, VECTOR(3), MTF_I32, INT32_MIN, INT32_MAX, INT32_MIN);
    for (int i = 0; i < MESHES; i++) {
        const char *p = meshes[i], *l = i ? "a:p" : "";
        EXPECT_ON(&e, p, l, up, 0, 0, 2, 3, 6, 4, 1, 5);
        EXPECT_ON(&e, p, l, down, 0, 1, 5, 4, 6, 2, 3, 0);
        EXPECT_ON(&e, p, l, mtf_sort(x, "a", true, NULL), 0, NAN, NAN, INFINITY, 1, 0, 0,
                  -INFINITY);
        EXPECT_ON(&e, p, l, mtf_argmin(ints, "a"), 0, 0);
        EXPECT_ON(&e, p, l, mtf_sort(ints, "a", false, NULL), 0, INT32_MIN, INT32_MIN, INT32_MAX);
    }
    eval_close(&e);
}

/* reference 2.4, and compress_mean of 3.5 */
static void sums_and_pools(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, VECTOR(4), MTF_F64, 2, 5, 9, 15);
    mtf_tensor *six = INPUT(&e, VECTOR(6), MTF_F64, 0, 1, 2, 3, 4, 5);
    mtf_tensor *n = INPUT(&e, VECTOR(3), MTF_I32, INT32_MAX, 1, 5);
    mtf_tensor *flags = INPUT(&e, MATRIX(2, 2), MTF_BOOL, 1, 0, 1, 1);
    for (int i = 0; i < MESHES; i++) {
        const char *m = meshes[i], *l = i ? "a:p" : "";
        EXPECT_ON(&e, m, l, mtf_pool_1d(x, "a", 2, mtf_reduce_mean), 0, 3.5, 12);
        EXPECT_ON(&e, m, l, mtf_pool_1d(six, "a", 3, mtf_reduce_mean), 0, 1, 4);
        EXPECT_ON(&e, m, l, mtf_stride_1d(x, "a", 2), 0, 2, 9);
        EXPECT_ON(&e, m, l, mtf_reduce_first(x, "a"), 0, 2);
        EXPECT_ON(&e, m, l, mtf_cumsum(x, "a", false, false), 0, 2, 7, 16, 31);
        EXPECT_ON(&e, m, l, mtf_cumsum(x, "a", true, false), 0, 0, 2, 7, 16);
        EXPECT_ON(&e, m, l, mtf_cumsum(x, "a", false, true), 0, 31, 29, 24, 15);
        EXPECT_ON(&e, m, l, mtf_cumsum(x, "a", true, true), 0, 29, 24, 15, 0);
        EXPECT_ON(&e, m, l, mtf_cumsum(n, "a", false, false), 0, INT32_MAX, INT32_MIN,
                  INT32_MIN + 5);
        EXPECT_ON(&e, m, l, mtf_reduce_all(flags, MTF_SHAPE({"b", 2})), 0, 1, 0);
        EXPECT_ON(&e, m, l, mtf_reduce_any(flags, MTF_SHAPE({"a", 2})), 0, 1, 1);
        EXPECT_ON(&e, m, l, mtf_reduce_all(flags, MTF_SCALAR), 0, 0);
    }
    eval_close(&e);
}

/* Long sums of f32 keep their digits: they are added in f64. */
static void running_sums_of_many(void **state)
{
    (void)state;
    eval e = eval_open();
    enum { N = 1 << 20 };
    mtf_tensor *x = mtf_constant(e.g, 0.1, VECTOR(N), MTF_F32);
    mtf_tensor *last = mtf_slice(mtf_cumsum(x, "a", false, false), "a", N - 1, 1);
    EXPECT(&e, last, 1e-7, N * (double)0.1f);
    EXPECT_ON(&e, "p:3", "a:p", last, 1e-7, N * (double)0.1f);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_surgery),
        cmocka_unit_test(dynamic_shifts),
        cmocka_unit_test(halos),
        cmocka_unit_test(the_largest),
        cmocka_unit_test(order_of_edges),
        cmocka_unit_test(sums_and_pools),
        cmocka_unit_test(running_sums_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
