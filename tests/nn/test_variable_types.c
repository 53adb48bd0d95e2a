/* SPDX-License-Identifier: Apache-2.0
 * Variables with three types: what is read, where gradients arrive, what updates write; and sums of
 * bf16, which lose no addend. The three types are those of Mesh-TensorFlow (reference 1.8). */
#include "check.h"

#include "base/bfloat.h"
#include "mtf/mtf.h"
#include "support/eval.h"

static const mtf_variable_types in_bf16 = {MTF_F32, MTF_F32, MTF_BF16};

static void reads_are_cast_and_gradients_are_not(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    const mtf_shape s = MTF_SHAPE({"a", 4});
    mtf_tensor *w = mtf_variable_typed(g, "w", mtf_constant(g, 1, s, MTF_F64), true, in_bf16);
    mtf_tensor *read = mtf_variable_read(w), *dw = NULL;
    assert_true(mtf_tensor_dtype(w) == MTF_F32 && mtf_tensor_dtype(read) == MTF_BF16);
    mtf_tensor *loss = mtf_cast(mtf_reduce_sum(mtf_square(read), MTF_SCALAR), MTF_F32);
    assert_int_equal(mtf_gradients(loss, 1, &w, &dw), MTF_OK);
    assert_true(mtf_tensor_dtype(dw) == MTF_F32);
    assert_ptr_equal(mtf_variable_read(read), read);
    assert_null(mtf_variable_read(NULL));
    mtf_tensor *plain = mtf_variable(g, "plain", mtf_constant(g, 1, s, MTF_F64), true);
    assert_ptr_equal(mtf_variable_read(plain), plain);
    /* What was widened comes back as itself; what was narrowed does not. */
    assert_ptr_equal(mtf_cast(mtf_cast(read, MTF_F64), MTF_BF16), read);
    assert_ptr_not_equal(mtf_cast(mtf_cast(plain, MTF_BF16), MTF_F64), plain);
    mtf_graph_free(&g);
}

static void the_usual_types(void **state)
{
    (void)state;
    const mtf_variable_types b = mtf_variable_types_for(MTF_BF16);
    assert_true(b.master == MTF_F32 && b.stored == MTF_F32 && b.activation == MTF_BF16);
    const mtf_variable_types d = mtf_variable_types_for(MTF_F64);
    assert_true(d.master == MTF_F64 && d.stored == MTF_F64 && d.activation == MTF_F64);
}

/* One weight that is 1 and whose gradient is 1, under sgd with rate 2^-12 for `steps` steps. */
static double after_steps(mtf_variable_types types, int steps, mtf_optimizer_kind kind)
{
    mtf_err err = {0};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *w =
        mtf_variable_typed(g, "w", mtf_constant(g, 1, MTF_SCALAR, MTF_F32), true, types);
    mtf_tensor *loss = mtf_cast(mtf_variable_read(w), MTF_F32), *dw = NULL, *updates[3];
    mtf_gradients(loss, 1, &w, &dw);
    const mtf_optimizer_options o = {.kind = kind, .momentum = 0.0};
    mtf_optimizer *opt = mtf_optimizer_new(g, &o, 1, &w);
    assert_non_null(opt);
    const int n = mtf_optimizer_updates(opt, &dw, updates);
    if (mtf_graph_status(g, &err) != MTF_OK) fail_msg("%s", err.text);
    if (kind == MTF_MOMENTUM) assert_true(mtf_tensor_dtype(opt->m[0]) == MTF_F32);
    mtf_mesh *m = mtf_mesh_parse("", &err);
    mtf_layout *l = mtf_layout_parse("", m, true, NULL, &err);
    const mtf_request r = {.nupdates = n, .updates = updates};
    mtf_program *p[2] = {mtf_compile_initial(g, m, l, &err), mtf_compile(g, m, l, &r, &err)};
    mtf_session *s = mtf_session_new(2, p, &(mtf_session_options){.threads = 1}, &err);
    assert_non_null(s);
    assert_int_equal(mtf_run(s, p[0], 0, NULL, NULL, NULL, &err), MTF_OK);
    const float rate = 0x1p-12f;
    for (int i = 0; i < steps; i++)
        assert_int_equal(mtf_run(s, p[1], 1,
                                 &(mtf_feed){.placeholder = opt->rate[0], .data = &rate}, NULL,
                                 NULL, &err),
                         MTF_OK);
    float f32 = 0;
    bf16 narrow = {0};
    const bool is_narrow = types.stored == MTF_BF16;
    assert_int_equal(mtf_state_get(s, w, is_narrow ? (void *)&narrow : (void *)&f32, &err), MTF_OK);
    mtf_session_free(&s);
    for (int i = 0; i < 2; i++)
        mtf_program_free(&p[i]);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    mtf_graph_free(&g);
    return (double)(is_narrow ? bf16_to_f32(narrow) : f32);
}

/* 2^-12 is too little to move a 1 in bf16, so a copy that was written back would stay where it is.
 */
static void small_updates_are_kept_where_f32_is_stored(void **state)
{
    (void)state;
    const mtf_variable_types narrow = {MTF_F32, MTF_BF16, MTF_BF16};
    assert_true(after_steps(in_bf16, 40, MTF_SGD) == 1 - 40 * 0x1p-12);
    assert_true(after_steps(in_bf16, 40, MTF_MOMENTUM) == 1 - 40 * 0x1p-12);
    assert_true(after_steps(narrow, 40, MTF_SGD) == 1);
}

/* 1 + 4095 * 2^-9 = 8.998: added one by one in bf16 it would stay at 1. */
static void sums_lose_no_addend(void **state)
{
    (void)state;
    enum { N = 4096 };
    static double value[N], ones[N], zeros[N];
    for (int i = 0; i < N; i++) {
        value[i] = i ? 0x1p-9 : 1;
        ones[i] = 1;
    }
    const double sum = 1 + (N - 1) * 0x1p-9, want = (double)bf16_to_f32(bf16_from_f64(sum));
    eval e = eval_open();
    const mtf_shape s = MTF_SHAPE({"a", N});
    mtf_tensor *x = eval_input(&e, s, MTF_BF16, value), *y = eval_input(&e, s, MTF_BF16, ones);
    mtf_tensor *at = eval_input(&e, s, MTF_I32, zeros);
    mtf_tensor *sums[] = {
        mtf_reduce_sum(x, MTF_SCALAR), mtf_matmul(x, y, MTF_SCALAR),
        mtf_reduce_sum(mtf_scatter_add(x, at, "v", MTF_SHAPE({"v", 1})), MTF_SCALAR)};
    static const char *const layouts[][2] = {{"", ""}, {"x:2", "a:x"}, {"x:3;y:2", "a:x+y"}};
    for (int i = 0; i < 3; i++)
        for (int l = 0; l < 3; l++) {
            assert_true(mtf_tensor_dtype(sums[i]) == MTF_BF16);
            EXPECT_ON(&e, layouts[l][0], layouts[l][1], sums[i], 0, want);
        }
    eval_close(&e);
}

/* Gradients that meet are added before they are rounded: 256 + 1 + 1 is 258, not 256. */
static void gradients_are_rounded_once(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x = INPUT(&e, MTF_SHAPE({"a", 1}), MTF_BF16, 1);
    mtf_tensor *w = INPUT(&e, MTF_SHAPE({"a", 1}, {"b", 1}), MTF_BF16, 256);
    mtf_tensor *v = INPUT(&e, MTF_SHAPE({"a", 1}, {"b", 1}), MTF_BF16, 1);
    const mtf_shape b = MTF_SHAPE({"b", 1});
    mtf_tensor *y = mtf_add(mtf_matmul(x, w, b), mtf_add(mtf_matmul(x, v, b), mtf_matmul(x, v, b)));
    EXPECT(&e, eval_gradient(y, x), 0, 258);
    eval_close(&e);
}

/* The gradient of a weight in f32 is a sum in f32, and never was a bf16: 1 + 2^-9 arrives. */
static void gradients_of_wide_weights_keep_their_digits(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_dim a = {"a", 2}, b = {"b", 1};
    mtf_tensor *x = INPUT(&e, MTF_SHAPE(a), MTF_BF16, 1, 0x1p-9);
    mtf_tensor *w = INPUT(&e, MTF_SHAPE(b), MTF_F32, 1);
    mtf_tensor *read = mtf_rename(mtf_cast(w, MTF_BF16), "b", "c");
    mtf_tensor *y = mtf_matmul(x, read, MTF_SHAPE(a, {"c", 1}));
    EXPECT(&e, eval_gradient(mtf_cast(y, MTF_F32), w), 0, 1 + 0x1p-9);
    eval_close(&e);
}

/* Its steps are smaller than the distance between two numbers of bf16. */
static void averages_of_bf16_are_refused(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_err err = {0};
    mtf_tensor *w = mtf_variable_typed(g, "w", mtf_constant(g, 1, MTF_SHAPE({"a", 2}), MTF_F32),
                                       true, (mtf_variable_types){MTF_F32, MTF_BF16, MTF_BF16});
    assert_null(mtf_optimizer_new(g, &(mtf_optimizer_options){.average_decay = 0.5}, 1, &w));
    assert_int_equal(mtf_graph_status(g, &err), MTF_INVALID);
    assert_string_equal(err.text,
                        "optimizer: average_decay is 0.5 and variable 'w' is stored as bf16, "
                        "whose average would not move; store it as f32");
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_are_cast_and_gradients_are_not),
        cmocka_unit_test(the_usual_types),
        cmocka_unit_test(small_updates_are_kept_where_f32_is_stored),
        cmocka_unit_test(sums_lose_no_addend),
        cmocka_unit_test(gradients_are_rounded_once),
        cmocka_unit_test(gradients_of_wide_weights_keep_their_digits),
        cmocka_unit_test(averages_of_bf16_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
