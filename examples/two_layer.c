/* SPDX-License-Identifier: Apache-2.0
 * The two-layer network of the Mesh-TensorFlow paper, y = relu(x W + bias) V, with squared loss and
 * gradient descent, under any mesh and layout. The network learns |x| from random rows x. Works
 * alone, with virtual processors, and under mpirun, with the same numbers. */
#include <math.h>
#include <mtf/mtf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

typedef struct settings {
    const char *mesh, *layout, *dtype;
    long long steps, threads, batch, io, hidden;
    bool explain, json, input_gradient, strict, help;
} settings;

static const settings defaults = {
    .mesh = "", .layout = "", .dtype = "f32", .steps = 20, .batch = 64, .io = 32, .hidden = 128};

typedef enum option_kind { TEXT, WHOLE, FLAG } option_kind;

typedef struct option {
    const char *name, *value, *help;
    option_kind kind;
    size_t offset;
    long long min, max;
} option;

#define FIELD(member) offsetof(settings, member)
static const option options[] = {
    {"--mesh", "M", "axes of processors, for example \"rows:2;cols:2\"", TEXT, FIELD(mesh), 0, 0},
    {"--layout", "L", "dims over axes, for example \"batch:rows;hidden:cols\"", TEXT, FIELD(layout),
     0, 0},
    {"--steps", "N", "steps of gradient descent", WHOLE, FIELD(steps), 1, 1000000000},
    {"--threads", "N", "worker threads; 0: one per core", WHOLE, FIELD(threads), 0, 1024},
    {"--batch", "N", "rows of x", WHOLE, FIELD(batch), 1, 1 << 24},
    {"--io", "N", "columns of x and of y", WHOLE, FIELD(io), 1, 1 << 24},
    {"--hidden", "N", "hidden units", WHOLE, FIELD(hidden), 1, 1 << 24},
    {"--dtype", "T", "f32 or f64", TEXT, FIELD(dtype), 0, 0},
    {"--input-gradient", NULL, "computes the gradient of x as well", FLAG, FIELD(input_gradient), 0,
     0},
    {"--strict", NULL, "layout rules without effect are errors", FLAG, FIELD(strict), 0, 0},
    {"--explain", NULL, "prints the program instead of running it", FLAG, FIELD(explain), 0, 0},
    {"--json", NULL, "prints one JSON object on one line", FLAG, FIELD(json), 0, 0},
    {"--help", NULL, "prints this text", FLAG, FIELD(help), 0, 0},
};
enum { OPTIONS = sizeof options / sizeof *options };

static void *field(const option *o, settings *s)
{
    return (char *)s + o->offset;
}

static void print_help(void)
{
    printf("usage: two_layer [OPTION]...\n"
           "Trains y = relu(x W + bias) V by gradient descent under a mesh and a layout of the "
           "dims\nbatch, io and hidden.\n\n");
    settings s = defaults;
    for (int i = 0; i < OPTIONS; i++) {
        const option *o = &options[i];
        char left[40];
        snprintf(left, sizeof left, "%s %s", o->name, o->value ? o->value : "");
        printf("  %-18s %s", left, o->help);
        if (o->kind == TEXT) printf(" (default \"%s\")", *(const char **)field(o, &s));
        if (o->kind == WHOLE) printf(" (default %lld)", *(long long *)field(o, &s));
        if (o->kind == FLAG && !strchr("h", o->name[2])) printf(" (default off)");
        putchar('\n');
    }
}

/* Letters to insert, delete or replace to turn a into b, which is shorter than 64. */
static int distance(const char *a, const char *b)
{
    int row[64];
    const int n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

static mtf_status refuse(mtf_err *err, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    return err->status = MTF_INVALID;
}

static mtf_status unknown_option(const char *name, mtf_err *err)
{
    int best = 0, best_distance = 1000;
    for (int i = 0; i < OPTIONS; i++) {
        const int d = distance(name, options[i].name);
        if (d < best_distance) best = i, best_distance = d;
    }
    return refuse(err, "unknown option '%s'; did you mean '%s'?", name, options[best].name);
}

static mtf_status set_number(const option *o, const char *text, settings *s, mtf_err *err)
{
    char *end = NULL;
    const long long n = strtoll(text, &end, 10);
    const bool digits = *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19;
    if (digits && n >= o->min && n <= o->max) {
        *(long long *)field(o, s) = n;
        return MTF_OK;
    }
    return refuse(err, "%s is '%s': expected a whole number from %lld to %lld", o->name, text,
                  o->min, o->max);
}

/* Reads argv[*at] and the value behind it. "--name value" and "--name=value" are the same. */
static mtf_status read_option(int argc, char **argv, int *at, settings *s, mtf_err *err)
{
    char name[1024];
    snprintf(name, sizeof name, "%s", strcmp(argv[*at], "-h") == 0 ? "--help" : argv[*at]);
    if (name[0] != '-') return refuse(err, "unexpected argument '%s'; see two_layer --help", name);
    const char *value = strchr(argv[*at], '=');
    if (value && value - argv[*at] < (long)sizeof name) name[value++ - argv[*at]] = '\0';
    const option *o = NULL;
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0) o = &options[i];
    if (!o) return unknown_option(name, err);
    if (o->kind == FLAG) {
        if (value) return refuse(err, "%s takes no value, but was given '%s'", name, value);
        *(bool *)field(o, s) = true;
        return MTF_OK;
    }
    if (!value && ++*at < argc) value = argv[*at];
    if (!value) return refuse(err, "%s needs a value: %s", name, o->help);
    if (o->kind == WHOLE) return set_number(o, value, s, err);
    *(const char **)field(o, s) = value;
    return MTF_OK;
}

static mtf_status read_options(int argc, char **argv, settings *s, mtf_err *err)
{
    for (int i = 1; i < argc; i++)
        if (read_option(argc, argv, &i, s, err) != MTF_OK) return MTF_INVALID;
    if (strcmp(s->dtype, "f32") != 0 && strcmp(s->dtype, "f64") != 0)
        return refuse(err, "--dtype is '%s': expected f32 or f64", s->dtype);
    return MTF_OK;
}

/* ---- data ---- */

/* A number in [-1.7, 1.7) with mean 0 and variance about 1 for each element of x. */
static double input_value(int64_t row, int64_t column)
{
    uint64_t h = (uint64_t)row * 0x9e3779b97f4a7c15u + (uint64_t)column * 0xbf58476d1ce4e5b9u + 1;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    h ^= h >> 31;
    return ((double)(h >> 11) / 9007199254740992.0 - 0.5) * 3.4;
}

typedef struct source {
    mtf_dtype type;
    bool target; /* |x| instead of x */
} source;

/* Each processor asks for its own block of [batch io]. */
static mtf_status fill(void *ctx, const int64_t *offset, const int64_t *extent, void *block,
                       mtf_err *err)
{
    (void)err;
    const source *s = ctx;
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++) {
            double v = input_value(offset[0] + i, offset[1] + j);
            if (s->target) v = fabs(v);
            if (s->type == MTF_F32)
                ((float *)block)[i * extent[1] + j] = (float)v;
            else
                ((double *)block)[i * extent[1] + j] = v;
        }
    return MTF_OK;
}

/* ---- the network ---- */

typedef struct network {
    mtf_graph *graph;
    mtf_tensor *x, *target;
    mtf_tensor *fetch[2]; /* loss; gradient of x where it is asked for */
    mtf_tensor *update[3];
    int nfetches;
} network;

static double square(double v)
{
    return v * v;
}

/* Half the inverse of a bound on the curvature: squared norms of x and V for the first layer, of
 * the hidden units, whose mean is not 0, for the second. So the rate suits every size. */
static double learning_rate(const settings *s)
{
    const double batch = (double)s->batch, io = (double)s->io, hidden = (double)s->hidden;
    const double first = square(1 + sqrt(io / batch)) * square(1 + sqrt(io / hidden));
    const double second = hidden / 6 + square(1 + sqrt(hidden / batch)) / 3;
    return 0.5 / (first + second);
}

static network build(const settings *s)
{
    const mtf_dtype type = strcmp(s->dtype, "f64") == 0 ? MTF_F64 : MTF_F32;
    const mtf_dim batch = {"batch", s->batch}, io = {"io", s->io}, hidden = {"hidden", s->hidden};
    network n = {.graph = mtf_graph_new(), .nfetches = 1};
    mtf_graph *g = n.graph;
    n.x = mtf_placeholder(g, "x", MTF_SHAPE(batch, io), type);
    n.target = mtf_placeholder(g, "target", MTF_SHAPE(batch, io), type);
    mtf_tensor *w0 =
        mtf_random_normal(g, "w/initial", MTF_SHAPE(io, hidden), type, 0, 1 / sqrt((double)s->io));
    mtf_tensor *b0 = mtf_constant(g, 0, MTF_SHAPE(hidden), type);
    mtf_tensor *v0 = mtf_random_normal(g, "v/initial", MTF_SHAPE(hidden, io), type, 0,
                                       1 / sqrt((double)s->hidden));
    mtf_tensor *w = mtf_variable(g, "w", w0, true), *bias = mtf_variable(g, "bias", b0, true),
               *v = mtf_variable(g, "v", v0, true);

    mtf_tensor *h = mtf_relu(mtf_add(mtf_matmul(n.x, w, MTF_SHAPE(batch, hidden)), bias));
    mtf_tensor *y = mtf_matmul(h, v, MTF_SHAPE(batch, io));
    mtf_tensor *errors = mtf_reduce_sum(mtf_square(mtf_sub(y, n.target)), MTF_SCALAR);
    n.fetch[0] = mtf_scale(errors, 1.0 / (double)s->batch);

    mtf_tensor *of[4] = {w, bias, v, n.x}, *d[4];
    mtf_gradients(n.fetch[0], s->input_gradient ? 4 : 3, of, d);
    for (int i = 0; i < 3; i++)
        n.update[i] = mtf_assign(of[i], mtf_sub(of[i], mtf_scale(d[i], learning_rate(s))));
    if (s->input_gradient) n.fetch[n.nfetches++] = d[3];
    return n;
}

/* ---- running ---- */

static mtf_status explain(const settings *s, const mtf_mesh *mesh, const mtf_layout *layout,
                          const mtf_program *p)
{
    if (!s->json) {
        mtf_program_print(p, stdout);
        return MTF_OK;
    }
    /* Names of axes and dims that a program was compiled for hold nothing that JSON escapes but the
     * quotes and backslashes that a layout rule without effect may have. */
    const char *texts[2] = {mtf_mesh_text(mesh), mtf_layout_text(layout)};
    const char *keys[2] = {"{\"mesh\":\"", "\",\"layout\":\""};
    for (int i = 0; i < 2; i++) {
        fputs(keys[i], stdout);
        for (const char *c = texts[i]; *c; c++) {
            if ((unsigned char)*c < 32)
                printf("\\u%04x", (unsigned)(unsigned char)*c);
            else
                printf(strchr("\"\\", *c) ? "\\%c" : "%c", *c);
        }
    }
    fputs("\",\"instructions\":", stdout);
    mtf_program_json(p, stdout);
    puts("}");
    return MTF_OK;
}

static mtf_status train(const settings *s, const network *n, mtf_session *session,
                        mtf_program *const *programs, mtf_err *err)
{
    const bool print = mtf_session_is_root(session);
    source x = {.type = mtf_tensor_dtype(n->x)}, target = {.type = x.type, .target = true};
    const mtf_feed feeds[] = {{.placeholder = n->x, .fn = fill, .ctx = &x},
                              {.placeholder = n->target, .fn = fill, .ctx = &target}};
    mtf_status status = mtf_run(session, programs[0], 0, NULL, NULL, NULL, err);
    if (print && s->json) fputs("{\"losses\":[", stdout);
    for (long long i = 0; status == MTF_OK && i < s->steps; i++) {
        double f64 = 0;
        float f32 = 0;
        void *fetched[2] = {x.type == MTF_F64 ? (void *)&f64 : (void *)&f32, NULL};
        status = mtf_run(session, programs[1], 2, feeds, fetched, NULL, err);
        if (status != MTF_OK) break;
        const double loss = x.type == MTF_F64 ? f64 : (double)f32;
        if (!isfinite(loss)) {
            status = err->status = MTF_FAILED;
            snprintf(err->text, sizeof err->text, "the loss is not finite at step %lld", i + 1);
        } else if (print && s->json) {
            printf("%s%.17g", i ? "," : "", loss);
        } else if (print) {
            printf("step %lld loss %.9g\n", i + 1, loss);
        }
    }
    if (print && s->json && status == MTF_OK) puts("]}");
    return status;
}

static mtf_status run(const settings *s, const network *n, const mtf_mesh *mesh,
                      const mtf_layout *layout, bool print, mtf_err *err)
{
    const mtf_request request = {.name = "train",
                                 .nfetches = n->nfetches,
                                 .fetches = n->fetch,
                                 .nupdates = 3,
                                 .updates = n->update,
                                 .no_buckets = s->explain};
    mtf_program *programs[2] = {mtf_compile_initial(n->graph, mesh, layout, err), NULL};
    if (programs[0]) programs[1] = mtf_compile(n->graph, mesh, layout, &request, err);
    mtf_status status = programs[1] ? MTF_OK : MTF_INVALID;
    if (programs[1] && s->explain) {
        if (print) status = explain(s, mesh, layout, programs[1]);
    } else if (programs[1]) {
        const mtf_session_options o = {.threads = (int)s->threads, .seed = 1};
        mtf_session *session = mtf_session_new(2, programs, &o, err);
        status = session ? train(s, n, session, programs, err) : err->status;
        mtf_session_free(&session);
    }
    mtf_program_free(&programs[0]);
    mtf_program_free(&programs[1]);
    return status;
}

static mtf_status two_layer(const settings *s, bool print, mtf_err *err)
{
    network n = build(s);
    mtf_err warning = {0};
    mtf_mesh *mesh = NULL;
    mtf_layout *layout = NULL;
    mtf_status status = mtf_graph_status(n.graph, err);
    if (status == MTF_OK) mesh = mtf_mesh_parse(s->mesh, err);
    if (mesh) layout = mtf_layout_parse(s->layout, mesh, s->strict, &warning, err);
    status =
        layout ? mtf_layout_check_dims(layout, n.graph, s->strict, &warning, err) : MTF_INVALID;
    if (warning.text[0] && print) fprintf(stderr, "two_layer: warning: %s\n", warning.text);
    if (status == MTF_OK) status = run(s, &n, mesh, layout, print, err);
    mtf_layout_free(&layout);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&n.graph);
    return status;
}

int main(int argc, char **argv)
{
    settings s = defaults;
    mtf_err err = {0};
    int rank = 0;
    mtf_status status = mtf_launch(NULL, &rank, &err);
    if (status == MTF_OK) status = read_options(argc, argv, &s, &err);
    if (status == MTF_OK && s.help) {
        if (rank == 0) print_help();
    } else if (status == MTF_OK) {
        status = two_layer(&s, rank == 0, &err);
    }
    if (fflush(stdout) != 0 && status == MTF_OK) {
        status = MTF_FAILED;
        snprintf(err.text, sizeof err.text, "cannot write the result to the standard output");
    }
    if (status != MTF_OK && rank == 0) fprintf(stderr, "two_layer: %s\n", err.text);
    mtf_finish();
    return (int)status;
}
