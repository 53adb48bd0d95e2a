/* SPDX-License-Identifier: Apache-2.0
 * shift: elements move along one dim; only what crosses a border between blocks travels. With an
 * offset per index of other dims it is a lookup. */
#include "mtf/ops.h"
#include "ops/rows.h"
#include "ops/tile.h"
#include "ops/window.h"

static void grad(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx)
{
    const window_attr *a = n->attr;
    dx[0] = mtf_shift(dy[0], a->dim, a->start, a->wrap);
}

static mtf_tensor *sample(mtf_graph *g, int k)
{
    static const int64_t offsets[] = {1, -2, 3, 9, -9, 23};
    const mtf_shape s = MTF_SHAPE({"a", 4}, {"b", 10}, {"c", 1});
    if (k == 12) return mtf_shift(sample_normal(g, s), "c", 1, true);
    if (k == 13) return mtf_shift(sample_normal(g, s), "c", -1, false);
    if (k > 13 && k < 28) { /* of a dim of which some processors have nothing; far; by nothing */
        static const int64_t far[] = {1, -1, 3, -4, INT64_MAX, INT64_MIN, 0};
        return mtf_shift(sample_normal(g, MTF_SHAPE({"b", 3}, {"a", 2})), "b", far[k / 2 - 7],
                         k % 2);
    }
    if (k == 28) return mtf_shift(sample_integers(g, MTF_SHAPE({"a", 4})), "a", 2, true);
    if (k > 28) return NULL;
    return mtf_shift(sample_normal(g, s), k % 2 ? "a" : "b", offsets[k / 2], k % 4 == 1);
}

const op op_shift = {
    .name = "shift",
    .doc =
        "out[.., i, ..] = x[.., i + start, ..] along dim, 0 or with wrap the other end coming in",
    .example = "mtf_shift(x, \"b\", -1, true)",
    .nin = 1,
    .attr_size = sizeof(window_attr),
    .fields = window_fields,
    .infer = window_infer,
    .role = window_role,
    .linear = window_linear,
    .grad = grad,
    .lower = window_lower,
    .sample = sample,
};

/* Offsets beyond the dim are equal to nearer ones, which cannot overflow. */
static int64_t nearest(int64_t offset, int64_t size, bool wrap)
{
    if (wrap) return offset % size;
    return offset > size ? size : offset < -size ? -size : offset;
}

mtf_tensor *mtf_shift(mtf_tensor *x, const char *dim, int64_t offset, bool wrap)
{
    if (!x) return NULL;
    mtf_graph *g = x->node->graph;
    window_attr a = {.dim = graph_intern(g, dim), .wrap = wrap};
    const int at = shape_find(&x->shape, a.dim);
    if (at >= 0) {
        a.size = x->shape.dim[at].size;
        a.start = -nearest(offset, a.size, wrap);
        if (a.start == 0) return x;
    }
    return graph_add(g, &op_shift, NULL, 1, &x, &a);
}

/* ---- an offset per index ---- */

static bool offsets_fit(mtf_graph *g, const mtf_tensor *x, const mtf_tensor *offset,
                        const char *dim)
{
    const int at = mtf_shape_find(&x->shape, dim);
    bool ok = offset->dtype == MTF_I32 && at >= 0 && x->shape.dim[at].size <= INT32_MAX &&
              mtf_shape_find(&offset->shape, dim) < 0;
    for (int i = 0; ok && i < offset->shape.rank; i++)
        ok = shape_find(&x->shape, offset->shape.dim[i].name) >= 0;
    if (!ok)
        graph_fail(
            g,
            "dynamic_shift of '%s' %s along %s by '%s' %s%s: the offsets must be i32 and "
            "have dims of the operand but not %s, of which there are no more than an i32 counts",
            x->node->name, shape_text(&x->shape), dim ? dim : "NULL", offset->node->name,
            mtf_dtype_name(offset->dtype), shape_text(&offset->shape), dim ? dim : "NULL");
    return ok;
}

mtf_tensor *mtf_dynamic_shift(mtf_tensor *x, mtf_tensor *offset, const char *dim, bool wrap)
{
    if (!x || !offset) return NULL;
    mtf_graph *g = x->node->graph;
    if (!offsets_fit(g, x, offset, dim)) return NULL;
    const mtf_dim along = mtf_tensor_dim(x, dim);
    const char *whole = shape_fresh_name(g, &x->shape, "whole");
    mtf_tensor *n = mtf_constant(g, (double)along.size, MTF_SCALAR, MTF_I32);
    if (wrap) offset = mtf_mod(offset, n);
    mtf_tensor *from = mtf_sub(mtf_range(g, along, MTF_I32), offset);
    if (wrap) {
        mtf_tensor *zero = mtf_constant(g, 0, MTF_SCALAR, MTF_I32);
        from = mtf_where(mtf_less(from, zero), mtf_add(from, n), from);
    }
    mtf_tensor *out = mtf_gather(mtf_rename(x, dim, whole), from, whole);
    return mtf_transpose(out, x->shape);
}

static mtf_tensor *dynamic_sample(mtf_graph *g, int k)
{
    const mtf_shape s = MTF_SHAPE({"a", 3}, {"b", 10}, {"c", 4});
    const mtf_shape of[] = {MTF_SCALAR, MTF_SHAPE({"a", 3}), MTF_SHAPE({"c", 4}, {"a", 3})};
    const mtf_shape small = MTF_SHAPE({"b", 3}, {"c", 1});
    if (k > 9) return NULL;
    if (k > 5) { /* far, and along dims of which some processors have nothing */
        mtf_tensor *by = sample_integers(g, k < 8 ? MTF_SCALAR : MTF_SHAPE({"c", 1}));
        return mtf_dynamic_shift(sample_normal(g, small), mtf_scale(by, k < 8 ? 300000000 : 1), "b",
                                 k % 2);
    }
    return mtf_dynamic_shift(sample_normal(g, s), sample_integers(g, of[k / 2]), "b", k % 2);
}

const op op_dynamic_shift = {
    .name = "dynamic_shift",
    .doc = "out[.., i, ..] = x[.., i - offset[..], ..] along dim, 0 or with wrap the other end "
           "coming in",
    .example = "mtf_dynamic_shift(x, i, \"b\", false)",
    .traits = TRAIT_COMPOSED,
    .sample = dynamic_sample,
};

/* ---- margins of neighbouring blocks ---- */

static bool halo_fits(const mtf_tensor *x, const char *blocks, const char *block, int64_t halo)
{
    const int of_blocks = mtf_shape_find(&x->shape, blocks), at = mtf_shape_find(&x->shape, block);
    if (of_blocks >= 0 && at >= 0 && of_blocks != at && halo >= 0 && halo <= INT32_MAX) return true;
    graph_fail(
        x->node->graph,
        "halo_exchange of '%s' %s: blocks %s of elements %s are no two dims of it, or the halo "
        "%lld is not in 0..%d",
        x->node->name, shape_text(&x->shape), blocks ? blocks : "NULL", block ? block : "NULL",
        (long long)halo, INT32_MAX);
    return false;
}

/* The last (of the blocks before) or first (of those behind) n elements of the block that is
 * `distance` away. They are cut out first, so that no more travels. */
static mtf_tensor *margin(mtf_tensor *x, const char *blocks, const char *block, int64_t n,
                          int64_t distance, bool before, bool wrap)
{
    const int64_t size = mtf_tensor_dim(x, block).size;
    mtf_tensor *part = mtf_slice(x, block, before ? size - n : 0, n);
    return mtf_shift(part, blocks, before ? distance : -distance, wrap);
}

enum { MOST_PIECES = 256 };

mtf_tensor *mtf_halo_exchange(mtf_tensor *x, const char *blocks, const char *block, int64_t left,
                              int64_t right, bool wrap)
{
    if (!x || !halo_fits(x, blocks, block, left) || !halo_fits(x, blocks, block, right))
        return NULL;
    const int64_t size = mtf_tensor_dim(x, block).size;
    const int64_t before = (left + size - 1) / size, behind = (right + size - 1) / size;
    if (before + behind >= MOST_PIECES)
        return graph_fail(x->node->graph,
                          "halo_exchange of '%s': halos of %lld and %lld reach over %lld blocks of "
                          "%lld; at most %d are possible",
                          x->node->name, (long long)left, (long long)right,
                          (long long)(before + behind), (long long)size, MOST_PIECES - 1);
    mtf_tensor *piece[MOST_PIECES];
    int n = 0;
    for (int64_t k = before; k >= 1; k--)
        piece[n++] =
            margin(x, blocks, block, k == before ? left - (k - 1) * size : size, k, true, wrap);
    piece[n++] = x;
    for (int64_t k = 1; k <= behind; k++)
        piece[n++] =
            margin(x, blocks, block, k == behind ? right - (k - 1) * size : size, k, false, wrap);
    return mtf_concat(n, piece, block);
}

static mtf_tensor *halo_sample(mtf_graph *g, int k)
{
    static const struct {
        int64_t left, right;
        bool wrap;
    } of[] = {{1, 1, false}, {1, 1, true}, {3, 3, false}, {2, 0, false},
              {0, 5, true},  {9, 0, true}, {0, 0, false}};
    if (k > 6 && k < 9) /* one block, of one element */
        return mtf_halo_exchange(sample_normal(g, MTF_SHAPE({"blocks", 1}, {"block", 1})), "blocks",
                                 "block", 2, 1, k % 2);
    if (k > 8) return NULL;
    const mtf_shape s = MTF_SHAPE({"blocks", 4}, {"a", 3}, {"block", 2});
    return mtf_halo_exchange(sample_normal(g, s), "blocks", "block", of[k].left, of[k].right,
                             of[k].wrap);
}

const op op_halo_exchange = {
    .name = "halo_exchange",
    .doc = "out = every block with the neighbouring elements of the blocks beside it",
    .example = "mtf_halo_exchange(x, \"a\", \"b\", 1, 1, true)",
    .traits = TRAIT_COMPOSED,
    .sample = halo_sample,
};
