/* SPDX-License-Identifier: Apache-2.0
 * Binding a program to a session: everything that a run needs is found or prepared once. */
#include <string.h>

#include "base/check.h"
#include "exec/session.h"
#include "kernels/tiles.h"

static int class_of(bound *b, mtf_dim dim, split cut)
{
    for (int64_t i = 0; i < b->nclasses; i++)
        if (b->cls[i].dim.size == dim.size && split_equal(b->cls[i].split, cut)) return (int)i;
    mem_grow((void **)&b->cls, b->nclasses, &b->classes_cap, sizeof *b->cls);
    b->cls[b->nclasses] = (dim_class){dim, cut};
    return (int)b->nclasses++;
}

int64_t session_offset(const mtf_session *s, const value *v)
{
    return v->in_state ? v->offset : s->plan.state + v->offset;
}

static int space_position(const instr *i, const char *name)
{
    for (int d = 0; d < i->nspace; d++)
        if (i->space[d].dim.name == name) return d;
    return -1;
}

static step_view view_of(const mtf_session *s, bound *b, const instr *i, const value *v)
{
    step_view w = {.offset = session_offset(s, v), .dtype = v->dtype, .rank = v->shape.rank};
    for (int d = 0; d < w.rank; d++) {
        w.space[d] = space_position(i, v->shape.dim[d].name);
        w.cls[d] = class_of(b, v->shape.dim[d], v->split[d]);
    }
    return w;
}

static void describe_step(const mtf_session *s, bound *b, exec_step *t, const instr *i)
{
    t->instr = i;
    t->nspace = i->nspace;
    t->space = arena_alloc(b->mem, sizeof *t->space * (size_t)(i->nspace + 1));
    for (int d = 0; d < i->nspace; d++)
        t->space[d] = class_of(b, i->space[d].dim, i->space[d].split);
    t->in = arena_alloc(b->mem, sizeof *t->in * (size_t)(i->nin + 1));
    t->out = arena_alloc(b->mem, sizeof *t->out * (size_t)(i->nout + 1));
    for (int k = 0; k < i->nin; k++)
        t->in[k] = view_of(s, b, i, i->in[k]);
    for (int k = 0; k < i->nout; k++)
        t->out[k] = view_of(s, b, i, i->out[k]);
}

static void fill_blocks(const mtf_session *s, bound *b)
{
    b->block = mem_alloc(sizeof *b->block * (size_t)(b->nclasses * s->nhosted + 1));
    for (int h = 0; h < s->nhosted; h++)
        for (int64_t c = 0; c < b->nclasses; c++)
            b->block[h * b->nclasses + c] =
                dim_block(s->mesh, b->cls[c].dim, b->cls[c].split, s->first + h);
}

static kernel_view kernel_view_of(const bound *b, const step_view *w, char *memory, int h)
{
    kernel_view v = {.dtype = w->dtype, .rank = w->rank};
    if (memory) v.data = memory + w->offset;
    int64_t stride = 1;
    for (int d = w->rank - 1; d >= 0; d--) {
        v.dim[d] = w->space[d];
        v.stride[d] = stride;
        stride *= bound_block(b, h, w->cls[d])->local;
    }
    return v;
}

void step_args(const mtf_session *s, const bound *b, const exec_step *t, int h, kernel_args *k)
{
    const instr *i = t->instr;
    k->space = t->nspace;
    for (int d = 0; d < t->nspace; d++)
        k->dim[d] = *bound_block(b, h, t->space[d]);
    k->nin = i->nin;
    k->nout = i->nout;
    char *memory = s->memory ? s->memory[h] : NULL; /* none while kernels are prepared */
    for (int v = 0; v < i->nin; v++)
        k->in[v] = kernel_view_of(b, &t->in[v], memory, h);
    for (int v = 0; v < i->nout; v++)
        k->out[v] = kernel_view_of(b, &t->out[v], memory, h);
    k->attr = i->attr;
    k->plan = t->plan ? t->plan[h] : NULL;
    k->run = &s->run;
    k->work = NULL;
}

int64_t step_grains(const exec_step *t, const kernel_args *k)
{
    const op *row = t->instr->op;
    if (t->fast) return t->fast->grains ? t->fast->grains(k) : 1;
    if (row->kernel) return row->grains ? row->grains(k) : 1;
    return tiles_grains(k);
}

static mtf_status prepare(const mtf_session *s, bound *b, exec_step *t, mtf_err *err)
{
    t->fast = kernel_find(t->instr->op->name);
    if (!t->fast || !t->fast->prepare) return MTF_OK;
    t->plan = arena_alloc(b->mem, sizeof *t->plan * (size_t)s->nhosted);
    for (int h = 0; h < s->nhosted; h++) {
        kernel_args k;
        step_args(s, b, t, h, &k);
        mtf_status st = t->fast->prepare(&k, &t->plan[h], err);
        if (st != MTF_OK) {
            err_prefix(err, "%s '%s': ", t->instr->op->name, t->instr->node->name);
            return st;
        }
        const int64_t work = t->fast->workspace ? t->fast->workspace(&k) : 0;
        MTF_CHECK(work <= s->plan.work, "'%s' needs %lld bytes of workspace, planned were %lld",
                  t->instr->node->name, (long long)work, (long long)s->plan.work);
    }
    return MTF_OK;
}

mtf_status session_bind(const mtf_session *s, bound *b, const mtf_program *p, mtf_err *err)
{
    *b = (bound){.p = p, .mem = arena_new()};
    b->step = mem_zalloc(sizeof *b->step * (size_t)(p->ninstrs + 1));
    for (const instr *i = p->first; i; i = i->next)
        if (i->kind != INSTR_VIEW) describe_step(s, b, &b->step[b->nsteps++], i);
    for (int k = 0; k < p->nfeeds; k++)
        for (int d = 0; d < p->feed[k]->shape.rank; d++)
            class_of(b, p->feed[k]->shape.dim[d], p->feed[k]->split[d]);
    fill_blocks(s, b);
    for (int k = 0; k < b->nsteps; k++) {
        const instr *i = b->step[k].instr;
        if (i->kind == INSTR_COMPUTE) TRY(prepare(s, b, &b->step[k], err));
        if (instr_exchanges(i)) exchange_bind(s, b, &b->step[k]);
    }
    return MTF_OK;
}

void session_unbind(bound *b)
{
    for (int k = 0; k < b->nsteps; k++)
        exchange_unbind(&b->step[k]);
    arena_free(&b->mem);
    mem_free(b->step);
    mem_free(b->cls);
    mem_free(b->block);
}
