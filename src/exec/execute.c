/* SPDX-License-Identifier: Apache-2.0
 * The instruction loop. Work between two collectives runs to completion; where this process hosts
 * as many processors as it has workers, each worker takes whole processors, else the workers share
 * the grains of one kernel. A collective runs once for all hosted processors. */
#include <string.h>

#include "base/check.h"
#include "base/fault.h"
#include "exec/session.h"
#include "kernels/tiles.h"

typedef struct work {
    const mtf_session *s;
    const bound *b;
    int begin, end;        /* steps of the segment */
    const exec_step *step; /* grain mode: the one that runs */
    const kernel_args *k;
} work;

/* ---- local steps ---- */

static void run_grains(const exec_step *t, const kernel_args *k, int64_t begin, int64_t end)
{
    const op *row = t->instr->op;
    if (t->fast)
        t->fast->run(k, begin, end);
    else if (row->kernel)
        row->kernel(k, begin, end);
    else
        tiles_run(row->tile, row->traits & TRAIT_INDEX, k, begin, end);
}

static void copy_whole(const bound *b, const exec_step *t, char *memory, int h)
{
    int64_t bytes = mtf_dtype_size(t->in[0].dtype);
    for (int d = 0; d < t->in[0].rank; d++)
        bytes *= bound_block(b, h, t->in[0].cls[d])->local;
    memcpy(memory + t->out[0].offset, memory + t->in[0].offset, (size_t)bytes);
}

/* Operand [outer, whole, inner] to result [outer, part, inner]. */
static void copy_part(const bound *b, const exec_step *t, char *memory, int h)
{
    const int dim = t->instr->dim;
    int64_t outer = 1, inner = mtf_dtype_size(t->in[0].dtype);
    for (int d = 0; d < dim; d++)
        outer *= bound_block(b, h, t->in[0].cls[d])->local;
    for (int d = dim + 1; d < t->in[0].rank; d++)
        inner *= bound_block(b, h, t->in[0].cls[d])->local;
    const kernel_dim *whole = bound_block(b, h, t->in[0].cls[dim]);
    const kernel_dim *part = bound_block(b, h, t->out[0].cls[dim]);
    const int64_t base = FAULT(FAULT_SLICE_BASE) ? 0 : whole->offset;
    const int64_t first = FAULT(FAULT_SLICE_OFFSET) ? 0 : part->offset - base;
    const char *from = memory + t->in[0].offset + first * inner;
    char *to = memory + t->out[0].offset;
    for (int64_t o = 0; o < outer; o++)
        memcpy(to + o * part->local * inner, from + o * whole->local * inner,
               (size_t)(part->local * inner));
}

static void assign(const mtf_session *s, const bound *b, const exec_step *t, int h)
{
    const int64_t to = b->p->state[t->instr->state].offset;
    if (to == t->in[0].offset && t->instr->in[0]->in_state) return;
    int64_t bytes = mtf_dtype_size(t->in[0].dtype);
    for (int d = 0; d < t->in[0].rank; d++)
        bytes *= bound_block(b, h, t->in[0].cls[d])->local;
    memcpy(s->memory[h] + to, s->memory[h] + t->in[0].offset, (size_t)bytes);
}

/* Everything but COMPUTE: one grain. */
static void run_simple(const mtf_session *s, const bound *b, const exec_step *t, int h)
{
    switch (t->instr->kind) {
    case INSTR_COPY:
        copy_whole(b, t, s->memory[h], h);
        break;
    case INSTR_SLICE:
        copy_part(b, t, s->memory[h], h);
        break;
    case INSTR_ASSIGN:
        assign(s, b, t, h);
        break;
    default:
        MTF_CHECK(false, "%s is no local step", instr_name(t->instr));
    }
}

static void run_step(const mtf_session *s, const bound *b, const exec_step *t, int h, int worker)
{
    check_set_context(t->instr->node->name);
    if (t->instr->kind == INSTR_COMPUTE) {
        kernel_args k;
        step_args(s, b, t, h, &k);
        k.work = s->work[worker];
        run_grains(t, &k, 0, step_grains(t, &k));
    } else {
        run_simple(s, b, t, h);
    }
    check_set_context(NULL);
}

static void run_processors(void *ctx, int64_t begin, int64_t end, int worker)
{
    const work *w = ctx;
    for (int64_t h = begin; h < end; h++)
        for (int i = w->begin; i < w->end; i++)
            run_step(w->s, w->b, &w->b->step[i], (int)h, worker);
}

static void run_shared(void *ctx, int64_t begin, int64_t end, int worker)
{
    const work *w = ctx;
    kernel_args k = *w->k;
    k.work = w->s->work[worker];
    run_grains(w->step, &k, begin, end);
}

static void share_step(const mtf_session *s, const bound *b, const exec_step *t, int h)
{
    if (t->instr->kind != INSTR_COMPUTE) {
        run_simple(s, b, t, h);
        return;
    }
    check_set_context(t->instr->node->name);
    kernel_args k;
    step_args(s, b, t, h, &k);
    work w = {.s = s, .b = b, .step = t, .k = &k};
    pool_for(s->pool, step_grains(t, &k), 1, run_shared, &w);
    check_set_context(NULL);
}

static void run_segment(const mtf_session *s, const bound *b, int begin, int end)
{
    if (s->nhosted >= pool_threads(s->pool)) {
        work w = {.s = s, .b = b, .begin = begin, .end = end};
        pool_for(s->pool, s->nhosted, 1, run_processors, &w);
        return;
    }
    for (int h = 0; h < s->nhosted; h++)
        for (int i = begin; i < end; i++)
            share_step(s, b, &b->step[i], h);
}

/* ---- collectives ---- */

static comm_op op_of(combine c)
{
    static const comm_op ops[] = {
        [COMBINE_SUM] = COMM_SUM, [COMBINE_MAX] = COMM_MAX, [COMBINE_MIN] = COMM_MIN};
    return ops[c];
}

/* A bucket is one buffer: its members lie side by side. A single sum has its exact size. */
static int64_t reduce_count(const mtf_session *s, const instr *i, int h)
{
    if (i->nin == 1) return value_local(s->bound[0].p, i->in[0], s->first + h);
    int64_t bytes = 0;
    const int members = FAULT(FAULT_BUCKET_MEMBER) ? i->nin - 1 : i->nin;
    for (int k = 0; k < members; k++)
        bytes += i->in[k]->bytes;
    return bytes / mtf_dtype_size(i->in[0]->dtype);
}

/* The planted fault takes the next axis of the same size. */
static split axes_to_reduce(const mtf_session *s, split axes)
{
    const int n = s->mesh->naxes, next = (axes.axis[0] + 1) % n;
    if (FAULT(FAULT_WRONG_AXIS) && s->mesh->size[next] == s->mesh->size[axes.axis[0]])
        axes.axis[0] = (int8_t)next;
    return axes;
}

static void all_reduce(mtf_session *s, const bound *b, const exec_step *t)
{
    const instr *i = t->instr;
    for (int h = 0; h < s->nhosted; h++) {
        s->ptr[0][h] = s->memory[h] + t->out[0].offset;
        s->count[h] = reduce_count(s, i, h);
        if (i->nin == 1 && t->in[0].offset != t->out[0].offset) copy_whole(b, t, s->memory[h], h);
    }
    if (FAULT(FAULT_DROP_ALL_REDUCE)) return;
    comm_all_reduce(s->comm, axes_of(axes_to_reduce(s, i->axes)), op_of(i->combine), t->in[0].dtype,
                    s->ptr[0], s->count, s->scratch);
}

/* The cut of dim `dim` of `whole`, the larger of operand and result; `part` is the other. The group
 * owns neighbouring parts, for its axes are the minor-most of the smaller one's. */
static comm_cut cut_of(const mtf_session *s, const bound *b, const exec_step *t,
                       const step_view *whole, const value *part, int h)
{
    const int dim = t->instr->dim;
    const int64_t members = split_parts(s->mesh, t->instr->axes);
    const int64_t own = split_part(s->mesh, part->split[dim], s->first + h);
    comm_cut c = {.n = part->shape.dim[dim].size,
                  .parts = split_parts(s->mesh, part->split[dim]),
                  .base = FAULT(FAULT_GATHER_BASE) ? 0 : own / members * members,
                  .outer = 1,
                  .inner = 1};
    for (int d = 0; d < dim; d++)
        c.outer *= bound_block(b, h, whole->cls[d])->local;
    for (int d = dim + 1; d < whole->rank; d++)
        c.inner *= bound_block(b, h, whole->cls[d])->local;
    return c;
}

static void move_blocks(mtf_session *s, const bound *b, const exec_step *t)
{
    const bool gather = t->instr->kind == INSTR_ALL_GATHER;
    const step_view *whole = gather ? &t->out[0] : &t->in[0];
    const value *part = gather ? t->instr->in[0] : t->instr->out[0];
    for (int h = 0; h < s->nhosted; h++) {
        s->ptr[0][h] = s->memory[h] + t->in[0].offset;
        s->ptr[1][h] = s->memory[h] + t->out[0].offset;
        s->cut[h] = cut_of(s, b, t, whole, part, h);
    }
    comm_axes axes = axes_of(t->instr->axes);
    if (FAULT(FAULT_GATHER_ORDER) && gather && axes.n == 2) {
        axes.axis[0] = t->instr->axes.axis[1];
        axes.axis[1] = t->instr->axes.axis[0];
    }
    if (gather)
        comm_all_gather(s->comm, axes, mtf_dtype_size(t->in[0].dtype), s->ptr[0], s->ptr[1], s->cut,
                        s->scratch);
    else
        comm_reduce_scatter(s->comm, axes, op_of(t->instr->combine), t->in[0].dtype, s->ptr[0],
                            s->ptr[1], s->cut, s->scratch);
}

void session_execute(mtf_session *s, const bound *b)
{
    for (int i = 0; i < b->nsteps;) {
        const exec_step *t = &b->step[i];
        if (instr_is_collective(t->instr)) {
            check_set_context(t->instr->node->name);
            if (t->instr->kind == INSTR_ALL_REDUCE)
                all_reduce(s, b, t);
            else if (instr_exchanges(t->instr))
                exchange_run(s, b, t);
            else
                move_blocks(s, b, t);
            i++;
            continue;
        }
        int end = i;
        while (end < b->nsteps && !instr_is_collective(b->step[end].instr))
            end++;
        run_segment(s, b, i, end);
        i = end;
    }
    check_set_context(NULL);
}
