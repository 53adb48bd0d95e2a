/* SPDX-License-Identifier: Apache-2.0
 * Every mesh of up to three axes and 16 processors, every ordered subset of its axes. */
#include "check.h"

#include "comm/groups.h"
#include "comm/pieces.h"
#include "support/comm_reference.h"

enum { MOST = 16 };

static int64_t groups_checked;

/* Coordinate of a processor, counted the slow way. */
static int64_t coordinate(const comm_mesh *m, int proc, int axis)
{
    int64_t x[COMM_MAX_AXES] = {0};
    for (int i = 0; i < proc; i++)
        for (int a = m->naxes - 1; a >= 0 && ++x[a] == m->size[a]; a--)
            x[a] = 0;
    return x[axis];
}

static void check_group(const comm_mesh *m, comm_axes axes, int proc)
{
    const groups g = groups_over(m, axes);
    const int base = group_base(&g, proc);
    bool reduced[COMM_MAX_AXES] = {false};
    int64_t index = 0, leaf = 0;
    for (int k = 0; k < axes.n; k++) {
        reduced[axes.axis[k]] = true;
        index = index * m->size[axes.axis[k]] + coordinate(m, proc, axes.axis[k]);
    }
    for (int a = 0; a < m->naxes; a++) {
        if (reduced[a]) leaf = leaf * m->size[a] + coordinate(m, proc, a);
        assert_int_equal(coordinate(m, base, a), reduced[a] ? 0 : coordinate(m, proc, a));
    }
    assert_int_equal(group_index(&g, proc), index);
    assert_int_equal(group_leaf(&g, proc), leaf);
    assert_int_equal(group_at_index(&g, base, (int)index), proc);
    assert_int_equal(group_at_leaf(&g, base, (int)leaf), proc);
    groups_checked++;
}

static void check_subsets(const comm_mesh *m, comm_axes axes)
{
    for (int proc = 0; proc < mesh_processors(m); proc++)
        check_group(m, axes, proc);
    for (int a = 0; a < m->naxes; a++) {
        bool used = false;
        for (int k = 0; k < axes.n; k++)
            used |= axes.axis[k] == a;
        if (used) continue;
        comm_axes longer = axes;
        longer.axis[longer.n++] = a;
        check_subsets(m, longer);
    }
}

static void members_and_orders(void **state)
{
    (void)state;
    for (int a = 1; a <= MOST; a++)
        for (int b = 1; a * b <= MOST; b++)
            for (int c = 1; a * b * c <= MOST; c++) {
                const comm_mesh m = {.naxes = 3, .size = {a, b, c}};
                check_subsets(&m, (comm_axes){.n = 0});
            }
    assert_true(groups_checked > 10000);
}

/* Reference 1.4: mesh r:2, c:4 over r is {0, 4} .. {3, 7}, over c {0, 1, 2, 3} and {4, 5, 6, 7}. */
static void rows_and_columns(void **state)
{
    (void)state;
    const comm_mesh m = {.naxes = 2, .size = {2, 4}};
    const groups over_r = groups_over(&m, (comm_axes){.n = 1, .axis = {0}});
    const groups over_c = groups_over(&m, (comm_axes){.n = 1, .axis = {1}});
    for (int p = 0; p < 8; p++) {
        assert_int_equal(group_base(&over_r, p), p % 4);
        assert_int_equal(group_at_index(&over_r, p % 4, p / 4), p);
        assert_int_equal(group_base(&over_c, p), p / 4 * 4);
        assert_int_equal(group_at_index(&over_c, p / 4 * 4, p % 4), p);
    }
}

static void blocks_cover_without_overlap(void **state)
{
    (void)state;
    for (int64_t parts = 1; parts <= MOST; parts++)
        for (int64_t n = 0; n <= 70; n++) {
            assert_int_equal(block_begin(0, n, parts), 0);
            assert_int_equal(block_begin(parts, n, parts), n);
            for (int64_t i = 0; i < parts; i++) {
                const int64_t len = block_begin(i + 1, n, parts) - block_begin(i, n, parts);
                assert_int_equal(block_begin(i, n, parts), i * n / parts);
                assert_true(len == n / parts || len == n / parts + 1);
            }
        }
    const int64_t large = INT64_MAX - 5;
    assert_int_equal(block_begin(1000, large, 1000), large);
    assert_int_equal(block_begin(500, large, 1000), large / 2);
}

static void pieces_pack_and_unpack(void **state)
{
    (void)state;
    for (int p = 1; p <= MOST; p++)
        for (int64_t n = 0; n <= 40; n += 5) {
            const comm_cut cut = {.n = n, .parts = 2 * p, .base = p, .outer = 3, .inner = 2};
            const pieces k = pieces_of(&cut, p, 4);
            int32_t whole[3 * 41 * 2], back[3 * 41 * 2] = {0}, flat[3 * 41 * 2];
            const int64_t elements = pieces_whole_bytes(&k) / 4;
            assert_int_equal(elements, 3 * 2 * (n - n * p / (2 * p)));
            for (int64_t i = 0; i < elements; i++)
                whole[i] = (int32_t)i + 1;
            int64_t sum = 0;
            for (int i = 0; i < p; i++) {
                const int64_t bytes = piece_bytes(&k, i), half = bytes / 8 * 4;
                assert_true(bytes <= pieces_longest(&k));
                piece_pack(&k, i, 0, half, whole, flat);
                piece_pack(&k, i, half, bytes - half, whole, (char *)flat + half);
                piece_unpack(&k, i, half, bytes - half, (char *)flat + half, back);
                piece_unpack(&k, i, 0, half, flat, back);
                sum += bytes / 4;
            }
            assert_int_equal(sum, elements);
            assert_memory_equal(whole, back, (size_t)elements * 4);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_and_orders),
        cmocka_unit_test(rows_and_columns),
        cmocka_unit_test(blocks_cover_without_overlap),
        cmocka_unit_test(pieces_pack_and_unpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
