/* SPDX-License-Identifier: Apache-2.0
 * Dense layers and initial values: shapes and names of variables, values, messages. Gradients and
 * layouts: test_layer_conformance. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "mtf/mtf.h"
#include "support/eval.h"
#include "support/model.h"

static void expect_shape(const mtf_tensor *t, const char *name, const char *dims)
{
    char text[128] = "";
    assert_non_null(t);
    const mtf_shape s = mtf_tensor_shape(t);
    for (int i = 0; i < s.rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=%d", i ? " " : "",
                 s.dim[i].name, (int)s.dim[i].size);
    if (name) assert_string_equal(mtf_tensor_name(t), name);
    assert_string_equal(text, dims);
}

/* ---- shapes and names; reference 3.2 ---- */

static void variables(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    const mtf_dim batch = {"batch", 2}, expert = {"expert", 3}, length = {"length", 5},
                  heads = {"heads", 4}, kv = {"kv", 6}, io = {"io", 7}, hidden = {"hidden", 8};
    const mtf_dense_weights several =
        mtf_dense_variables(g, "several",
                            &(mtf_dense_options){.reduced = MTF_SHAPE(heads, kv),
                                                 .out = MTF_SHAPE(io, hidden),
                                                 .expert = MTF_SHAPE(expert),
                                                 .bias = true},
                            MTF_F32);
    expect_shape(several.kernel, "several/kernel", "expert=3 heads=4 kv=6 io=7 hidden=8");
    expect_shape(several.bias, "several/bias", "expert=3 io=7 hidden=8");
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(kv, batch, expert, heads, length), MTF_F32);
    expect_shape(mtf_dense_layer(x, &several), NULL, "batch=2 expert=3 length=5 io=7 hidden=8");

    const mtf_dense_weights square = mtf_dense_variables(
        g, "square", &(mtf_dense_options){.reduced = MTF_SHAPE(io), .out = MTF_SHAPE(io)}, MTF_F32);
    expect_shape(square.kernel, "square/kernel", "_io=7 io=7");
    assert_null(square.bias);
    mtf_tensor *y = mtf_placeholder(g, "y", MTF_SHAPE(io, batch), MTF_F32);
    expect_shape(mtf_dense_layer(y, &square), NULL, "batch=2 io=7");

    const char *const glu[] = {"linear", "sigmoid"};
    const mtf_dense_pair pair =
        mtf_dense_pair_variables(g, "ffn", MTF_SHAPE(io), MTF_SHAPE(hidden), 2, glu, MTF_F32);
    expect_shape(pair.wi.factor[0].kernel, "ffn/wi_0/kernel", "io=7 hidden=8");
    expect_shape(pair.wi.factor[1].kernel, "ffn/wi_1/kernel", "io=7 hidden=8");
    expect_shape(pair.wo.kernel, "ffn/wo/kernel", "hidden=8 io=7");
    expect_shape(mtf_dense_pair_layer(y, &pair, 0, NULL), NULL, "batch=2 io=7");
    const mtf_dense_product one = mtf_dense_product_variables(
        g, "one", &(mtf_dense_options){.reduced = MTF_SHAPE(io), .out = MTF_SHAPE(hidden)}, 1, glu,
        MTF_F32);
    expect_shape(one.factor[0].kernel, "one/kernel", "io=7 hidden=8");
    assert_int_equal(mtf_graph_status(g, NULL), MTF_OK);
    mtf_graph_free(&g);
}

/* ---- values ---- */

static void dense_values(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_dim batch = {"b", 2}, io = {"io", 2}, out = {"o", 3};
    mtf_tensor *x = INPUT(&e, MTF_SHAPE(batch, io), MTF_F64, 1, 2, -1, 3);
    mtf_dense_weights w = {
        .kernel = INPUT(&e, MTF_SHAPE(io, out), MTF_F64, 1, 0, 2, -1, 1, 1),
        .bias = INPUT(&e, MTF_SHAPE(out), MTF_F64, 0.5, 0, -1),
        .nreduced = 1,
    };
    EXPECT(&e, mtf_dense_layer(x, &w), 0, -.5, 2, 3, -3.5, 3, 0);
    w.activation = "relu";
    EXPECT(&e, mtf_dense_layer(x, &w), 0, 0, 2, 3, 0, 3, 0);
    w.unit_scaling = true;
    w.bias = NULL;
    EXPECT(&e, mtf_dense_layer(x, &w), 1e-15, 0, sqrt(2), sqrt(8), 0, 3 / sqrt(2), 1 / sqrt(2));
    /* x' = x times a square matrix: the dim is called _io while it is summed over. */
    const mtf_dense_weights square = {
        .kernel = INPUT(&e, MTF_SHAPE({"_io", 2}, {"io", 2}), MTF_F64, 0, 1, 2, 0), .nreduced = 1};
    EXPECT(&e, mtf_dense_layer(x, &square), 0, 4, 1, 6, -1);
    /* A kernel of its own for each row. */
    const mtf_dense_weights experts = {
        .kernel = INPUT(&e, MTF_SHAPE(batch, io, {"o", 1}), MTF_F64, 1, 1, 0, 5),
        .nexpert = 1,
        .nreduced = 1};
    EXPECT(&e, mtf_dense_layer(x, &experts), 0, 3, 15);
    eval_close(&e);
}

static void products_of_activations(void **state)
{
    (void)state;
    eval e = eval_open();
    const mtf_shape in = MTF_SHAPE({"io", 1}), out = MTF_SHAPE({"io", 1}, {"o", 2});
    mtf_tensor *x = INPUT(&e, in, MTF_F64, 2);
    mtf_dense_product p = {.nfactors = 2};
    for (int k = 0; k < 2; k++)
        p.factor[k] = (mtf_dense_weights){.kernel = k ? INPUT(&e, out, MTF_F64, 3, 0)
                                                      : INPUT(&e, out, MTF_F64, -1, 0.5),
                                          .nreduced = 1};
    p.factor[1].activation = "sigmoid"; /* GLU */
    EXPECT(&e, mtf_dense_product_layer(x, &p), 1e-15, -2 / (1 + exp(-6)), 0.5);
    p.factor[0].activation = "square";
    p.factor[1].activation = "linear";
    EXPECT(&e, mtf_dense_product_layer(x, &p), 1e-15, 24, 0);
    eval_close(&e);
}

/* reference 3.2, [test]. */
static void separable_values(void **state)
{
    (void)state;
    static const char *const cuts[][2] = {{"", ""}, {"x:2", "t:x"}, {"x:3;y:2", "t:x;out:y"}};
    for (int c = 0; c < 3; c++) {
        eval e = eval_open();
        const mtf_dim t = {"t", 4}, in = {"in", 2}, out = {"out", 2};
        mtf_tensor *x = INPUT(&e, MTF_SHAPE(t, in), MTF_F64, 1, 0, 0, 1, 1, 1, 2, 1);
        mtf_tensor *channel = INPUT(&e, MTF_SHAPE(in), MTF_F64, 1, 2);
        mtf_dense_weights depthwise[3];
        for (int i = 0; i < 3; i++)
            depthwise[i] = (mtf_dense_weights){.kernel = channel, .nexpert = 1};
        const mtf_separable_weights w = {
            .first = -1,
            .npositions = 3,
            .depthwise = depthwise,
            .pointwise = {.kernel = INPUT(&e, MTF_SHAPE(in, out), MTF_F64, 1, 0, 1, -1),
                          .nreduced = 1}};
        EXPECT_ON(&e, cuts[c][0], cuts[c][1], mtf_separable_conv1d(x, &w, "t"), 0, 3, -2, 6, -4, 9,
                  -6, 7, -4);
        eval_close(&e);
    }
    mtf_graph *g = mtf_graph_new();
    const mtf_separable_weights w = mtf_separable_variables(
        g, "conv", (mtf_dim){"in", 2}, (mtf_dim){"out", 3}, -2, 1, true, MTF_F32);
    assert_int_equal(w.npositions, 4);
    expect_shape(w.depthwise[3].kernel, "conv/depthwise_3/kernel", "in=2");
    expect_shape(w.depthwise[0].bias, "conv/depthwise_0/bias", "in=2");
    assert_null(w.depthwise[1].bias);
    expect_shape(w.pointwise.kernel, "conv/pointwise/kernel", "in=2 out=3");
    expect_shape(w.pointwise.bias, "conv/pointwise/bias", "out=3");
    mtf_graph_free(&g);
}

/* ---- initial values ---- */

/* Mean and deviation of 10000 values, and the largest. */
static void expect_moments(const mtf_initializer *i, double deviation, double largest)
{
    mtf_graph *g = mtf_graph_new();
    const mtf_dim in = {"in", 50}, out = {"out", 200};
    mtf_tensor *w =
        mtf_initialized(g, "w", MTF_SHAPE(in, out), MTF_SHAPE(in), MTF_SHAPE(out), i, MTF_F64);
    assert_string_equal(mtf_tensor_name(w), "w");
    machine run = machine_new(g, "", "", &(mtf_request){.nfetches = 1, .fetches = &w});
    static double value[10000];
    mtf_err err = {0};
    if (mtf_state_get(run.session, w, value, &err) != MTF_OK) fail_msg("%s", err.text);
    double sum = 0, squares = 0, top = 0;
    for (int k = 0; k < 10000; k++) {
        sum += value[k];
        squares += value[k] * value[k];
        top = fmax(top, fabs(value[k]));
    }
    /* Four deviations of a mean of 10000, and of a mean square. */
    assert_true(fabs(sum / 10000) < 4 * deviation / 100);
    assert_true(fabs(sqrt(squares / 10000) / deviation - 1) < 4 / sqrt(2 * 10000.));
    assert_true(top <= largest * deviation * (1 + 1e-12) &&
                top > 0.97 * fmin(largest, 3) * deviation);
    machine_free(&run);
    mtf_graph_free(&g);
}

static void initial_values(void **state)
{
    (void)state;
    const double cut = 2 / 0.87962566103423978;
    expect_moments(&(mtf_initializer){0}, 1 / sqrt(50), cut);
    expect_moments(&(mtf_initializer){.scale = 4, .fan = MTF_FAN_OUT}, 2 / sqrt(200), cut);
    expect_moments(&(mtf_initializer){.fan = MTF_FAN_AVG}, 1 / sqrt(125), cut);
    expect_moments(&(mtf_initializer){.distribution = MTF_DISTRIBUTION_UNIFORM}, 1 / sqrt(50),
                   sqrt(3));
    expect_moments(&(mtf_initializer){.distribution = MTF_DISTRIBUTION_NORMAL}, 1 / sqrt(50), 6);
    expect_moments(&(mtf_initializer){.unit = true, .scale = 9}, 3, cut);
}

static void unit_einsum(void **state)
{
    (void)state;
    eval e = eval_open();
    mtf_tensor *x[] = {INPUT(&e, MTF_SHAPE({"a", 2}, {"b", 2}), MTF_F64, 1, 2, 3, 4),
                       INPUT(&e, MTF_SHAPE({"b", 2}), MTF_F64, 1, -1)};
    EXPECT(&e, mtf_unit_einsum(2, x, MTF_SHAPE({"a", 2})), 1e-15, -1 / sqrt(2), -1 / sqrt(2));
    EXPECT(&e, mtf_unit_einsum(2, x, MTF_SCALAR), 1e-15, -1);
    EXPECT(&e, mtf_unit_einsum(2, x, MTF_SHAPE({"a", 2}, {"b", 2})), 0, 1, -2, 3, -4);
    eval_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(variables),
                                       cmocka_unit_test(dense_values),
                                       cmocka_unit_test(products_of_activations),
                                       cmocka_unit_test(separable_values),
                                       cmocka_unit_test(initial_values),
                                       cmocka_unit_test(unit_einsum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
