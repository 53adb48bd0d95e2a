/* SPDX-License-Identifier: Apache-2.0 */
#include "support/mistakes.h"

#include <stdio.h>
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

void mistakes_check(const char *golden, size_t n, const mistake_row *rows)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (size_t i = 0; i < n; i++) {
        parts p = parts_new();
        mtf_err err = {0};
        assert_int_equal(mtf_graph_status(p.g, &err), MTF_OK);
        if (rows[i].make(&p)) fail_msg("%s is accepted", rows[i].name);
        if (mtf_graph_status(p.g, &err) != MTF_INVALID)
            fail_msg("%s leaves no message", rows[i].name);
        assert_int_equal(mtf_graph_status(p.other, NULL), MTF_OK);
        fprintf(f, "%s: %s\n", rows[i].name, err.text);
        mtf_graph_free(&p.g);
        mtf_graph_free(&p.other);
    }
    fclose(f);
    golden_check(golden, text);
    free(text);
}
