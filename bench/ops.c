/* SPDX-License-Identifier: Apache-2.0
 * Operations that touch every element once or a few times, on one processor with one thread: time,
 * and bytes of operand and result per second. `scale` reads and writes each once: the measure.
 *
 *     build/bench/ops [REPEATS [NAME]] */
#include "measure.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 256, COLS = 32768, MOST = 101 };

typedef mtf_tensor *build_fn(mtf_graph *g, mtf_tensor *x);

static mtf_tensor *scaled(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_scale(x, 2.0);
}

static mtf_tensor *shift_inner(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_shift(x, "cols", 1, true);
}

static mtf_tensor *shift_outer(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_shift(x, "rows", 1, false);
}

static mtf_tensor *slice_inner(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_slice(x, "cols", 1, COLS - 2);
}

static mtf_tensor *concat_inner(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_concat(2, (mtf_tensor *[]){x, x}, "cols");
}

static mtf_tensor *cumsum_inner(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_cumsum(x, "cols", false, false);
}

static mtf_tensor *cumsum_outer(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_cumsum(x, "rows", false, false);
}

static mtf_tensor *top_1(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_argmax(x, "cols");
}

static mtf_tensor *top_50(mtf_graph *g, mtf_tensor *x)
{
    mtf_tensor *values;
    (void)g;
    mtf_top_k(x, "cols", (mtf_dim){"k", 50}, false, &values, NULL);
    return values;
}

static mtf_tensor *sorted(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_sort(x, "cols", false, NULL);
}

static mtf_tensor *dynamic(mtf_graph *g, mtf_tensor *x)
{
    return mtf_dynamic_shift(x, mtf_range(g, (mtf_dim){"rows", ROWS}, MTF_I32), "cols", true);
}

static mtf_tensor *softmax(mtf_graph *g, mtf_tensor *x)
{
    (void)g;
    return mtf_softmax(x, "cols");
}

static const struct {
    const char *name;
    build_fn *build;
} rows[] = {{"scale", scaled},
            {"shift inner", shift_inner},
            {"shift outer", shift_outer},
            {"slice inner", slice_inner},
            {"concat inner", concat_inner},
            {"cumsum inner", cumsum_inner},
            {"cumsum outer", cumsum_outer},
            {"argmax", top_1},
            {"top 50", top_50},
            {"sort", sorted},
            {"dynamic shift", dynamic},
            {"softmax", softmax}};

/* The median over the repeats. */
static double measure(build_fn *build, int repeats, double *bytes, mtf_err *err)
{
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *start =
        mtf_random_normal(g, "x", MTF_SHAPE({"rows", ROWS}, {"cols", COLS}), MTF_F32, 0, 1);
    mtf_tensor *y = build(g, mtf_variable(g, "x", start, true));
    const mtf_shape out = mtf_tensor_shape(y);
    double times[MOST];
    measured m;
    bool runs = measured_open(&m, g, y, 1, err) == MTF_OK && measured_run(&m, err) >= 0;
    for (int k = 0; runs && k < repeats; k++)
        runs = (times[k] = measured_run(&m, err)) >= 0;
    *bytes = 4.0 * ((double)ROWS * COLS + (double)mtf_shape_size(&out));
    measured_close(&m);
    mtf_graph_free(&g);
    return runs ? measure_median(times, repeats) : -1;
}

int main(int argc, char **argv)
{
    const int repeats = argc > 1 ? atoi(argv[1]) : 9;
    if (argc > 3 || repeats < 1 || repeats > MOST)
        return fprintf(stderr, "ops: expected a number of repeats from 1 to %d and a name\n", MOST),
               2;
    printf("%-14s %10s %8s   of %d x %d f32\n", "", "ms", "GB/s", ROWS, COLS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (argc > 2 && strcmp(argv[2], rows[i].name) != 0) continue;
        mtf_err err = {0};
        double bytes = 0;
        const double t = measure(rows[i].build, repeats, &bytes, &err);
        if (t < 0) return fprintf(stderr, "ops: %s: %s\n", rows[i].name, err.text), 1;
        printf("%-14s %10.2f %8.2f\n", rows[i].name, 1e3 * t, 1e-9 * bytes / t);
    }
    return 0;
}
