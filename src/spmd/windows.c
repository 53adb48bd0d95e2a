/* SPDX-License-Identifier: Apache-2.0
 * Slices, paddings, shifts, concatenations: the result takes other elements of one dim. Whatever
 * the cuts of operands and result are, one exchange brings each element straight to where it
 * belongs; where the dim is not cut it is a local copy. */
#include "spmd/lowering.h"

/* The axes that the elements move over: those of the dim, and of dims that are cut in another way.
 */
static void add_axes(unsigned *axes, const value *from, const placement *to, int dim)
{
    for (int d = 0; d < from->shape.rank; d++)
        if (d == dim || !split_equal(from->split[d], to->split[d]))
            *axes |= split_mask(from->split[d]) | split_mask(to->split[d]);
}

static split axes_from(const mtf_mesh *m, unsigned mask)
{
    split s = {0};
    for (int a = 0; a < m->naxes; a++)
        if (mask >> a & 1) s.axis[s.n++] = (int8_t)a;
    return s;
}

bool lower_window(lowering *l, mtf_node *n, int o, const char *dim, int64_t start, bool wrap)
{
    const mtf_tensor *out = &n->out[o];
    const int at = shape_find(&out->shape, dim);
    bool conflict;
    value *in[KERNEL_MAX_IN];
    unsigned axes = 0;
    const placement home = home_placement(l, &out->shape, &conflict);
    placement to = home;
    /* One element is wanted by whoever reads it, rarely by the one processor that is its home. */
    if (out->shape.dim[at].size == 1) to.split[at].n = 0;
    for (int k = 0; k < n->nin; k++) {
        in[k] = emit_home(l, n, holding_of(l, n->in[k]));
        if (!in[k]) return false;
        add_axes(&axes, in[k], &to, at);
    }
    instr *i = program_instr(l->p, NULL, INSTR_WINDOW, n, n->nin, 1);
    for (int k = 0; k < n->nin; k++)
        i->in[k] = in[k];
    i->op = n->op;
    i->attr = n->attr;
    i->dim = at;
    i->start = start;
    i->axes = axes_from(l->p->mesh, axes);
    i->out[0] = value_at(l, out, &out->shape, &to, COMBINE_SUM);
    if (wrap) i->period = window_length(i);
    holding *h = holding_new(l, out);
    holding_add(h, i->out[0]);
    if (placement_equal(&to, &home)) h->home = i->out[0];
    return true;
}
