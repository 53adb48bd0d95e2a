/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/gemm_plan.h"

int64_t gemm_total(const gemm_dim *dims, int nd)
{
    int64_t n = 1;
    for (int i = 0; i < nd; i++)
        n *= dims[i].n;
    return n;
}

/* Whether x comes before y: larger strides first, C's above A's above B's. */
static bool before(const gemm_dim *x, const gemm_dim *y)
{
    if (x->c != y->c) return x->c > y->c;
    if (x->a != y->a) return x->a > y->a;
    return x->b > y->b;
}

static bool adjacent(const gemm_dim *outer, const gemm_dim *inner)
{
    return outer->a == inner->a * inner->n && outer->b == inner->b * inner->n &&
           outer->c == inner->c * inner->n;
}

/* Drops, sorts and merges one group; returns how many dims are left. */
static int simplify(gemm_dim *dims, int nd)
{
    int kept = 0;
    for (int i = 0; i < nd; i++) {
        if (dims[i].n == 1) continue;
        const gemm_dim d = dims[i];
        int at = kept++;
        for (; at > 0 && before(&d, &dims[at - 1]); at--)
            dims[at] = dims[at - 1];
        dims[at] = d;
    }
    int merged = 0;
    for (int i = 0; i < kept; i++) {
        if (merged > 0 && adjacent(&dims[merged - 1], &dims[i])) {
            const int64_t n = dims[merged - 1].n;
            dims[merged - 1] = dims[i];
            dims[merged - 1].n *= n;
        } else {
            dims[merged++] = dims[i];
        }
    }
    memset(dims + merged, 0, (size_t)(GEMM_MAX_DIMS - merged) * sizeof *dims);
    return merged;
}

static bool has_unit_c(const gemm_dim *dims, int nd)
{
    return nd > 0 && dims[nd - 1].c == 1;
}

static void swap_operands(gemm_dim *dims, int nd)
{
    for (int i = 0; i < nd; i++) {
        const int64_t a = dims[i].a;
        dims[i].a = dims[i].b;
        dims[i].b = a;
    }
}

bool gemm_canonicalise(gemm_desc *d)
{
    d->nbatch = simplify(d->batch, d->nbatch);
    d->nm = simplify(d->m, d->nm);
    d->nn = simplify(d->n, d->nn);
    if (has_unit_c(d->n, d->nn) || !has_unit_c(d->m, d->nm)) {
        d->nk = simplify(d->k, d->nk);
        return false;
    }
    gemm_dim dims[GEMM_MAX_DIMS];
    const int nd = d->nm;
    memcpy(dims, d->m, sizeof dims);
    memcpy(d->m, d->n, sizeof dims);
    memcpy(d->n, dims, sizeof dims);
    d->nm = d->nn;
    d->nn = nd;
    swap_operands(d->batch, d->nbatch);
    swap_operands(d->m, d->nm);
    swap_operands(d->n, d->nn);
    swap_operands(d->k, d->nk);
    d->nk = simplify(d->k, d->nk);
    return true;
}
