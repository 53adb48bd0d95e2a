/* SPDX-License-Identifier: Apache-2.0
 * A limit on what may be gathered: products are worked off in parts, other work stays where its
 * operands are, and what cannot be is refused. Values stay the same. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "mtf/mtf.h"
#include "spmd/program.h"

/* Large enough that calls are cheap beside the bytes of the result. */
enum { SIDE = 512, MOST = SIDE * SIDE };

/* A product whose operands are cut in their reduced dim, each over another axis, and must be whole
 * in it: C[m n] = relu(A)[m k] B[k n]. */
typedef struct product {
    mtf_graph *g;
    mtf_tensor *a, *b, *c, *da;
    double *in[2];
} product;

static void fill(product *p)
{
    for (int k = 0; k < 2; k++) {
        p->in[k] = mem_alloc(sizeof(double) * MOST);
        for (int i = 0; i < MOST; i++)
            p->in[k][i] = sin(i * (k + 1));
    }
}

static product product_new(int64_t m, int64_t k, int64_t n)
{
    product p = {.g = mtf_graph_new()};
    const mtf_dim dm = {"m", m}, dn = {"n", n};
    p.a = mtf_placeholder(p.g, "a", MTF_SHAPE(dm, {"k1", k}), MTF_F64);
    p.b = mtf_placeholder(p.g, "b", MTF_SHAPE({"k2", k}, dn), MTF_F64);
    mtf_tensor *x = mtf_relu(mtf_rename(p.a, "k1", "k")), *y = mtf_rename(p.b, "k2", "k");
    p.c = mtf_matmul(x, y, MTF_SHAPE(dm, dn));
    mtf_gradients(mtf_reduce_sum(mtf_mul(p.c, p.c), MTF_SCALAR), 1, &p.a, &p.da);
    fill(&p);
    return p;
}

static void product_free(product *p)
{
    mem_free(p->in[0]);
    mem_free(p->in[1]);
    mtf_graph_free(&p->g);
}

typedef struct seen {
    bool refused; /* a fetched value would be too large at home */
    int chunks;
    int64_t largest; /* bytes of a value that grew by a move */
    double *c, *da;
} seen;

static void look_at(const mtf_program *p, seen *s)
{
    for (const instr *i = p->first; i; i = i->next) {
        s->chunks += i->kind == INSTR_WINDOW;
        if (!instr_is_collective(i) || i->kind == INSTR_ALL_REDUCE) continue;
        const int64_t was = value_bound(p, i->in[0]), is = value_bound(p, i->out[0]);
        const int64_t bytes = is * mtf_dtype_size(i->out[0]->dtype);
        if (is > was && bytes > s->largest) s->largest = bytes;
    }
}

static seen run(product *x, const char *mesh, const char *layout, int64_t limit)
{
    seen s = {.c = mem_alloc(sizeof(double) * MOST), .da = mem_alloc(sizeof(double) * MOST)};
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    const mtf_request r = {
        .nfetches = 2, .fetches = (mtf_tensor *[]){x->c, x->da}, .max_value_bytes = limit};
    mtf_program *p = mtf_compile(x->g, m, l, &r, &err);
    s.refused = !p && strstr(err.text, "more than the limit");
    if (!p && !s.refused) fail_msg("%s", err.text);
    if (p) look_at(p, &s);
    mtf_session *session = p ? mtf_session_new(1, &p, NULL, &err) : NULL;
    const mtf_feed feeds[] = {{.placeholder = x->a, .data = x->in[0]},
                              {.placeholder = x->b, .data = x->in[1]}};
    if (p &&
        (!session || mtf_run(session, p, 2, feeds, (void *[]){s.c, s.da}, NULL, &err) != MTF_OK))
        fail_msg("%s", err.text);
    mtf_session_free(&session);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    return s;
}

static void seen_free(seen *s)
{
    mem_free(s->c);
    mem_free(s->da);
}

static void expect_near(const double *want, const double *got, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(want[i] - got[i]) <= 1e-10 * (1 + fabs(want[i]))))
            fail_msg("element %lld is %.17g instead of %.17g", (long long)i, got[i], want[i]);
}

#define SUMMA "m:rows;k1:cols;k2:rows;n:cols"

static void products_are_worked_off_in_parts(void **state)
{
    (void)state;
    static const char *const meshes[] = {"rows:2;cols:2", "rows:2;cols:3", "rows:3;cols:2"};
    static const int64_t sizes[][3] = {{512, 64, 512}, {509, 61, 503}, {512, 7, 500}};
    for (int i = 0; i < 3; i++) {
        product p = product_new(sizes[i][0], sizes[i][1], sizes[i][2]);
        seen one = run(&p, "", "", 0);
        assert_int_equal(one.chunks, 0);
        for (int j = 0; j < 3; j++) {
            seen whole = run(&p, meshes[j], SUMMA, 0);
            seen parts = run(&p, meshes[j], SUMMA, whole.largest / 2);
            assert_int_equal(whole.chunks, 0);
            assert_true(parts.chunks > 0);
            assert_true(parts.largest <= whole.largest / 2);
            expect_near(one.c, parts.c, sizes[i][0] * sizes[i][2]);
            expect_near(one.da, parts.da, sizes[i][0] * sizes[i][1]);
            seen_free(&whole);
            seen_free(&parts);
        }
        seen_free(&one);
        product_free(&p);
    }
}

/* ---- random products: every operand and the result under cuts of their own ---- */

static uint64_t seed = 1, draws;

static int64_t below(int64_t n)
{
    return random_u32(seed, 1, 0, draws++) % (uint32_t)n;
}

/* Each axis to one of the names, or to none. */
static void add_rules(char *layout, size_t room, const char *const *names, int n)
{
    int to[2] = {(int)below(n + 1), (int)below(n + 1)};
    for (int a = 0; a < 2; a++) {
        const size_t used = strlen(layout);
        if (to[a] == n || (a == 1 && to[1] == to[0])) continue;
        snprintf(layout + used, room - used, ";%s:%s%s", names[to[a]], a ? "cols" : "rows",
                 a == 0 && to[1] == to[0] ? "+cols" : "");
    }
}

/* C[d m n] = A[d m k] B[d k n] from operands under other names. */
static product random_product(int64_t *nc, int64_t *na)
{
    product p = {.g = mtf_graph_new()};
    const mtf_dim d = {"d", 1 + below(4)}, m = {"m", 100 + below(150)}, n = {"n", 100 + below(150)},
                  k = {"k", 1 + below(90)};
    p.a = mtf_placeholder(p.g, "a", MTF_SHAPE({"d1", d.size}, {"m1", m.size}, {"k1", k.size}),
                          MTF_F64);
    p.b = mtf_placeholder(p.g, "b", MTF_SHAPE({"d2", d.size}, {"k2", k.size}, {"n2", n.size}),
                          MTF_F64);
    mtf_tensor *x = mtf_reshape(p.a, MTF_SHAPE(d, m, k)), *y = mtf_reshape(p.b, MTF_SHAPE(d, k, n));
    p.c = mtf_matmul(x, y, MTF_SHAPE(d, m, n));
    mtf_gradients(mtf_reduce_sum(mtf_mul(p.c, p.c), MTF_SCALAR), 1, &p.a, &p.da);
    fill(&p);
    *nc = d.size * m.size * n.size;
    *na = d.size * m.size * k.size;
    return p;
}

static void random_products(void **state)
{
    (void)state;
    static const char *const a[] = {"d1", "m1", "k1"}, *const b[] = {"d2", "k2", "n2"},
                             *const c[] = {"m", "n"};
    static const char *const meshes[] = {"rows:2;cols:2", "rows:3;cols:2", "rows:2;cols:3"};
    int chunked = 0;
    for (int i = 0; i < 200; i++) {
        char layout[256] = "";
        int64_t nc, na;
        product p = random_product(&nc, &na);
        add_rules(layout, sizeof layout, a, 3);
        add_rules(layout, sizeof layout, b, 3);
        add_rules(layout, sizeof layout, c, 2);
        seen one = run(&p, "", "", 0), whole = run(&p, meshes[i % 3], layout, 0);
        const int64_t limit = whole.largest / (2 + below(3)) + 1;
        seen parts = run(&p, meshes[i % 3], layout, limit);
        chunked += parts.chunks > 0;
        expect_near(one.c, whole.c, nc);
        if (!parts.refused) expect_near(one.c, parts.c, nc);
        if (!parts.refused) expect_near(one.da, parts.da, na);
        seen_free(&one);
        seen_free(&whole);
        seen_free(&parts);
        product_free(&p);
    }
    print_message("seed %llu: %d of 200 products in parts\n", (unsigned long long)seed, chunked);
    assert_true(chunked >= 10);
}

/* Unrolled and double-buffered: two parts of both operands are fetched before the first product. */
static void the_next_part_is_fetched_early(void **state)
{
    (void)state;
    mtf_err err = {0};
    product x = product_new(512, 64, 512);
    mtf_mesh *m = mtf_mesh_parse("rows:2;cols:2", &err);
    mtf_layout *l = mtf_layout_parse(SUMMA, m, true, NULL, &err);
    const mtf_request r = {.nfetches = 1, .fetches = &x.c, .max_value_bytes = 50000};
    mtf_program *p = mtf_compile(x.g, m, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    int fetched = 0, parts = 0;
    for (const instr *i = p->first; i; i = i->next) {
        fetched += i->kind == INSTR_WINDOW;
        if (i->kind != INSTR_COMPUTE || i->in[0]->def == NULL ||
            i->in[0]->def->kind != INSTR_WINDOW)
            continue;
        parts++;
        assert_int_equal(fetched, parts < 3 ? 2 * (parts + 1) : 2 * parts);
    }
    assert_int_equal(parts, 3);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    product_free(&x);
}

/* Small operands and a large result: to sum whole results would move no operand beyond the limit,
 * and make partial results far beyond it. */
static void partial_results_keep_to_the_limit(void **state)
{
    (void)state;
    const int64_t limit = 1 << 20, m = 1 << 16, k = 1000;
    mtf_err err = {0};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *a = mtf_placeholder(g, "a", MTF_SHAPE({"m", m}, {"k1", k}), MTF_F32);
    mtf_tensor *b = mtf_placeholder(g, "b", MTF_SHAPE({"k2", k}, {"n", m}), MTF_F32);
    mtf_tensor *x = mtf_rename(a, "k1", "k"), *y = mtf_rename(b, "k2", "k");
    mtf_tensor *c = mtf_matmul(x, y, MTF_SHAPE({"m", m}, {"n", m}));
    mtf_mesh *mesh = mtf_mesh_parse("rows:2;cols:2", &err);
    mtf_layout *l = mtf_layout_parse(SUMMA, mesh, true, NULL, &err);
    const mtf_request r = {.nfetches = 1, .fetches = &c, .max_value_bytes = limit};
    mtf_program *p = mtf_compile(g, mesh, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    for (const instr *i = p->first; i; i = i->next)
        for (int o = 0; o < i->nout; o++)
            assert_true(!i->out[o]->pending || value_bound(p, i->out[o]) * 4 <= limit);
    /* Where not one element of k fits, there is no way. */
    const mtf_request less = {.nfetches = 1, .fetches = &c, .max_value_bytes = 1024};
    assert_null(mtf_compile(g, mesh, l, &less, &err));
    assert_non_null(strstr(err.text, "more than the limit of 1024 bytes"));
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&g);
}

/* Compile time grows with the number of parts, not with its square: the search for equal work once
 * took 40 s for these. */
static void many_parts_compile_fast(void **state)
{
    (void)state;
    enum { PARTS = 16000 };
    mtf_err err = {0};
    mtf_graph *g = mtf_graph_new();
    const mtf_dim m = {"m", 1 << 16}, n = {"n", 1 << 16};
    mtf_tensor *a = mtf_placeholder(g, "a", MTF_SHAPE(m, {"k1", PARTS}), MTF_F32);
    mtf_tensor *b = mtf_placeholder(g, "b", MTF_SHAPE({"k2", PARTS}, n), MTF_F32);
    mtf_tensor *c = mtf_matmul(mtf_rename(a, "k1", "k"), mtf_rename(b, "k2", "k"), MTF_SHAPE(m, n));
    mtf_mesh *mesh = mtf_mesh_parse("rows:2;cols:2", &err);
    mtf_layout *l = mtf_layout_parse(SUMMA, mesh, true, NULL, &err);
    const mtf_request r = {.nfetches = 1, .fetches = &c, .max_value_bytes = 1 << 17};
    const clock_t start = clock();
    mtf_program *p = mtf_compile(g, mesh, l, &r, &err);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (!p) fail_msg("%s", err.text);
    assert_true(p->ninstrs > 3 * PARTS);
    print_message("%d instructions in %.2f s\n", p->ninstrs, seconds);
    assert_true(seconds < 20);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&mesh);
    mtf_graph_free(&g);
}

/* What is fetched must come home; what stays inside of the program need not. */
static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    mtf_err err = {0};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE({"a", 8}, {"b", 100}), MTF_F32);
    mtf_tensor *y = mtf_rename(x, "b", "c"), *sum = mtf_reduce_sum(mtf_exp(y), MTF_SCALAR);
    mtf_mesh *m = mtf_mesh_parse("x:4", &err);
    mtf_layout *l = mtf_layout_parse("b:x", m, true, NULL, &err);
    mtf_request r = {.nfetches = 1, .fetches = &sum, .max_value_bytes = 1000};
    mtf_program *p = mtf_compile(g, m, l, &r, &err);
    if (!p) fail_msg("%s", err.text);
    mtf_program_free(&p);
    r.fetches = &y;
    assert_null(mtf_compile(g, m, l, &r, &err));
    assert_string_equal(err.text,
                        "rename 'rename': 'rename' would have 3200 bytes on one processor, more "
                        "than the limit of 1000 bytes for one value; raise the limit or split "
                        "another of its dims");
    r.max_value_bytes = -1;
    err = (mtf_err){0};
    assert_null(mtf_compile(g, m, l, &r, &err));
    assert_string_equal(err.text, "program 'program': max_value_bytes is -1; it must be at least 0 "
                                  "(0: no limit)");
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    mtf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_worked_off_in_parts),
                                       cmocka_unit_test(random_products),
                                       cmocka_unit_test(the_next_part_is_fetched_early),
                                       cmocka_unit_test(many_parts_compile_fast),
                                       cmocka_unit_test(partial_results_keep_to_the_limit),
                                       cmocka_unit_test(what_cannot_be_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
