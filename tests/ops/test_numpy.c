/* SPDX-License-Identifier: Apache-2.0
 * Random cases against numpy: golden/numpy.jsonl holds operations and results, made by
 * golden/make_numpy.py. Each case runs on one processor and under a random layout. */
#include "check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "support/eval.h"

/* ---- operands: element k of a seed, as in make_numpy.py ---- */

static double unit(uint64_t seed, uint64_t k)
{
    uint64_t z = seed * 1000003 + k + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static mtf_shape shape_of(const json_t *list)
{
    mtf_shape s = MTF_SCALAR;
    size_t i;
    json_t *d;
    json_array_foreach(list, i, d)
    {
        const mtf_dim dim = {json_string_value(json_array_get(d, 0)),
                             json_integer_value(json_array_get(d, 1))};
        s = mtf_shape_with(s, dim);
    }
    return s;
}

static mtf_tensor *operand(eval *e, const json_t *o)
{
    const char *kind = json_string_value(json_object_get(o, "kind"));
    const mtf_shape s = shape_of(json_object_get(o, "shape"));
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(o, "seed"));
    const double low = json_number_value(json_object_get(o, "low"));
    const double span = json_number_value(json_object_get(o, "high")) - low + 1;
    const int64_t n = mtf_shape_size(&s);
    double *x = mem_alloc(sizeof *x * (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        const double u = unit(seed, (uint64_t)k);
        x[k] = kind[0] == 'r'   ? u * 2 - 1
               : kind[0] == 's' ? floor(u * 17) / 4 - 2
               : kind[0] == 'i' ? low + floor(u * span)
                                : u < 0.5;
    }
    const mtf_dtype type = kind[0] == 'i' ? MTF_I32 : kind[0] == 'f' ? MTF_BOOL : MTF_F64;
    mtf_tensor *t = eval_input(e, s, type, x);
    mem_free(x);
    return t;
}

/* ---- operations ---- */

typedef struct numpy_case {
    json_t *args;
    mtf_tensor *in[8];
    int nin;
    mtf_shape out; /* what the result should have */
} numpy_case;

static const char *text(const numpy_case *c, const char *key)
{
    return json_string_value(json_object_get(c->args, key));
}

static int64_t integer(const numpy_case *c, const char *key)
{
    return json_integer_value(json_object_get(c->args, key));
}

static mtf_tensor *run_einsum(const numpy_case *c)
{
    return mtf_einsum(c->nin, c->in, c->out);
}

static mtf_tensor *run_reduction(const numpy_case *c)
{
    static const struct {
        const char *name;
        mtf_tensor *(*fn)(mtf_tensor *, mtf_shape);
    } of[] = {{"sum", mtf_reduce_sum},
              {"mean", mtf_reduce_mean},
              {"max", mtf_reduce_max},
              {"min", mtf_reduce_min},
              {"all", mtf_reduce_all},
              {"any", mtf_reduce_any},
              {"logsumexp", mtf_reduce_logsumexp}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(of[i].name, text(c, "reduction")) == 0) return of[i].fn(c->in[0], c->out);
    return NULL;
}

static mtf_tensor *run_cumsum(const numpy_case *c)
{
    return mtf_cumsum(c->in[0], text(c, "dim"), integer(c, "exclusive"), integer(c, "reverse"));
}

static mtf_tensor *run_gather(const numpy_case *c)
{
    return mtf_gather(c->in[0], c->in[1], text(c, "dim"));
}

static mtf_tensor *run_scatter_add(const numpy_case *c)
{
    return mtf_scatter_add(c->in[0], c->in[1], text(c, "dim"), c->out);
}

static mtf_tensor *run_split(const numpy_case *c, const char *dim)
{
    const json_t *list = json_object_get(c->args, "sizes");
    int64_t sizes[8];
    mtf_tensor *part[8];
    for (size_t i = 0; i < json_array_size(list); i++)
        sizes[i] = json_integer_value(json_array_get(list, i));
    mtf_split(c->in[0], dim, (int)json_array_size(list), sizes, part);
    return part[integer(c, "which")];
}

static mtf_tensor *run_window(const numpy_case *c)
{
    const char *name = text(c, "window"), *dim = text(c, "dim");
    mtf_tensor *x = c->in[0];
    if (strcmp(name, "slice") == 0)
        return mtf_slice(x, dim, integer(c, "begin"), integer(c, "size"));
    if (strcmp(name, "pad") == 0) return mtf_pad(x, dim, integer(c, "before"), integer(c, "after"));
    if (strcmp(name, "concat") == 0) return mtf_concat(c->nin, c->in, dim);
    if (strcmp(name, "split") == 0) return run_split(c, dim);
    return mtf_shift(x, dim, integer(c, "offset"), strcmp(name, "roll") == 0);
}

static mtf_tensor *run_stack(const numpy_case *c)
{
    return mtf_stack(c->nin, c->in, "new", (int)integer(c, "axis"));
}

static mtf_tensor *run_order(const numpy_case *c)
{
    const char *name = text(c, "order"), *dim = text(c, "dim");
    const bool down = integer(c, "descending");
    const int64_t k = integer(c, "k");
    mtf_tensor *x = c->in[0], *index, *value;
    if (strcmp(name, "argmax") == 0) return mtf_argmax(x, dim);
    if (strcmp(name, "argmin") == 0) return mtf_argmin(x, dim);
    if (strcmp(name, "nth") == 0) return (down ? mtf_nth_largest : mtf_nth_smallest)(x, dim, k - 1);
    if (strcmp(name, "top") == 0) {
        mtf_top_k(x, dim, (mtf_dim){"new", k}, !down, &value, NULL);
        return value;
    }
    value = mtf_sort(x, dim, down, &index);
    return strcmp(name, "sort") == 0 ? value : index;
}

static mtf_tensor *run_elementwise(const numpy_case *c)
{
    static const struct {
        const char *name;
        mtf_tensor *(*fn)(mtf_tensor *, mtf_tensor *);
    } of[] = {{"maximum", mtf_maximum},
              {"minimum", mtf_minimum},
              {"floordiv", mtf_floordiv},
              {"mod", mtf_mod},
              {"add", mtf_add}};
    if (c->nin == 3) return mtf_where(c->in[0], c->in[1], c->in[2]);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(of[i].name, text(c, "function")) == 0) return of[i].fn(c->in[0], c->in[1]);
    return NULL;
}

static const struct {
    const char *name;
    mtf_tensor *(*run)(const numpy_case *);
} operations[] = {
    {"einsum", run_einsum},
    {"reduction", run_reduction},
    {"cumsum", run_cumsum},
    {"gather", run_gather},
    {"scatter_add", run_scatter_add},
    {"window", run_window},
    {"stack", run_stack},
    {"order", run_order},
    {"elementwise", run_elementwise},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ---- cases ---- */

/* One dim over an axis and another over the other, or one over both: no two dims ask for one axis.
 */
static void any_layout_of(const numpy_case *c, uint64_t seed, char *layout, size_t room)
{
    static const char names[] = "abcdefn"; /* n: the new dim of stack and top */
    const int first = (int)(unit(seed, 1001) * 6), second = (int)(unit(seed, 1002) * 7);
    const mtf_shape in = mtf_tensor_shape(c->in[0]);
    const char *dim = in.rank ? in.dim[first % in.rank].name : "a";
    char other[4] = {names[second], 0, 0, 0};
    if (other[0] == 'n') memcpy(other, "new", 3);
    if (strcmp(other, dim) == 0)
        snprintf(layout, room, "%s:q+p", dim);
    else
        snprintf(layout, room, "%s:%s;%s:%s", dim, first % 2 ? "p" : "q", other,
                 first % 2 ? "q" : "p");
}

static void check_case(const json_t *line, int *done)
{
    eval e = eval_open();
    numpy_case c = {.args = json_object_get(line, "args")};
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(line, "in"), i, o) c.in[c.nin++] = operand(&e, o);
    c.out = shape_of(json_object_get(line, "shape"));
    const char *name = json_string_value(json_object_get(line, "op"));
    mtf_tensor *t = NULL;
    for (int k = 0; k < OPERATIONS; k++)
        if (strcmp(operations[k].name, name) == 0) {
            t = operations[k].run(&c);
            done[k]++;
        }
    if (t && strcmp(name, "elementwise") == 0) t = mtf_broadcast(t, c.out);
    mtf_err err = {0};
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(line, "seed"));
    if (!t || mtf_graph_status(e.g, &err) != MTF_OK)
        fail_msg("%s, seed %llu: %s", name, (unsigned long long)seed, err.text);
    const mtf_shape shape = mtf_tensor_shape(t);
    assert_int_equal(shape.rank, c.out.rank);
    for (int d = 0; d < shape.rank; d++) {
        assert_string_equal(shape.dim[d].name, c.out.dim[d].name);
        assert_int_equal(shape.dim[d].size, c.out.dim[d].size);
    }
    const json_t *list = json_object_get(line, "out");
    const int n = (int)json_array_size(list);
    double *want = mem_alloc(sizeof *want * (size_t)(n + 1));
    for (int k = 0; k < n; k++) {
        const json_t *v = json_array_get(list, (size_t)k);
        want[k] = json_is_string(v) ? atof(json_string_value(v)) : json_number_value(v);
    }
    eval_expect(&e, t, n, want, 1e-13);
    char layout[64];
    any_layout_of(&c, seed, layout, sizeof layout);
    eval_expect_on(&e, "p:2;q:3", layout, t, n, want, 1e-13);
    mem_free(want);
    eval_close(&e);
}

static void cases_agree(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/numpy.jsonl", getenv("MTF_SOURCE_DIR"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int done[OPERATIONS] = {0}, cases = 0;
    json_t *line;
    while ((line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL))) {
        const long long seed = json_integer_value(json_object_get(line, "seed"));
        if (cases == 0) printf("cases of the seeds from %lld on\n", seed);
        check_case(line, done);
        cases++;
        json_decref(line);
    }
    fclose(f);
    for (int k = 0; k < OPERATIONS; k++)
        printf("%s: %d cases\n", operations[k].name, done[k]);
    assert_int_equal(cases, 2000);
    for (int k = 0; k < OPERATIONS; k++)
        assert_true(done[k] >= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
