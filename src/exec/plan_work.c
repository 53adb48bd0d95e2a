/* SPDX-License-Identifier: Apache-2.0
 * Workspace of kernels. A dim that is cut unevenly has two sizes of blocks, so a kernel is asked
 * about every combination of them: more than occur together where dims are cut over one axis, and
 * what a kernel packs need not grow with its sizes. Where all cuts are even there is one. */
#include "exec/plan.h"

#include "base/check.h"
#include "base/fault.h"
#include "kernels/table.h"

enum { MAX_CLASSES = 64 };

/* The dims of an instruction, by size and cut. */
typedef struct block_class {
    int64_t global, local;
    split split;
    bool uneven; /* local is the larger size, or one less */
} block_class;

typedef struct classes {
    const mtf_mesh *mesh;
    int n;
    block_class cls[MAX_CLASSES];
} classes;

static int64_t *local_size(classes *c, mtf_dim dim, split cut)
{
    for (int k = 0; k < c->n; k++)
        if (c->cls[k].global == dim.size && split_equal(c->cls[k].split, cut))
            return &c->cls[k].local;
    MTF_CHECK(c->n < MAX_CLASSES, "more than %d kinds of dims in one instruction", MAX_CLASSES);
    const int64_t parts = split_parts(c->mesh, cut);
    c->cls[c->n] = (block_class){.global = dim.size,
                                 .local = block_bound(dim.size, parts),
                                 .split = cut,
                                 .uneven = dim.size % parts != 0};
    return &c->cls[c->n++].local;
}

/* The next combination of sizes of uneven dims; false after the last, which is the first again. */
static bool next_sizes(classes *c)
{
    for (int k = 0; k < c->n; k++) {
        if (!c->cls[k].uneven) continue;
        const int64_t most = block_bound(c->cls[k].global, split_parts(c->mesh, c->cls[k].split));
        if (c->cls[k].local == most) {
            c->cls[k].local--;
            return true;
        }
        c->cls[k].local = most;
    }
    return false;
}

static kernel_view view_of(classes *c, const instr *i, const value *v)
{
    kernel_view w = {.dtype = v->dtype, .rank = v->shape.rank};
    int64_t stride = 1;
    for (int d = w.rank - 1; d >= 0; d--) {
        w.dim[d] = -1;
        for (int k = 0; k < i->nspace; k++)
            if (i->space[k].dim.name == v->shape.dim[d].name) w.dim[d] = k;
        w.stride[d] = stride;
        stride *= *local_size(c, v->shape.dim[d], v->split[d]);
    }
    return w;
}

static kernel_args args_of(classes *c, const instr *i)
{
    kernel_args k = {.space = i->nspace, .nin = i->nin, .nout = i->nout, .attr = i->attr};
    for (int d = 0; d < i->nspace; d++)
        k.dim[d] = (kernel_dim){.local = *local_size(c, i->space[d].dim, i->space[d].split),
                                .global = i->space[d].dim.size};
    for (int v = 0; v < i->nin; v++)
        k.in[v] = view_of(c, i, i->in[v]);
    for (int v = 0; v < i->nout; v++)
        k.out[v] = view_of(c, i, i->out[v]);
    return k;
}

int64_t plan_work(const mtf_program *p)
{
    int64_t most = 0;
    for (const instr *i = p->first; i; i = i->next) {
        const kernel_impl *fast = i->kind == INSTR_COMPUTE ? kernel_find(i->op->name) : NULL;
        if (!fast || !fast->workspace) continue;
        classes c = {.mesh = p->mesh};
        do {
            const kernel_args k = args_of(&c, i);
            const int64_t bytes = fast->workspace(&k);
            if (bytes > most) most = bytes;
        } while (next_sizes(&c));
    }
    return (most / (FAULT(FAULT_PLAN_WORK) ? 2 : 1) + 63) / 64 * 64;
}
