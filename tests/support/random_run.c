/* SPDX-License-Identifier: Apache-2.0
 * Running random programs under layouts, comparing what they give, and shrinking what differs. */
#include "support/random_program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check.h"
#include "graph/op.h"
#include "spmd/program.h"

/* ---- running ---- */

static double *result_new(results *r, const mtf_tensor *t)
{
    const mtf_shape s = mtf_tensor_shape(t);
    const int64_t n = mtf_shape_size(&s);
    r->size[r->n] = n;
    return r->value[r->n++] = mem_zalloc(sizeof(double) * (size_t)n);
}

void results_free(results *r)
{
    for (int i = 0; i < r->n; i++)
        mem_free(r->value[i]);
    r->n = 0;
}

static void run_steps(random_program *p, mtf_session *s, mtf_program *const *programs_of,
                      results *r)
{
    mtf_err err = {0};
    mtf_status st = mtf_run(s, programs_of[0], p->nfeeds, p->feed, NULL, NULL, &err);
    for (int step = 0; step < STEPS && st == MTF_OK; step++) {
        void *out[MAX_FETCHES + MAX_NODES] = {0};
        for (int i = 0; i < p->nfetches; i++)
            out[i] = result_new(r, p->fetch[i]);
        const mtf_run_values values = {.step = (uint64_t)step};
        st = mtf_run(s, programs_of[1], p->nfeeds, p->feed, out, &values, &err);
    }
    for (int i = 0; i < VARIABLES && st == MTF_OK; i++)
        st = mtf_state_get(s, p->variable[i], result_new(r, p->variable[i]), &err);
    if (st != MTF_OK) fail_msg("seed %llu: %s", (unsigned long long)p->seed, err.text);
}

/* The program's fetches, and with `all` every other value of the graph behind them: what is fetched
 * keeps its memory, so nothing works in place. Returns their number. */
static int list_fetches(const random_program *p, bool all, mtf_tensor **fetch)
{
    int n = p->nfetches;
    memcpy(fetch, p->fetch, sizeof *fetch * (size_t)n);
    for (int64_t i = 0; all && i < p->g->nnodes; i++)
        if (!(p->g->node[i]->op->traits & TRAIT_ASSIGN)) fetch[n++] = &p->g->node[i]->out[0];
    return n;
}

/* Has a partial value several readers? */
static bool has_fan_out(const mtf_program *q)
{
    for (int64_t v = 0; v < q->nvalues; v++)
        if (q->value[v]->pending && q->value[v]->uses > 1) return true;
    return false;
}

/* False where the layout is refused. */
bool program_run(random_program *p, const char *mesh, const char *layout, int threads, bool all,
                 results *r)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    mtf_tensor **fetch = mem_alloc(sizeof *fetch * (size_t)(p->nfetches + (int)p->g->nnodes));
    const mtf_request request = {.nfetches = list_fetches(p, all, fetch),
                                 .fetches = fetch,
                                 .nupdates = p->nupdates,
                                 .updates = p->updates,
                                 .no_buckets = p->seed % 4 == 0,
                                 .max_value_bytes = p->max_value_bytes};
    mtf_program *both[2] = {mtf_compile_initial(p->g, m, l, &err), NULL};
    if (both[0]) both[1] = mtf_compile(p->g, m, l, &request, &err);
    const bool compiled = both[1] != NULL;
    mem_free(fetch);
    const bool limited = p->max_value_bytes && strstr(err.text, "more than the limit");
    if (!compiled && !limited && !strstr(err.text, "are both split over mesh axis"))
        fail_msg("seed %llu, mesh %s, layout %s: %s", (unsigned long long)p->seed, mesh, layout,
                 err.text);
    if (compiled) {
        p->fan_outs += has_fan_out(both[1]);
        const mtf_session_options o = {.threads = threads, .seed = 5};
        mtf_session *s = mtf_session_new(2, both, &o, &err);
        if (!s) fail_msg("seed %llu: %s", (unsigned long long)p->seed, err.text);
        run_steps(p, s, both, r);
        mtf_session_free(&s);
    }
    mtf_program_free(&both[0]);
    mtf_program_free(&both[1]);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return compiled;
}

/* ---- shrinking ---- */

/* One value of the graph after the first step, alone: nothing else is fetched and nothing assigned.
 * False where it is of another type than f64 or the layout refuses it. */
static bool run_alone(random_program *p, mtf_tensor *t, const char *mesh, const char *layout,
                      double *out)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    const mtf_request request = {.nfetches = 1, .fetches = &t};
    mtf_program *both[2] = {mtf_compile_initial(p->g, m, l, &err),
                            mtf_compile(p->g, m, l, &request, &err)};
    const mtf_session_options o = {.threads = 1, .seed = 5};
    mtf_session *s = both[0] && both[1] ? mtf_session_new(2, both, &o, &err) : NULL;
    const bool ran = s && mtf_run(s, both[0], p->nfeeds, p->feed, NULL, NULL, &err) == MTF_OK &&
                     mtf_run(s, both[1], p->nfeeds, p->feed, (void *[]){out}, NULL, &err) == MTF_OK;
    mtf_session_free(&s);
    mtf_program_free(&both[0]);
    mtf_program_free(&both[1]);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return ran;
}

static bool close_enough(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(a)) || (isnan(a) && isnan(b)) || a == b;
}

static bool differs_alone(random_program *p, mtf_tensor *t, const char *mesh, const char *layout)
{
    const mtf_shape s = mtf_tensor_shape(t);
    const int64_t n = mtf_shape_size(&s);
    if (t->dtype != MTF_F64 || (t->node->op->traits & TRAIT_ASSIGN)) return false;
    double *one = mem_zalloc(sizeof *one * (size_t)n), *many = mem_zalloc(sizeof *many * (size_t)n);
    bool differs = false;
    if (run_alone(p, t, "", "", one) && run_alone(p, t, mesh, layout, many))
        for (int64_t i = 0; i < n; i++)
            differs = differs || !close_enough(one[i], many[i]);
    mem_free(one);
    mem_free(many);
    return differs;
}

/* Prints the rows that the first wrong value is made of, which is the smallest program that fails,
 * where one value alone fails at all. */
static void print_smallest(uint64_t seed, const char *mesh, const char *layout)
{
    random_program p = program_new(seed);
    int64_t at = 0;
    while (at < p.g->nnodes && !differs_alone(&p, &p.g->node[at]->out[0], mesh, layout))
        at++;
    if (at == p.g->nnodes) {
        print_message("no value is wrong alone: values fetched or assigned together are\n");
    } else {
        bool *needed = mem_zalloc((size_t)p.g->nnodes);
        needed[at] = true;
        for (int64_t i = at; i >= 0; i--)
            for (int k = 0; needed[i] && k < p.g->node[i]->nin; k++)
                needed[p.g->node[i]->in[k]->node->id] = true;
        print_message("the smallest program that fails:\n");
        for (int64_t i = 0; i <= at; i++)
            if (needed[i]) node_print(p.g->node[i], stdout);
        mem_free(needed);
    }
    program_free(&p);
}

void results_compare(const random_program *p, const char *mesh, const char *layout,
                     const results *want, const results *got)
{
    for (int i = 0; i < want->n; i++)
        for (int64_t j = 0; j < want->size[i]; j++) {
            const double a = want->value[i][j], b = got->value[i][j];
            if (close_enough(a, b)) continue;
            print_smallest(p->seed, mesh, layout);
            fail_msg("seed %llu, mesh '%s', layout '%s': result %d ('%s'), element %lld is %.17g "
                     "instead of %.17g",
                     (unsigned long long)p->seed, mesh, layout, i,
                     mtf_tensor_name(p->fetch[i % p->nfetches]), (long long)j, b, a);
        }
}
