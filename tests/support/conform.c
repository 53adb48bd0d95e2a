/* SPDX-License-Identifier: Apache-2.0 */
#include "support/conform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bfloat.h"
#include "base/random.h"
#include "check.h"
#include "mesh/mesh.h"
#include "mtf/mtf.h"
#include "ops/tile.h"
#include "spmd/program.h"
#include "support/golden.h"
#include "support/layer_samples.h"

enum { MAX_FEEDS = 8, MAX_FETCHES = 10, MAX_DIMS = 8, MAX_COVER = 2048 };

static const char *const meshes[] = {"x:2", "x:3", "x:4", "x:2;y:2", "x:3;y:2", "x:2;y:2;z:2"};
enum { MESHES = sizeof meshes / sizeof *meshes };

/* ---- coverage ---- */

typedef struct cover {
    const op *row;
    role role;
    char dim[64];
    unsigned even, uneven; /* meshes as bits */
} cover;

struct coverage {
    int n;
    cover line[MAX_COVER];
    FILE *volume; /* writes `volume_text` */
    char *volume_text;
    size_t volume_size;
};

coverage *coverage_new(void)
{
    coverage *c = mem_zalloc(sizeof *c);
    c->volume = open_memstream(&c->volume_text, &c->volume_size);
    return c;
}

void coverage_free(coverage **c)
{
    fclose((*c)->volume);
    free((*c)->volume_text);
    mem_free(*c);
    *c = NULL;
}

const char *coverage_volume(coverage *c)
{
    fflush(c->volume);
    return c->volume_text;
}

static cover *cover_line(coverage *c, const op *row, role r, const char *dim)
{
    for (int i = 0; i < c->n; i++)
        if (c->line[i].row == row && c->line[i].role == r && strcmp(c->line[i].dim, dim) == 0)
            return &c->line[i];
    assert_true(c->n < MAX_COVER);
    cover *line = &c->line[c->n++];
    *line = (cover){.row = row, .role = r};
    snprintf(line->dim, sizeof line->dim, "%s", dim);
    return line;
}

static const char *const role_names[] = {"map", "sum", "max", "min", "whole", "move"};

char *coverage_text(const coverage *c)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (int r = 0; r < op_count; r++)
        for (int i = 0; i < c->n; i++) {
            if (c->line[i].row != op_rows[r]) continue;
            fprintf(f, "%s %s %s even:", c->line[i].row->name, c->line[i].dim,
                    role_names[c->line[i].role]);
            for (int m = 0; m < MESHES; m++)
                if (c->line[i].even >> m & 1) fprintf(f, " %s", meshes[m]);
            fprintf(f, " uneven:");
            for (int m = 0; m < MESHES; m++)
                if (c->line[i].uneven >> m & 1) fprintf(f, " %s", meshes[m]);
            fputc('\n', f);
        }
    fclose(f);
    return text;
}

/* Were dims of the row and role of a line cut evenly, and others or the same unevenly? */
static bool role_is_covered(const coverage *c, const cover *line)
{
    bool even = false, uneven = false;
    for (int i = 0; i < c->n; i++) {
        if (c->line[i].row != line->row || c->line[i].role != line->role) continue;
        even = even || c->line[i].even;
        uneven = uneven || c->line[i].uneven;
    }
    return even && uneven;
}

bool coverage_has_gap(const coverage *c, char *text, size_t room)
{
    for (int i = 0; i < c->n; i++) {
        const cover *line = &c->line[i];
        if (line->role == ROLE_WHOLE) continue;
        if ((line->even || line->uneven) && role_is_covered(c, line)) continue;
        snprintf(text, room, "%s dims of row %s, such as %s, were not cut evenly and unevenly",
                 role_names[line->role], line->row->name, line->dim);
        return true;
    }
    return false;
}

static void note_cover(coverage *c, const mtf_graph *g, const mtf_mesh *m, const mtf_layout *l,
                       int mesh)
{
    for (int64_t i = 0; i < g->nnodes; i++) {
        const mtf_node *n = g->node[i];
        mtf_dim dims[KERNEL_MAX_SPACE];
        const int count = op_space(n, dims);
        for (int d = 0; d < count; d++) {
            cover *line = cover_line(c, n->op, op_role(n, dims[d].name), dims[d].name);
            const int64_t parts = split_parts(m, layout_split(l, dims[d].name));
            if (parts == 1) continue;
            if (dims[d].size % parts)
                line->uneven |= 1u << mesh;
            else
                line->even |= 1u << mesh;
        }
    }
}

/* ---- the graph of a sample ---- */

typedef struct sample_graph {
    mtf_graph *g;
    int nfeeds, nfetches, nvaried;
    mtf_feed feed[MAX_FEEDS];
    mtf_tensor *varied[MAX_FEEDS]; /* the float placeholders */
    int varied_feed[MAX_FEEDS];
    int varied_fetch[MAX_FEEDS]; /* of its gradient; 0: it has none */
    mtf_tensor *loss;            /* NULL where the sample is not of a float type */
    mtf_tensor *fetch[MAX_FETCHES];
    void *want[MAX_FETCHES], *got[MAX_FETCHES];
    int64_t bytes[MAX_FETCHES];
} sample_graph;

static uint32_t draw(int64_t *at)
{
    return random_u32(7, 11, 0, (uint64_t)(*at)++);
}

static double normal(int64_t *at)
{
    double z = 0;
    random_fill_normal_f64(&z, random_fold(7, 13), 0, (uint64_t)(*at)++, 1);
    return z;
}

static bool is_float(const mtf_tensor *t)
{
    return mtf_dtype_is_float(t->dtype);
}

void *sample_data(const mtf_tensor *t, int64_t *at)
{
    const int64_t n = mtf_shape_size(&t->shape);
    void *data = mem_zalloc((size_t)(n * mtf_dtype_size(t->dtype)));
    const char *name = t->node->name;
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == MTF_I32)
            ((int32_t *)data)[i] = (int32_t)(draw(at) % 10) - 2;
        else if (t->dtype == MTF_BOOL)
            ((uint8_t *)data)[i] = draw(at) & 1;
        else if (strncmp(name, "positive", 8) == 0)
            ((double *)data)[i] = 0.5 + 1.5 * (draw(at) % 1000) / 1000.0;
        else if (strncmp(name, "ties", 4) == 0) /* pairs of equal values: two may share */
            ((double *)data)[i] = (double)(draw(at) % 4096) - 2048;
        else
            ((double *)data)[i] = normal(at);
    }
    return data;
}

/* What is fed becomes values that bf16 has. */
static void round_data(const mtf_tensor *t, void *data)
{
    for (int64_t i = 0; is_float(t) && i < mtf_shape_size(&t->shape); i++)
        ((double *)data)[i] = (double)bf16_to_f32(bf16_from_f64(((double *)data)[i]));
}

static void build(sample_graph *s, mtf_tensor *out, bool rounded)
{
    int64_t at = 0;
    if (is_float(out)) {
        mtf_tensor *w = mtf_placeholder(s->g, "weights", out->shape, MTF_F64);
        s->loss = mtf_reduce_sum(mtf_mul(mtf_cast(out, MTF_F64), w), MTF_SCALAR);
    }
    for (int64_t i = 0; i < s->g->nnodes; i++) {
        mtf_node *n = s->g->node[i];
        if (!(n->op->traits & TRAIT_FEED)) continue;
        void *data = sample_data(&n->out[0], &at);
        if (rounded) round_data(&n->out[0], data);
        s->feed[s->nfeeds] = (mtf_feed){.placeholder = &n->out[0], .data = data};
        if (s->loss && is_float(&n->out[0]) && strncmp(n->name, "weights", 7) != 0) {
            s->varied_feed[s->nvaried] = s->nfeeds;
            s->varied[s->nvaried++] = &n->out[0];
        }
        s->nfeeds++;
    }
    s->fetch[s->nfetches++] = is_float(out) ? mtf_cast(out, MTF_F64) : out;
    if (!s->loss) return;
    mtf_tensor *dx[MAX_FEEDS];
    s->fetch[s->nfetches++] = s->loss;
    if (s->nvaried && mtf_gradients(s->loss, s->nvaried, s->varied, dx) == MTF_OK)
        for (int i = 0; i < s->nvaried; i++)
            if (dx[i]) {
                s->varied_fetch[i] = s->nfetches;
                s->fetch[s->nfetches++] = dx[i];
            }
}

/* `rounded`: what is fed are values of bf16. */
static sample_graph sample_open(const op *row, int k, mtf_dtype type, bool rounded)
{
    sample_use_float(type);
    sample_graph s = {.g = mtf_graph_new()};
    mtf_err err = {0};
    mtf_tensor *out = row->sample ? row->sample(s.g, k) : NULL;
    if (mtf_graph_status(s.g, &err) != MTF_OK) fail_msg("%s sample %d: %s", row->name, k, err.text);
    if (!out) {
        mtf_graph_free(&s.g);
        return s;
    }
    build(&s, out, rounded);
    if (mtf_graph_status(s.g, &err) != MTF_OK)
        fail_msg("%s sample %d, gradient: %s", row->name, k, err.text);
    for (int i = 0; i < s.nfetches; i++) {
        s.bytes[i] = mtf_shape_size(&s.fetch[i]->shape) * mtf_dtype_size(s.fetch[i]->dtype);
        s.want[i] = mem_zalloc((size_t)s.bytes[i]);
        s.got[i] = mem_zalloc((size_t)s.bytes[i]);
    }
    return s;
}

static void sample_close(sample_graph *s)
{
    for (int i = 0; i < s->nfeeds; i++)
        mem_free((void *)(uintptr_t)s->feed[i].data);
    for (int i = 0; i < s->nfetches; i++) {
        mem_free(s->want[i]);
        mem_free(s->got[i]);
    }
    mtf_graph_free(&s->g);
}

/* ---- running ---- */

static const mtf_session_options options = {.threads = 1, .seed = 3};
static const mtf_run_values values = {.step = 5};

/* One run; MTF_INVALID where the layout is refused. */
static mtf_status run(sample_graph *s, const mtf_mesh *m, const mtf_layout *l, void **out,
                      mtf_totals *totals, mtf_err *err)
{
    const mtf_request r = {.nfetches = s->nfetches, .fetches = s->fetch};
    mtf_program *p = mtf_compile(s->g, m, l, &r, err);
    if (!p) return MTF_INVALID;
    *totals = mtf_program_totals(p);
    mtf_session *session = mtf_session_new(1, &p, &options, err);
    if (!session) fail_msg("%s", err->text);
    if (mtf_run(session, p, s->nfeeds, s->feed, out, &values, err) != MTF_OK)
        fail_msg("%s", err->text);
    mtf_session_free(&session);
    mtf_program_free(&p);
    return MTF_OK;
}

static void compare(const op *row, int k, const sample_graph *s, const char *mesh,
                    const char *layout)
{
    for (int i = 0; i < s->nfetches; i++) {
        if (!is_float(s->fetch[i])) {
            if (memcmp(s->want[i], s->got[i], (size_t)s->bytes[i]) != 0)
                fail_msg("%s sample %d, mesh %s, layout %s: fetch %d differs", row->name, k, mesh,
                         layout, i);
            continue;
        }
        const double *a = s->want[i], *b = s->got[i];
        for (int64_t j = 0; j < s->bytes[i] / 8; j++)
            if (!(fabs(a[j] - b[j]) <= 1e-11 * (1 + fabs(a[j]))))
                fail_msg(
                    "%s sample %d, mesh %s, layout %s: fetch %d, element %lld is %.17g instead "
                    "of %.17g",
                    row->name, k, mesh, layout, i, (long long)j, b[j], a[j]);
    }
}

/* ---- gradients ---- */

static bool has_f32(const mtf_graph *g)
{
    for (int64_t i = 0; i < g->nnodes; i++)
        if (g->node[i]->out[0].dtype == MTF_F32) return true;
    return false;
}

static void check_gradients(const op *row, int k, sample_graph *s, const mtf_mesh *m,
                            const mtf_layout *l)
{
    mtf_err err = {0};
    const mtf_request r = {.nfetches = 1, .fetches = &s->loss};
    mtf_program *p = mtf_compile(s->g, m, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    mtf_session *session = mtf_session_new(1, &p, &options, &err);
    if (!session) fail_msg("%s", err.text);
    /* f32 inside a sample leaves rounding noise of 1e-7 / h in the differences. */
    const bool coarse = has_f32(s->g);
    const double step = coarse ? 1e-2 : 1e-4, tolerance = coarse ? 1e-3 : 2e-4;
    for (int v = 0; v < s->nvaried; v++) {
        if (!s->varied_fetch[v]) continue;
        const double *analytic = s->want[s->varied_fetch[v]];
        double *x = (double *)(uintptr_t)s->feed[s->varied_feed[v]].data;
        for (int64_t i = 0; i < mtf_shape_size(&s->varied[v]->shape); i++) {
            const double at = x[i], h = step;
            double up = 0, down = 0;
            x[i] = at + h;
            mtf_run(session, p, s->nfeeds, s->feed, (void *[]){&up}, &values, &err);
            x[i] = at - h;
            mtf_run(session, p, s->nfeeds, s->feed, (void *[]){&down}, &values, &err);
            x[i] = at;
            const double slope = (up - down) / (2 * h);
            if (!(fabs(slope - analytic[i]) <= tolerance * (1 + fabs(slope))))
                fail_msg("%s sample %d: gradient of operand %d, element %lld is %.9g; finite "
                         "differences say %.9g",
                         row->name, k, v, (long long)i, analytic[i], slope);
        }
    }
    mtf_session_free(&session);
    mtf_program_free(&p);
}

/* ---- layouts ---- */

/* Names of all dims that the graph has. */
static int graph_dims(const mtf_graph *g, const char **names)
{
    int n = 0;
    for (int64_t i = 0; i < g->nnodes; i++)
        for (int o = 0; o < g->node[i]->nout; o++)
            for (int d = 0; d < g->node[i]->out[o].shape.rank; d++) {
                const char *name = g->node[i]->out[o].shape.dim[d].name;
                int at = 0;
                while (at < n && names[at] != name)
                    at++;
                if (at == n && n < MAX_DIMS) names[n++] = name;
            }
    return n;
}

/* Ways to cut a dim on a mesh of 1, 2 or 3 axes. */
static const char *const ways[3][8] = {
    {"", "x"},
    {"", "x", "y", "x+y", "y+x"},
    {"", "x", "y", "z", "z+x", "x+y+z", "y+z"},
};
static const int nways[3] = {2, 5, 7};

static void layout_text(char *text, size_t room, int axes, const char **dims, int n, int64_t code)
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < n; d++, code /= nways[axes - 1]) {
        const char *way = ways[axes - 1][code % nways[axes - 1]];
        if (*way && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s:%s;", dims[d], way);
    }
}

/* A layout may be refused only where it cuts two dims of one tensor over one axis. */
static bool is_illegal(const mtf_graph *g, const mtf_layout *l)
{
    for (int64_t i = 0; i < g->nnodes; i++)
        for (int o = 0; o < g->node[i]->nout; o++) {
            const mtf_shape *s = &g->node[i]->out[o].shape;
            unsigned used = 0;
            for (int d = 0; d < s->rank; d++) {
                const unsigned axes = split_mask(layout_split(l, s->dim[d].name));
                if (used & axes) return true;
                used |= axes;
            }
        }
    return false;
}

/* What the layouts of one sample and mesh move. */
typedef struct volume {
    int64_t legal, still;
    FILE *moving; /* " LAYOUT=CALLS/BYTES" of each that moves something */
} volume;

static void note_volume(volume *v, const char *layout, const mtf_totals *t)
{
    v->legal++;
    if (t->calls == 0)
        v->still++;
    else
        fprintf(v->moving, " %.*s=%lld/%.0f", (int)strlen(layout) - 1, layout, (long long)t->calls,
                t->sent_bytes);
}

static void check_layout(const op *row, int k, sample_graph *s, int mesh, const mtf_mesh *m,
                         const char *text, volume *v, coverage *c)
{
    mtf_err err = {0};
    mtf_totals t;
    mtf_layout *l = mtf_layout_parse(text, m, true, NULL, &err);
    assert_non_null(l);
    if (run(s, m, l, s->got, &t, &err) == MTF_OK) {
        compare(row, k, s, meshes[mesh], text);
        note_volume(v, text, &t);
        note_cover(c, s->g, m, l, mesh);
    } else if (!is_illegal(s->g, l) || !strstr(err.text, "are both split over mesh axis")) {
        fail_msg("%s sample %d, mesh %s, layout %s: %s", row->name, k, meshes[mesh], text,
                 err.text);
    }
    mtf_layout_free(&l);
}

static void check_layouts(const op *row, int k, sample_graph *s, int mesh, coverage *c)
{
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(meshes[mesh], &err);
    const char *dims[MAX_DIMS];
    const int n = graph_dims(s->g, dims), axes = m->naxes;
    int64_t count = 1;
    for (int d = 0; d < n; d++)
        count *= nways[axes - 1];
    char *moving = NULL;
    size_t size = 0;
    volume v = {.moving = open_memstream(&moving, &size)};
    for (int64_t code = 0; code < count; code++) {
        char text[256];
        layout_text(text, sizeof text, axes, dims, n, code);
        check_layout(row, k, s, mesh, m, text, &v, c);
    }
    fclose(v.moving);
    fprintf(c->volume, "%s %d mesh %s: %lld of %lld layouts move nothing%s%s\n", row->name, k,
            meshes[mesh], (long long)v.still, (long long)v.legal, *moving ? ";" : "", moving);
    free(moving);
    mtf_mesh_free(&m);
}

bool conform_sample(const op *row, int k, coverage *c)
{
    sample_graph s = sample_open(row, k, MTF_F64, false);
    if (!s.g) return false;
    mtf_err err = {0};
    mtf_mesh *one = mtf_mesh_parse("", &err);
    mtf_layout *none = mtf_layout_parse("", one, true, NULL, &err);
    mtf_totals t;
    if (run(&s, one, none, s.want, &t, &err) != MTF_OK) fail_msg("%s: %s", row->name, err.text);
    if (s.nvaried) check_gradients(row, k, &s, one, none);
    for (int m = 0; m < MESHES; m++)
        check_layouts(row, k, &s, m, c);
    mtf_layout_free(&none);
    mtf_mesh_free(&one);
    sample_close(&s);
    return true;
}

/* ---- bf16 ---- */

/* The largest magnitude of fetch i, at least 1. */
static double size_of(const sample_graph *s, int i)
{
    double most = 1;
    for (int64_t j = 0; j < s->bytes[i] / 8; j++)
        most = fmax(most, fabs(((const double *)s->want[i])[j]));
    return most;
}

/* Fetches of `s` against the f64 values of `exact`. Each of some roundings to bf16 on the way, 3 in
 * a row and 12 in a composition, is off by 2^-8 of a number no larger than the largest of the
 * result, or than 1. The loss is left out: its error is that of the whole sum. */
static void compare_rounded(const op *row, int k, const sample_graph *s, void *const *got,
                            const sample_graph *exact, const char *where)
{
    const int roundings = row->infer ? 3 : 12;
    assert_int_equal(s->nfetches, exact->nfetches);
    for (int i = 0; i < s->nfetches; i++) {
        if (s->fetch[i] == s->loss) continue;
        if (!is_float(s->fetch[i])) {
            if (memcmp(got[i], exact->want[i], (size_t)s->bytes[i]) != 0)
                fail_msg("%s sample %d in bf16, %s: fetch %d differs", row->name, k, where, i);
            continue;
        }
        const double *a = exact->want[i], *b = got[i],
                     most = roundings * 0x1p-8 * size_of(exact, i);
        for (int64_t j = 0; j < s->bytes[i] / 8; j++)
            if (!(fabs(a[j] - b[j]) <= most))
                fail_msg("%s sample %d in bf16, %s: fetch %d, element %lld is %.9g; in f64 %.9g, "
                         "at most %.3g away",
                         row->name, k, where, i, (long long)j, b[j], a[j], most);
    }
}

static void check_rounded_layouts(const op *row, int k, sample_graph *s, const sample_graph *exact,
                                  const char *mesh)
{
    mtf_err err = {0};
    mtf_totals t;
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    const char *dims[MAX_DIMS];
    const int n = graph_dims(s->g, dims);
    int64_t count = 1;
    for (int d = 0; d < n; d++)
        count *= nways[m->naxes - 1];
    for (int64_t code = 0; code < count; code++) {
        char text[256], where[320];
        layout_text(text, sizeof text, m->naxes, dims, n, code);
        snprintf(where, sizeof where, "mesh '%s', layout '%s'", mesh, text);
        mtf_layout *l = mtf_layout_parse(text, m, true, NULL, &err);
        assert_non_null(l);
        if (run(s, m, l, s->got, &t, &err) == MTF_OK)
            compare_rounded(row, k, s, s->got, exact, where);
        else if (!is_illegal(s->g, l))
            fail_msg("%s sample %d in bf16, %s: %s", row->name, k, where, err.text);
        err = (mtf_err){0};
        mtf_layout_free(&l);
    }
    mtf_mesh_free(&m);
}

bool conform_sample_bf16(const op *row, int k)
{
    sample_graph exact = sample_open(row, k, MTF_F64, true);
    if (!exact.g) return false;
    sample_graph s = sample_open(row, k, MTF_BF16, true);
    mtf_err err = {0};
    mtf_totals t;
    mtf_mesh *one = mtf_mesh_parse("", &err);
    mtf_layout *none = mtf_layout_parse("", one, true, NULL, &err);
    if (run(&exact, one, none, exact.want, &t, &err) != MTF_OK ||
        run(&s, one, none, s.want, &t, &err) != MTF_OK)
        fail_msg("%s in bf16: %s", row->name, err.text);
    compare_rounded(row, k, &s, s.want, &exact, "one processor");
    check_rounded_layouts(row, k, &s, &exact, "x:2");
    check_rounded_layouts(row, k, &s, &exact, "x:3;y:2");
    mtf_layout_free(&none);
    mtf_mesh_free(&one);
    sample_close(&exact);
    sample_close(&s);
    sample_use_float(MTF_F64);
    return true;
}

void conform_layers(const char *only, const char *golden)
{
    coverage *c = coverage_new();
    int samples = 0;
    for (int i = 0; layer_sample(i); i++) {
        if (only && strcmp(only, layer_sample(i)->name) != 0) continue;
        for (int k = 0; conform_sample(layer_sample(i), k, c); k++)
            samples++;
    }
    if (!samples) fail_msg("no layer is called '%s'", only ? only : "");
    if (!only) golden_check(golden, coverage_volume(c));
    coverage_free(&c);
}
