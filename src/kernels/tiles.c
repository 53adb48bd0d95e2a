/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tiles.h"

/* Elements of a grain: 64 KiB of f32, so that a grain's operands stay in a core's second cache. */
enum { GRAIN = 16384 };

/* The result's dims after neighbours that every operand walks in one stride have been merged. */
typedef struct walk {
    int rank, nin;
    int64_t n[KERNEL_MAX_RANK + 1];
    int64_t stride[TILE_MAX_IN][KERNEL_MAX_RANK + 1]; /* bytes */
    int64_t index[KERNEL_MAX_RANK + 1];               /* global index per step */
    uint64_t origin;                                  /* global index of the first element */
} walk;

static int64_t elements(const kernel_args *k)
{
    int64_t n = 1;
    for (int d = 0; d < k->out[0].rank; d++)
        n *= k->dim[d].local;
    return n;
}

int64_t tiles_grains(const kernel_args *k)
{
    return (elements(k) + GRAIN - 1) / GRAIN;
}

/* Global row-major strides, with the batch at its full size. */
static void add_index(walk *w, const kernel_args *k)
{
    const tile_origin *origin = k->attr;
    int64_t step = 1;
    for (int d = k->out[0].rank - 1; d >= 0; d--) {
        const bool batch = d == origin->batch_dim;
        const int64_t offset = k->dim[d].offset + (batch ? k->run->batch_offset : 0);
        w->index[d] = step;
        w->origin += (uint64_t)(offset * step);
        step *= batch ? origin->batch_full : k->dim[d].global;
    }
}

static bool mergeable(const walk *w, int outer, int inner)
{
    for (int v = 0; v < w->nin; v++)
        if (w->stride[v][outer] != w->stride[v][inner] * w->n[inner]) return false;
    return w->index[outer] == w->index[inner] * w->n[inner];
}

static walk describe(const kernel_args *k, bool indexed)
{
    walk w = {.rank = 0, .nin = k->nin}, all = w;
    const int rank = k->out[0].rank;
    for (int d = 0; d < rank; d++) {
        all.n[d] = k->dim[d].local;
        for (int v = 0; v < k->nin; v++)
            all.stride[v][d] = view_stride(&k->in[v], d) * mtf_dtype_size(k->in[v].dtype);
    }
    if (indexed) add_index(&all, k);
    w.origin = all.origin;
    for (int d = 0; d < rank; d++) {
        if (all.n[d] == 1) continue;
        const int at = w.rank++;
        w.n[at] = all.n[d];
        w.index[at] = all.index[d];
        for (int v = 0; v < k->nin; v++)
            w.stride[v][at] = all.stride[v][d];
        if (at == 0 || !mergeable(&w, at - 1, at)) continue;
        w.n[at - 1] *= w.n[at];
        w.index[at - 1] = w.index[at];
        for (int v = 0; v < k->nin; v++)
            w.stride[v][at - 1] = w.stride[v][at];
        w.rank--;
    }
    /* A run is consecutive in the global index too; where no dim is, runs have one element. */
    if (w.rank == 0 || (indexed && w.index[w.rank - 1] != 1)) {
        w.n[w.rank] = 1;
        w.index[w.rank] = 1;
        for (int v = 0; v < k->nin; v++)
            w.stride[v][w.rank] = 0;
        w.rank++;
    }
    return w;
}

/* Where element `at` (row-major) lies in each operand, in bytes, and in the global index. */
static void locate(const walk *w, int64_t at, int64_t *in, uint64_t *index)
{
    for (int v = 0; v < w->nin; v++)
        in[v] = 0;
    *index = w->origin;
    for (int d = w->rank - 1; d >= 0; d--) {
        const int64_t i = at % w->n[d];
        at /= w->n[d];
        for (int v = 0; v < w->nin; v++)
            in[v] += i * w->stride[v][d];
        *index += (uint64_t)(i * w->index[d]);
    }
}

void tiles_run(tile_fn *fn, bool indexed, const kernel_args *k, int64_t begin, int64_t end)
{
    const walk w = describe(k, indexed);
    const int64_t total = elements(k), inner = w.n[w.rank - 1];
    const int64_t last = end * GRAIN < total ? end * GRAIN : total;
    const int64_t size = mtf_dtype_size(k->out[0].dtype);
    tile_args t = {.dtype = k->out[0].dtype, .attr = k->attr, .run = k->run};
    t.in_dtype = k->nin ? k->in[k->nin - 1].dtype : t.dtype;
    for (int v = 0; v < k->nin; v++)
        t.stride[v] = w.stride[v][w.rank - 1] / mtf_dtype_size(k->in[v].dtype);
    for (int64_t at = begin * GRAIN; at < last; at += t.n) {
        int64_t in[TILE_MAX_IN];
        locate(&w, at, in, &t.index);
        const int64_t row_left = inner - at % inner;
        t.n = row_left < last - at ? row_left : last - at;
        for (int v = 0; v < k->nin; v++)
            t.in[v] = (const char *)k->in[v].data + in[v];
        t.out = (char *)k->out[0].data + at * size;
        fn(&t);
    }
}
