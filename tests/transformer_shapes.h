/* SPDX-License-Identifier: Apache-2.0
 * The products of a Transformer, forward and backward, for tests and benchmarks. */
#ifndef TESTS_TRANSFORMER_SHAPES_H
#define TESTS_TRANSFORMER_SHAPES_H

#include <string.h>

#include "kernels/gemm.h"

/* "A,B->C" over one-letter dims: b batch, t and m length, d d_model, f d_ff, h heads, k d_kv,
 * v vocabulary. */
static const char *const shapes[][2] = {
    {"qkv", "btd,dhk->bthk"},      {"qkv dx", "bthk,dhk->btd"},     {"qkv dW", "btd,bthk->dhk"},
    {"scores", "bthk,bmhk->bhtm"}, {"dq", "bhtm,bmhk->bthk"},       {"dk", "bhtm,bthk->bmhk"},
    {"s*v", "bhtm,bmhk->bthk"},    {"s*v bhtk", "bhtm,bmhk->bhtk"}, {"ds", "bthk,bmhk->bhtm"},
    {"dv", "bhtm,bthk->bmhk"},     {"out", "bthk,hkd->btd"},        {"out dx", "btd,hkd->bthk"},
    {"out dW", "bthk,btd->hkd"},   {"ff1", "btd,df->btf"},          {"ff1 dx", "btf,df->btd"},
    {"ff1 dW", "btd,btf->df"},     {"ff2", "btf,fd->btd"},          {"ff2 dx", "btd,fd->btf"},
    {"ff2 dW", "btf,btd->fd"},     {"tied", "btd,vd->btv"},         {"tied dx", "btv,vd->btd"},
    {"tied dE", "btv,btd->vd"},    {"logits", "btd,dv->btv"},       {"logits dx", "btv,dv->btd"},
    {"logits dW", "btd,btv->dv"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static inline const char *shape_name(int i)
{
    return shapes[i][0];
}

/* Sizes of a dim in configurations L, S and two small ones with uneven sizes. */
static inline int64_t shape_size(char dim, int config)
{
    static const char names[] = "btmdfhkv";
    static const int64_t sizes[4][8] = {{8, 256, 256, 512, 2048, 8, 64, 8192},
                                        {16, 128, 128, 256, 1024, 4, 64, 8192},
                                        {2, 7, 9, 20, 31, 3, 5, 37},
                                        {3, 16, 16, 33, 17, 2, 16, 50}};
    return sizes[config][strchr(names, dim) - names];
}

/* The stride of `dim` in the compact row-major tensor `dims`, or 0 if it is not there. */
static inline int64_t shape_stride(const char *dims, int n, char dim, int config)
{
    int64_t stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        if (dims[i] == dim) return stride;
        stride *= shape_size(dims[i], config);
    }
    return 0;
}

static inline gemm_desc shape_desc(int i, int config)
{
    gemm_desc d = {.dtype = MTF_F32};
    const char *a = shapes[i][1], *b = strchr(a, ',') + 1, *c = strchr(b, '>') + 1;
    const int na = (int)(b - 1 - a), nb = (int)(c - 2 - b), nc = (int)strlen(c);
    for (const char *p = "btmdfhkv"; *p; p++) {
        const gemm_dim dim = {.n = shape_size(*p, config),
                              .a = shape_stride(a, na, *p, config),
                              .b = shape_stride(b, nb, *p, config),
                              .c = shape_stride(c, nc, *p, config)};
        if (dim.a && dim.b && dim.c)
            d.batch[d.nbatch++] = dim;
        else if (dim.a && dim.b)
            d.k[d.nk++] = dim;
        else if (dim.a)
            d.m[d.nm++] = dim;
        else if (dim.b)
            d.n[d.nn++] = dim;
    }
    return d;
}

#endif
