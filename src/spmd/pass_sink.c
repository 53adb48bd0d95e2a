/* SPDX-License-Identifier: Apache-2.0
 * Sums move past linear work: all_reduce(x) + all_reduce(y) becomes all_reduce(x + y), and a sum
 * moves to where its value is smaller. A move is made only when, at its end, calls or bytes are
 * fewer; on the way it may pass work of equal size. A view costs nothing, so every sum passes it:
 * two that meet behind views of different names can join, and a gradient's sum stands where its
 * bucket can take it. No move raises bytes or calls. */
#include "base/fault.h"
#include "spmd/program.h"

static bool is_sum(const instr *i)
{
    return i && i->kind == INSTR_ALL_REDUCE && i->combine == COMBINE_SUM && i->nin == 1;
}

static int64_t bytes_of(const mtf_program *p, const value *v)
{
    return value_bound(p, v) * mtf_dtype_size(v->dtype);
}

/* Can `i` work on a partial value at all? */
static bool may_carry(const instr *i)
{
    if ((i->kind != INSTR_COMPUTE && i->kind != INSTR_VIEW) || i->nout != 1) return false;
    return !i->out[0]->pending || i->out[0]->combine == COMBINE_SUM;
}

/* May `i` work on partial values over `axes` of its operands in `mask`? Not where its work is cut
 * over one of the axes: each processor would do its own part with its own share of the sum, and the
 * rest of both would be lost. Not beside another partial operand: a product of sums is not the sum
 * of products. */
static bool mixes_nothing(const instr *i, unsigned mask, split axes)
{
    const unsigned over = split_mask(axes);
    for (int d = 0; d < i->nspace; d++)
        if (split_mask(i->space[d].split) & over) return false;
    for (int d = 0; d < i->out[0]->shape.rank; d++)
        if (split_mask(i->out[0]->split[d]) & over) return false;
    for (int k = 0; k < i->nin; k++)
        if (!(mask >> k & 1) && i->in[k]->pending) return false;
    return true;
}

/* The one instruction that uses v, or NULL. A fetched value has a further use. */
static instr *only_user(const value *v)
{
    if (v->uses != 1 || !v->def) return NULL;
    for (instr *i = v->def->next; i; i = i->next)
        for (int k = 0; k < i->nin; k++)
            if (i->in[k] == v) return i;
    return NULL;
}

/* Operands of `i` that are sums over `axes` and have no other use, as bits; `as_well` counts as one
 * of them. */
static unsigned sums_over(const instr *i, split axes, const value *as_well)
{
    unsigned mask = 0;
    for (int k = 0; k < i->nin; k++) {
        const value *v = i->in[k];
        const bool sum = is_sum(v->def) && split_equal(v->def->axes, axes) && v->uses == 1;
        if (v == as_well || sum) mask |= 1u << k;
    }
    return mask;
}

/* Operands in `mask` (at least two) become one sum that moves no more bytes than they did. */
static bool joins(const mtf_program *p, const instr *i, unsigned mask)
{
    int64_t bytes = 0;
    for (int k = 0; k < i->nin; k++)
        if (mask >> k & 1) bytes += bytes_of(p, i->in[k]);
    return op_linear(i->node, mask) && bytes_of(p, i->out[0]) <= bytes;
}

static unsigned position_of(const instr *i, const value *v)
{
    unsigned mask = 0;
    for (int k = 0; k < i->nin; k++)
        if (i->in[k] == v) mask |= 1u << k;
    return mask;
}

/* Would it pay to let the sum of `v`, `bytes` large, pass its user and perhaps more? */
static bool pays(const mtf_program *p, const value *v, split axes, int64_t bytes)
{
    const instr *user = only_user(v);
    if (!user || !may_carry(user)) return false;
    const unsigned alone = position_of(user, v), all = sums_over(user, axes, v);
    if (!mixes_nothing(user, all, axes)) return false;
    if (all != alone && joins(p, user, all)) return true;
    if (!op_linear(user->node, alone) || !mixes_nothing(user, alone, axes)) return false;
    const int64_t after = bytes_of(p, user->out[0]);
    if (after != bytes) return after < bytes;
    return pays(p, user->out[0], axes, bytes);
}

/* May the sum of `v` alone pass `i`? */
static bool moves_alone(const mtf_program *p, const instr *i, const value *v, split axes)
{
    const bool linear = op_linear(i->node, position_of(i, v)) || FAULT(FAULT_SINK_NONLINEAR);
    if (v->uses != 1 || !linear) return false;
    if (FAULT(FAULT_SINK_NONLINEAR) && !op_linear(i->node, position_of(i, v))) return true;
    return i->kind == INSTR_VIEW || pays(p, v, axes, bytes_of(p, v));
}

/* `i` works on the partial operands in `mask`; their sum is taken of its result. */
static void move_behind(mtf_program *p, instr *i, unsigned mask, split axes)
{
    for (int k = 0; k < i->nin; k++) {
        if (!(mask >> k & 1) || !is_sum(i->in[k]->def)) continue;
        instr *sum = i->in[k]->def;
        i->in[k] = sum->in[0];
        if (sum->out[0]->uses > 0) { /* an operand that stands twice shares one sum */
            sum->out[0]->uses = 0;
            program_remove(p, sum);
        }
    }
    value *result = i->out[0], *partial = program_value(p, result->tensor, &result->shape);
    for (int d = 0; d < result->shape.rank; d++)
        partial->split[d] = result->split[d];
    partial->pending = result->pending | split_mask(axes);
    partial->combine = COMBINE_SUM;
    partial->def = i;
    partial->uses = 1;
    i->out[0] = partial;
    instr *sum = program_instr(p, i, INSTR_ALL_REDUCE, i->node, 1, 1);
    sum->in[0] = partial;
    sum->out[0] = result;
    sum->axes = axes;
    sum->combine = COMBINE_SUM;
    result->def = sum;
}

static bool try_move(mtf_program *p, instr *i)
{
    if (!may_carry(i)) return false;
    for (int k = 0; k < i->nin; k++) {
        const value *v = i->in[k];
        if (!is_sum(v->def) || v->uses != (int)__builtin_popcount(position_of(i, v))) continue;
        const split axes = v->def->axes;
        const unsigned all = sums_over(i, axes, v), alone = position_of(i, v);
        const bool joint = all != alone && joins(p, i, all) && mixes_nothing(i, all, axes);
        if (!joint && !mixes_nothing(i, alone, axes)) continue;
        if (!joint && !moves_alone(p, i, v, axes)) continue;
        move_behind(p, i, joint ? all : alone, axes);
        return true;
    }
    return false;
}

void pass_sink(mtf_program *p)
{
    program_count(p);
    for (instr *i = p->first; i; i = i->next)
        while (try_move(p, i))
            continue;
    program_count(p);
}
