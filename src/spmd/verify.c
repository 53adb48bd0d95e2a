/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a program, checked after every stage. */
#include <string.h>

#include "base/check.h"
#include "spmd/program.h"

static unsigned split_axes_of(const value *v)
{
    unsigned mask = 0;
    for (int i = 0; i < v->shape.rank; i++) {
        const unsigned s = split_mask(v->split[i]);
        MTF_CHECK(!(mask & s), "value %%%d has two dims on one axis", v->id);
        mask |= s;
    }
    return mask;
}

static void check_pending(const instr *i, const char *stage)
{
    if (i->kind == INSTR_ALL_REDUCE || i->kind == INSTR_REDUCE_SCATTER) return;
    unsigned mask = 0, axes = 0, cut = 0; /* enough bits: only buckets have more operands */
    for (int k = 0; k < i->nin; k++) {
        axes |= i->in[k]->pending;
        if (i->in[k]->pending) mask |= 1u << k;
    }
    for (int d = 0; d < i->nspace; d++)
        cut |= split_mask(i->space[d].split);
    MTF_CHECK(!(axes & cut), "after %s: %s '%s' is cut over an axis of its partial operands", stage,
              instr_name(i), i->node->name);
    if (!mask) return;
    MTF_CHECK(i->kind == INSTR_COMPUTE || i->kind == INSTR_VIEW,
              "after %s: %s '%s' reads a partial value", stage, instr_name(i), i->node->name);
    MTF_CHECK(i->op && op_linear(i->out[0]->tensor->node, mask),
              "after %s: %s '%s' is not linear in its partial operands", stage, instr_name(i),
              i->node->name);
}

/* The result is partial over the operand's axes, less those of the call. */
static void check_reduction(const mtf_program *p, const instr *i, const char *stage)
{
    for (int k = 0; k < i->nin; k++) {
        const unsigned axes = split_mask(i->axes);
        MTF_CHECK((i->in[k]->pending & axes) == axes && i->in[k]->combine == i->combine &&
                      i->out[k]->pending == (i->in[k]->pending & ~axes),
                  "after %s: %s '%s' does not fit its operand", stage, instr_name(i),
                  i->node->name);
        MTF_CHECK(split_parts(p->mesh, i->axes) > 1, "after %s: a call over axes of size 1", stage);
    }
}

static void check_home(const mtf_program *p, const value *v, const char *stage)
{
    MTF_CHECK(!v->pending, "after %s: '%s' leaves the program as a partial value", stage,
              v->tensor->node->name);
    for (int d = 0; d < v->shape.rank; d++)
        MTF_CHECK(split_equal(v->split[d], layout_split(p->layout, v->shape.dim[d].name)),
                  "after %s: '%s' leaves the program away from home", stage, v->tensor->node->name);
}

void program_verify(mtf_program *p, const char *stage)
{
    bool *defined = mem_zalloc((size_t)p->nvalues + 1);
    for (int k = 0; k < p->nstates; k++)
        defined[p->state[k].value->id] = true;
    for (int k = 0; k < p->nfeeds; k++)
        defined[p->feed[k]->id] = true;
    for (const instr *i = p->first; i; i = i->next) {
        for (int k = 0; k < i->nin; k++)
            MTF_CHECK(defined[i->in[k]->id], "after %s: %s '%s' reads %%%d before it is defined",
                      stage, instr_name(i), i->node->name, i->in[k]->id);
        check_pending(i, stage);
        if (i->kind == INSTR_ALL_REDUCE || i->kind == INSTR_REDUCE_SCATTER)
            check_reduction(p, i, stage);
        if (i->kind == INSTR_ASSIGN) check_home(p, i->in[0], stage);
        for (int k = 0; k < i->nout; k++) {
            MTF_CHECK(!defined[i->out[k]->id], "after %s: %%%d is defined twice", stage,
                      i->out[k]->id);
            defined[i->out[k]->id] = true;
            MTF_CHECK(!(split_axes_of(i->out[k]) & i->out[k]->pending),
                      "after %s: %%%d is cut and partial over one axis", stage, i->out[k]->id);
        }
    }
    for (int k = 0; k < p->nfetches; k++) {
        MTF_CHECK(defined[p->fetch[k]->id], "after %s: fetch %d is not defined", stage, k);
        check_home(p, p->fetch[k], stage);
    }
    mem_free(defined);
}
