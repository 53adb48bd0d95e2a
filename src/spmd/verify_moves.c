/* SPDX-License-Identifier: Apache-2.0
 * What every move does to the cuts and the pending axes of a value, checked. One row per kind says
 * where its axes come from and where they go. */
#include "base/check.h"
#include "base/fault.h"
#include "spmd/program.h"

typedef struct move_rule {
    bool leaves;   /* `axes` were the minor-most of dim `dim` and are no longer */
    bool arrives;  /* `axes` come behind those of dim `dim`, or of `to_dim` where they left `dim` */
    bool reduces;  /* the operand is partial over `axes`, the result is not */
    bool relabels; /* every dim is in as many parts as before; `axes` are all that are used */
    bool window;   /* of dim `dim` of the operands other elements; any cuts */
    bool free;     /* any shape and cuts of as many elements; `axes` are all that are used */
} move_rule;

static const move_rule rules[INSTR_KINDS] = {
    [INSTR_SLICE] = {.arrives = true},
    [INSTR_ALL_REDUCE] = {.reduces = true},
    [INSTR_REDUCE_SCATTER] = {.arrives = true, .reduces = true},
    [INSTR_ALL_GATHER] = {.leaves = true},
    [INSTR_ALL_TO_ALL] = {.leaves = true, .arrives = true},
    [INSTR_PERMUTE] = {.relabels = true},
    [INSTR_EXCHANGE] = {.free = true},
    [INSTR_WINDOW] = {.window = true},
};

/* A move that is being checked, for the messages. */
typedef struct subject {
    const mtf_program *p;
    const instr *i;
    const char *stage;
} subject;

#define CHECK_MOVE(s, cond, what)                                                                  \
    MTF_CHECK(cond, "after %s: %s '%s' %s", (s)->stage, instr_name((s)->i), (s)->i->node->name,    \
              what)

static bool is_dim(const instr *i, int dim)
{
    return dim >= 0 && dim < i->in[0]->shape.rank;
}

static void check_fields(const subject *s, const move_rule *r)
{
    const instr *i = s->i;
    const bool one = r->leaves || r->arrives || r->window, two = r->leaves && r->arrives;
    CHECK_MOVE(s,
               r->window ? i->nin >= 1 && i->nout == 1
                         : i->nin == i->nout && (i->nin == 1 || i->kind == INSTR_ALL_REDUCE),
               "has not as many results as operands");
    CHECK_MOVE(s, one ? is_dim(i, i->dim) : i->dim == -1, "has a wrong dim");
    CHECK_MOVE(s, two ? is_dim(i, i->to_dim) && i->to_dim != i->dim : i->to_dim == -1,
               "has a wrong second dim");
    CHECK_MOVE(s, i->axes.n > 0 || r->window, "has no axes");
    for (int k = 0; k < i->axes.n; k++)
        CHECK_MOVE(s, s->p->mesh->size[i->axes.axis[k]] > 1, "has an axis of size 1");
}

/* `less` with `axes` behind it, minor to its own. */
static bool is_with(split less, split axes, split more)
{
    for (int k = 0; k < axes.n && less.n < MTF_MAX_AXES; k++)
        less.axis[less.n++] = axes.axis[k];
    return split_equal(less, more) || (FAULT(FAULT_VERIFY_TAIL) && less.n == more.n);
}

static void check_dim(const subject *s, const move_rule *r, const value *in, const value *out,
                      int d)
{
    const instr *i = s->i;
    const int to = r->leaves ? i->to_dim : i->dim;
    if (r->leaves && d == i->dim)
        CHECK_MOVE(s, is_with(out->split[d], i->axes, in->split[d]),
                   "takes other axes than the minor-most of its dim");
    else if (r->arrives && d == to)
        CHECK_MOVE(s, is_with(in->split[d], i->axes, out->split[d]),
                   "does not put its axes behind those of its dim");
    else if (r->relabels)
        CHECK_MOVE(s,
                   split_parts(s->p->mesh, in->split[d]) == split_parts(s->p->mesh, out->split[d]),
                   "changes the number of parts of a dim");
    else
        CHECK_MOVE(s, split_equal(in->split[d], out->split[d]), "changes the cut of another dim");
}

static void check_window(const subject *s, const value *in, const value *out)
{
    const instr *i = s->i;
    mtf_shape same = out->shape;
    same.dim[i->dim].size = in->shape.dim[i->dim].size;
    CHECK_MOVE(s, shape_equal(&in->shape, &same), "changes another dim");
    CHECK_MOVE(s, i->op || !window_has_gap(i), "takes elements that its dim does not have");
    CHECK_MOVE(s, !i->period || i->period == window_length(i), "has another period than its dim");
}

static void check_cuts(const subject *s, const move_rule *r, const value *in, const value *out)
{
    if (r->window) {
        check_window(s, in, out);
        return;
    }
    if (r->relabels || r->free)
        CHECK_MOVE(s, split_mask(s->i->axes) == (value_axes(in) | value_axes(out)),
                   "does not name the axes that it moves over");
    if (r->free) {
        CHECK_MOVE(s, mtf_shape_size(&in->shape) == mtf_shape_size(&out->shape),
                   "changes the number of elements");
        return;
    }
    CHECK_MOVE(s, shape_equal(&in->shape, &out->shape), "changes the shape");
    for (int d = 0; d < in->shape.rank; d++)
        check_dim(s, r, in, out, d);
}

/* A sum is no longer partial over the axes of the call; what else is pending stays so. */
static void check_partial(const subject *s, const move_rule *r, const value *in, const value *out)
{
    const unsigned axes = split_mask(s->i->axes), over = in->pending & axes;
    if (r->reduces)
        CHECK_MOVE(s, over == axes && in->combine == s->i->combine,
                   "reduces over axes or in a way that its operand is not partial over");
    else
        CHECK_MOVE(s, !over, "moves over an axis that its operand is partial over");
    CHECK_MOVE(s,
               out->pending == (r->reduces ? in->pending & ~axes : in->pending) ||
                   FAULT(FAULT_VERIFY_PENDING),
               "has a result that is partial over other axes");
    CHECK_MOVE(s, !out->pending || out->combine == in->combine,
               "has a result that combines in another way");
}

void verify_move(const mtf_program *p, const instr *i, const char *stage)
{
    const subject s = {.p = p, .i = i, .stage = stage};
    const move_rule *r = &rules[i->kind];
    check_fields(&s, r);
    for (int k = 0; k < i->nin; k++) {
        const value *out = i->out[r->window ? 0 : k];
        CHECK_MOVE(&s, i->in[k]->dtype == out->dtype, "changes the type");
        check_cuts(&s, r, i->in[k], out);
        check_partial(&s, r, i->in[k], out);
    }
}
