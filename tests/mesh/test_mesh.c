/* SPDX-License-Identifier: Apache-2.0
 * Mesh strings, processor numbers and the arithmetic of blocks. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "mesh/mesh.h"

static mtf_mesh *mesh_of(const char *text)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(text, &err);
    if (!m) fail_msg("%s", err.text);
    return m;
}

static void expect_text(const char *text, const char *normal, int64_t processors)
{
    mtf_mesh *m = mesh_of(text);
    assert_string_equal(mtf_mesh_text(m), normal);
    assert_int_equal(mtf_mesh_processors(m), processors);
    mtf_mesh_free(&m);
    assert_null(m);
}

static void expect_refused(const char *text, const char *message)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(text, &err);
    assert_null(m);
    assert_int_equal(err.status, MTF_INVALID);
    assert_string_equal(err.text, message);
}

/* reference 1.2 */
static void separators_are_equal(void **state)
{
    (void)state;
    expect_text("x:4;y:8", "x:4;y:8", 32);
    expect_text("x:4.y:8", "x:4;y:8", 32);
    expect_text("x:4 y:8", "x:4;y:8", 32);
    expect_text("x:4,y:8", "x:4;y:8", 32);
    expect_text(" x:4 ; y:8; ", "x:4;y:8", 32);
    expect_text("", "", 1);
    expect_text("all:1", "all:1", 1);
    expect_text("a:2;b:3;c:2", "a:2;b:3;c:2", 12);
    mtf_mesh *m = mesh_of("rows:2;cols:4");
    assert_int_equal(mtf_mesh_axes(m), 2);
    assert_string_equal(mtf_mesh_axis_name(m, 1), "cols");
    assert_int_equal(mtf_mesh_axis_size(m, 1), 4);
    assert_int_equal(mesh_find_axis(m, "cols"), 1);
    assert_int_equal(mesh_find_axis(m, "planes"), -1);
    mtf_mesh_free(&m);
    mtf_mesh_free(&m); /* an empty handle is fine */
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_refused("x;4", "mesh 'x;4': 'x' is no name:size, for example rows:2;cols:4");
    expect_refused("x:4:y", "mesh 'x:4:y': 'x:4:y' is no name:size, for example rows:2;cols:4");
    expect_refused(":4", "mesh ':4': ':4' is no name:size, for example rows:2;cols:4");
    expect_refused("x:", "mesh 'x:': 'x:' is no name:size, for example rows:2;cols:4");
    expect_refused("x: 4", "mesh 'x: 4': 'x:' is no name:size, for example rows:2;cols:4");
#define SIZE(text, size)                                                                           \
    expect_refused(text, "mesh '" text "': axis x has the size '" size                             \
                         "'; it must be an integer from 1 to 1048576")
    SIZE("x:0", "0");
    SIZE("x:-2", "-2");
    SIZE("x:+2", "+2");
    SIZE("x:2x", "2x");
    SIZE("x:two", "two");
    SIZE("x:1048577", "1048577");
    SIZE("x:99999999999999999999999", "99999999999999999999999");
    SIZE("x:0x4", "0x4");
    expect_refused("x+y:2", "mesh 'x+y:2': the name 'x+y' has a '+', which joins axes in a layout");
    expect_refused("x:2;x:2", "mesh 'x:2;x:2': axis x stands twice; rename one of them");
    expect_refused("x:8192;y:8192", "mesh 'x:8192;y:8192': more than 2^24 processors");
    expect_refused("a:1;b:1;c:1;d:1;e:1;f:1;g:1;h:1;i:1",
                   "mesh 'a:1;b:1;c:1;d:1;e:1;f:1;g:1;h:1;i:1': more than 8 axes");
    expect_refused("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm:2",
                   "mesh 'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm:2': "
                   "the name 'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm' "
                   "is longer than 63 characters");
}

/* reference 1.4 */
static void processors_are_row_major(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("r:2;c:4");
    assert_int_equal(mesh_coordinate(m, 5, 0), 1);
    assert_int_equal(mesh_coordinate(m, 5, 1), 1);
    for (int64_t p = 0; p < 8; p++) {
        assert_int_equal(mesh_coordinate(m, p, 0), p / 4);
        assert_int_equal(mesh_coordinate(m, p, 1), p % 4);
        const split rc = {.n = 2, .axis = {0, 1}}, cr = {.n = 2, .axis = {1, 0}}, none = {0};
        assert_int_equal(split_part(m, rc, p), p);
        assert_int_equal(split_part(m, cr, p), p % 4 * 2 + p / 4);
        assert_int_equal(split_part(m, none, p), 0);
        assert_int_equal(split_parts(m, cr), 8);
        assert_int_equal(split_mask(cr), 3);
        assert_int_equal(split_parts(m, none), 1);
    }
    mtf_mesh_free(&m);
}

/* Blocks are where floor(i n / p) says, in order, without gaps, and no larger than the bound. */
static void blocks_cover(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 200; n++)
        for (int64_t p = 1; p <= 64; p++) {
            assert_int_equal(block_start(n, p, 0), 0);
            assert_int_equal(block_start(n, p, p), n);
            int64_t largest = 0;
            for (int64_t i = 0; i < p; i++) {
                const int64_t size = block_start(n, p, i + 1) - block_start(n, p, i);
                assert_int_equal(block_start(n, p, i), i * n / p);
                assert_in_range(size, n / p, n / p + (n % p != 0));
                if (size > largest) largest = size;
            }
            assert_int_equal(block_bound(n, p), largest);
        }
    /* The last one overflows 64 bits on the way. */
    assert_int_equal(block_start(INT64_C(4000000000000000000), 1024, 1023),
                     INT64_C(3996093750000000000));
}

/* A cut into a * b parts refines the cut into a. */
static void blocks_nest(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 200; n++)
        for (int64_t a = 1; a <= 64; a++)
            for (int64_t b = 1; a * b <= 64; b++)
                for (int64_t i = 0; i <= a; i++)
                    assert_int_equal(block_start(n, a, i), block_start(n, a * b, i * b));
}

/* All where they are few; else every axis at its last coordinate and at half of all, at least. */
static void samples_see_every_axis(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x:16",       "x:4;y:8",     "x:2;y:32",
                                         "x:16;y:32",  "x:8;y:8;z:8", "x:2;y:2;z:2;w:2",
                                         "x:3;y:5;z:7"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        mtf_err err = {0};
        mtf_mesh *m = mtf_mesh_parse(meshes[i], &err);
        for (int a = 0; a < m->naxes; a++) {
            uint64_t seen = 0;
            for (int k = 0; k < 16; k++) {
                const int64_t proc = mesh_sample(m, k, 16);
                assert_in_range(proc, k * m->processors / 16, (k + 1) * m->processors / 16 - 1);
                seen |= UINT64_C(1) << mesh_coordinate(m, proc, a);
            }
            const int64_t half = (m->size[a] + 1) / 2;
            assert_true(seen >> (m->size[a] - 1) & 1);
            assert_in_range(__builtin_popcountll(seen), half < 8 ? half : 8, m->size[a]);
        }
        mtf_mesh_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_are_equal),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(processors_are_row_major),
        cmocka_unit_test(blocks_cover),
        cmocka_unit_test(blocks_nest),
        cmocka_unit_test(samples_see_every_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
