/* SPDX-License-Identifier: Apache-2.0
 * Lowers a canonical product to batched products of plain matrices for the library. One dim of
 * each group becomes the matrix dim, one dim of the batch the library's batch, and the others are
 * loops. An operand whose matrix has no unit stride, or whose depth is no single dim, is packed
 * per task. Products of bf16 run in the library's kernels for them; on a machine without, operands
 * become f32 as they are packed. */
#include <string.h>

#include "base/bfloat.h"
#include "base/mem.h"
#include "kernels/gemm_dnnl.h"
#include "kernels/gemm_plan.h"

enum {
    GROUP_FLOPS = 512000000, /* of the entries that the library takes at once */
    BLOCK_FLOPS = 64000000,  /* of a block that is worth cutting below BLOCK_MIN */
    TASKS_WANTED = 8,
    TASKS_NEEDED = 4,
    BLOCK = 512,       /* rows and columns of a task of a large product */
    BLOCK_TALL = 2048, /* rows, where the columns alone give enough tasks */
    BLOCK_MIN = 256,   /* smaller ones lose more than sharing gains */
    BLOCK_LEAST = 128,
    FAR = 1024,            /* elements */
    PACK_MOST_A = 4 << 20, /* bytes */
    PACK_MOST_B = 2 << 20,
    MAX_LOOPS = 3 * GEMM_MAX_DIMS,
};

/* One matrix operand: its lines are the rows of A or the columns of B. */
typedef struct operand {
    bool pack;
    bool along;          /* consecutive lines are adjacent in the packed form, not the depth */
    int64_t line, entry; /* strides of the operand as it is given */
    int64_t depth;       /* the same, where it is not packed */
} operand;

typedef struct library {
    int loops;
    gemm_dim loop[MAX_LOOPS];
    gemm_dim entries; /* the library's batch */
    gemm_dim m, n;
    int nk;
    gemm_dim k[GEMM_MAX_DIMS]; /* outermost first, in the order of an operand not packed */
    int64_t depth;
    int64_t element; /* bytes of one of A and B */
    int64_t read;    /* bytes of one as kernels read it */
    operand a, b;
    int64_t size[3];              /* entries, rows and columns of a block */
    int64_t blocks[3];            /* blocks of each */
    dnnl_kernel *kernel[2][2][2]; /* by whether the block is the last, smaller one */
    int64_t scratch, packed_a;    /* bytes, rounded up to 64 */
} library;

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Blocks of at most `most`, as even as multiples of `unit` allow. */
static int64_t even_block(int64_t n, int64_t most, int64_t unit)
{
    if (n <= most) return n;
    return round_up(ceil_div(n, ceil_div(n, most)), unit);
}

/* ---- choosing the matrix dims ---- */

static int choose_m(const gemm_desc *d)
{
    int best = -1;
    for (int i = 0; i < d->nm; i++) {
        if (d->m[i].a == 1 && d->m[i].n >= 16) return i;
        if (best < 0 || d->m[i].n > d->m[best].n) best = i;
    }
    return best;
}

static void add_loops(library *l, const gemm_dim *dims, int nd, int except)
{
    for (int i = 0; i < nd; i++)
        if (i != except) l->loop[l->loops++] = dims[i];
}

/* False where C has no unit stride in a row. */
static bool choose_dims(const gemm_desc *d, library *l)
{
    const gemm_dim one = {.n = 1};
    const int m = choose_m(d), n = d->nn - 1, batch = d->nbatch - 1;
    l->m = m < 0 ? one : d->m[m];
    l->n = n < 0 ? one : d->n[n];
    if (n < 0 && d->nm == 0) l->n.c = 1;
    if (n >= 0 && l->n.c != 1) return false;
    if (n < 0 && m >= 0) return false;
    /* a batch along which an operand repeats is a loop, which the library would not gain from */
    const bool grouped =
        batch >= 0 && d->batch[batch].a > 0 && d->batch[batch].b > 0 && d->batch[batch].c > 0;
    l->entries = grouped ? d->batch[batch] : one;
    add_loops(l, d->batch, d->nbatch, grouped ? batch : -1);
    add_loops(l, d->m, d->nm, m);
    add_loops(l, d->n, d->nn, n);
    return true;
}

static int64_t k_stride(const gemm_dim *d, bool of_a)
{
    return of_a ? d->a : d->b;
}

/* Sorts the depth by an operand's strides; returns whether it is one dim there. */
static bool sort_depth(gemm_dim *k, int nk, bool of_a)
{
    for (int i = 1; i < nk; i++) {
        const gemm_dim d = k[i];
        int at = i;
        for (; at > 0 && k_stride(&d, of_a) > k_stride(&k[at - 1], of_a); at--)
            k[at] = k[at - 1];
        k[at] = d;
    }
    for (int i = 0; i + 1 < nk; i++)
        if (k_stride(&k[i], of_a) != k_stride(&k[i + 1], of_a) * k[i + 1].n) return false;
    return true;
}

/* Whether the library can read the operand in place: one stride is 1 and the other passes over a
 * whole line, so that no two elements share memory. */
static bool readable(int64_t line, int64_t lines, int64_t depth_stride, int64_t depth)
{
    if (lines == 1) return depth_stride == 1 || depth == 1;
    if (depth == 1) return line == 1;
    return (line == 1 && depth_stride >= lines) || (depth_stride == 1 && line >= depth);
}

static void set_operand(operand *o, int64_t line, int64_t lines, int64_t entry, bool whole,
                        int64_t depth_stride, int64_t depth)
{
    o->line = line;
    o->entry = entry;
    o->depth = depth_stride;
    o->pack = !whole || !readable(line, lines, depth_stride, depth);
    o->along = line == 1;
}

static void choose_operands(const gemm_desc *d, library *l)
{
    l->nk = d->nk;
    memcpy(l->k, d->k, sizeof l->k);
    l->depth = gemm_total(d->k, d->nk);
    bool whole_a, whole_b = false;
    /* the larger operand keeps its order and stays where it is, if it can */
    const bool a_first = l->m.n >= l->n.n;
    whole_a = sort_depth(l->k, l->nk, true);
    if (l->nk > 1 && (!a_first || !whole_a)) {
        whole_b = sort_depth(l->k, l->nk, false);
        if (!whole_b && whole_a)
            sort_depth(l->k, l->nk, true);
        else
            whole_a = false;
    }
    if (l->nk <= 1) whole_a = whole_b = true;
    const gemm_dim last = l->nk ? l->k[l->nk - 1] : (gemm_dim){.n = 1, .a = 1, .b = 1};
    set_operand(&l->a, l->m.a, l->m.n, l->entries.a, whole_a, last.a, l->depth);
    set_operand(&l->b, l->n.b, l->n.n, l->entries.b, whole_b, last.b, l->depth);
}

/* ---- cutting into tasks ---- */

/* How many entries go into a task. All of them is best: the library's faster kernels want a batch
 * that is dense in memory. */
static int64_t choose_group(const library *l, int64_t loops)
{
    const int64_t flops = 2 * l->m.n * l->n.n * l->depth;
    int64_t group = flops > 0 ? GROUP_FLOPS / flops : l->entries.n;
    const int64_t shared = loops * l->entries.n / TASKS_WANTED;
    if (group > shared) group = shared;
    return group < 1 ? 1 : even_block(l->entries.n, group, 1);
}

static int64_t tiles(const library *l)
{
    return ceil_div(l->m.n, l->size[1]) * ceil_div(l->n.n, l->size[2]);
}

/* The library's kernels for bf16 want every matrix dense in memory, and a block of some of the
 * columns of C is not. */
static bool rows_only(const library *l)
{
    return l->read == sizeof(bf16);
}

/* Halves the rows, then the columns, down to `least`, until there are `wanted` blocks. */
static void cut_finer(library *l, int64_t wanted, int64_t least)
{
    while (l->size[1] > least && tiles(l) < wanted)
        l->size[1] = even_block(l->m.n, l->size[1] / 2 > least ? l->size[1] / 2 : least, 32);
    while (!rows_only(l) && l->size[2] > least && tiles(l) < wanted)
        l->size[2] = even_block(l->n.n, l->size[2] / 2 > least ? l->size[2] / 2 : least, 64);
}

/* Whether walking down the operand, whose lines are adjacent and whose rows lie a page or more
 * apart, costs more than a packed copy of a block. */
static bool far_rows(const library *l, const operand *o, int64_t block, int64_t lines, int64_t most)
{
    const int64_t bytes = l->read * block * l->depth;
    return o->along && o->depth >= FAR && block < lines && bytes <= most;
}

/* For products with a transposed A, whose kernels walk down both operands. */
static void pack_far_rows(library *l)
{
    if (!l->a.along || l->size[0] > 1) return;
    if (l->size[2] >= BLOCK_MIN && far_rows(l, &l->a, l->size[1], l->m.n, PACK_MOST_A))
        l->a.pack = true;
    if (l->size[1] >= BLOCK_MIN && far_rows(l, &l->b, l->size[2], l->n.n, PACK_MOST_B))
        l->b.pack = true;
}

/* The measurements behind these numbers come from bench/gemm.c. */
static void choose_blocks(library *l)
{
    int64_t loops = 1;
    for (int i = 0; i < l->loops; i++)
        loops *= l->loop[i].n;
    l->size[0] = choose_group(l, loops);
    l->blocks[0] = ceil_div(l->entries.n, l->size[0]);
    const int64_t others = loops * l->blocks[0], wanted = ceil_div(TASKS_WANTED, others);
    const bool cut = !rows_only(l) && l->n.n > BLOCK + BLOCK / 2;
    l->size[2] = cut ? even_block(l->n.n, BLOCK, 64) : l->n.n;
    const bool tall = ceil_div(l->n.n, l->size[2]) >= 2 * wanted;
    l->size[1] = even_block(l->m.n, l->a.pack ? BLOCK_MIN : tall ? BLOCK_TALL : BLOCK, 32);
    cut_finer(l, wanted, BLOCK_MIN);
    pack_far_rows(l);
    if (2 * l->size[1] * l->size[2] * l->depth > BLOCK_FLOPS)
        cut_finer(l, ceil_div(TASKS_NEEDED, others), BLOCK_LEAST);
    l->blocks[1] = ceil_div(l->m.n, l->size[1]);
    l->blocks[2] = ceil_div(l->n.n, l->size[2]);
}

static int64_t block_size(const library *l, int axis, bool last)
{
    const int64_t n[] = {l->entries.n, l->m.n, l->n.n};
    return last ? n[axis] - (l->blocks[axis] - 1) * l->size[axis] : l->size[axis];
}

/* The operand as a kernel for `lines` lines sees it: strides between entries, lines, depth. */
static void seen(const operand *o, int64_t lines, int64_t depth, int64_t *entry, int64_t *line,
                 int64_t *deep)
{
    *entry = o->pack ? lines * depth : o->entry;
    *line = o->pack ? (o->along ? 1 : depth) : o->line;
    *deep = o->pack ? (o->along ? lines : 1) : o->depth;
    /* the stride of a dim of one element means nothing: give the one that says "not transposed" */
    if (lines == 1 && !o->pack) *line = depth;
    if (depth == 1 && !o->pack) *deep = lines;
    if (depth == 1 && lines == 1) *line = *deep = 1;
}

static dnnl_kernel *make_kernel(const library *l, int64_t entries, int64_t m, int64_t n)
{
    dnnl_product p = {.entries = entries, .m = m, .n = n, .k = l->depth, .bf16 = l->read == 2};
    seen(&l->a, m, l->depth, &p.a.entry, &p.a.row, &p.a.column);
    seen(&l->b, n, l->depth, &p.b.entry, &p.b.column, &p.b.row);
    p.c = (dnnl_matrix){.entry = l->entries.c, .row = m > 1 ? l->m.c : n, .column = 1};
    return dnnl_kernel_new(&p);
}

static bool make_kernels(library *l)
{
    for (int i = 0; i < 8; i++) {
        const bool last[3] = {i >> 2 & 1, i >> 1 & 1, i & 1};
        bool used = true;
        int64_t size[3];
        for (int axis = 0; axis < 3; axis++) {
            size[axis] = block_size(l, axis, last[axis]);
            used = used && (last[axis] || l->blocks[axis] > 1);
        }
        if (!used) continue;
        dnnl_kernel *k = make_kernel(l, size[0], size[1], size[2]);
        if (!k) return false;
        l->kernel[last[0]][last[1]][last[2]] = k;
        if (dnnl_kernel_scratch(k) > l->scratch) l->scratch = dnnl_kernel_scratch(k);
    }
    return true;
}

/* ---- running ---- */

/* Copies `lines` lines of the depth dims `k`, from the outermost, to the packed form, as it is or
 * with a conversion. Returns how many elements of depth it has passed. */
#define PACK(name, from_type, to_type, LOAD, COPY)                                                 \
    static int64_t name(const operand *o, const gemm_dim *k, int nk, bool of_a,                    \
                        const from_type *src, int64_t lines, int64_t depth, int64_t at,            \
                        to_type *out)                                                              \
    {                                                                                              \
        const int64_t n = nk ? k->n : 1, stride = nk ? k_stride(k, of_a) : 0;                      \
        if (nk > 1) {                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                at = name(o, k + 1, nk - 1, of_a, src + i * stride, lines, depth, at, out);        \
            return at;                                                                             \
        }                                                                                          \
        if (o->along) {                                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                COPY(out + (at + i) * lines, src + i * stride, lines);                             \
        } else {                                                                                   \
            for (int64_t line = 0; line < lines; line++)                                           \
                for (int64_t i = 0; i < n; i++)                                                    \
                    out[line * depth + at + i] = LOAD(src[line * o->line + i * stride]);           \
        }                                                                                          \
        return at + n;                                                                             \
    }
#define AS_IT_IS(v)             (v)
#define COPY_WORDS(to, from, n) memcpy(to, from, (size_t)(n) * sizeof *(to))
#define WIDEN_WORDS(to, from, n)                                                                   \
    for (int64_t j = 0; j < (n); j++)                                                              \
    (to)[j] = bf16_to_f32((from)[j])
PACK(pack_f32, float, float, AS_IT_IS, COPY_WORDS)
PACK(pack_bf16, bf16, bf16, AS_IT_IS, COPY_WORDS)
PACK(pack_wider, bf16, float, bf16_to_f32, WIDEN_WORDS)

static const void *packed(const library *l, const operand *o, const void *src, int64_t entries,
                          int64_t lines, void *out)
{
    if (!o->pack) return src;
    const bool of_a = o == &l->a;
    for (int64_t e = 0; e < entries; e++) {
        const int64_t from = e * o->entry, to = e * lines * l->depth;
        if (l->element == sizeof(float))
            pack_f32(o, l->k, l->nk, of_a, (const float *)src + from, lines, l->depth, 0,
                     (float *)out + to);
        else if (l->read == sizeof(float))
            pack_wider(o, l->k, l->nk, of_a, (const bf16 *)src + from, lines, l->depth, 0,
                       (float *)out + to);
        else
            pack_bf16(o, l->k, l->nk, of_a, (const bf16 *)src + from, lines, l->depth, 0,
                      (bf16 *)out + to);
    }
    return out;
}

static void run_task(const library *l, const char *a, const char *b, float *c, char *work,
                     int64_t task)
{
    const int64_t size = l->element;
    int64_t at[3];
    bool last[3];
    for (int axis = 2; axis >= 0; axis--) {
        at[axis] = task % l->blocks[axis] * l->size[axis];
        last[axis] = task % l->blocks[axis] == l->blocks[axis] - 1;
        task /= l->blocks[axis];
    }
    for (int i = l->loops - 1; i >= 0; i--) {
        const int64_t index = task % l->loop[i].n;
        task /= l->loop[i].n;
        a += index * l->loop[i].a * size;
        b += index * l->loop[i].b * size;
        c += index * l->loop[i].c;
    }
    a += (at[0] * l->entries.a + at[1] * l->m.a) * size;
    b += (at[0] * l->entries.b + at[2] * l->n.b) * size;
    c += at[0] * l->entries.c + at[1] * l->m.c + at[2];
    const int64_t entries = block_size(l, 0, last[0]);
    char *pack_a = work + l->scratch, *pack_b = pack_a + l->packed_a;
    dnnl_kernel_run(l->kernel[last[0]][last[1]][last[2]],
                    packed(l, &l->a, a, entries, block_size(l, 1, last[1]), pack_a),
                    packed(l, &l->b, b, entries, block_size(l, 2, last[2]), pack_b), c, work);
}

static void run(const gemm *g, const void *a, const void *b, void *c, void *work, int64_t begin,
                int64_t end)
{
    for (int64_t task = begin; task < end; task++)
        run_task(g->engine, a, b, c, work, task);
}

static void build(void *engine)
{
    library *l = engine;
    for (int i = 0; i < 8; i++) {
        dnnl_kernel *k = l->kernel[i >> 2][i >> 1 & 1][i & 1];
        if (k) dnnl_kernel_build(k);
    }
}

static void free_kernels(library *l)
{
    for (int i = 0; i < 8; i++)
        dnnl_kernel_free(&l->kernel[i >> 2][i >> 1 & 1][i & 1]);
    l->scratch = 0;
}

enum { PACK_A = 1, PACK_B = 2 };

/* Plans the product for kernels that read elements of `read` bytes, with these operands packed at
 * least; false where there are none. */
static bool plan_for(const gemm_desc *d, library *l, int64_t read, int pack)
{
    l->read = read;
    choose_operands(d, l);
    if (pack & PACK_A) l->a.pack = true;
    if (pack & PACK_B) l->b.pack = true;
    choose_blocks(l);
    if (make_kernels(l)) return true;
    free_kernels(l);
    return false;
}

/* Operands that are not dense are packed for kernels of bf16. Where there are no such kernels all
 * are packed, for those of f32. */
static bool plan(const gemm_desc *d, library *l)
{
    if (!choose_dims(d, l)) return false;
    l->element = mtf_dtype_size(d->dtype);
    if (l->element == sizeof(float)) return plan_for(d, l, sizeof(float), 0);
    for (int pack = 0; pack <= (PACK_A | PACK_B); pack++)
        if (plan_for(d, l, sizeof(bf16), pack)) return true;
    return plan_for(d, l, sizeof(float), PACK_A | PACK_B);
}

bool gemm_library_prepare(gemm *g)
{
    library *l = mem_zalloc(sizeof *l);
    if (!plan(&g->d, l)) {
        mem_free(l);
        return false;
    }
    const int64_t cell = l->read * l->size[0] * l->depth;
    l->scratch = round_up(l->scratch, 64);
    l->packed_a = l->a.pack ? round_up(cell * l->size[1], 64) : 0;
    g->run = run;
    g->build = build;
    g->engine = l;
    g->tasks = l->blocks[0] * l->blocks[1] * l->blocks[2];
    for (int i = 0; i < l->loops; i++)
        g->tasks *= l->loop[i].n;
    g->task_flops = 2 * l->size[0] * l->size[1] * l->size[2] * l->depth;
    g->work = l->scratch + l->packed_a + (l->b.pack ? round_up(cell * l->size[2], 64) : 0);
    const bool single[3] = {l->blocks[0] == 1, l->blocks[1] == 1, l->blocks[2] == 1};
    strncpy(g->impl, dnnl_kernel_impl(l->kernel[single[0]][single[1]][single[2]]),
            sizeof g->impl - 1);
    return true;
}

const char *gemm_library(void)
{
    return dnnl_kernel_library();
}
