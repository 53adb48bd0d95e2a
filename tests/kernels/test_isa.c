/* SPDX-License-Identifier: Apache-2.0
 * One result on every instruction set: each elementwise row's tile, and reductions, in f32, f64 and
 * bf16 with odd lengths. And fast kernels agree with the reference ones. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bfloat.h"
#include "base/isa.h"
#include "base/random.h"
#include "graph/op.h"
#include "kernels/table.h"
#include "support/eval.h"

enum { LONGEST = 1003, SPECIALS = 14, FLOATS = 3 };

static const mtf_dtype floats[FLOATS] = {MTF_F32, MTF_F64, MTF_BF16};

static const double specials[SPECIALS] = {0.0,   -0.0,  INFINITY, -INFINITY, 1,      -1,    1e-310,
                                          1e-40, 1e300, -1e300,   88.7,      -103.9, 709.7, 0.5};

/* Values of one operand: the special ones first, then normal ones of several scales. */
static void fill(void *data, mtf_dtype type, int which)
{
    static const double scales[] = {1, 0.01, 20, 1000};
    for (int64_t i = 0; i < LONGEST; i++) {
        double z = 0;
        random_fill_normal_f64(&z, random_fold(5, (uint64_t)which), 0, (uint64_t)i, 1);
        z *= scales[i % 4];
        /* Every special value meets every other one. */
        if (i < SPECIALS * SPECIALS) z = specials[which % 2 ? i / SPECIALS : i % SPECIALS];
        if (type == MTF_F32)
            ((float *)data)[i] = (float)z;
        else if (type == MTF_BF16)
            ((bf16 *)data)[i] = bf16_from_f64(z);
        else if (type == MTF_F64)
            ((double *)data)[i] = z;
        else if (type == MTF_I32)
            ((int32_t *)data)[i] = (int32_t)((i * 37 + which * 5) % 2003) - 1001;
        else
            ((uint8_t *)data)[i] = (i * 7 + which) % 3 == 0;
    }
}

static mtf_dtype as_type(mtf_dtype t, mtf_dtype f)
{
    return mtf_dtype_is_float(t) ? f : t;
}

/* Equal bits; all NaN are alike. */
static bool same(const char *a, const char *b, mtf_dtype type, int64_t i)
{
    const int64_t size = mtf_dtype_size(type);
    if (memcmp(a + i * size, b + i * size, (size_t)size) == 0) return true;
    if (type == MTF_F32)
        return isnan(((const float *)(const void *)a)[i]) &&
               isnan(((const float *)(const void *)b)[i]);
    if (type == MTF_BF16)
        return isnan(bf16_to_f32(((const bf16 *)(const void *)a)[i])) &&
               isnan(bf16_to_f32(((const bf16 *)(const void *)b)[i]));
    if (type == MTF_F64)
        return isnan(((const double *)(const void *)a)[i]) &&
               isnan(((const double *)(const void *)b)[i]);
    return false;
}

typedef struct buffers {
    _Alignas(64) char in[TILE_MAX_IN][LONGEST * 8];
    _Alignas(64) char out[ISA_LEVELS][LONGEST * 8];
} buffers;

/* What `t` computed in bf16 is what f32 gives for the same values, rounded. */
static void check_rounded(const mtf_node *node, const tile_args *t, buffers *b)
{
    static _Alignas(64) float in[TILE_MAX_IN][LONGEST], out[LONGEST];
    tile_args wide = *t;
    wide.dtype = MTF_F32;
    wide.out = out;
    for (int k = 0; k < node->nin; k++) {
        if (!mtf_dtype_is_float(node->in[k]->dtype)) continue;
        wide.in_dtype = MTF_F32;
        wide.in[k] = in[k];
        for (int64_t i = 0; i < LONGEST; i++)
            in[k][i] = bf16_to_f32(((const bf16 *)(const void *)b->in[k])[i]);
    }
    node->op->tile(&wide);
    for (int64_t i = 0; i < t->n; i++) {
        const bf16 want = bf16_from_f32(out[i]);
        char both[2][sizeof want];
        memcpy(both[0], &want, sizeof want);
        memcpy(both[1], b->out[0] + i * (int64_t)sizeof want, sizeof want);
        if (!same(both[0], both[1], MTF_BF16, 0))
            fail_msg("row %s, %lld elements: element %lld in bf16 is not that in f32, rounded",
                     node->op->name, (long long)t->n, (long long)i);
    }
}

/* One node's tile over n elements; bit k of `broadcast` gives operand k the stride 0. */
static void check_tile(const mtf_node *node, buffers *b, mtf_dtype f, int64_t n, unsigned broadcast)
{
    static const kernel_run run = {.seed = 3, .step = 2};
    const mtf_dtype out = as_type(node->out[0].dtype, f);
    tile_args t = {.n = n, .dtype = out, .in_dtype = out, .attr = node->attr, .run = &run};
    t.index = 11;
    for (int k = 0; k < node->nin; k++) {
        const mtf_dtype type = as_type(node->in[k]->dtype, f);
        fill(b->in[k], type, k);
        t.in[k] = b->in[k];
        t.stride[k] = broadcast >> k & 1 ? 0 : 1;
        t.in_dtype = type;
    }
    for (int level = 0; level < ISA_LEVELS; level++) {
        isa_set((isa_level)level);
        memset(b->out[level], 0, sizeof b->out[level]);
        t.out = b->out[level];
        node->op->tile(&t);
        for (int64_t i = 0; i < n; i++)
            if (!same(b->out[0], b->out[level], out, i))
                fail_msg("row %s, %s, %lld elements, strides %x: element %lld differs on %s",
                         node->op->name, mtf_dtype_name(f), (long long)n, broadcast, (long long)i,
                         isa_name((isa_level)level));
    }
    isa_set(isa_best());
    if (f == MTF_BF16 && mtf_dtype_is_float(node->out[0].dtype)) check_rounded(node, &t, b);
}

static void check_node(const mtf_node *n, buffers *b)
{
    static const int64_t lengths[] = {1, 7, 37, LONGEST};
    for (int f = 0; f < FLOATS; f++)
        for (int l = 0; l < 4; l++)
            for (unsigned broadcast = 0; broadcast < 1u << n->nin; broadcast++)
                check_tile(n, b, floats[f], lengths[l], broadcast);
}

static const mtf_node *node_of(const mtf_graph *g, const op *row)
{
    for (int64_t i = 0; i < g->nnodes; i++)
        if (g->node[i]->op == row) return g->node[i];
    return NULL;
}

static void tiles_have_equal_bits(void **state)
{
    (void)state;
    buffers *b = test_malloc(sizeof *b + 64);
    buffers *aligned = (buffers *)(((uintptr_t)b + 63) / 64 * 64);
    int rows = 0;
    for (int r = 0; r < op_count; r++) {
        const op *row = op_rows[r];
        if (!(row->traits & TRAIT_TILE)) continue;
        bool checked = false;
        for (int k = 0;; k++) {
            mtf_graph *g = mtf_graph_new();
            if (!row->sample || !row->sample(g, k)) {
                mtf_graph_free(&g);
                break;
            }
            const mtf_node *n = node_of(g, row);
            if (n) check_node(n, aligned);
            checked = checked || n;
            mtf_graph_free(&g);
        }
        if (!checked) fail_msg("row %s was not checked", row->name);
        rows++;
    }
    assert_in_range(rows, 40, 200);
    test_free(b);
}

/* ---- reductions, as programs ---- */

static const mtf_dim a = {"a", 7}, b = {"b", 131}, c = {"c", 3};

typedef mtf_tensor *reduction(mtf_tensor *, mtf_shape);
static reduction *const reductions[] = {mtf_reduce_sum, mtf_reduce_mean, mtf_reduce_max,
                                        mtf_reduce_min, mtf_reduce_logsumexp};

static mtf_tensor *make_input(eval *e, mtf_shape shape, mtf_dtype type)
{
    const int64_t n = mtf_shape_size(&shape);
    double *values = test_malloc(sizeof *values * (size_t)n);
    random_fill_normal_f64(values, random_fold(17, 1), 0, (uint64_t)e->nfeeds << 32, n);
    mtf_tensor *t = eval_input(e, shape, type, values);
    test_free(values);
    return t;
}

static void compare_levels(eval *e, mtf_tensor *t)
{
    const mtf_shape s = mtf_tensor_shape(t);
    const size_t n = (size_t)mtf_shape_size(&s);
    double *want = test_malloc(sizeof *want * n), *got = test_malloc(sizeof *got * n);
    for (int level = 0; level < ISA_LEVELS; level++) {
        isa_set((isa_level)level);
        eval_run(e, "", "", t, level ? got : want);
        if (level && memcmp(want, got, sizeof *want * n) != 0)
            fail_msg("'%s' %s differs on %s", mtf_tensor_name(t),
                     mtf_dtype_name(mtf_tensor_dtype(t)), isa_name((isa_level)level));
    }
    isa_set(isa_best());
    test_free(want);
    test_free(got);
}

static void reductions_have_equal_bits(void **state)
{
    (void)state;
    const mtf_shape to[] = {MTF_SCALAR,   MTF_SHAPE(a),    MTF_SHAPE(b),
                            MTF_SHAPE(c), MTF_SHAPE(a, b), MTF_SHAPE(c, a)};
    for (int f = 0; f < FLOATS; f++) {
        eval e = eval_open();
        mtf_tensor *x = make_input(&e, MTF_SHAPE(a, b, c), floats[f]);
        mtf_tensor *y = make_input(&e, MTF_SHAPE(c, a, b), floats[f]);
        for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++)
            for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
                compare_levels(&e, reductions[r](x, to[i]));
                compare_levels(&e, reductions[r](y, to[i]));
            }
        compare_levels(&e, mtf_softmax(x, "b"));
        compare_levels(&e, mtf_log_softmax(y, "a"));
        for (int to_type = 0; to_type < FLOATS; to_type++)
            compare_levels(&e, mtf_cast(x, floats[to_type]));
        eval_close(&e);
    }
}

/* ---- fast and reference kernels ---- */

static void compare_kernels(eval *e, mtf_tensor *t, double tolerance)
{
    const mtf_shape s = mtf_tensor_shape(t);
    const int64_t n = mtf_shape_size(&s);
    double *want = test_malloc(sizeof *want * (size_t)n),
           *got = test_malloc(sizeof *got * (size_t)n);
    kernel_use_reference(true);
    eval_run(e, "", "", t, want);
    kernel_use_reference(false);
    eval_run(e, "", "", t, got);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(want[i] - got[i]) <= tolerance * (1 + fabs(want[i]))))
            fail_msg("'%s': element %lld is %.9g; the reference kernel says %.9g",
                     mtf_tensor_name(t), (long long)i, got[i], want[i]);
    test_free(want);
    test_free(got);
}

static void fast_kernels_agree(void **state)
{
    (void)state;
    assert_non_null(kernel_find("einsum"));
    kernel_use_reference(true);
    assert_null(kernel_find("einsum"));
    kernel_use_reference(false);
    for (int f = 0; f < FLOATS; f++) {
        /* The rule: rounding of the type of sums times their length; for bf16 that, rounded. */
        const double sum = (floats[f] == MTF_F64 ? 1.1e-16 : 6e-8) * 131 * 4;
        const double tolerance = floats[f] == MTF_BF16 ? sum + 0x1p-7 : sum;
        eval e = eval_open();
        mtf_tensor *x = make_input(&e, MTF_SHAPE(a, b, c), floats[f]);
        mtf_tensor *y = make_input(&e, MTF_SHAPE({"d", 9}, c, b), floats[f]);
        mtf_tensor *z = make_input(&e, MTF_SHAPE(b, a), floats[f]);
        const mtf_dim d = {"d", 9};
        compare_kernels(&e, mtf_matmul(x, y, MTF_SHAPE(a, d)), tolerance * 3);
        compare_kernels(&e, mtf_matmul(x, y, MTF_SHAPE(c, d, a)), tolerance);
        compare_kernels(&e, mtf_matmul(x, y, MTF_SHAPE(a, b, d)), tolerance);
        compare_kernels(&e, mtf_matmul(x, z, MTF_SHAPE(c)), tolerance * 7);
        compare_kernels(&e, mtf_matmul(z, z, MTF_SCALAR), tolerance * 7);
        compare_kernels(&e, mtf_matmul(x, z, MTF_SHAPE(b, c, a)), tolerance);
        compare_kernels(&e, mtf_matmul(y, z, MTF_SHAPE(d, c, a)), tolerance);
        compare_kernels(&e, mtf_einsum(3, (mtf_tensor *[]){x, y, z}, MTF_SHAPE(d)), tolerance * 21);
        eval_close(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_have_equal_bits),
        cmocka_unit_test(reductions_have_equal_bits),
        cmocka_unit_test(fast_kernels_agree),
    };
    printf("best instruction set here: %s\n", isa_name(isa_best()));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
