/* SPDX-License-Identifier: Apache-2.0
 * Gradients of gradients: for every sample of every row, the gradient of a weighted sum of its
 * first gradients against finite differences of that sum. golden/second_gradients.txt says of every
 * row whether there was a second gradient. An argument runs the rows of that name alone. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mtf/mtf.h"
#include "support/conform.h"
#include "support/golden.h"

enum { MAX_FEEDS = 8 };

static const char *only;

typedef enum found { NO_GRADIENT, NO_SECOND, SECOND, FOUND } found;
static const char *const found_names[FOUND] = {
    [NO_GRADIENT] = "no gradient", [NO_SECOND] = "gradient; second is zero", [SECOND] = "second"};

typedef struct sample_graph {
    mtf_graph *g;
    bool coarse; /* f32 inside: differences are no finer than its rounding */
    int nfeeds, nvaried;
    mtf_feed feed[MAX_FEEDS];
    mtf_tensor *varied[MAX_FEEDS];
    double *data[MAX_FEEDS]; /* of `varied` */
    mtf_tensor *first;       /* the weighted sum of the first gradients; NULL: there are none */
    mtf_tensor *second[MAX_FEEDS];
} sample_graph;

static bool is_float(const mtf_tensor *t)
{
    return mtf_dtype_is_float(t->dtype);
}

/* The sum of t with weights of its own per element. */
static mtf_tensor *weighted(mtf_graph *g, mtf_tensor *t, const char *name)
{
    t = mtf_cast(t, MTF_F64);
    mtf_tensor *w = mtf_random_normal(g, name, mtf_tensor_shape(t), MTF_F64, 0, 1);
    return mtf_reduce_sum(mtf_mul(t, w), MTF_SCALAR);
}

static void find_feeds(sample_graph *s)
{
    int64_t at = 0;
    for (int64_t i = 0; i < s->g->nnodes; i++) {
        mtf_node *n = s->g->node[i];
        if (n->out[0].dtype == MTF_F32) s->coarse = true;
        if (!(n->op->traits & TRAIT_FEED)) continue;
        void *data = sample_data(&n->out[0], &at);
        s->feed[s->nfeeds++] = (mtf_feed){.placeholder = &n->out[0], .data = data};
        if (!is_float(&n->out[0])) continue;
        s->data[s->nvaried] = data;
        s->varied[s->nvaried++] = &n->out[0];
    }
}

static void differentiate(sample_graph *s, mtf_tensor *out)
{
    mtf_tensor *dx[MAX_FEEDS];
    find_feeds(s);
    if (!is_float(out) || !s->nvaried) return;
    mtf_gradients(weighted(s->g, out, "weights"), s->nvaried, s->varied, dx);
    for (int i = 0; i < s->nvaried; i++) {
        if (!dx[i]) continue;
        mtf_tensor *t = weighted(s->g, dx[i], "weights of a gradient");
        s->first = s->first ? mtf_add(s->first, t) : t;
    }
    if (s->first) mtf_gradients(s->first, s->nvaried, s->varied, s->second);
}

static void close_sample(sample_graph *s)
{
    for (int i = 0; i < s->nfeeds; i++)
        mem_free((void *)(uintptr_t)s->feed[i].data);
    mtf_graph_free(&s->g);
}

typedef struct runner {
    mtf_mesh *mesh;
    mtf_layout *layout;
    mtf_program *program;
    mtf_session *session;
} runner;

static runner runner_new(mtf_graph *g, mtf_tensor *t)
{
    mtf_err err = {0};
    runner r = {.mesh = mtf_mesh_parse("", &err)};
    r.layout = mtf_layout_parse("", r.mesh, true, NULL, &err);
    r.program =
        mtf_compile(g, r.mesh, r.layout, &(mtf_request){.nfetches = 1, .fetches = &t}, &err);
    if (r.program)
        r.session = mtf_session_new(1, &r.program, &(mtf_session_options){.threads = 1}, &err);
    if (!r.session) fail_msg("%s", err.text);
    return r;
}

static void runner_free(runner *r)
{
    mtf_session_free(&r->session);
    mtf_program_free(&r->program);
    mtf_layout_free(&r->layout);
    mtf_mesh_free(&r->mesh);
}

static void fetch(const runner *r, const sample_graph *s, void *out)
{
    mtf_err err = {0};
    if (mtf_run(r->session, r->program, s->nfeeds, s->feed, &out, NULL, &err) != MTF_OK)
        fail_msg("%s", err.text);
}

/* The second gradient of operand v as numbers; zeros where there is none. */
static double *analytic(const sample_graph *s, int v)
{
    const mtf_shape shape = mtf_tensor_shape(s->varied[v]);
    double *d = mem_zalloc(sizeof *d * (size_t)mtf_shape_size(&shape));
    if (!s->second[v]) return d;
    runner r = runner_new(s->g, s->second[v]);
    fetch(&r, s, d);
    runner_free(&r);
    return d;
}

static void check_operand(const op *row, int k, const sample_graph *s, const runner *r, int v)
{
    const double h = s->coarse ? 1e-2 : 1e-4, tolerance = s->coarse ? 1e-3 : 2e-4;
    const mtf_shape shape = mtf_tensor_shape(s->varied[v]);
    double *got = analytic(s, v), *x = s->data[v];
    for (int64_t i = 0; i < mtf_shape_size(&shape); i++) {
        const double at = x[i];
        double up, down;
        x[i] = at + h;
        fetch(r, s, &up);
        x[i] = at - h;
        fetch(r, s, &down);
        x[i] = at;
        const double slope = (up - down) / (2 * h);
        if (!(fabs(slope - got[i]) <= tolerance * (1 + fabs(slope))))
            fail_msg("%s sample %d: second gradient of operand %d, element %lld is %.9g; finite "
                     "differences say %.9g",
                     row->name, k, v, (long long)i, got[i], slope);
    }
    mem_free(got);
}

/* False when there is no such sample. */
static bool check_sample(const op *row, int k, found *f)
{
    sample_graph s = {.g = mtf_graph_new()};
    mtf_err err = {0};
    mtf_tensor *out = row->sample ? row->sample(s.g, k) : NULL;
    if (out) differentiate(&s, out);
    if (mtf_graph_status(s.g, &err) != MTF_OK) fail_msg("%s sample %d: %s", row->name, k, err.text);
    if (s.first) {
        runner r = runner_new(s.g, s.first);
        if (*f == NO_GRADIENT) *f = NO_SECOND;
        for (int v = 0; v < s.nvaried; v++) {
            if (s.second[v]) *f = SECOND;
            check_operand(row, k, &s, &r, v);
        }
        runner_free(&r);
    }
    close_sample(&s);
    return out != NULL;
}

static void rules_compose(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&text, &size);
    for (int r = 0; r < op_count; r++) {
        if (only && strcmp(only, op_rows[r]->name) != 0) continue;
        found f = NO_GRADIENT;
        for (int k = 0; check_sample(op_rows[r], k, &f);)
            k++;
        fprintf(lines, "%s: %s\n", op_rows[r]->name, found_names[f]);
    }
    fclose(lines);
    if (!only) golden_check("second_gradients.txt", text);
    free(text);
}

int main(int argc, char **argv)
{
    if (argc > 1) only = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules_compose)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
