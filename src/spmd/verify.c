/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a program, checked after every stage. */
#include <string.h>

#include "base/check.h"
#include "spmd/program.h"

static unsigned split_axes_of(const value *v)
{
    int axes = 0;
    for (int i = 0; i < v->shape.rank; i++)
        axes += v->split[i].n;
    MTF_CHECK(axes == __builtin_popcount(value_axes(v)), "value %%%d is cut twice over one axis",
              v->id);
    return value_axes(v);
}

static void check_pending(const instr *i, const char *stage)
{
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
        if (i->kind == INSTR_SLICE || instr_is_collective(i))
            verify_move(p, i, stage);
        else
            check_pending(i, stage);
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
