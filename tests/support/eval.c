/* SPDX-License-Identifier: Apache-2.0 */
#include "support/eval.h"

#include <math.h>
#include <string.h>

#include "base/element.h"
#include "base/mem.h"
#include "check.h"

eval eval_open(void)
{
    return (eval){.g = mtf_graph_new()};
}

void eval_close(eval *e)
{
    for (int i = 0; i < e->nfeeds; i++)
        mem_free((void *)(uintptr_t)e->feed[i].data);
    mtf_graph_free(&e->g);
}

mtf_tensor *eval_input(eval *e, mtf_shape shape, mtf_dtype type, const double *values)
{
    const int64_t n = mtf_shape_size(&shape);
    void *data = mem_zalloc((size_t)(n * mtf_dtype_size(type)));
    for (int64_t i = 0; i < n; i++)
        element_put(data, type, i, values[i]);
    assert_true(e->nfeeds < EVAL_MAX_FEEDS);
    mtf_tensor *t = mtf_placeholder(e->g, "input", shape, type);
    e->feed[e->nfeeds++] = (mtf_feed){.placeholder = t, .data = data};
    return t;
}

void eval_run(eval *e, const char *mesh, const char *layout, mtf_tensor *t, double *out)
{
    mtf_err err = {0};
    if (mtf_graph_status(e->g, &err) != MTF_OK) fail_msg("%s", err.text);
    assert_non_null(t);
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = m ? mtf_layout_parse(layout, m, true, NULL, &err) : NULL;
    const mtf_request r = {.nfetches = 1, .fetches = &t};
    mtf_program *p = l ? mtf_compile(e->g, m, l, &r, &err) : NULL;
    mtf_session *s = p ? mtf_session_new(1, &p, &(mtf_session_options){.threads = 1}, &err) : NULL;
    const mtf_shape shape = mtf_tensor_shape(t);
    const int64_t n = mtf_shape_size(&shape);
    void *data = mem_zalloc((size_t)n * 8);
    if (!s || mtf_run(s, p, e->nfeeds, e->feed, &data, NULL, &err) != MTF_OK)
        fail_msg("mesh '%s', layout '%s': %s", mesh, layout, err.text);
    for (int64_t i = 0; i < n; i++)
        out[i] = element_get(data, mtf_tensor_dtype(t), i);
    mem_free(data);
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
}

static bool same(double got, double want, double tolerance)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= tolerance * (1 + fabs(want));
}

void eval_expect_on(eval *e, const char *mesh, const char *layout, mtf_tensor *t, int n,
                    const double *want, double tolerance)
{
    mtf_err err = {0};
    if (mtf_graph_status(e->g, &err) != MTF_OK) fail_msg("%s", err.text);
    assert_non_null(t);
    const mtf_shape shape = mtf_tensor_shape(t);
    assert_int_equal(mtf_shape_size(&shape), n);
    double *got = mem_zalloc(sizeof *got * (size_t)n);
    eval_run(e, mesh, layout, t, got);
    for (int i = 0; i < n; i++)
        if (!same(got[i], want[i], tolerance))
            fail_msg("'%s', mesh '%s', layout '%s': element %d is %.9g instead of %.9g",
                     mtf_tensor_name(t), mesh, layout, i, got[i], want[i]);
    mem_free(got);
}

void eval_expect(eval *e, mtf_tensor *t, int n, const double *want, double tolerance)
{
    eval_expect_on(e, "", "", t, n, want, tolerance);
}

mtf_tensor *eval_gradient(mtf_tensor *y, mtf_tensor *x)
{
    mtf_tensor *dx = NULL;
    mtf_gradients(mtf_reduce_sum(y, MTF_SCALAR), 1, &x, &dx);
    return dx;
}
