/* SPDX-License-Identifier: Apache-2.0
 * The plans of a product out = sum over k of A B, by the table of techniques 3(a): where the axis
 * is in the operands and in the wanted result, what must be chosen, and the bytes that it moves. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "mesh/link.h"
#include "mtf/mtf.h"
#include "spmd/plan_node.h"

enum { AXIS = 4 };

typedef struct product {
    mtf_graph *g;
    mtf_mesh *m;
    node_task t;
    placement in[2];
    memo *known;
} product;

/* `dim` is cut over the axis; "-": none is; "pending": the value is partial. */
static void cut(placement *p, const mtf_shape *s, const char *dim)
{
    if (strcmp(dim, "-") == 0) return;
    if (strcmp(dim, "pending") == 0) {
        p->pending = 1;
        return;
    }
    p->split[mtf_shape_find(s, dim)] = (split){.n = 1, .axis = {0}};
}

/* The product of A and B, each cut over the axis in dim `a` and `b` ("-": not at all), wanted cut
 * in `out`. */
static product open_product(mtf_shape sa, mtf_shape sb, mtf_shape so, const char *a, const char *b,
                            const char *out)
{
    mtf_err err = {0};
    product p = {.g = mtf_graph_new(), .m = mtf_mesh_parse("x:4", &err), .known = memo_new()};
    mtf_tensor *x[] = {mtf_placeholder(p.g, "A", sa, MTF_F32),
                       mtf_placeholder(p.g, "B", sb, MTF_F32)};
    const mtf_tensor *y = mtf_matmul(x[0], x[1], so);
    if (mtf_graph_status(p.g, &err) != MTF_OK) fail_msg("%s", err.text);
    p.t = (node_task){.mesh = p.m, .node = y->node, .known = p.known};
    p.t.n = op_space(y->node, p.t.dim);
    for (int d = 0; d < p.t.n; d++)
        p.t.role[d] = op_role(y->node, p.t.dim[d].name);
    p.t.available[0] = p.t.available[1] = 1;
    cut(&p.in[0], &sa, a);
    cut(&p.in[1], &sb, b);
    cut(&p.t.out[0], &so, out);
    return p;
}

static void close_product(product *p)
{
    memo_free(&p->known);
    mtf_mesh_free(&p->m);
    mtf_graph_free(&p->g);
}

/* The dim of the work that is cut, or "-". */
static const char *cut_dim(const product *p, const node_plan *plan)
{
    for (int d = 0; d < p->t.n; d++)
        if (plan->split[d].n) return p->t.dim[d].name;
    return "-";
}

static double bytes_of(mtf_shape s)
{
    return 4.0 * (double)mtf_shape_size(&s);
}

static void expect(product p, const char *work, int calls, double bytes)
{
    node_plan plan;
    p.t.in[0] = &p.in[0];
    p.t.in[1] = &p.in[1];
    assert_true(plan_node(&p.t, &plan));
    assert_string_equal(cut_dim(&p, &plan), work);
    assert_int_equal(plan.price.calls, calls);
    if (fabs(plan.price.bytes - bytes) > 0.5)
        fail_msg("%.0f bytes instead of %.0f", plan.price.bytes, bytes);
    close_product(&p);
}

#define M(n)   ((mtf_dim){"m", n})
#define N(n)   ((mtf_dim){"n", n})
#define K(n)   ((mtf_dim){"k", n})
#define D(n)   ((mtf_dim){"d", n})
#define S(...) MTF_SHAPE(__VA_ARGS__)
static const double share = (AXIS - 1.0) / AXIS;

static void both_have_the_batch(void **state)
{
    (void)state;
    expect(open_product(S(D(64), M(64), K(64)), S(D(64), K(64), N(64)), S(D(64), M(64), N(64)), "d",
                        "d", "d"),
           "d", 0, 0);
}

static void one_has_a_kept_dim(void **state)
{
    (void)state;
    expect(open_product(S(M(512), K(512)), S(K(512), N(512)), S(M(512), N(512)), "m", "-", "m"),
           "m", 0, 0);
}

/* Both have the reduced dim: what is left to do depends on what is wanted. */
static void both_have_the_reduced_dim(void **state)
{
    (void)state;
    const mtf_shape a = S(M(512), K(65536)), b = S(K(65536), N(512)), out = S(M(512), N(512));
    expect(open_product(a, b, out, "k", "k", "-"), "k", 1, 2 * share * bytes_of(out));
    expect(open_product(a, b, out, "k", "k", "m"), "k", 1, share * bytes_of(out));
    expect(open_product(a, b, out, "k", "k", "n"), "k", 1, share * bytes_of(out));
    expect(open_product(a, b, out, "k", "k", "pending"), "k", 0, 0);
}

/* The other operand is sliced, which is free. */
static void one_has_the_reduced_dim(void **state)
{
    (void)state;
    const mtf_shape a = S(M(512), K(65536)), b = S(K(65536), N(512)), out = S(M(512), N(512));
    expect(open_product(a, b, out, "k", "-", "-"), "k", 1, 2 * share * bytes_of(out));
    expect(open_product(a, b, out, "-", "k", "m"), "k", 1, share * bytes_of(out));
}

/* Kept dims of both ask for the axis: the one that is not wanted is gathered. */
static void both_have_kept_dims(void **state)
{
    (void)state;
    const mtf_shape a = S(M(4096), K(64)), b = S(K(64), N(4096)), out = S(M(4096), N(4096));
    expect(open_product(a, b, out, "m", "n", "m"), "m", 1, share * bytes_of(b));
    expect(open_product(a, b, out, "m", "n", "n"), "n", 1, share * bytes_of(a));
}

/* Neither is wanted: the operand that is smaller is gathered, and then the result. */
static void neither_kept_dim_is_wanted(void **state)
{
    (void)state;
    const mtf_shape a = S(M(1024), K(8192)), b = S(K(8192), N(256)), out = S(M(1024), N(256));
    expect(open_product(a, b, out, "m", "n", "-"), "m", 2, share * (bytes_of(b) + bytes_of(out)));
}

static void nobody_has_the_axis(void **state)
{
    (void)state;
    expect(open_product(S(M(512), K(512)), S(K(512), N(512)), S(M(512), N(512)), "-", "-", "m"),
           "m", 0, 0);
}

/* A kept dim that is not wanted: the operand is gathered before, or the result after. */
static void a_kept_dim_is_not_wanted(void **state)
{
    (void)state;
    const mtf_shape thin = S(M(4096), K(1)), row = S(K(1), N(4096)), wide = S(M(4096), N(4096));
    expect(open_product(thin, row, wide, "m", "-", "-"), "-", 1, share * bytes_of(thin));
    const mtf_shape a = S(M(512), K(65536)), b = S(K(65536), N(64)), out = S(M(512), N(64));
    expect(open_product(a, b, out, "m", "-", "-"), "m", 1, share * bytes_of(out));
}

/* The wanted dim is another than the one that is there, and gathering it is dear: the operand goes
 * from one cut to the other. */
static void all_to_all_before_the_work(void **state)
{
    (void)state;
    const mtf_shape a = S(M(512), K(512)), b = S(K(512), N(65536)), out = S(M(512), N(65536));
    expect(open_product(a, b, out, "m", "-", "n"), "n", 1, share * bytes_of(a));
    const mtf_shape c = S(D(64), M(512), K(512)), e = S(D(64), K(512), N(64)),
                    r = S(D(64), M(512), N(64));
    expect(open_product(c, e, r, "m", "-", "d"), "m", 1, share * bytes_of(r) / AXIS);
}

/* What the operand is available in counts, not only its home. */
static void a_copy_that_is_there_is_taken(void **state)
{
    (void)state;
    product p =
        open_product(S(M(4096), K(64)), S(K(64), N(4096)), S(M(4096), N(4096)), "m", "n", "m");
    const placement b[2] = {p.in[1], {.pending = 0}}; /* at home, and gathered before */
    node_plan plan;
    p.t.in[0] = &p.in[0];
    p.t.in[1] = b;
    p.t.available[1] = 2;
    assert_true(plan_node(&p.t, &plan));
    assert_int_equal(plan.price.calls, 0);
    assert_int_equal(plan.source[1], 1);
    close_product(&p);
}

/* A limit that forbids to gather the operand: the reduced dim is worked off in parts. */
static void a_limit_makes_chunks(void **state)
{
    (void)state;
    const mtf_shape a = S(M(4096), K(8192)), b = S(K(8192), N(64)), out = S(M(4096), N(64));
    product p = open_product(a, b, out, "m", "n", "m");
    node_plan plan;
    p.t.in[0] = &p.in[0];
    p.t.in[1] = &p.in[1];
    p.t.max_bytes = (int64_t)bytes_of(b) / 5;
    assert_true(plan_node(&p.t, &plan));
    assert_string_equal(p.t.dim[plan.chunk_dim].name, "k");
    assert_int_equal(plan.chunks, 6); /* of at most 1638 of 8192 elements */
    /* Not even one element of k fits, nor a partial result, wherever it is wanted. */
    p.t.max_bytes = 100;
    assert_false(plan_node(&p.t, &plan));
    p.t.anywhere[0] = true;
    assert_false(plan_node(&p.t, &plan));
    /* A partial result fits, one element of B's k does, and A is not gathered. */
    p.t.anywhere[0] = false;
    p.t.max_bytes = (int64_t)bytes_of(out);
    assert_true(plan_node(&p.t, &plan));
    for (int k = 0; k < 2; k++) {
        const placement need = plan_operand(&p.t, &plan, k);
        const int64_t is = placement_bytes(p.m, k ? &b : &a, 4, &need);
        assert_true(is / plan.chunks <= p.t.max_bytes ||
                    is <= placement_bytes(p.m, k ? &b : &a, 4, &p.in[k]));
    }
    close_product(&p);
}

/* Too many assignments to try them all: each axis in turn finds its place. */
static void many_axes(void **state)
{
    (void)state;
    mtf_err err = {0};
    const mtf_shape a = S(M(4096), K(64)), b = S(K(64), N(4096)), out = S(M(4096), N(4096));
    product p = open_product(a, b, out, "-", "-", "-");
    mtf_mesh *m = mtf_mesh_parse("a:2;b:2;c:2;d:2;e:2;f:2;g:2;h:2", &err);
    split all = {.n = 8};
    for (int i = 0; i < 8; i++)
        all.axis[i] = (int8_t)i;
    p.in[0].split[0] = p.in[1].split[1] = p.t.out[0].split[0] = all;
    p.t.mesh = m;
    p.t.in[0] = &p.in[0];
    p.t.in[1] = &p.in[1];
    node_plan plan;
    assert_true(plan_node(&p.t, &plan));
    /* Not worse than to gather B in one call and to do the work as it is wanted. */
    const double gather = link_time(1, 255, bytes_of(b) * 255 / 256);
    const double work = link_work_time(2.0 * 4096 * 64 * 4096 / 256);
    assert_true(plan.price.seconds <= gather + work);
    close_product(&p);
    mtf_mesh_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_have_the_batch),
                                       cmocka_unit_test(one_has_a_kept_dim),
                                       cmocka_unit_test(both_have_the_reduced_dim),
                                       cmocka_unit_test(one_has_the_reduced_dim),
                                       cmocka_unit_test(both_have_kept_dims),
                                       cmocka_unit_test(neither_kept_dim_is_wanted),
                                       cmocka_unit_test(nobody_has_the_axis),
                                       cmocka_unit_test(a_kept_dim_is_not_wanted),
                                       cmocka_unit_test(all_to_all_before_the_work),
                                       cmocka_unit_test(a_copy_that_is_there_is_taken),
                                       cmocka_unit_test(a_limit_makes_chunks),
                                       cmocka_unit_test(many_axes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
