/* SPDX-License-Identifier: Apache-2.0 */
#include "support/comm_cases.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "support/comm_reference.h"

const comm_mesh cases_meshes[] = {
    {.naxes = 0},
    {.naxes = 1, .size = {1}},
    {.naxes = 1, .size = {2}},
    {.naxes = 1, .size = {3}},
    {.naxes = 1, .size = {4}},
    {.naxes = 1, .size = {5}},
    {.naxes = 1, .size = {8}},
    {.naxes = 2, .size = {2, 2}},
    {.naxes = 2, .size = {3, 2}},
    {.naxes = 3, .size = {2, 2, 2}},
    {.naxes = 3, .size = {2, 1, 3}},
    {.naxes = 2, .size = {3, 5}},
};
const int cases_num_meshes = (int)(sizeof cases_meshes / sizeof cases_meshes[0]);

enum { MAX_PROC = 16, GUARD = 64, GUARD_BYTE = 0xa5 };

/* One collective under test: buffers of the hosted processors, and where it goes wrong. */
typedef struct bench {
    comm *c;
    const comm_mesh *m;
    comm_axes axes;
    comm_op op;
    mtf_dtype type;
    int64_t size; /* of an element */
    void *in[MAX_PROC], *out[MAX_PROC], *scratch[MAX_PROC];
    int64_t room[MAX_PROC];
    comm_cut cut[MAX_PROC];
    cases_result *r;
    const char *what;
} bench;

/* `room` is what the collective says that it takes by messages. */
static void buffer_new(bench *b, int h, int64_t in_bytes, int64_t out_bytes, int64_t room)
{
    b->room[h] = comm_nhosted(b->c) == comm_size(b->c) ? 0 : room;
    b->in[h] = mem_aligned((size_t)in_bytes);
    b->out[h] = mem_aligned((size_t)out_bytes);
    b->scratch[h] = mem_aligned((size_t)b->room[h] + GUARD);
    memset(b->scratch[h], GUARD_BYTE, (size_t)b->room[h] + GUARD);
}

/* Up to where scratch was written, rounded up as slots are. */
static int64_t high_water(const unsigned char *scratch, int64_t room)
{
    while (room > 0 && scratch[room - 1] == GUARD_BYTE)
        room--;
    return (room + GUARD - 1) / GUARD * GUARD;
}

static void buffers_free(bench *b, bool even)
{
    for (int h = 0; h < comm_nhosted(b->c); h++) {
        const unsigned char *scratch = b->scratch[h], *guard = scratch + b->room[h];
        for (int i = 0; i < GUARD; i++)
            if (guard[i] != GUARD_BYTE) b->r->wrong++;
        if (even) b->r->unused += b->room[h] - high_water(scratch, b->room[h]);
        mem_free(b->in[h]);
        mem_free(b->out[h]);
        mem_free(b->scratch[h]);
    }
}

static void print_axes(const bench *b)
{
    fprintf(stderr, "%s, mesh", b->what);
    for (int a = 0; a < b->m->naxes; a++)
        fprintf(stderr, " %lld", (long long)b->m->size[a]);
    fprintf(stderr, ", axes");
    for (int a = 0; a < b->axes.n; a++)
        fprintf(stderr, " %d", b->axes.axis[a]);
    fprintf(stderr, ", op %d, %s", (int)b->op, mtf_dtype_name(b->type));
}

static void compare(bench *b, const void *got, const void *want, int proc, int64_t element)
{
    b->r->compared++;
    if (memcmp(got, want, (size_t)b->size) == 0) return;
    if (b->r->wrong++ > 0) return;
    print_axes(b);
    fprintf(stderr, ": element %lld of processor %d is wrong\n", (long long)element, proc);
}

/* Element `i` of the whole that `proc` reduces. */
static void compare_reduced(bench *b, const void *got, int proc, int64_t i)
{
    char want[8], other[8];
    reference_reduce(b->m, b->axes, proc, i, b->op, b->type, want);
    compare(b, got, want, proc, i);
    if (i % 16) return;
    reference_other_order(b->m, b->axes, proc, i, b->op, b->type, other);
    if (b->op == COMM_SUM && memcmp(other, want, (size_t)b->size) != 0) b->r->reordered++;
}

static void fill(const bench *b, void *to, int proc, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        reference_input(proc, i, b->op, b->type, (char *)to + i * b->size);
}

static void check_all_reduce(bench *b, int64_t count)
{
    int members[MAX_PROC];
    int64_t counts[MAX_PROC];
    bool even = true;
    b->what = "all_reduce";
    for (int h = 0; h < comm_nhosted(b->c); h++) {
        const int proc = comm_first(b->c) + h;
        const int p = reference_members(b->m, b->axes, proc, members);
        counts[h] = count + 3 * members[0];
        even = even && counts[h] % p == 0;
        buffer_new(b, h, counts[h] * b->size, 0,
                   comm_scratch_all_reduce(b->m, b->axes, b->size, counts[h], counts[h]));
        fill(b, b->in[h], proc, counts[h]);
    }
    comm_all_reduce(b->c, b->axes, b->op, b->type, b->in, counts, b->scratch);
    for (int h = 0; h < comm_nhosted(b->c); h++)
        for (int64_t i = 0; i < counts[h]; i++)
            compare_reduced(b, (char *)b->in[h] + i * b->size, comm_first(b->c) + h, i);
    buffers_free(b, even);
}

static int64_t begin_of(const comm_cut *k, int64_t piece)
{
    return (k->base + piece) * k->n / k->parts;
}

/* The geometry of one case; groups differ in base, outer and inner. */
typedef struct shape {
    int64_t n, refine, outer, inner;
} shape;

static comm_cut cut_for(const bench *b, shape s, int proc, int *index, int *count)
{
    int members[MAX_PROC];
    const int p = reference_members(b->m, b->axes, proc, members);
    for (int i = 0; i < p; i++)
        if (members[i] == proc) *index = i;
    *count = p;
    const int64_t group = members[0] % s.refine;
    return (comm_cut){.n = s.n,
                      .parts = p * s.refine,
                      .base = group * p,
                      .outer = s.outer + group,
                      .inner = s.inner + 2 * group};
}

/* Position in the whole of element `e` of own piece. */
static int64_t whole_position(const comm_cut *k, int p, int index, int64_t e)
{
    const int64_t start = begin_of(k, 0), extent = begin_of(k, p) - start;
    const int64_t begin = begin_of(k, index) - start, len = begin_of(k, index + 1) - start - begin;
    const int64_t o = e / (len * k->inner), d = e / k->inner % len, i = e % k->inner;
    return (o * extent + begin + d) * k->inner + i;
}

static int64_t whole_elements(const comm_cut *k, int p)
{
    return k->outer * (begin_of(k, p) - begin_of(k, 0)) * k->inner;
}

static int64_t piece_elements(const comm_cut *k, int index)
{
    return k->outer * (begin_of(k, index + 1) - begin_of(k, index)) * k->inner;
}

static void check_reduce_scatter(bench *b, shape s)
{
    int index[MAX_PROC], p = 1;
    b->what = "reduce_scatter";
    for (int h = 0; h < comm_nhosted(b->c); h++) {
        const int proc = comm_first(b->c) + h;
        b->cut[h] = cut_for(b, s, proc, &index[h], &p);
        const int64_t whole = whole_elements(&b->cut[h], p);
        buffer_new(b, h, whole * b->size, piece_elements(&b->cut[h], index[h]) * b->size,
                   comm_scratch_reduce_scatter(b->m, b->axes, b->size, &b->cut[h]));
        fill(b, b->in[h], proc, whole);
    }
    comm_reduce_scatter(b->c, b->axes, b->op, b->type, b->in, b->out, b->cut, b->scratch);
    for (int h = 0; h < comm_nhosted(b->c); h++)
        for (int64_t e = 0; e < piece_elements(&b->cut[h], index[h]); e++)
            compare_reduced(b, (char *)b->out[h] + e * b->size, comm_first(b->c) + h,
                            whole_position(&b->cut[h], p, index[h], e));
    buffers_free(b, s.n % (p * s.refine) == 0);
}

static void check_all_gather(bench *b, shape s)
{
    int index[MAX_PROC], p = 1, members[MAX_PROC];
    char want[8];
    b->what = "all_gather";
    for (int h = 0; h < comm_nhosted(b->c); h++) {
        const int proc = comm_first(b->c) + h;
        b->cut[h] = cut_for(b, s, proc, &index[h], &p);
        const int64_t whole = whole_elements(&b->cut[h], p) * b->size;
        const int64_t piece = piece_elements(&b->cut[h], index[h]);
        buffer_new(b, h, piece * b->size, whole,
                   comm_scratch_all_gather(b->m, b->axes, b->size, &b->cut[h]));
        fill(b, b->in[h], proc, piece);
    }
    comm_all_gather(b->c, b->axes, b->size, b->in, b->out, b->cut, b->scratch);
    for (int h = 0; h < comm_nhosted(b->c); h++) {
        reference_members(b->m, b->axes, comm_first(b->c) + h, members);
        for (int i = 0; i < p; i++)
            for (int64_t e = 0; e < piece_elements(&b->cut[h], i); e++) {
                const int64_t at = whole_position(&b->cut[h], p, i, e);
                reference_input(members[i], e, b->op, b->type, want);
                compare(b, (char *)b->out[h] + at * b->size, want, comm_first(b->c) + h, at);
            }
    }
    buffers_free(b, s.n % (p * s.refine) == 0);
}

/* Every processor sends to itself, twice to its right neighbour, and one large message goes round.
 */
static void check_move(bench *b, bool large)
{
    const int size = comm_size(b->c), first = comm_first(b->c), n = comm_nhosted(b->c);
    comm_msg msg[4 * MAX_PROC];
    char *from = mem_aligned((size_t)(4 * size) << 10), *to = mem_aligned((size_t)(4 * size) << 10);
    const int64_t big = large ? 3 << 20 : 3 << 10;
    char *big_from = mem_aligned((size_t)big), *big_to = mem_aligned((size_t)big);
    memset(big_from, 77, (size_t)big);
    int64_t k = 0;
    for (int src = 0; src < size; src++) {
        for (int j = 0; j < 3; j++, k++) {
            const int dst = j == 0 ? src : (src + 1) % size;
            const bool sends = src >= first && src < first + n;
            const bool gets = dst >= first && dst < first + n;
            memset(from + (k << 10), (int)(k + 1), 1 << 10);
            msg[k] = (comm_msg){.src = src,
                                .dst = dst,
                                .from = sends ? from + (k << 10) : NULL,
                                .to = gets ? to + (k << 10) : NULL,
                                .bytes = k % 5 == 4 ? 0 : 100 + 3 * k};
        }
    }
    const bool ends = size - 1 < first + n;
    msg[k] = (comm_msg){.src = 0, .dst = size - 1, .bytes = big};
    msg[k].from = first == 0 ? big_from : NULL;
    msg[k].to = ends ? big_to : NULL;
    comm_move(b->c, msg, k + 1);
    for (int64_t i = 0; i < k; i++)
        for (int64_t at = 0; msg[i].to && at < 1 << 10; at++) {
            const int want = at < msg[i].bytes ? (int)(i + 1) : 0;
            b->r->compared++;
            b->r->wrong += to[(i << 10) + at] != (char)want;
        }
    if (ends) b->r->wrong += memcmp(big_from, big_to, (size_t)big) != 0;
    mem_free(from);
    mem_free(to);
    mem_free(big_from);
    mem_free(big_to);
}

static void check_axes(bench *b, bool large)
{
    static const int64_t counts[] = {0, 1, 2, 7, 100, 1031};
    static const shape shapes[] = {{0, 1, 1, 1},  {1, 1, 1, 3},  {2, 1, 2, 1},  {7, 2, 1, 1},
                                   {13, 1, 3, 5}, {37, 2, 4, 2}, {61, 3, 1, 7}, {40, 1, 6, 1}};
    static const shape large_shape = {.n = 503, .refine = 2, .outer = 3, .inner = 17};
    for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
        check_all_reduce(b, counts[i]);
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
        check_reduce_scatter(b, shapes[i]);
        check_all_gather(b, shapes[i]);
    }
    if (!large) return;
    check_all_reduce(b, 9001);
    check_reduce_scatter(b, large_shape);
    check_all_gather(b, large_shape);
}

static void check_types(bench *b, bool large)
{
    static const mtf_dtype types[] = {MTF_F32, MTF_F64, MTF_I32, MTF_BF16};
    static const comm_op ops[] = {COMM_SUM, COMM_MAX, COMM_MIN};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int o = 0; o < 3; o++) {
            b->type = types[t];
            b->op = ops[o];
            b->size = mtf_dtype_size(b->type);
            check_axes(b, large && b->type == MTF_F64 && b->op == COMM_SUM);
        }
}

/* Extends b->axes by every axis that is not in it yet. */
static void check_subsets(bench *b, bool large)
{
    check_types(b, large);
    for (int a = 0; a < b->m->naxes; a++) {
        bool used = false;
        for (int k = 0; k < b->axes.n; k++)
            used |= b->axes.axis[k] == a;
        if (used) continue;
        b->axes.axis[b->axes.n++] = a;
        check_subsets(b, large);
        b->axes.n--;
    }
}

cases_result cases_run(comm *c, const comm_mesh *m, bool large)
{
    cases_result r = {0};
    bench b = {.c = c, .m = m, .r = &r};
    check_subsets(&b, large);
    check_move(&b, large);
    return r;
}
