/* SPDX-License-Identifier: Apache-2.0
 * Layout strings, their warnings and errors, and who holds which block. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "mesh/mesh.h"
#include "mtf/mtf.h"
#include "spmd/program.h"

static mtf_mesh *mesh_of(const char *text)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(text, &err);
    if (!m) fail_msg("%s", err.text);
    return m;
}

static mtf_layout *layout_of(const char *text, const mtf_mesh *m)
{
    mtf_err err = {0};
    mtf_layout *l = mtf_layout_parse(text, m, true, NULL, &err);
    if (!l) fail_msg("%s", err.text);
    return l;
}

/* reference 1.3 */
static void separators_are_equal(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("model:2;data:2");
    static const char *const texts[] = {"d_ff:model;heads:model", "d_ff:model heads:model",
                                        "d_ff:model,heads:model", "d_ff:model.heads:model",
                                        " d_ff:model;;heads:model;"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mtf_layout *l = layout_of(texts[i], m);
        assert_string_equal(mtf_layout_text(l), "d_ff:model;heads:model");
        assert_int_equal(split_mask(layout_split(l, "heads")), 1);
        assert_int_equal(layout_split(l, "vocab").n, 0);
        mtf_layout_free(&l);
        assert_null(l);
    }
    mtf_layout *l = layout_of("", m);
    assert_string_equal(mtf_layout_text(l), "");
    mtf_layout_free(&l);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static void several_axes_keep_their_order(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("rows:2;one:1;cols:4");
    mtf_layout *l = layout_of("batch:cols+one+rows;vocab:one", m);
    const split s = layout_split(l, "batch");
    assert_int_equal(s.n, 2); /* an axis of size 1 cuts nothing */
    assert_int_equal(s.axis[0], 2);
    assert_int_equal(s.axis[1], 0);
    assert_int_equal(layout_split(l, "vocab").n, 0);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static void expect_refused(const char *text, bool strict, const char *message)
{
    mtf_mesh *m = mesh_of("rows:2;cols:2");
    mtf_err err = {0}, warning = {0};
    mtf_layout *l = mtf_layout_parse(text, m, strict, &warning, &err);
    assert_null(l);
    assert_int_equal(err.status, MTF_INVALID);
    assert_string_equal(err.text, message);
    mtf_mesh_free(&m);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_refused("d_ff;heads", false,
                   "layout 'd_ff;heads': 'd_ff' is no dim:axis, for example batch:rows;d_ff:cols");
    expect_refused(":rows", false,
                   "layout ':rows': ':rows' is no dim:axis, for example batch:rows;d_ff:cols");
    expect_refused("a:", false,
                   "layout 'a:': 'a:' is no dim:axis, for example batch:rows;d_ff:cols");
    expect_refused("a:rows:cols", false,
                   "layout 'a:rows:cols': 'a:rows:cols' is no dim:axis, for example "
                   "batch:rows;d_ff:cols");
    expect_refused("a:rows;a:cols", false,
                   "layout 'a:rows;a:cols': dim a has two rules; join them as a:cols+...");
    expect_refused("a:rows+rows", false,
                   "layout 'a:rows+rows': axis rows stands twice in the rule of a");
    expect_refused("a:rows+", false, "layout 'a:rows+': 'rows+' is no list of axes like rows+cols");
    expect_refused("a:+rows", false, "layout 'a:+rows': '+rows' is no list of axes like rows+cols");
    expect_refused("a:rows++cols", false,
                   "layout 'a:rows++cols': 'rows++cols' is no list of axes like rows+cols");
    expect_refused("a:planes", true,
                   "layout rule 'a:planes': the mesh 'rows:2;cols:2' has no axis called 'planes'");
}

/* One string of rules serves many meshes: what a mesh lacks is left out, with a warning. */
static void unknown_axis_is_a_warning(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("rows:2;cols:2");
    mtf_err err = {0}, warning = {0};
    mtf_layout *l = mtf_layout_parse("a:rows+planes;b:planes;c:cols", m, false, &warning, &err);
    assert_non_null(l);
    assert_string_equal(warning.text,
                        "layout rule 'a:rows+planes': the mesh 'rows:2;cols:2' has no axis called "
                        "'planes'; the axis is left out");
    assert_int_equal(err.status, MTF_OK);
    assert_int_equal(split_mask(layout_split(l, "a")), 1);
    assert_int_equal(layout_split(l, "b").n, 0);
    assert_int_equal(split_mask(layout_split(l, "c")), 2);
    mtf_layout_free(&l);
    l = mtf_layout_parse("a:planes", m, false, NULL, &err);
    assert_non_null(l);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static void unknown_dim_is_a_warning(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("rows:2");
    mtf_graph *g = mtf_graph_new();
    mtf_placeholder(g, "x", MTF_SHAPE({"batch", 8}), MTF_F32);
    mtf_layout *l = layout_of("batch:rows;vocab:rows", m);
    mtf_err err = {0}, warning = {0};
    assert_int_equal(mtf_layout_check_dims(l, g, false, &warning, &err), MTF_OK);
    assert_string_equal(warning.text, "layout rule for 'vocab': no tensor has a dim of this name; "
                                      "the rule has no effect");
    assert_int_equal(err.status, MTF_OK);
    assert_int_equal(mtf_layout_check_dims(l, g, true, NULL, &err), MTF_INVALID);
    assert_string_equal(err.text, "layout rule for 'vocab': no tensor has a dim of this name");
    mtf_layout_free(&l);
    mtf_graph_free(&g);
    mtf_mesh_free(&m);
}

static kernel_dim block(const mtf_mesh *m, const mtf_layout *l, const char *dim, int64_t size,
                        int64_t proc)
{
    return dim_block(m, (mtf_dim){dim, size}, layout_split(l, dim), proc);
}

/* Reference 8: batch is cut over axis 0, d_ff over axis 1, length is whole. */
static void dims_find_their_axes(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("batch:4;model:8");
    mtf_layout *l = layout_of("batch:batch;d_ff:model;heads:model", m);
    assert_int_equal(layout_split(l, "batch").axis[0], 0);
    assert_int_equal(layout_split(l, "length").n, 0);
    assert_int_equal(layout_split(l, "d_ff").axis[0], 1);
    assert_int_equal(block(m, l, "batch", 128, 31).local, 32);
    assert_int_equal(block(m, l, "d_ff", 2048, 31).offset, 7 * 256);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

/* Reference 1.4. Images of 100 x 28 x 28 x 3 on two rows and four columns of processors. */
static void images_on_a_mesh(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("processor_rows:2;processor_cols:4");
    mtf_layout *l = layout_of("batch:processor_cols", m);
    for (int64_t proc = 3; proc < 8; proc += 4) { /* (0, 3) and (1, 3) */
        assert_int_equal(block(m, l, "batch", 100, proc).local, 25);
        assert_int_equal(block(m, l, "batch", 100, proc).offset, 75);
        assert_int_equal(block(m, l, "rows", 28, proc).local, 28);
    }
    mtf_layout_free(&l);
    l = layout_of("rows:processor_rows;cols:processor_cols", m);
    assert_int_equal(block(m, l, "batch", 100, 1).local, 100);
    assert_int_equal(block(m, l, "rows", 28, 1).local, 14);
    assert_int_equal(block(m, l, "rows", 28, 1).offset, 0);
    assert_int_equal(block(m, l, "cols", 28, 1).local, 7);
    assert_int_equal(block(m, l, "cols", 28, 1).offset, 7);
    mtf_layout_free(&l);
    /* Blocks need not be even: three channels over two rows are one and two. */
    l = layout_of("channels:processor_rows", m);
    assert_int_equal(block(m, l, "channels", 3, 0).local, 1);
    assert_int_equal(block(m, l, "channels", 3, 4).local, 2);
    assert_int_equal(block(m, l, "channels", 3, 4).offset, 1);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static void two_dims_on_one_axis_are_refused(void **state)
{
    (void)state;
    mtf_mesh *m = mesh_of("rows:2;cols:2");
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE({"a", 8}, {"b", 4}), MTF_F32);
    mtf_tensor *y = mtf_square(x);
    const mtf_request r = {.nfetches = 1, .fetches = &y};
    mtf_layout *l = layout_of("a:rows+cols;b:cols", m);
    mtf_err err = {0};
    assert_null(mtf_compile(g, m, l, &r, &err));
    assert_int_equal(err.status, MTF_INVALID);
    assert_string_equal(err.text,
                        "placeholder 'x': dims a=8 and b=4 are both split over mesh axis 'cols'; "
                        "map one of them elsewhere in the layout");
    mtf_layout_free(&l);
    mtf_graph_free(&g);
    mtf_mesh_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_are_equal),
        cmocka_unit_test(several_axes_keep_their_order),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(unknown_axis_is_a_warning),
        cmocka_unit_test(unknown_dim_is_a_warning),
        cmocka_unit_test(dims_find_their_axes),
        cmocka_unit_test(images_on_a_mesh),
        cmocka_unit_test(two_dims_on_one_axis_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
