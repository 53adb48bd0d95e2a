/* SPDX-License-Identifier: Apache-2.0 */
#include "support/mistakes.h"

#include <stdlib.h>

#include "check.h"
#include "support/golden.h"

static parts parts_new(void)
{
    const mtf_dim a = {"a", 4}, b = {"b", 6};
    const mtf_shape ab = MTF_SHAPE(a, b);
    parts p = {.g = mtf_graph_new(), .other = mtf_graph_new()};
    p.x = mtf_placeholder(p.g, "x", ab, MTF_F32);
    p.y = mtf_placeholder(p.g, "y", MTF_SHAPE(b), MTF_F32);
    p.c = mtf_placeholder(p.g, "c", MTF_SHAPE({"b", 5}), MTF_F32);
    p.i = mtf_placeholder(p.g, "i", MTF_SHAPE(a), MTF_I32);
    p.k = mtf_placeholder(p.g, "k", MTF_SHAPE(a), MTF_BOOL);
    p.d = mtf_placeholder(p.g, "d", ab, MTF_F64);
    p.w = mtf_variable(p.g, "w", mtf_constant(p.g, 0, ab, MTF_F32), true);
    p.foreign = mtf_placeholder(p.other, "foreign", ab, MTF_F32);
    return p;
}

messages *messages_new(const char *golden)
{
    messages *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->golden = golden;
    m->lines = open_memstream(&m->text, &m->size);
    return m;
}

void messages_add(messages *m, const char *name, mtf_status status, mtf_err *err)
{
    if (status != MTF_INVALID) fail_msg("%s leaves no message", name);
    assert_int_equal(err->status, status);
    fprintf(m->lines, "%s: %s\n", name, err->text);
    *err = (mtf_err){0};
}

void messages_check(messages **m)
{
    fclose((*m)->lines);
    golden_check((*m)->golden, (*m)->text);
    free((*m)->text);
    free(*m);
    *m = NULL;
}

void mistakes_check(const char *golden, size_t n, const mistake_row *rows)
{
    messages *m = messages_new(golden);
    for (size_t i = 0; i < n; i++) {
        parts p = parts_new();
        mtf_err err = {0};
        assert_int_equal(mtf_graph_status(p.g, &err), MTF_OK);
        if (rows[i].make(&p)) fail_msg("%s is accepted", rows[i].name);
        messages_add(m, rows[i].name, mtf_graph_status(p.g, &err), &err);
        assert_int_equal(mtf_graph_status(p.other, NULL), MTF_OK);
        mtf_graph_free(&p.g);
        mtf_graph_free(&p.other);
    }
    messages_check(&m);
}
