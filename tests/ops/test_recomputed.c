/* SPDX-License-Identifier: Apache-2.0
 * Every row inside a recompute region: the gradients of every sample are those that they are
 * without, bit for bit on one processor and within rounding on four under several layouts. An
 * argument runs the rows of that name alone. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "mtf/mtf.h"
#include "support/conform.h"

enum { MAX_FEEDS = 8 };

static const char *only;

/* The same gradients twice: [0] plain, [1] through a region that holds the sample. */
typedef struct sample_graph {
    mtf_graph *g;
    int nfeeds, n; /* n: gradients that there are */
    mtf_feed feed[MAX_FEEDS];
    mtf_tensor *gradient[2][MAX_FEEDS];
} sample_graph;

static bool is_float(const mtf_tensor *t)
{
    return t->dtype == MTF_F32 || t->dtype == MTF_F64;
}

/* Declares what was built before the mark to be a region. */
static void enclose(mtf_graph *g, int64_t end)
{
    mtf_recompute_begin(g);
    mtf_recompute_end(g);
    g->region[g->nregions - 1] = (region){.begin = 0, .end = end};
    for (int64_t i = 0; i < end; i++)
        g->node[i]->region = (int)g->nregions;
}

static int find_feeds(sample_graph *s, mtf_tensor **varied)
{
    int64_t at = 0;
    int n = 0;
    for (int64_t i = 0; i < s->g->nnodes; i++) {
        mtf_tensor *t = &s->g->node[i]->out[0];
        if (!(t->node->op->traits & TRAIT_FEED)) continue;
        s->feed[s->nfeeds++] = (mtf_feed){.placeholder = t, .data = sample_data(t, &at)};
        if (is_float(t)) varied[n++] = t;
    }
    return n;
}

/* Both gradients of the sum of squares of the result. */
static void differentiate(sample_graph *s, mtf_tensor *out)
{
    mtf_tensor *varied[MAX_FEEDS], *d[2][MAX_FEEDS];
    const int n = find_feeds(s, varied);
    if (!n || !is_float(out)) return;
    const int64_t end = mtf_graph_mark(s->g);
    mtf_tensor *loss = mtf_reduce_sum(mtf_square(mtf_cast(out, MTF_F64)), MTF_SCALAR);
    mtf_gradients(loss, n, varied, d[0]);
    enclose(s->g, end);
    mtf_gradients(loss, n, varied, d[1]);
    for (int i = 0; i < n; i++) {
        assert_true(!d[0][i] == !d[1][i]);
        if (!d[0][i]) continue;
        for (int k = 0; k < 2; k++)
            s->gradient[k][s->n] = d[k][i];
        s->n++;
    }
}

static void compare(const char *what, const sample_graph *s, double *const *out, bool bits)
{
    for (int i = 0; i < s->n; i++) {
        const int64_t n = mtf_shape_size(&s->gradient[0][i]->shape);
        const double *a = out[i], *b = out[s->n + i];
        if (bits && memcmp(a, b, sizeof *a * (size_t)n) != 0)
            fail_msg("%s: gradient %d differs in a region", what, i);
        for (int64_t k = 0; k < n; k++)
            if (!(fabs(a[k] - b[k]) <= 1e-11 * (1 + fabs(a[k]))))
                fail_msg("%s: gradient %d, element %lld is %.15g in a region instead of %.15g",
                         what, i, (long long)k, b[k], a[k]);
    }
}

/* False where the layout is not possible. */
static bool run(const char *what, sample_graph *s, const char *mesh, const char *layout)
{
    mtf_err err = {0};
    mtf_tensor *fetch[2 * MAX_FEEDS];
    double *out[2 * MAX_FEEDS];
    for (int i = 0; i < 2 * s->n; i++) {
        fetch[i] = s->gradient[i / s->n][i % s->n];
        out[i] = mem_zalloc((size_t)mtf_shape_size(&fetch[i]->shape) * sizeof **out);
    }
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, false, NULL, &err);
    const mtf_request r = {.nfetches = 2 * s->n, .fetches = fetch};
    mtf_program *p = mtf_compile(s->g, m, l, &r, &err);
    if (p) {
        mtf_session *session = mtf_session_new(1, &p, &(mtf_session_options){.threads = 1}, &err);
        if (!session || mtf_run(session, p, s->nfeeds, s->feed, (void **)out, NULL, &err) != MTF_OK)
            fail_msg("%s, layout '%s': %s", what, layout, err.text);
        compare(what, s, out, !*mesh);
        mtf_session_free(&session);
    }
    for (int i = 0; i < 2 * s->n; i++)
        mem_free(out[i]);
    const bool possible = p;
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return possible;
}

/* Gradients that were compared on four processors; -1 when there is no such sample. */
static int check_sample(const op *row, int k)
{
    static const char *const layouts[] = {"a:x", "b:x", "c:x", "a:x;b:y", "b:x+y", "a:y;c:x"};
    sample_graph s = {.g = mtf_graph_new()};
    char what[80];
    int compared = -1;
    snprintf(what, sizeof what, "%s sample %d", row->name, k);
    mtf_tensor *out = row->sample ? row->sample(s.g, k) : NULL;
    if (out) {
        mtf_err err = {0};
        compared = 0;
        differentiate(&s, out);
        if (mtf_graph_status(s.g, &err) != MTF_OK) fail_msg("%s: %s", what, err.text);
        if (s.n && !run(what, &s, "", "")) fail_msg("%s does not compile", what);
        for (size_t i = 0; s.n && i < sizeof layouts / sizeof *layouts; i++)
            compared += run(what, &s, "x:2;y:2", layouts[i]);
        if (s.n && !compared) fail_msg("%s was compared under no layout", what);
    }
    for (int i = 0; i < s.nfeeds; i++)
        mem_free((void *)(uintptr_t)s.feed[i].data);
    mtf_graph_free(&s.g);
    return compared;
}

static void every_row_in_a_region(void **state)
{
    (void)state;
    int total = 0;
    for (int r = 0; r < op_count; r++) {
        if (only && strcmp(only, op_rows[r]->name) != 0) continue;
        for (int k = 0, n; (n = check_sample(op_rows[r], k)) >= 0; k++)
            total += n;
    }
    if (!only) assert_true(total > 300);
}

int main(int argc, char **argv)
{
    if (argc > 1) only = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_in_a_region)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
