/* SPDX-License-Identifier: Apache-2.0
 * What the benchmarks share: the time, medians, and an expression of a large operand as a program
 * that can be run again and again. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <mtf/mtf.h>
#include <stdlib.h>
#include <time.h>

static inline double measure_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int measure_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n numbers, which are sorted. */
static inline double measure_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, measure_compare);
    return x[n / 2];
}

/* An assignment on one processor, and the session that runs it. */
typedef struct measured {
    mtf_mesh *mesh;
    mtf_layout *layout;
    mtf_program *initial, *program;
    mtf_session *session;
} measured;

/* Of y to a variable of its own, so that all of it is computed and nothing fetched. Variables have
 * their initial values. MTF_OK or what went wrong; to be closed in both cases. */
static inline mtf_status measured_open(measured *m, mtf_graph *g, mtf_tensor *y, int threads,
                                       mtf_err *err)
{
    *m = (measured){.mesh = mtf_mesh_parse("", err)};
    const mtf_status built = mtf_graph_status(g, err);
    if (built != MTF_OK) return built;
    mtf_tensor *zero = mtf_constant(g, 0, mtf_tensor_shape(y), mtf_tensor_dtype(y));
    mtf_tensor *assign = mtf_assign(mtf_variable(g, "result", zero, false), y);
    m->layout = mtf_layout_parse("", m->mesh, true, NULL, err);
    m->initial = mtf_compile_initial(g, m->mesh, m->layout, err);
    m->program =
        mtf_compile(g, m->mesh, m->layout, &(mtf_request){.nupdates = 1, .updates = &assign}, err);
    if (!m->initial || !m->program) return err->status;
    mtf_program *const both[] = {m->initial, m->program};
    m->session = mtf_session_new(2, both, &(mtf_session_options){.threads = threads}, err);
    if (!m->session) return err->status;
    return mtf_run(m->session, m->initial, 0, NULL, NULL, NULL, err);
}

/* Seconds of one run, or -1 after an error. */
static inline double measured_run(measured *m, mtf_err *err)
{
    const double begin = measure_now();
    if (mtf_run(m->session, m->program, 0, NULL, NULL, NULL, err) != MTF_OK) return -1;
    return measure_now() - begin;
}

static inline void measured_close(measured *m)
{
    if (m->session) mtf_session_free(&m->session);
    if (m->program) mtf_program_free(&m->program);
    if (m->initial) mtf_program_free(&m->initial);
    if (m->layout) mtf_layout_free(&m->layout);
    mtf_mesh_free(&m->mesh);
}

#endif
