/* SPDX-License-Identifier: Apache-2.0
 * Products without a library: packed blocks and register tiles, for any strides. Invariant: every
 * element of C is the sum over k in ascending order, multiply then add, so its bits depend neither
 * on the instruction set nor on how C is cut. Elements of bf16 become f32 as they are packed. */
#include <string.h>

#include "base/bfloat.h"
#include "base/isa.h"
#include "base/mem.h"
#include "kernels/gemm_plan.h"

enum {
    MC = 192,      /* most rows of a task; a quarter of it is a multiple of every tile's rows */
    NC = 256,      /* most columns; a quarter of it is a multiple of every tile's columns */
    KC = 256,      /* depth that is packed at a time */
    ROWS_MAX = 12, /* of a register tile */
    COLUMNS_MAX = 32,
    TASKS_WANTED = 8,
};

/* Where the rows, columns and depth of a task lie, and its packed operands. */
typedef struct space {
    int64_t a_row[MC], c_row[MC], b_col[NC], c_col[NC], a_depth[KC], b_depth[KC];
} space;

/* A tile of `rows` x `columns`: pa holds depth x rows, pb depth x columns. Goes on from the values
 * in `tile` unless it is the first piece of the depth. */
typedef void micro_fn(const void *pa, const void *pb, int64_t depth, void *tile, bool first);

/* The tile's columns are two vectors; `rows` is chosen so that the sums fill the registers. */
#define MICRO(name, type, bytes, rows, attribute)                                                  \
    typedef type name##_vec __attribute__((vector_size(bytes), may_alias));                        \
    attribute static void name(const void *pa, const void *pb, int64_t depth, void *out,           \
                               bool first)                                                         \
    {                                                                                              \
        enum { LANES = bytes / sizeof(type) };                                                     \
        const type *a = pa;                                                                        \
        const name##_vec *b = pb;                                                                  \
        name##_vec *tile = out;                                                                    \
        name##_vec sum[rows][2];                                                                   \
        _Pragma("GCC unroll 12") for (int i = 0; i < rows; i++)                                    \
        {                                                                                          \
            sum[i][0] = first ? (name##_vec){0} : tile[2 * i];                                     \
            sum[i][1] = first ? (name##_vec){0} : tile[2 * i + 1];                                 \
        }                                                                                          \
        for (int64_t k = 0; k < depth; k++, a += rows, b += 2) {                                   \
            const name##_vec b0 = b[0], b1 = b[1];                                                 \
            _Pragma("GCC unroll 12") for (int i = 0; i < rows; i++)                                \
            {                                                                                      \
                sum[i][0] += a[i] * b0;                                                            \
                sum[i][1] += a[i] * b1;                                                            \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 12") for (int i = 0; i < rows; i++)                                    \
        {                                                                                          \
            tile[2 * i] = sum[i][0];                                                               \
            tile[2 * i + 1] = sum[i][1];                                                           \
        }                                                                                          \
    }

/* i32 wraps around, as unsigned arithmetic does without undefined behaviour. */
MICRO(micro_f32_base, float, 16, 6, )
MICRO(micro_f64_base, double, 16, 6, )
MICRO(micro_i32_base, uint32_t, 16, 6, )
#if defined(__x86_64__)
MICRO(micro_f32_avx2, float, 32, 6, ISA_TARGET_AVX2)
MICRO(micro_f64_avx2, double, 32, 6, ISA_TARGET_AVX2)
MICRO(micro_i32_avx2, uint32_t, 32, 6, ISA_TARGET_AVX2)
MICRO(micro_f32_avx512, float, 64, 12, ISA_TARGET_AVX512)
MICRO(micro_f64_avx512, double, 64, 12, ISA_TARGET_AVX512)
MICRO(micro_i32_avx512, uint32_t, 64, 12, ISA_TARGET_AVX512)
#endif

typedef struct micro {
    micro_fn *fn;
    int rows, columns;
} micro;

static const micro micros[MTF_NUM_DTYPES][ISA_LEVELS] = {
    [MTF_F32][ISA_BASE] = {micro_f32_base, 6, 8},
    [MTF_F64][ISA_BASE] = {micro_f64_base, 6, 4},
    [MTF_I32][ISA_BASE] = {micro_i32_base, 6, 8},
    [MTF_BF16][ISA_BASE] = {micro_f32_base, 6, 8},
#if defined(__x86_64__)
    [MTF_F32][ISA_AVX2] = {micro_f32_avx2, 6, 16},
    [MTF_F64][ISA_AVX2] = {micro_f64_avx2, 6, 8},
    [MTF_I32][ISA_AVX2] = {micro_i32_avx2, 6, 16},
    [MTF_BF16][ISA_AVX2] = {micro_f32_avx2, 6, 16},
    [MTF_F32][ISA_AVX512] = {micro_f32_avx512, 12, 32},
    [MTF_F64][ISA_AVX512] = {micro_f64_avx512, 12, 16},
    [MTF_I32][ISA_AVX512] = {micro_i32_avx512, 12, 32},
    [MTF_BF16][ISA_AVX512] = {micro_f32_avx512, 12, 32},
#endif
};

/* Offsets of elements [from, from + n) of a group of dims, in two operands at once. */
static void offsets(const gemm_dim *dims, int nd, int64_t from, int64_t n, int64_t *x, int64_t x_at,
                    int64_t *y, int64_t y_at)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = from + i, xo = 0, yo = 0;
        for (int d = nd - 1; d >= 0; d--) {
            const int64_t index = rest % dims[d].n;
            const int64_t *strides = &dims[d].a; /* a, b, c in order */
            rest /= dims[d].n;
            xo += index * strides[x_at];
            yo += index * strides[y_at];
        }
        x[i] = xo;
        y[i] = yo;
    }
}

enum { AT_A, AT_B, AT_C };

/* Elements are moved as words of their size, whatever their type. */
typedef uint32_t word4 __attribute__((may_alias));
typedef uint64_t word8 __attribute__((may_alias));

/* Whether n offsets are those of adjacent elements. */
static bool adjacent(const int64_t *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (x[i] != x[0] + i) return false;
    return true;
}

/* Packs `depth` x `lines` elements as panels of `width` lines, the last one filled with zeros. */
#define PACK(name, from_type, word, LOAD, COPY)                                                    \
    static void name(const from_type *src, const int64_t *line, int64_t lines,                     \
                     const int64_t *deep, int64_t depth, int width, word *out)                     \
    {                                                                                              \
        for (int64_t l0 = 0; l0 < lines; l0 += width, out += depth * width) {                      \
            const int64_t n = lines - l0 < width ? lines - l0 : width;                             \
            if (n == width && adjacent(line + l0, n)) {                                            \
                for (int64_t k = 0; k < depth; k++)                                                \
                    COPY(out + k * width, src + deep[k] + line[l0], n);                            \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t l = 0; l < n; l++) {                                                      \
                const from_type *from = src + line[l0 + l];                                        \
                for (int64_t k = 0; k < depth; k++)                                                \
                    out[k * width + l] = LOAD(from[deep[k]]);                                      \
            }                                                                                      \
            for (int64_t k = 0; n < width && k < depth; k++)                                       \
                memset(out + k * width + n, 0, (size_t)(width - n) * sizeof *out);                 \
        }                                                                                          \
    }
#define AS_IT_IS(v)             (v)
#define COPY_WORDS(to, from, n) memcpy(to, from, (size_t)(n) * sizeof *(to))
#define WIDEN_WORDS(to, from, n)                                                                   \
    for (int64_t i = 0; i < (n); i++)                                                              \
    (to)[i] = bf16_to_f32((from)[i])
PACK(pack4, word4, word4, AS_IT_IS, COPY_WORDS)
PACK(pack8, word8, word8, AS_IT_IS, COPY_WORDS)
PACK(pack_bf16, bf16, float, bf16_to_f32, WIDEN_WORDS)

/* Moves a tile of `columns` to a row between C and the registers' side. */
#define MOVE(name, word)                                                                           \
    static void name(word *c, const int64_t *row, int64_t rows, const int64_t *col, int64_t cols,  \
                     int columns, word *tile, bool load)                                           \
    {                                                                                              \
        const bool run = adjacent(col, cols);                                                      \
        for (int64_t i = 0; i < rows; i++, tile += columns) {                                      \
            word *to = c + row[i];                                                                 \
            if (run && load)                                                                       \
                memcpy(tile, to + col[0], (size_t)cols * sizeof *tile);                            \
            else if (run)                                                                          \
                memcpy(to + col[0], tile, (size_t)cols * sizeof *tile);                            \
            for (int64_t j = 0; !run && j < cols; j++) {                                           \
                if (load)                                                                          \
                    tile[j] = to[col[j]];                                                          \
                else                                                                               \
                    to[col[j]] = tile[j];                                                          \
            }                                                                                      \
        }                                                                                          \
    }
MOVE(move4, word4)
MOVE(move8, word8)

/* What a plan needs: the rows and columns of its tasks, and where a worker's packed operands lie.
 */
typedef struct own {
    int64_t rows, cols;
    int64_t pa, pb; /* bytes behind the beginning of the workspace */
} own;

typedef struct task {
    const micro *u;
    int64_t size;    /* bytes of an element of C, and of packed ones */
    int64_t size_in; /* of A and B */
    int64_t rows, cols, depth;
    const char *a, *b;
    char *c;
    space *s;
    char *pa, *pb;
} task;

static void pack(const task *t, const char *src, const int64_t *line, int64_t lines,
                 const int64_t *deep, int width, char *out)
{
    if (t->size_in == 2)
        pack_bf16((const bf16 *)(const void *)src, line, lines, deep, t->depth, width,
                  (float *)(void *)out);
    else if (t->size == 4)
        pack4((const word4 *)src, line, lines, deep, t->depth, width, (word4 *)out);
    else
        pack8((const word8 *)src, line, lines, deep, t->depth, width, (word8 *)out);
}

static void move_tile(const task *t, int64_t i, int64_t j, void *tile, bool load)
{
    const int64_t rows = t->rows - i < t->u->rows ? t->rows - i : t->u->rows;
    const int64_t cols = t->cols - j < t->u->columns ? t->cols - j : t->u->columns;
    if (t->size == 4)
        move4((word4 *)t->c, t->s->c_row + i, rows, t->s->c_col + j, cols, t->u->columns, tile,
              load);
    else
        move8((word8 *)t->c, t->s->c_row + i, rows, t->s->c_col + j, cols, t->u->columns, tile,
              load);
}

/* One piece of the depth: every tile of the task. */
static void run_piece(const task *t, bool first)
{
    _Alignas(64) char tile[ROWS_MAX * COLUMNS_MAX * 4] = {0};
    const micro *u = t->u;
    for (int64_t j = 0; j < t->cols; j += u->columns) {
        for (int64_t i = 0; i < t->rows; i += u->rows) {
            if (!first) move_tile(t, i, j, tile, true);
            u->fn(t->pa + i * t->depth * t->size, t->pb + j * t->depth * t->size, t->depth, tile,
                  first);
            move_tile(t, i, j, tile, false);
        }
    }
}

static int64_t blocks(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Task number -> batch entry, block of rows, block of columns. */
static void run_task(const gemm *g, task *t, int64_t number)
{
    const own *o = g->engine;
    const int64_t nj = blocks(g->n, o->cols), ni = blocks(g->m, o->rows);
    const int64_t j0 = number % nj * o->cols, i0 = number / nj % ni * o->rows;
    const int64_t entry = number / nj / ni;
    space *s = t->s;
    const char *a = t->a, *b = t->b;
    char *c = t->c;
    int64_t ao, bo, co;
    offsets(g->d.batch, g->d.nbatch, entry, 1, &ao, AT_A, &bo, AT_B);
    offsets(g->d.batch, g->d.nbatch, entry, 1, &ao, AT_A, &co, AT_C);
    t->rows = g->m - i0 < o->rows ? g->m - i0 : o->rows;
    t->cols = g->n - j0 < o->cols ? g->n - j0 : o->cols;
    t->c = c + co * t->size;
    offsets(g->d.m, g->d.nm, i0, t->rows, s->a_row, AT_A, s->c_row, AT_C);
    offsets(g->d.n, g->d.nn, j0, t->cols, s->b_col, AT_B, s->c_col, AT_C);
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += KC) {
        t->depth = g->k - k0 < KC ? g->k - k0 : KC;
        offsets(g->d.k, g->d.nk, k0, t->depth, s->a_depth, AT_A, s->b_depth, AT_B);
        pack(t, a + ao * t->size_in, s->a_row, t->rows, s->a_depth, t->u->rows, t->pa);
        pack(t, b + bo * t->size_in, s->b_col, t->cols, s->b_depth, t->u->columns, t->pb);
        run_piece(t, k0 == 0);
    }
    t->c = c;
}

static void run(const gemm *g, const void *a, const void *b, void *c, void *work, int64_t begin,
                int64_t end)
{
    task t = {.u = &micros[g->d.dtype][isa_current()],
              .size = mtf_dtype_size(mtf_dtype_of_sums(g->d.dtype)),
              .size_in = mtf_dtype_size(g->d.dtype),
              .a = a,
              .b = b,
              .c = c,
              .s = work};
    const own *o = g->engine;
    t.pa = (char *)work + o->pa;
    t.pb = (char *)work + o->pb;
    for (int64_t number = begin; number < end; number++)
        run_task(g, &t, number);
}

static int64_t count_tasks(const gemm *g, const own *o)
{
    return g->batch * blocks(g->m, o->rows) * blocks(g->n, o->cols);
}

/* Lines of a packed operand: those of a task, and of the last tile all, for every instruction set.
 */
static int64_t packed_lines(int64_t n, int64_t most, int64_t tile)
{
    const int64_t all = (n + tile - 1) / tile * tile;
    return all < most ? all : most;
}

static void place_operands(gemm *g, own *o, int64_t size)
{
    const int64_t depth = g->k < KC ? g->k : KC;
    o->pa = (int64_t)(sizeof(space) + 63) / 64 * 64;
    o->pb = o->pa + (packed_lines(g->m, o->rows, ROWS_MAX) * depth * size + 63) / 64 * 64;
    g->work = o->pb + packed_lines(g->n, o->cols, COLUMNS_MAX) * depth * size;
}

void gemm_own_prepare(gemm *g)
{
    const int64_t size = mtf_dtype_size(mtf_dtype_of_sums(g->d.dtype));
    own *o = mem_zalloc(sizeof *o);
    *o = (own){.rows = MC, .cols = NC};
    while (o->rows > MC / 4 && (count_tasks(g, o) < TASKS_WANTED || g->m <= o->rows / 2))
        o->rows /= 2;
    while (o->cols > NC / 4 && (count_tasks(g, o) < TASKS_WANTED || g->n <= o->cols / 2))
        o->cols /= 2;
    g->run = run;
    g->engine = o;
    g->tasks = count_tasks(g, o);
    g->task_flops =
        2 * (g->m < o->rows ? g->m : o->rows) * (g->n < o->cols ? g->n : o->cols) * g->k;
    place_operands(g, o, size);
    strcpy(g->impl, "own");
}
