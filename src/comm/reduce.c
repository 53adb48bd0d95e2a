/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/reduce.h"

#include <string.h>

#include "base/bfloat.h"
#include "base/check.h"

enum { BLOCK_BYTES = 4096, FUSED_LEAVES = 4 };

/* A NaN on the left is kept by `a != a`, one on the right because no comparison with it holds. */
static inline float sum_f32(float a, float b)
{
    return a + b;
}

static inline float max_f32(float a, float b)
{
    const float ordered = a > b ? a : b;
    return a != a ? a : ordered;
}

static inline float min_f32(float a, float b)
{
    const float ordered = a < b ? a : b;
    return a != a ? a : ordered;
}

static inline double sum_f64(double a, double b)
{
    return a + b;
}

static inline double max_f64(double a, double b)
{
    const double ordered = a > b ? a : b;
    return a != a ? a : ordered;
}

static inline double min_f64(double a, double b)
{
    const double ordered = a < b ? a : b;
    return a != a ? a : ordered;
}

static inline int32_t sum_i32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t max_i32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

#define SAME(x) (x)

#define S    float
#define T    float
#define LOAD SAME
#define JOIN sum_f32
#define ROWS rows_f32_sum
#define FOLD join_f32_sum
#include "comm/reduce_rows.h"

#define S    float
#define T    float
#define LOAD SAME
#define JOIN max_f32
#define ROWS rows_f32_max
#define FOLD join_f32_max
#include "comm/reduce_rows.h"

#define S    float
#define T    float
#define LOAD SAME
#define JOIN min_f32
#define ROWS rows_f32_min
#define FOLD join_f32_min
#include "comm/reduce_rows.h"

#define S    double
#define T    double
#define LOAD SAME
#define JOIN sum_f64
#define ROWS rows_f64_sum
#define FOLD join_f64_sum
#include "comm/reduce_rows.h"

#define S    double
#define T    double
#define LOAD SAME
#define JOIN max_f64
#define ROWS rows_f64_max
#define FOLD join_f64_max
#include "comm/reduce_rows.h"

#define S    double
#define T    double
#define LOAD SAME
#define JOIN min_f64
#define ROWS rows_f64_min
#define FOLD join_f64_min
#include "comm/reduce_rows.h"

#define S    int32_t
#define T    int32_t
#define LOAD SAME
#define JOIN sum_i32
#define ROWS rows_i32_sum
#define FOLD join_i32_sum
#include "comm/reduce_rows.h"

#define S    int32_t
#define T    int32_t
#define LOAD SAME
#define JOIN max_i32
#define ROWS rows_i32_max
#define FOLD join_i32_max
#include "comm/reduce_rows.h"

#define S    int32_t
#define T    int32_t
#define LOAD SAME
#define JOIN min_i32
#define ROWS rows_i32_min
#define FOLD join_i32_min
#include "comm/reduce_rows.h"

/* bf16 is widened as it is read; its partial results are f32. */
#define S    bf16
#define T    float
#define LOAD bf16_to_f32
#define JOIN sum_f32
#define ROWS rows_bf16_sum
#include "comm/reduce_rows.h"

#define S    bf16
#define T    float
#define LOAD bf16_to_f32
#define JOIN max_f32
#define ROWS rows_bf16_max
#include "comm/reduce_rows.h"

#define S    bf16
#define T    float
#define LOAD bf16_to_f32
#define JOIN min_f32
#define ROWS rows_bf16_min
#include "comm/reduce_rows.h"

static void narrow(void *out, const void *partial, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((bf16 *)out)[i] = bf16_from_f32(((const float *)partial)[i]);
}

typedef struct loops {
    reduce_rows_fn *rows;
    reduce_join_fn *join;
} loops;

static const loops all_loops[MTF_NUM_DTYPES][3] = {
    [MTF_F32] = {[COMM_SUM] = {.rows = rows_f32_sum, .join = join_f32_sum},
                 [COMM_MAX] = {.rows = rows_f32_max, .join = join_f32_max},
                 [COMM_MIN] = {.rows = rows_f32_min, .join = join_f32_min}},
    [MTF_F64] = {[COMM_SUM] = {.rows = rows_f64_sum, .join = join_f64_sum},
                 [COMM_MAX] = {.rows = rows_f64_max, .join = join_f64_max},
                 [COMM_MIN] = {.rows = rows_f64_min, .join = join_f64_min}},
    [MTF_I32] = {[COMM_SUM] = {.rows = rows_i32_sum, .join = join_i32_sum},
                 [COMM_MAX] = {.rows = rows_i32_max, .join = join_i32_max},
                 [COMM_MIN] = {.rows = rows_i32_min, .join = join_i32_min}},
    [MTF_BF16] = {[COMM_SUM] = {.rows = rows_bf16_sum, .join = join_f32_sum},
                  [COMM_MAX] = {.rows = rows_bf16_max, .join = join_f32_max},
                  [COMM_MIN] = {.rows = rows_bf16_min, .join = join_f32_min}},
};

reduction reduction_over(const groups *g, comm_op op, mtf_dtype type)
{
    MTF_CHECK(type >= 0 && type < MTF_NUM_DTYPES && all_loops[type][op].rows,
              "a reduction of type %d", (int)type);
    reduction r = {.n = g->n,
                   .leaves = g->members,
                   .bytes = mtf_dtype_size(type),
                   .partial = mtf_dtype_size(mtf_dtype_of_sums(type)),
                   .narrow = type == MTF_BF16 ? narrow : NULL,
                   .rows = all_loops[type][op].rows,
                   .join = all_loops[type][op].join};
    for (int k = g->n - 1, span = 1; k >= 0; k--) {
        r.size[k] = g->sorted[k].size;
        r.span[k] = span;
        span *= r.size[k];
    }
    return r;
}

/* One block of a reduction: n elements from element `at` of every operand. */
typedef struct block {
    const reduction *r;
    const void *const *in;
    int64_t at, n;
} block;

/* Reduces `count` coordinates of axis `level`, the first of them at leaf `leaf`. */
static void reduce_subtree(const block *b, int level, int leaf, int count, void *out)
{
    const reduction *r = b->r;
    const int leaves = count * r->span[level];
    if (leaves <= FUSED_LEAVES) {
        r->rows(b->in + leaf, leaves, b->at, b->n, out);
        return;
    }
    if (count == 1) {
        reduce_subtree(b, level + 1, leaf, r->size[level + 1], out);
        return;
    }
    _Alignas(64) char right[BLOCK_BYTES];
    const int half = count / 2;
    reduce_subtree(b, level, leaf, half, out);
    reduce_subtree(b, level, leaf + half * r->span[level], count - half, right);
    r->join(out, right, b->n);
}

/* Partial results that are whole become elements. */
static void finish(const reduction *r, void *out, const void *partial, int64_t n)
{
    if (r->narrow)
        r->narrow(out, partial, n);
    else
        memcpy(out, partial, (size_t)(n * r->bytes));
}

static void reduce_block(const reduction *r, const void *const *in, int64_t at, int64_t n,
                         void *out)
{
    if (r->n == 0) {
        r->rows(in, 1, at, n, out);
        return;
    }
    const block b = {.r = r, .in = in, .at = at, .n = n};
    reduce_subtree(&b, 0, 0, r->size[0], out);
}

void reduce_to_one(const reduction *r, const void *const *in, int64_t at, int64_t n, void *out)
{
    _Alignas(64) char result[BLOCK_BYTES];
    const int64_t step = BLOCK_BYTES / r->partial;
    for (int64_t i = 0; i < n; i += step) {
        const int64_t len = n - i < step ? n - i : step;
        reduce_block(r, in, at + i, len, result);
        finish(r, (char *)out + i * r->bytes, result, len);
    }
}

void reduce_to_all(const reduction *r, void *const *buf, int64_t at, int64_t n)
{
    _Alignas(64) char result[BLOCK_BYTES];
    const int64_t step = BLOCK_BYTES / r->partial;
    for (int64_t i = at; i < at + n; i += step) {
        const int64_t len = at + n - i < step ? at + n - i : step;
        reduce_block(r, (const void *const *)buf, i, len, result);
        for (int leaf = 0; leaf < r->leaves; leaf++)
            finish(r, (char *)buf[leaf] + i * r->bytes, result, len);
    }
}
