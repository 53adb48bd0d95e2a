/* SPDX-License-Identifier: Apache-2.0
 * Matrix products in one, two and three dimensions against the communication lower bound.
 *
 * c[m n] = sum over k of a[m k] b[k n] on 64 processors. All three matrices lie in 64 equal pieces;
 * layouts of their own names for rows and columns say how. Then whatever a processor works on it
 * must receive, and nothing is had for free by copies that lie around. The bound is that of Al Daas
 * et al. (arXiv 2205.13407) for as much memory as one likes: which of its three cases is the tight
 * one depends on the shape alone, and so does the number of dims that the mesh should have.
 *
 *     build/examples/matmul [PROCESSORS IN ONE DIRECTION]      (2 to 8; 4 makes 64 processors) */
#include <mtf/mtf.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct row {
    const char *name, *axes; /* how many processors an axis has: q, its square, its cube */
    const char *layout;
    double m, n, k; /* in units of q */
} row;

/* The matrices' own dims are am ak, bk bn, cm cn. */
static const row rows[] = {
    {"1-D", "all:q^3", "m:all;am:all;bk:all;cm:all", 512, 4, 4},
    {"2-D", "rows:q^2;cols:q", "m:rows;n:cols;am:rows;ak:cols;bk:rows;bn:cols;cm:rows;cn:cols", 256,
     64, 16},
    {"3-D", "x:q;y:q;z:q", "m:x;n:y;k:z;am:x;ak:z+y;bk:z+x;bn:y;cm:x;cn:y+z", 64, 64, 64},
};

/* Words that some processor must receive; sizes sorted, m the largest. */
static double lower_bound(double m, double n, double k, double p)
{
    const double all = (m * n + m * k + n * k) / p;
    if (p <= m / n) return (m * n + m * k) / p + n * k - all;
    if (p <= m * n / (k * k)) return 2 * sqrt(m * n * k * k / p) + m * n / p - all;
    return 3 * pow(m * n * k / p, 2.0 / 3) - all;
}

/* "q^2" and the like in numbers. */
static void write_mesh(const char *axes, long q, char *text)
{
    for (; *axes; axes++) {
        if (*axes != 'q') {
            *text++ = *axes;
            continue;
        }
        const int power = axes[1] == '^' ? axes[2] - '0' : 1;
        text += sprintf(text, "%ld", (long)(pow((double)q, power) + 0.5));
        if (power > 1) axes += 2;
    }
    *text = '\0';
}

/* Small whole numbers: sums are exact in f32, whatever their order. */
static void fill(float *x, int64_t n, int step)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i * step % 7 - 3);
}

/* The largest difference from the sum, at a few places of every row. */
static double difference(const float *a, const float *b, const float *c, int64_t m, int64_t n,
                         int64_t k)
{
    double most = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = i % 5; j < n; j += 5) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)a[i * k + l] * (double)b[l * n + j];
            most = fmax(most, fabs(sum - (double)c[i * n + j]));
        }
    return most;
}

static mtf_status run(const row *r, long q, mtf_err *err)
{
    const double p = pow((double)q, 3);
    const mtf_dim m = {"m", (int64_t)r->m * q}, n = {"n", (int64_t)r->n * q},
                  k = {"k", (int64_t)r->k * q};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *a = mtf_placeholder(g, "a", MTF_SHAPE({"am", m.size}, {"ak", k.size}), MTF_F32);
    mtf_tensor *b = mtf_placeholder(g, "b", MTF_SHAPE({"bk", k.size}, {"bn", n.size}), MTF_F32);
    mtf_tensor *c = mtf_matmul(mtf_reshape(a, MTF_SHAPE(m, k)), mtf_reshape(b, MTF_SHAPE(k, n)),
                               MTF_SHAPE(m, n));
    mtf_tensor *result = mtf_reshape(c, MTF_SHAPE({"cm", m.size}, {"cn", n.size}));
    char text[64];
    write_mesh(r->axes, q, text);
    mtf_mesh *mesh = mtf_mesh_parse(text, err);
    mtf_layout *layout = mesh ? mtf_layout_parse(r->layout, mesh, true, NULL, err) : NULL;
    const mtf_request request = {.name = "product", .nfetches = 1, .fetches = &result};
    mtf_program *program = layout ? mtf_compile(g, mesh, layout, &request, err) : NULL;
    mtf_session *s = program ? mtf_session_new(1, &program, NULL, err) : NULL;
    if (!s) return MTF_INVALID;
    float *x = malloc(sizeof *x * (size_t)(m.size * k.size));
    float *y = malloc(sizeof *y * (size_t)(k.size * n.size));
    float *z = malloc(sizeof *z * (size_t)(m.size * n.size));
    fill(x, m.size * k.size, 3);
    fill(y, k.size * n.size, 5);
    const mtf_feed feeds[] = {{.placeholder = a, .data = x}, {.placeholder = b, .data = y}};
    const mtf_status st = mtf_run(s, program, 2, feeds, (void *[]){z}, NULL, err);
    const double words = mtf_program_totals(program).sent_bytes / 4;
    const double bound = lower_bound((double)m.size, (double)n.size, (double)k.size, p);
    if (st == MTF_OK)
        printf("%-4s %6lld x %5lld x %5lld  %-14s %12.0f %12.0f %8.3f %10g\n", r->name,
               (long long)m.size, (long long)k.size, (long long)n.size, text, words, bound,
               words / bound, difference(x, y, z, m.size, n.size, k.size));
    free(x);
    free(y);
    free(z);
    mtf_session_free(&s);
    mtf_program_free(&program);
    mtf_layout_free(&layout);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&g);
    return st;
}

int main(int argc, char **argv)
{
    mtf_err err = {0};
    char *end = NULL;
    const long q = argc > 1 ? strtol(argv[1], &end, 10) : 4;
    if (argc > 2 || q < 2 || q > 8 || (end && *end)) {
        fprintf(stderr, "matmul: expected at most one argument, a number from 2 to 8\n");
        return 2;
    }
    printf("%-4s %-23s %-14s %12s %12s %8s %10s\n", "", "  m x k x n", "mesh", "words sent",
           "lower bound", "ratio", "error");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (run(&rows[i], q, &err) != MTF_OK)
            return fprintf(stderr, "matmul: %s: %s\n", rows[i].name, err.text), 2;
    return 0;
}
