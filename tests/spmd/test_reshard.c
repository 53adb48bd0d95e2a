/* SPDX-License-Identifier: Apache-2.0
 * Routes between placements: known cases, and for random ones that every move does what its kind
 * says, that the route ends where it should, keeps to a limit, and costs no more than the direct
 * exchange and than gathering everything. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "mesh/link.h"
#include "spmd/reshard.h"

enum { SAMPLES = 20000 };

static split axes(const mtf_mesh *m, const char *names)
{
    split s = {0};
    for (; *names; names++) {
        const char name[2] = {*names, '\0'};
        s.axis[s.n++] = (int8_t)mesh_find_axis(m, name);
    }
    return s;
}

/* "xy,,z|y": the axes of each dim, one letter each, major first; behind | the pending ones. */
static placement parse(const mtf_mesh *m, const char *text)
{
    placement p = {.pending = 0};
    char copy[64], *at = copy;
    snprintf(copy, sizeof copy, "%s", text);
    char *pending = strchr(copy, '|');
    if (pending) *pending++ = '\0';
    for (int d = 0; at; d++) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = '\0';
        p.split[d] = axes(m, at);
        at = comma;
    }
    if (pending) p.pending = split_mask(axes(m, pending));
    return p;
}

static const char *name_of(instr_kind k)
{
    const instr i = {.kind = k};
    return instr_name(&i);
}

/* "all_gather, view" */
static void describe(const route *r, char *text, size_t room)
{
    text[0] = '\0';
    for (int i = 0; i < r->n; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, room - used, "%s%s", i ? ", " : "", name_of(r->move[i].kind));
    }
}

typedef struct known {
    const char *mesh;
    mtf_shape from_shape, to_shape;
    const char *from, *to, *route;
} known;

static void known_routes(void **state)
{
    (void)state;
    const mtf_dim a = {"a", 4096}, b = {"b", 4096}, five = {"a", 5}, three = {"b", 3};
    const mtf_shape ab = MTF_SHAPE(a, b), flat = MTF_SHAPE({"c", 4096 * 4096});
    const mtf_shape cd = MTF_SHAPE({"c", 4096}, {"d", 4096});
    const mtf_shape small = MTF_SHAPE({"a", 16}, {"b", 32});
    const known cases[] = {
        {"x:4", ab, ab, "x,", "x,", ""},
        {"x:4", ab, ab, ",", "x,", "slice"},
        {"x:4", ab, ab, "x,", ",", "all_gather"},
        {"x:4", ab, ab, "x,", ",x", "all_to_all"},
        {"x:4", ab, ab, ",|x", ",", "all_reduce"},
        {"x:4", ab, ab, ",|x", ",x", "reduce_scatter"},
        {"x:4;y:2", ab, ab, "xy,", "x,", "all_gather"},
        {"x:4;y:2", ab, ab, "x,", "xy,", "slice"},
        {"x:2;y:2", ab, ab, ",", "xy,", "slice"},
        {"x:4;y:2", ab, ab, "xy,", "x,y", "all_to_all"},
        {"x:4;y:2", ab, ab, "x,|y", ",x|y", "all_to_all"},
        {"x:4;y:2", ab, ab, ",|xy", ",", "all_reduce, all_reduce"},
        {"x:4;y:2", ab, ab, ",|xy", ",xy", "reduce_scatter, reduce_scatter, all_to_all"},
        {"x:4;y:2", ab, ab, ",|xy", ",yx", "reduce_scatter, reduce_scatter"},
        {"x:4;y:4", ab, ab, "xy,", "yx,", "permute"},
        {"x:4;y:4", ab, ab, "x,y", "y,x", "permute"},
        {"x:4;y:4", ab, ab, "x,", "y,", "permute"},
        {"x:4", ab, flat, "x,", "x", "view"},
        {"x:4", flat, ab, "x", "x,", "view"},
        {"x:4", ab, cd, "x,", "x,", "view"},
        {"x:4", ab, cd, "x,", ",", "all_gather, view"},
        {"x:4", ab, cd, ",|x", ",x", "reduce_scatter, view"},
        {"x:4", ab, flat, ",x", "", "all_gather, view"},
        {"x:4", ab, flat, ",x", "x", "all_to_all, view"},
        {"x:2", MTF_SHAPE(five, three), MTF_SHAPE({"c", 15}), "x,", "x", "exchange"},
        /* Dims of size 1 come and go in front of one that is cut unevenly. */
        {"x:4", MTF_SHAPE({"a", 1}, {"b", 6}), MTF_SHAPE({"c", 6}), ",x", "x", "view"},
        {"x:4", MTF_SHAPE({"c", 6}), MTF_SHAPE({"a", 1}, {"b", 6}), "x", ",x", "view"},
        {"x:2;y:2", MTF_SHAPE({"a", 1}, {"b", 6}, {"c", 5}),
         MTF_SHAPE({"d", 6}, {"e", 1}, {"f", 5}), ",yx,", "yx,,", "view"},
        {"x:4", MTF_SHAPE({"a", 1}, {"b", 6}), MTF_SHAPE({"c", 6}), "x,", "x", "exchange"},
        /* Few messages where many processors hold little each. */
        {"x:16;y:32", small, small, "x,y", ",", "all_gather, all_gather"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const known *c = &cases[i];
        mtf_err err = {0};
        mtf_mesh *m = mtf_mesh_parse(c->mesh, &err);
        const bool same = shape_equal(&c->from_shape, &c->to_shape);
        const reshard_task r = {.mesh = m,
                                .from_shape = &c->from_shape,
                                .to_shape = same ? &c->from_shape : &c->to_shape,
                                .element = 4,
                                .from = parse(m, c->from),
                                .to = parse(m, c->to)};
        route found;
        char text[256];
        if (!reshard_route(&r, &found)) fail_msg("%s: no route %s to %s", c->mesh, c->from, c->to);
        describe(&found, text, sizeof text);
        if (strcmp(text, c->route) != 0)
            fail_msg("mesh %s, %s to %s: %s instead of %s", c->mesh, c->from, c->to, text,
                     c->route);
        mtf_mesh_free(&m);
    }
}

/* ---- random ones ---- */

static uint64_t seed = 1, draws;

static int below(int n)
{
    return (int)(random_u32(seed, 1, 0, draws++) % (uint32_t)n);
}

/* Every axis, in a random order, to a dim, to the pending ones, or to nothing. */
static placement any_placement(const mtf_mesh *m, int rank, unsigned may_pend)
{
    placement p = {.pending = 0};
    const int first = below(m->naxes);
    for (int i = 0; i < m->naxes; i++) {
        const int a = (first + i) % m->naxes, to = below(rank + 2);
        if (to < rank)
            p.split[to] = split_append(p.split[to], (split){.n = 1, .axis = {(int8_t)a}});
        else if (to == rank && (may_pend >> a & 1))
            p.pending |= 1u << a;
    }
    return p;
}

/* What a move makes of a placement; where the kind leaves that open, what it claims. */
static placement after(const mtf_mesh *m, const placement *at, const move *v, int rank)
{
    placement p = *at;
    const unsigned over = split_mask(v->axes);
    split *d = v->dim >= 0 ? &p.split[v->dim] : NULL;
    switch (v->kind) {
    case INSTR_ALL_REDUCE:
    case INSTR_REDUCE_SCATTER:
        /* Minor-most first, so that all ways give the same bits. */
        assert_int_equal(over, 1u << (31 - __builtin_clz(at->pending & ~v->to.pending)));
        p.pending &= ~over;
        if (d) *d = split_append(*d, v->axes);
        break;
    case INSTR_SLICE:
        assert_false((placement_axes(at) | at->pending) & over);
        *d = split_append(*d, v->axes);
        break;
    case INSTR_ALL_GATHER:
    case INSTR_ALL_TO_ALL:
        assert_true(split_equal(split_tail(*d, v->axes.n), v->axes));
        *d = split_head(*d, d->n - v->axes.n);
        if (v->kind == INSTR_ALL_TO_ALL)
            p.split[v->to_dim] = split_append(p.split[v->to_dim], v->axes);
        break;
    case INSTR_PERMUTE:
        for (int i = 0; i < rank; i++)
            assert_int_equal(split_parts(m, at->split[i]), split_parts(m, v->to.split[i]));
        assert_int_equal(at->pending, v->to.pending);
        return v->to;
    case INSTR_EXCHANGE:
        assert_int_equal(at->pending, v->to.pending);
        assert_false(placement_axes(&v->to) & at->pending);
        return v->to;
    default:
        fail_msg("%s is no move of one shape", name_of(v->kind));
    }
    return p;
}

static void check_moves(const reshard_task *r, const route *found)
{
    placement at = r->from;
    for (int i = 0; i < found->n; i++) {
        const move *v = &found->move[i];
        const placement next = after(r->mesh, &at, v, r->from_shape->rank);
        assert_true(placement_equal(&next, &v->to));
        const int64_t was = placement_bytes(r->mesh, r->from_shape, r->element, &at);
        const int64_t is = placement_bytes(r->mesh, r->from_shape, r->element, &next);
        assert_true(r->max_bytes == 0 || is <= was || is <= r->max_bytes);
        at = next;
    }
    assert_true(placement_equal(&at, &r->to));
}

/* Everything gathered, one call per dim, then sliced. */
static double seconds_of_gathering(const reshard_task *r)
{
    double seconds = 0;
    placement at = r->from;
    for (int d = 0; d < r->from_shape->rank; d++) {
        const double n = (double)split_parts(r->mesh, at.split[d]);
        if (n == 1) continue;
        at.split[d] = (split){0};
        const double all = (double)placement_bytes(r->mesh, r->from_shape, r->element, &at);
        seconds += link_time(1, n - 1, all); /* at most: blocks may be empty */
    }
    return seconds;
}

static void random_routes(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x:2",     "x:3",         "x:2;y:2",
                                         "x:3;y:2", "x:2;y:2;z:2", "x:2;y:3;z:4"};
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 12, 96, 1000, 4096};
    print_message("%d samples, seed %llu\n", SAMPLES, (unsigned long long)seed);
    int limited = 0;
    for (int k = 0; k < SAMPLES; k++) {
        mtf_err err = {0};
        mtf_mesh *m = mtf_mesh_parse(meshes[below(6)], &err);
        mtf_shape s = {.rank = 1 + below(3)};
        for (int d = 0; d < s.rank; d++)
            s.dim[d] = (mtf_dim){&"abc"[d], sizes[below(9)]};
        reshard_task r = {.mesh = m, .from_shape = &s, .to_shape = &s, .element = 4};
        r.from = any_placement(m, s.rank, ~0u);
        r.to = any_placement(m, s.rank, r.from.pending);
        route found;
        assert_true(reshard_route(&r, &found));
        check_moves(&r, &found);
        if (!r.from.pending) {
            assert_true(found.price.seconds <= reshard_exchange_price(&r).seconds * (1 + 1e-9) ||
                        found.n == 0);
            assert_true(found.price.seconds <= seconds_of_gathering(&r) * (1 + 1e-9));
        }
        r.max_bytes = placement_bytes(m, &s, 4, &r.to) / (1 + below(3)) + 1;
        if (reshard_route(&r, &found)) {
            limited++;
            check_moves(&r, &found);
        }
        mtf_mesh_free(&m);
    }
    assert_true(limited > SAMPLES / 4);
}

int main(int argc, char **argv)
{
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_routes),
                                       cmocka_unit_test(random_routes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
