/* SPDX-License-Identifier: Apache-2.0
 * Building graphs: prints of a graph and of its gradients, names and scopes, sticky errors. The
 * messages of all mistakes are in ops_errors. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "mtf/mtf.h"
#include "support/golden.h"

static const mtf_dim batch = {"batch", 8}, io = {"io", 4}, hidden = {"hidden", 6};

static void prints_are_golden(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(batch, io), MTF_F32);
    mtf_scope_push(g, "block_0");
    mtf_tensor *w = mtf_variable(
        g, "w", mtf_random_normal(g, "w/initial", MTF_SHAPE(io, hidden), MTF_F32, 0, 0.5), true);
    mtf_tensor *h = mtf_relu(mtf_matmul(x, w, MTF_SHAPE(batch, hidden)));
    mtf_scope_push(g, "mix");
    mtf_tensor *s = mtf_softmax(h, "hidden");
    mtf_scope_pop(g);
    mtf_scope_pop(g);
    mtf_tensor *p = mtf_rename(mtf_shift(s, "batch", -1, true), "hidden", "out");
    mtf_tensor *loss = mtf_reduce_mean(mtf_square(mtf_offset(p, -0.25)), MTF_SCALAR);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    fprintf(f, "graph\n");
    mtf_graph_print(g, f);
    mtf_tensor *of[] = {w, x}, *d[2];
    assert_int_equal(mtf_gradients(loss, 2, of, d), MTF_OK);
    mtf_assign(w, mtf_sub(w, mtf_scale(d[0], 0.125)));
    fprintf(f, "graph with gradients\n");
    mtf_graph_print(g, f);
    fclose(f);
    golden_check("graph.txt", text);
    free(text);
    mtf_graph_free(&g);
}

/* reference 1.5; but upper and lower case differ here */
static void names_are_unique(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    static const char *const want[][2] = {
        {"a", "a"}, {"a", "a_1"}, {"a", "a_2"},          {"a_1", "a_1_1"},
        {"b", "b"}, {"A", "A"},   {NULL, "placeholder"}, {"placeholder", "placeholder_1"}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        mtf_tensor *t = mtf_placeholder(g, want[i][0], MTF_SCALAR, MTF_F32);
        assert_string_equal(mtf_tensor_name(t), want[i][1]);
    }
    mtf_scope_push(g, "s");
    assert_string_equal(mtf_tensor_name(mtf_placeholder(g, "a", MTF_SCALAR, MTF_F32)), "s/a");
    mtf_scope_push(g, "t");
    assert_string_equal(mtf_tensor_name(mtf_placeholder(g, "a", MTF_SCALAR, MTF_F32)), "s/t/a");
    mtf_scope_pop(g);
    assert_string_equal(mtf_tensor_name(mtf_placeholder(g, "a", MTF_SCALAR, MTF_F32)), "s/a_1");
    mtf_scope_pop(g);
    assert_string_equal(mtf_tensor_name(mtf_placeholder(g, "a", MTF_SCALAR, MTF_F32)), "a_3");
    assert_int_equal(mtf_graph_status(g, NULL), MTF_OK);
    mtf_graph_free(&g);
}

static void errors_stick(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(batch), MTF_F32);
    mtf_tensor *bad = mtf_add(x, mtf_placeholder(g, "y", MTF_SHAPE({"batch", 9}), MTF_F32));
    assert_null(bad);
    const int64_t nodes = g->nnodes;
    /* Everything after the first mistake is quiet, builds nothing and keeps the message. */
    mtf_tensor *dx = x;
    assert_null(mtf_relu(bad));
    assert_null(mtf_relu(x));
    assert_null(mtf_add(bad, x));
    assert_null(mtf_einsum(2, (mtf_tensor *[]){bad, x}, MTF_SCALAR));
    assert_null(mtf_add_n(0, NULL));
    assert_null(mtf_softmax(bad, "batch"));
    assert_null(mtf_reshape(bad, MTF_SCALAR));
    assert_null(mtf_gather(bad, bad, "batch"));
    assert_null(mtf_variable(g, "v", bad, true));
    assert_null(mtf_assign(bad, bad));
    assert_null(mtf_dropout(bad, "d", 0.5));
    assert_null(mtf_placeholder(g, "z", MTF_SCALAR, MTF_F32));
    assert_int_equal(mtf_gradients(bad, 1, &x, &dx), MTF_INVALID);
    assert_null(dx);
    mtf_err err = {0}, kept = {.status = MTF_FAILED, .text = "older"};
    assert_int_equal(mtf_graph_status(g, &err), MTF_INVALID);
    assert_string_equal(err.text,
                        "add 'add': dim batch has size 8 in operand 0 and 9 in operand 1; "
                        "rename it in one of them");
    assert_int_equal(mtf_graph_status(g, NULL), MTF_INVALID);
    assert_int_equal(mtf_graph_status(g, &kept), MTF_INVALID);
    assert_string_equal(kept.text, "older");
    assert_int_equal(g->nnodes, nodes);
    /* Such a graph does not compile. */
    mtf_mesh *m = mtf_mesh_parse("", &err);
    mtf_layout *l = mtf_layout_parse("", m, true, NULL, &err);
    err = (mtf_err){0};
    const mtf_request r = {.nfetches = 1, .fetches = &x};
    assert_null(mtf_compile(g, m, l, &r, &err));
    assert_non_null(strstr(err.text, "dim batch has size 8"));
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    mtf_graph_free(&g);
    assert_null(g);
    mtf_graph_free(&g);
}

static void facts_about_tensors(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(batch, io), MTF_I32);
    const mtf_shape s = mtf_tensor_shape(x);
    assert_int_equal(s.rank, 2);
    assert_int_equal(mtf_shape_size(&s), 32);
    assert_int_equal(mtf_shape_find(&s, "io"), 1);
    assert_int_equal(mtf_shape_find(&s, "hidden"), -1);
    assert_int_equal(mtf_tensor_dim(x, "io").size, 4);
    assert_int_equal(mtf_tensor_dtype(x), MTF_I32);
    assert_ptr_equal(mtf_tensor_graph(x), g);
    const mtf_shape less = mtf_shape_without(s, "batch"), same = mtf_shape_without(s, "z"),
                    more = mtf_shape_with(s, hidden), other = mtf_shape_replace(s, "io", hidden);
    assert_int_equal(less.rank, 1);
    assert_string_equal(less.dim[0].name, "io");
    assert_int_equal(same.rank, 2);
    assert_int_equal(more.rank, 3);
    assert_string_equal(other.dim[1].name, "hidden");
    assert_int_equal(mtf_tensor_shape(NULL).rank, 0);
    assert_int_equal(mtf_tensor_dtype(NULL), MTF_F32);
    assert_string_equal(mtf_tensor_name(NULL), "");
    assert_null(mtf_tensor_graph(NULL));
    assert_int_equal(mtf_tensor_dim(NULL, "a").size, 1);
    /* One name may have another size in another tensor. */
    assert_non_null(mtf_placeholder(g, "y", MTF_SHAPE({"batch", 3}), MTF_F32));
    assert_int_equal(mtf_graph_status(g, NULL), MTF_OK);
    mtf_graph_free(&g);
}

/* Names may go out of scope: the graph has copies. */
static void names_are_copied(void **state)
{
    (void)state;
    mtf_graph *g = mtf_graph_new();
    char name[] = "batch", node[] = "x", scope[] = "s";
    mtf_scope_push(g, scope);
    mtf_tensor *x = mtf_placeholder(g, node, MTF_SHAPE({name, 2}), MTF_F32);
    memset(name, '!', strlen(name));
    node[0] = scope[0] = '!';
    assert_string_equal(mtf_tensor_shape(x).dim[0].name, "batch");
    assert_string_equal(mtf_tensor_name(x), "s/x");
    assert_string_equal(mtf_tensor_name(mtf_relu(x)), "s/relu");
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_are_golden), cmocka_unit_test(names_are_unique),
        cmocka_unit_test(errors_stick),      cmocka_unit_test(facts_about_tensors),
        cmocka_unit_test(names_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
