/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "spmd/reshard.h"

bool placement_equal(const placement *a, const placement *b)
{
    if (a->pending != b->pending) return false;
    for (int d = 0; d < MTF_MAX_RANK; d++)
        if (!split_equal(a->split[d], b->split[d])) return false;
    return true;
}

placement placement_of(const value *v)
{
    placement p = {.pending = v->pending};
    memcpy(p.split, v->split, sizeof p.split);
    return p;
}

unsigned placement_axes(const placement *p)
{
    unsigned mask = 0;
    for (int d = 0; d < MTF_MAX_RANK; d++)
        mask |= split_mask(p->split[d]);
    return mask;
}

split placement_axes_between(const mtf_mesh *m, const placement *a, const placement *b)
{
    const unsigned used = placement_axes(a) | placement_axes(b);
    split axes = {0};
    for (int i = 0; i < m->naxes; i++)
        if (used >> i & 1) axes.axis[axes.n++] = (int8_t)i;
    return axes;
}

int64_t placement_bytes(const mtf_mesh *m, const mtf_shape *s, int64_t element, const placement *p)
{
    int64_t n = element;
    for (int d = 0; d < s->rank; d++)
        n *= block_bound(s->dim[d].size, split_parts(m, p->split[d]));
    return n;
}

price price_sum(price a, price b)
{
    return (price){a.seconds + b.seconds, a.bytes + b.bytes, a.calls + b.calls, a.moves + b.moves};
}

/* Sums of seconds in another order may differ in their last bits: that is a tie. */
bool price_less(price a, price b)
{
    const double more = fmax(a.seconds, b.seconds);
    if (fabs(a.seconds - b.seconds) > 1e-9 * more) return a.seconds < b.seconds;
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (a.calls != b.calls) return a.calls < b.calls;
    return a.moves < b.moves;
}
