/* SPDX-License-Identifier: Apache-2.0
 * The plan of an exchange as data: every pair of layouts of every reshape between small shapes.
 * Each wanted element must arrive exactly once, with the right value, from a processor that holds
 * it, and nothing that is there already may move. Where blocks move whole, nobody sends twice. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "mesh/exchange.h"

enum { MAX_ELEMENTS = 48, MAX_PROCS = 12, MAX_SHAPES = 4096, MAX_LAYOUTS = 4096 };

static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 8};
static const char *const names[2][4] = {{"a", "b", "c", "d"}, {"e", "f", "g", "h"}};

/* ---- shapes and layouts ---- */

typedef struct shape_list {
    int n;
    mtf_shape shape[MAX_SHAPES];
} shape_list;

static void add_shapes(shape_list *l, mtf_shape s, int64_t elements)
{
    assert_true(l->n < MAX_SHAPES);
    l->shape[l->n++] = s;
    if (s.rank == 4) return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (elements * sizes[i] > MAX_ELEMENTS) continue;
        mtf_shape t = s;
        t.dim[t.rank++] = (mtf_dim){names[0][s.rank], sizes[i]};
        add_shapes(l, t, elements * sizes[i]);
    }
}

typedef struct cut {
    split s[4];
} cut;

/* All ways to give each axis to a dim, in every order on a dim, or to none. */
static void add_cuts(const mtf_mesh *m, int rank, unsigned used, cut now, cut *list, int *n)
{
    assert_true(*n < MAX_LAYOUTS);
    list[(*n)++] = now;
    for (int a = 0; a < m->naxes; a++)
        for (int d = 0; d < rank && !(used >> a & 1); d++) {
            /* Canonical order: dims in ascending order, so that every cut comes once. */
            bool later = false;
            for (int e = d + 1; e < rank; e++)
                later = later || now.s[e].n;
            if (later) continue;
            cut next = now;
            next.s[d].axis[next.s[d].n++] = (int8_t)a;
            add_cuts(m, rank, used | 1u << a, next, list, n);
        }
}

/* ---- the simulation ---- */

/* The flat indexes that a processor's block holds, in the block's order. */
static int block_content(const mtf_mesh *m, const mtf_shape *s, const split *cuts, int proc,
                         int *content)
{
    int64_t lo[4], hi[4], at[4];
    int n = 0, total = 1;
    for (int d = 0; d < s->rank; d++) {
        const int64_t parts = split_parts(m, cuts[d]), part = split_part(m, cuts[d], proc);
        lo[d] = at[d] = block_start(s->dim[d].size, parts, part);
        hi[d] = block_start(s->dim[d].size, parts, part + 1);
        total *= (int)(hi[d] - lo[d]);
    }
    while (n < total) {
        int64_t flat = 0;
        for (int d = 0; d < s->rank; d++)
            flat = flat * s->dim[d].size + at[d];
        content[n++] = (int)flat;
        for (int d = s->rank - 1; d >= 0 && ++at[d] == hi[d]; d--)
            at[d] = lo[d];
    }
    return total;
}

typedef struct delivery {
    const int *source;
    int *block, *writes;
    int moved;
} delivery;

static void deliver(void *ctx, int64_t from, int64_t to, int64_t n)
{
    delivery *d = ctx;
    for (int64_t i = 0; i < n; i++) {
        d->block[to + i] = d->source[from + i];
        d->writes[to + i]++;
    }
    d->moved += (int)n;
}

static int missing(const int *want, int nwant, const int *have, int nhave)
{
    int n = nwant;
    for (int i = 0; i < nwant; i++)
        for (int j = 0; j < nhave; j++)
            n -= want[i] == have[j];
    return n;
}

/* Returns what it receives. */
static int check_destination(const exchange *x, int dst, int (*old)[MAX_ELEMENTS], const int *count,
                             int *sent)
{
    int want[MAX_ELEMENTS], block[MAX_ELEMENTS], writes[MAX_ELEMENTS] = {0};
    const int procs = (int)x->mesh->processors;
    const int n = block_content(x->mesh, &x->shape[1], x->split[1], dst, want);
    int received = 0;
    for (int src = 0; src < procs; src++) {
        if (!exchange_serves(x, src, dst)) continue;
        delivery d = {.source = old[src], .block = block, .writes = writes};
        exchange_pair p = exchange_meet(x, src, dst);
        exchange_walk(&p, deliver, &d);
        assert_int_equal(d.moved, p.elements);
        exchange_pair_free(&p);
        if (src == dst) continue;
        received += d.moved;
        sent[src] += d.moved;
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(writes[i], 1);
        assert_int_equal(block[i], want[i]);
    }
    const int bound = missing(want, n, old[dst], count[dst]);
    assert_int_equal(received, bound);
    assert_int_equal(exchange_bound(x, dst), bound);
    return received;
}

static void check(const mtf_mesh *m, const mtf_shape *a, const cut *ca, const mtf_shape *b,
                  const cut *cb)
{
    int old[MAX_PROCS][MAX_ELEMENTS], count[MAX_PROCS], sent[MAX_PROCS] = {0};
    int received[MAX_PROCS], most = 0, largest = 0;
    exchange x;
    exchange_describe(&x, m, a, ca->s, b, cb->s);
    for (int p = 0; p < (int)m->processors; p++)
        count[p] = block_content(m, a, ca->s, p, old[p]);
    for (int p = 0; p < (int)m->processors; p++)
        received[p] = check_destination(&x, p, old, count, sent);
    for (int p = 0; p < (int)m->processors; p++) {
        assert_true(!x.permutes || sent[p] <= count[p]);
        if (sent[p] + received[p] > most) most = sent[p] + received[p];
        if (count[p] > largest) largest = count[p];
    }
    static unsigned pairs;
    if (pairs++ % 8) return; /* a sample is enough, and takes less time */
    for (int p = 0; p < (int)m->processors; p++) {
        assert_int_equal(exchange_sent(&x, p), sent[p]);
        assert_int_equal(exchange_received(&x, p), received[p]);
    }
    if (x.permutes)
        assert_in_range(exchange_traffic(&x), most, most + largest);
    else
        assert_int_equal(exchange_traffic(&x), most);
}

static int64_t check_all(const char *mesh, const shape_list *l)
{
    static cut first[MAX_LAYOUTS], second[MAX_LAYOUTS];
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    int64_t pairs = 0;
    for (int i = 0; i < l->n; i++)
        for (int j = 0; j < l->n; j++) {
            if (mtf_shape_size(&l->shape[i]) != mtf_shape_size(&l->shape[j])) continue;
            int ni = 0, nj = 0;
            add_cuts(m, l->shape[i].rank, 0, (cut){0}, first, &ni);
            add_cuts(m, l->shape[j].rank, 0, (cut){0}, second, &nj);
            for (int u = 0; u < ni; u++)
                for (int v = 0; v < nj; v++, pairs++)
                    check(m, &l->shape[i], &first[u], &l->shape[j], &second[v]);
        }
    mtf_mesh_free(&m);
    return pairs;
}

static shape_list all_shapes(void)
{
    shape_list l = {0};
    add_shapes(&l, MTF_SCALAR, 1);
    return l;
}

/* MTF_TEST_MESHES names others, between spaces, that are then checked as well. */
static void meshes_of_one_axis_completely(void **state)
{
    (void)state;
    const shape_list l = all_shapes();
    const char *more = getenv("MTF_TEST_MESHES");
    char list[512], *rest = NULL;
    snprintf(list, sizeof list, "x:2 x:3 %s", more ? more : "");
    for (char *mesh = strtok_r(list, " ", &rest); mesh; mesh = strtok_r(NULL, " ", &rest))
        printf("%s: %d shapes, %lld pairs of layouts\n", mesh, l.n, (long long)check_all(mesh, &l));
}

/* ---- samples on larger meshes ---- */

static uint64_t seed;
static uint64_t draws;

static int below(int n)
{
    return (int)(random_u32(seed, 1, 0, draws++) % (uint32_t)n);
}

static void sample(const mtf_mesh *m, const shape_list *l, int64_t samples)
{
    static cut first[MAX_LAYOUTS], second[MAX_LAYOUTS];
    for (int64_t k = 0; k < samples;) {
        const mtf_shape *a = &l->shape[below(l->n)], *b = &l->shape[below(l->n)];
        if (mtf_shape_size(a) != mtf_shape_size(b)) continue;
        int na = 0, nb = 0;
        add_cuts(m, a->rank, 0, (cut){0}, first, &na);
        add_cuts(m, b->rank, 0, (cut){0}, second, &nb);
        for (int i = 0; i < 64 && k < samples; i++, k++)
            check(m, a, &first[below(na)], b, &second[below(nb)]);
    }
}

static void larger_meshes_by_samples(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x:2;y:2", "x:2;y:3", "x:2;y:2;z:2"};
    const char *given = getenv("MTF_TEST_SEED"), *wanted = getenv("MTF_TEST_SAMPLES");
    const int64_t samples = wanted ? strtoll(wanted, NULL, 10) : 200000;
    seed = given ? strtoull(given, NULL, 10) : 1;
    const shape_list l = all_shapes();
    for (int i = 0; i < 3; i++) {
        mtf_err err = {0};
        mtf_mesh *m = mtf_mesh_parse(meshes[i], &err);
        printf("%s: %lld samples, MTF_TEST_SEED=%llu\n", meshes[i], (long long)samples,
               (unsigned long long)seed);
        sample(m, &l, samples);
        mtf_mesh_free(&m);
    }
}

/* ---- windows ---- */

/* Every wanted element arrives once, from where the window says, and what is beyond the ends from
 * nobody. Elements of the old tensor are numbered along its one dim. */
static void check_window(const mtf_mesh *m, int64_t size, const split *from, int64_t want,
                         const split *to, window w)
{
    int old[MAX_PROCS][MAX_ELEMENTS], most = 0;
    const mtf_shape a = MTF_SHAPE({"a", size}), b = MTF_SHAPE({"a", want});
    int sent[MAX_PROCS] = {0}, received[MAX_PROCS] = {0};
    exchange x;
    exchange_describe_window(&x, m, &a, from, &b, to, w);
    for (int p = 0; p < (int)m->processors; p++)
        block_content(m, &a, from, p, old[p]);
    for (int dst = 0; dst < (int)m->processors; dst++) {
        int place[MAX_ELEMENTS], block[MAX_ELEMENTS], writes[MAX_ELEMENTS] = {0};
        const int n = block_content(m, &b, to, dst, place);
        for (int src = 0; src < (int)m->processors; src++) {
            if (!exchange_serves(&x, src, dst)) continue;
            delivery d = {.source = old[src], .block = block, .writes = writes};
            exchange_pair p = exchange_meet(&x, src, dst);
            exchange_walk(&p, deliver, &d);
            assert_int_equal(d.moved, p.elements);
            exchange_pair_free(&p);
            if (src != dst) received[dst] += d.moved;
            if (src != dst) sent[src] += d.moved;
        }
        for (int i = 0; i < n; i++) {
            int64_t source = place[i] + w.start;
            if (w.period) source = ((source % w.period) + w.period) % w.period;
            const bool there = source >= 0 && source < size;
            assert_int_equal(writes[i], there);
            if (there) assert_int_equal(block[i], source);
        }
        assert_int_equal(received[dst], exchange_bound(&x, dst));
    }
    for (int p = 0; p < (int)m->processors; p++) {
        assert_int_equal(exchange_sent(&x, p), sent[p]);
        if (sent[p] + received[p] > most) most = sent[p] + received[p];
    }
    assert_int_equal(exchange_traffic(&x), most);
}

static void windows_completely(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x:2", "x:3", "x:2;y:2", "x:3;y:2"};
    static const int64_t wanted[] = {1, 2, 5, 7, 12};
    static cut cuts[MAX_LAYOUTS];
    for (int k = 0; k < 4; k++) {
        mtf_err err = {0};
        mtf_mesh *m = mtf_mesh_parse(meshes[k], &err);
        int n = 0;
        add_cuts(m, 1, 0, (cut){0}, cuts, &n);
        for (int i = 0; i < n * n; i++)
            for (int64_t size = 1; size <= 7; size += 2)
                for (int w = 0; w < 5; w++)
                    for (int64_t start = -9; start <= 9; start++)
                        for (int wraps = 0; wraps < 2; wraps++)
                            check_window(m, size, cuts[i / n].s, wanted[w], cuts[i % n].s,
                                         (window){0, start, wraps ? size : 0});
        mtf_mesh_free(&m);
    }
}

/* Blocks that many processors lack: whoever is asked, some have one. */
static void the_busiest_of_many_is_found(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x:4;y:8", "x:2;y:32", "x:16;y:32"};
    for (int i = 0; i < 3; i++) {
        mtf_err err = {0};
        mtf_mesh *m = mtf_mesh_parse(meshes[i], &err);
        exchange x;
        const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 100});
        const split x_only[2] = {{.n = 1, .axis = {0}}}, y_only[2] = {{.n = 1, .axis = {1}}};
        exchange_describe(&x, m, &s, x_only, &s, y_only);
        int64_t most = 0;
        for (int64_t p = 0; p < m->processors; p++) {
            const int64_t n = exchange_received(&x, p);
            if (n > most) most = n;
        }
        assert_true(most > 0);
        assert_int_equal(exchange_most(&x, exchange_received), most);
        assert_int_equal(exchange_most(&x, exchange_bound), most);
        mtf_mesh_free(&m);
    }
}

/* Beyond EXCHANGE_EXACT processors the traffic is a bound, by at most the blocks themselves. */
static void large_meshes_are_bounded(void **state)
{
    (void)state;
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse("x:128;y:64", &err);
    const mtf_shape s = MTF_SHAPE(((mtf_dim){"a", 1000}), ((mtf_dim){"b", 900}));
    const cut from = {.s = {{.n = 1, .axis = {0}}, {.n = 1, .axis = {1}}}};
    const cut to = {.s = {{.n = 1, .axis = {1}}, {.n = 1, .axis = {0}}}};
    exchange x;
    exchange_describe(&x, m, &s, from.s, &s, to.s);
    const int64_t bound = exchange_traffic(&x), block = 8 * 15;
    for (int64_t p = 0; p < m->processors; p += 1111) {
        const int64_t exact = exchange_sent(&x, p) + exchange_received(&x, p);
        assert_in_range(exact, 0, bound);
    }
    assert_in_range(bound, 1, 3 * block);
    mtf_mesh_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meshes_of_one_axis_completely), cmocka_unit_test(larger_meshes_by_samples),
        cmocka_unit_test(windows_completely), cmocka_unit_test(the_busiest_of_many_is_found),
        cmocka_unit_test(large_meshes_are_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
