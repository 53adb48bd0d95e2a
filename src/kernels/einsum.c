/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/einsum.h"

#include "kernels/gemm.h"

static bool has(const kernel_view *v, int dim)
{
    for (int i = 0; i < v->rank; i++)
        if (v->dim[i] == dim) return true;
    return false;
}

static mtf_status add(gemm_dim *list, int *n, gemm_dim d, mtf_err *err)
{
    if (*n == GEMM_MAX_DIMS)
        return err_set(err, MTF_INVALID, "einsum: more than %d dims of one kind in a product",
                       GEMM_MAX_DIMS);
    list[(*n)++] = d;
    return MTF_OK;
}

/* A dim of both operands and the result is a batch, of one operand and the result m or n, of both
 * operands alone k. */
static mtf_status describe(const kernel_args *k, gemm_desc *d, mtf_err *err)
{
    *d = (gemm_desc){.dtype = k->in[0].dtype};
    for (int i = 0; i < k->space; i++) {
        const bool a = has(&k->in[0], i), b = has(&k->in[1], i), c = has(&k->out[0], i);
        const gemm_dim dim = {.n = k->dim[i].local,
                              .a = view_stride(&k->in[0], i),
                              .b = view_stride(&k->in[1], i),
                              .c = view_stride(&k->out[0], i)};
        if (a && b && c)
            TRY(add(d->batch, &d->nbatch, dim, err));
        else if (a && c)
            TRY(add(d->m, &d->nm, dim, err));
        else if (b && c)
            TRY(add(d->n, &d->nn, dim, err));
        else
            TRY(add(d->k, &d->nk, dim, err));
    }
    return MTF_OK;
}

static mtf_status prepare(const kernel_args *k, const void **plan, mtf_err *err)
{
    gemm_desc d;
    const gemm *g = NULL;
    TRY(describe(k, &d, err));
    TRY(gemm_get(&d, &g, err));
    *plan = g;
    return MTF_OK;
}

/* What cannot be prepared needs none. */
static int64_t workspace(const kernel_args *k)
{
    gemm_desc d;
    const gemm *g = NULL;
    mtf_err err = {0};
    if (describe(k, &d, &err) != MTF_OK || gemm_plan(&d, &g, &err) != MTF_OK) return 0;
    return gemm_workspace(g);
}

static int64_t grains(const kernel_args *k)
{
    return gemm_grains(k->plan);
}

static void run(const kernel_args *k, int64_t begin, int64_t end)
{
    gemm_run(k->plan, k->in[0].data, k->in[1].data, k->out[0].data, k->work, begin, end);
}

static const char *implementation(const kernel_args *k)
{
    return gemm_impl(k->plan);
}

const kernel_impl kernel_einsum = {
    .row = "einsum",
    .prepare = prepare,
    .workspace = workspace,
    .grains = grains,
    .run = run,
    .implementation = implementation,
};
