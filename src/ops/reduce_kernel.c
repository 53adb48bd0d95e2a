/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce_kernel.h"

#include <math.h>
#include <string.h>

#include "base/bfloat.h"
#include "base/isa.h"
#include "ops/nest.h"

/* Three forms, by where the operand's unit stride lies:
 *   runs:    along a reduced dim. Each output element sums runs with 16 lanes.
 *   columns: along a kept dim that is the output's last. Rows of the operand are added to a row.
 *   any:     neither. Each output element walks its elements one by one.
 * A grain is a range of output elements (runs, any) or of column panels (columns). */
enum { PANEL = 128, GRAIN_WORK = 1 << 16, BLOCK_ROWS = 64 };

typedef enum form { FORM_RUNS, FORM_COLUMNS, FORM_ANY } form;

typedef struct reduction {
    const kernel_args *k;
    reduce_kind kind;
    form form;
    int64_t outputs; /* elements of the output */
    int64_t columns; /* local extent of the output's last dim */
    nest inner;      /* the reduced dims; innermost last. views: the operand */
} reduction;

static int unit_dim(const kernel_view *v)
{
    for (int i = v->rank - 1; i >= 0; i--)
        if (v->stride[i] == 1) return v->dim[i];
    return -1;
}

/* Reduced dims in the operand's order, neighbours in memory merged. */
static nest reduced_nest(const kernel_args *k)
{
    nest s = {.views = 1};
    const kernel_view *x = &k->in[0];
    for (int i = 0; i < x->rank; i++) {
        if (x->dim[i] < k->out[0].rank) continue;
        const int64_t n = k->dim[x->dim[i]].local, stride = x->stride[i];
        if (s.rank && s.stride[0][s.rank - 1] == n * stride) {
            s.n[s.rank - 1] *= n;
            s.stride[0][s.rank - 1] = stride;
        } else {
            s.n[s.rank] = n;
            s.stride[0][s.rank++] = stride;
        }
    }
    return s;
}

static reduction describe(const kernel_args *k)
{
    const int rank = k->out[0].rank;
    reduction r = {.k = k, .outputs = 1, .columns = 1, .inner = reduced_nest(k)};
    for (int d = 0; d < rank; d++)
        r.outputs *= k->dim[d].local;
    if (rank) r.columns = k->dim[rank - 1].local;
    const int unit = unit_dim(&k->in[0]);
    const int last = r.inner.rank - 1;
    if (last >= 0 && r.inner.stride[0][last] == 1)
        r.form = FORM_RUNS;
    else
        r.form = rank && unit == rank - 1 ? FORM_COLUMNS : FORM_ANY;
    return r;
}

static int64_t panels(const reduction *r)
{
    return (r->columns + PANEL - 1) / PANEL;
}

static int64_t outputs_per_grain(const reduction *r)
{
    int64_t work = 1;
    for (int i = 0; i < r->inner.rank; i++)
        work *= r->inner.n[i];
    const int64_t per = GRAIN_WORK / (work > 0 ? work : 1);
    return per > 0 ? per : 1;
}

int64_t reduce_grains(const kernel_args *k)
{
    const reduction r = describe(k);
    if (r.form == FORM_COLUMNS) return r.columns ? r.outputs / r.columns * panels(&r) : 0;
    const int64_t per = outputs_per_grain(&r);
    return (r.outputs + per - 1) / per;
}

/* Offset in the operand of output element `index` (row-major over the output's dims but the last
 * `skip`). */
static int64_t operand_offset(const kernel_args *k, int64_t index, int skip)
{
    int64_t offset = 0;
    for (int d = k->out[0].rank - 1 - skip; d >= 0; d--) {
        const int64_t n = k->dim[d].local;
        offset += index % n * view_stride(&k->in[0], d);
        index /= n;
    }
    return offset;
}

/* One more level, so that NAME is expanded before ISA_VARIANTS pastes. */
#define REDUCE_VARIANTS(name, body, params, args) ISA_VARIANTS(name, body, params, args)

/* A bf16 is worked on as the f32 that it is the upper half of. */
#define S         bf16
#define T         float
#define LOAD(v)   bf16_to_f32(v)
#define STORE(v)  bf16_from_f32(v)
#define WIDE      double
#define NAME(x)   x##_bf16
#define LOWEST    (-INFINITY)
#define HIGHEST   INFINITY
#define IS_NAN(x) ((x) != (x))
#define FINISH(s) ((float)(s))
#include "ops/reduce_body.inc"

#define S         float
#define T         float
#define LOAD(v)   (v)
#define STORE(v)  (v)
#define WIDE      double
#define NAME(x)   x##_f32
#define LOWEST    (-INFINITY)
#define HIGHEST   INFINITY
#define IS_NAN(x) ((x) != (x))
#define FINISH(s) ((float)(s))
#include "ops/reduce_body.inc"

#define S         double
#define T         double
#define LOAD(v)   (v)
#define STORE(v)  (v)
#define WIDE      double
#define NAME(x)   x##_f64
#define LOWEST    (-INFINITY)
#define HIGHEST   INFINITY
#define IS_NAN(x) ((x) != (x))
#define FINISH(s) (s)
#include "ops/reduce_body.inc"

/* Unsigned sums wrap around; the lanes hold the same bits as signed ones would. */
#define S         int32_t
#define T         int32_t
#define LOAD(v)   (v)
#define STORE(v)  (v)
#define WIDE      int64_t
#define NAME(x)   x##_i32
#define LOWEST    INT32_MIN
#define HIGHEST   INT32_MAX
#define IS_NAN(x) false
#define FINISH(s) ((int32_t)(uint32_t)(uint64_t)(s))
#include "ops/reduce_body.inc"

void reduce_run(const kernel_args *k, reduce_kind kind, int64_t begin, int64_t end)
{
    reduction r = describe(k);
    r.kind = kind;
    switch (k->in[0].dtype) {
    case MTF_F32:
        run_f32(&r, begin, end);
        break;
    case MTF_F64:
        run_f64(&r, begin, end);
        break;
    case MTF_BF16:
        run_bf16(&r, begin, end);
        break;
    default:
        run_i32(&r, begin, end);
        break;
    }
}
