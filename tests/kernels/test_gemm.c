/* SPDX-License-Identifier: Apache-2.0
 * Products of random shapes, strides and types, and those of a Transformer, against plain loops. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bfloat.h"
#include "base/isa.h"
#include "base/mem.h"
#include "base/pool.h"
#include "kernels/gemm.h"
#include "transformer_shapes.h"

typedef struct product {
    gemm_desc d;
    int64_t na, nb, nc; /* elements of the buffers */
    void *a, *b, *c, *want;
    double *bound; /* sum of |a b| per element of C */
} product;

static uint64_t rng_state = 1;

static int64_t rng(int64_t n)
{
    rng_state = rng_state * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)((rng_state >> 33) % (uint64_t)n);
}

/* ---- buffers ---- */

static void set(void *x, mtf_dtype t, int64_t i, double value)
{
    if (t == MTF_F32)
        ((float *)x)[i] = (float)value;
    else if (t == MTF_F64)
        ((double *)x)[i] = value;
    else if (t == MTF_BF16)
        ((bf16 *)x)[i] = bf16_from_f64(value);
    else
        ((int32_t *)x)[i] = (int32_t)(value * 100);
}

static double get(const void *x, mtf_dtype t, int64_t i)
{
    if (t == MTF_F32) return (double)((const float *)x)[i];
    if (t == MTF_BF16) return (double)bf16_to_f32(((const bf16 *)x)[i]);
    return t == MTF_F64 ? ((const double *)x)[i] : (double)((const int32_t *)x)[i];
}

static void *filled(mtf_dtype t, int64_t n)
{
    void *x = mem_aligned((size_t)(n * mtf_dtype_size(t)));
    for (int64_t i = 0; i < n; i++)
        set(x, t, i, (double)rng(2001) / 1000 - 1);
    return x;
}

static int64_t reach(const gemm_desc *d, int operand)
{
    const gemm_dim *groups[] = {d->batch, d->m, d->n, d->k};
    const int counts[] = {d->nbatch, d->nm, d->nn, d->nk};
    int64_t n = 1;
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < counts[g]; i++)
            n += (groups[g][i].n > 0 ? groups[g][i].n - 1 : 0) * (&groups[g][i].a)[operand];
    return n;
}

/* The type of C. */
static mtf_dtype result_of(const product *p)
{
    return mtf_dtype_of_sums(p->d.dtype);
}

static void product_fill(product *p)
{
    p->na = reach(&p->d, 0);
    p->nb = reach(&p->d, 1);
    p->nc = reach(&p->d, 2);
    p->a = filled(p->d.dtype, p->na);
    p->b = filled(p->d.dtype, p->nb);
    p->c = filled(result_of(p), p->nc);
    p->want = filled(result_of(p), p->nc);
    p->bound = mem_zalloc((size_t)p->nc * sizeof *p->bound);
}

static void product_free(product *p)
{
    mem_free(p->a);
    mem_free(p->b);
    mem_free(p->c);
    mem_free(p->want);
    mem_free(p->bound);
}

/* ---- plain loops ---- */

static void naive_depth(product *p, int i, int64_t a, int64_t b, double *sum, double *bound)
{
    if (i == p->d.nk) {
        const double x = get(p->a, p->d.dtype, a) * get(p->b, p->d.dtype, b);
        *sum += x;
        *bound += fabs(x);
        return;
    }
    const gemm_dim *d = &p->d.k[i];
    for (int64_t j = 0; j < d->n; j++)
        naive_depth(p, i + 1, a + j * d->a, b + j * d->b, sum, bound);
}

static void naive(product *p, int i, int64_t a, int64_t b, int64_t c)
{
    const gemm_desc *d = &p->d;
    const gemm_dim *dim = i < d->nbatch                   ? &d->batch[i]
                          : i < d->nbatch + d->nm         ? &d->m[i - d->nbatch]
                          : i < d->nbatch + d->nm + d->nn ? &d->n[i - d->nbatch - d->nm]
                                                          : NULL;
    if (!dim) {
        double sum = 0;
        naive_depth(p, 0, a, b, &sum, &p->bound[c]);
        if (d->dtype == MTF_I32)
            ((int32_t *)p->want)[c] = (int32_t)sum;
        else
            set(p->want, result_of(p), c, sum);
        return;
    }
    for (int64_t j = 0; j < dim->n; j++)
        naive(p, i + 1, a + j * dim->a, b + j * dim->b, c + j * dim->c);
}

/* ---- running ---- */

typedef struct job {
    const gemm *g;
    product *p;
    char *work;
} job;

static int64_t work_stride(const gemm *g)
{
    return (gemm_workspace(g) + 63) / 64 * 64 + 64;
}

static void run_grains(void *ctx, int64_t begin, int64_t end, int worker)
{
    job *j = ctx;
    gemm_run(j->g, j->p->a, j->p->b, j->p->c, j->work + worker * work_stride(j->g), begin, end);
}

/* Runs in chunks of grains on a pool; a guard behind each workspace must survive. */
static void run_product(product *p, const gemm *g, pool *threads, int64_t chunk)
{
    const int workers = pool_threads(threads);
    job j = {.g = g, .p = p, .work = mem_aligned((size_t)(work_stride(g) * workers))};
    memset(j.work, 0x5a, (size_t)(work_stride(g) * workers));
    memset(p->c, 0xff, (size_t)(p->nc * mtf_dtype_size(result_of(p))));
    pool_for(threads, gemm_grains(g), chunk, run_grains, &j);
    for (int w = 0; w < workers; w++)
        for (int64_t i = gemm_workspace(g); i < work_stride(g); i++)
            assert_int_equal(j.work[w * work_stride(g) + i], 0x5a);
    mem_free(j.work);
}

static const gemm *plan(const product *p)
{
    const gemm *g = NULL;
    mtf_err err = {0};
    assert_int_equal(gemm_get(&p->d, &g, &err), MTF_OK);
    assert_true(strncmp(gemm_impl(g), "ref", 3) != 0);
    return g;
}

static double epsilon(mtf_dtype t)
{
    return t == MTF_F32 ? 0x1p-24 : t == MTF_F64 ? 0x1p-53 : 0.0;
}

/* Rounding of k sums: k eps sum|ab|, times 2 for the product and the result. */
static void assert_close(const product *p)
{
    int64_t k = 1;
    for (int i = 0; i < p->d.nk; i++)
        k *= p->d.k[i].n;
    for (int64_t i = 0; i < p->nc; i++) {
        const double error = fabs(get(p->c, result_of(p), i) - get(p->want, result_of(p), i));
        const double most = 2 * (double)(k + 1) * epsilon(result_of(p)) * p->bound[i];
        if (!(error <= most))
            fail_msg("element %lld: error %g, at most %g", (long long)i, error, most);
    }
}

/* ---- random products ---- */

static int64_t random_size(void)
{
    static const int64_t sizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33};
    return sizes[rng(sizeof sizes / sizeof *sizes)];
}

/* Gives the dims of one operand strides in a random order, sometimes as a view of something
 * larger; C stays compact. */
static void lay_out(gemm_dim **dims, int n, int operand)
{
    for (int i = n - 1; i > 0; i--) {
        const int64_t j = rng(i + 1);
        gemm_dim *t = dims[i];
        dims[i] = dims[j];
        dims[j] = t;
    }
    int64_t stride = operand < 2 && rng(6) == 0 ? 2 : 1;
    for (int i = 0; i < n; i++) {
        (&dims[i]->a)[operand] = operand < 2 && rng(12) == 0 ? 0 : stride;
        stride *= dims[i]->n < 1 ? 1 : dims[i]->n;
        if (operand < 2 && rng(4) == 0) stride += rng(5);
    }
}

static void random_product(product *p)
{
    static const mtf_dtype types[] = {MTF_F32, MTF_F32, MTF_F32, MTF_F64, MTF_I32, MTF_BF16};
    gemm_desc *d = &p->d;
    *d = (gemm_desc){.dtype = types[rng(6)]};
    d->nbatch = (int)rng(3);
    d->nm = (int)rng(4);
    d->nn = (int)rng(4);
    d->nk = (int)rng(4);
    gemm_dim *group[] = {d->batch, d->m, d->n, d->k};
    const int count[] = {d->nbatch, d->nm, d->nn, d->nk};
    gemm_dim *of[3][4 * GEMM_MAX_DIMS];
    int n[3] = {0};
    int64_t total = 1;
    const bool member[4][3] = {{1, 1, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 0}};
    for (int g = 0; g < 4; g++) {
        for (int i = 0; i < count[g]; i++) {
            gemm_dim *dim = &group[g][i];
            dim->n = rng(60) == 0 ? 0 : random_size();
            if (total * dim->n > 300000) dim->n = 1;
            total *= dim->n < 1 ? 1 : dim->n;
            for (int o = 0; o < 3; o++)
                if (member[g][o]) of[o][n[o]++] = dim;
        }
    }
    for (int o = 0; o < 3; o++)
        lay_out(of[o], n[o], o);
    product_fill(p);
}

static void random_products_match_plain_loops(void **state)
{
    (void)state;
    pool *two = pool_new(2);
    int own = 0, library = 0;
    for (int round = 0; round < 1500; round++) {
        rng_state = (uint64_t)round + 1;
        rng(2);
        product p;
        random_product(&p);
        const gemm *g = plan(&p);
        if (strcmp(gemm_impl(g), "own") == 0)
            own++;
        else
            library++;
        run_product(&p, g, two, 1);
        bool empty = false;
        const gemm_dim *group[] = {p.d.batch, p.d.m, p.d.n};
        const int count[] = {p.d.nbatch, p.d.nm, p.d.nn};
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < count[k]; i++)
                empty = empty || group[k][i].n == 0;
        assert_true(empty == (gemm_grains(g) == 0));
        if (!empty) {
            naive(&p, 0, 0, 0, 0);
            assert_close(&p);
        }
        product_free(&p);
    }
    printf("%d products through kernels of our own, %d through %s\n", own, library, gemm_library());
    assert_true(own > 100);
#ifdef MTF_HAVE_ONEDNN
    assert_true(library > 100);
#endif
    pool_free(&two);
}

/* ---- larger products, whose blocks and remainders matter ---- */

static void uneven_products_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{515, 1301, 67}, {2049, 70, 130}, {33, 2000, 300},
                                       {700, 769, 257}, {193, 257, 513}, {1, 3000, 100}};
    static const mtf_dtype types[] = {MTF_F32, MTF_F64, MTF_I32, MTF_BF16};
    pool *two = pool_new(2);
    for (int i = 0; i < 6 * 4 * 4; i++) {
        const int64_t m = sizes[i % 6][0], n = sizes[i % 6][1], k = sizes[i % 6][2];
        const bool ta = i / 24 % 2, tb = i / 48;
        product p = {.d = {.dtype = types[i / 6 % 4], .nm = 1, .nn = 1, .nk = 1}};
        p.d.m[0] = (gemm_dim){.n = m, .a = ta ? 1 : k, .c = n};
        p.d.n[0] = (gemm_dim){.n = n, .b = tb ? k : 1, .c = 1};
        p.d.k[0] = (gemm_dim){.n = k, .a = ta ? m : 1, .b = tb ? 1 : n};
        product_fill(&p);
        const gemm *g = plan(&p);
        const size_t bytes = (size_t)(p.nc * mtf_dtype_size(result_of(&p)));
        run_product(&p, g, NULL, INT64_MAX);
        void *first = mem_alloc(bytes);
        memcpy(first, p.c, bytes);
        if (i % 5 == 0) {
            naive(&p, 0, 0, 0, 0);
            assert_close(&p);
        }
        for (int64_t chunk = 1; chunk <= 3; chunk += 2) {
            run_product(&p, g, two, chunk);
            assert_memory_equal(first, p.c, bytes);
        }
        for (int level = 0; level < ISA_LEVELS && strcmp(gemm_impl(g), "own") == 0; level++) {
            isa_set((isa_level)level);
            run_product(&p, g, two, 1);
            assert_memory_equal(first, p.c, bytes);
        }
        isa_set(isa_best());
        mem_free(first);
        product_free(&p);
    }
    pool_free(&two);
}

static void transformer_products_run_in_fast_kernels(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        const int config = k % 2;
        const mtf_dtype type = k < 2 ? MTF_F32 : MTF_BF16;
        for (int i = 0; i < SHAPES; i++) {
            product p = {.d = shape_desc(i, config)};
            p.d.dtype = type;
            const gemm *g = plan(&p);
            printf("%c %-10s %-18s grains %3lld work %8lld\n", "LS"[config], shape_name(i),
                   gemm_impl(g), (long long)gemm_grains(g), (long long)gemm_workspace(g));
#ifdef MTF_HAVE_ONEDNN
            assert_string_not_equal(gemm_impl(g), "own");
#endif
            assert_true(gemm_grains(g) >= (type == MTF_F32 ? 4 : 2));
        }
        /* the same at a size that plain loops can check */
        for (int i = 0; i < SHAPES; i++) {
            product p = {.d = shape_desc(i, 2 + config)};
            p.d.dtype = type;
            product_fill(&p);
            run_product(&p, plan(&p), NULL, 1);
            naive(&p, 0, 0, 0, 0);
            assert_close(&p);
            product_free(&p);
        }
    }
}

static void plans_are_cached_and_bools_refused(void **state)
{
    (void)state;
    const gemm_desc d = shape_desc(0, 2);
    const gemm *first, *second;
    mtf_err err = {0};
    assert_int_equal(gemm_get(&d, &first, &err), MTF_OK);
    assert_int_equal(gemm_get(&d, &second, &err), MTF_OK);
    assert_ptr_equal(first, second);
    gemm_desc bad = d;
    bad.dtype = MTF_BOOL;
    assert_int_equal(gemm_get(&bad, &second, &err), MTF_INVALID);
    assert_non_null(strstr(err.text, "bool"));
    assert_true(strlen(gemm_library()) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products_match_plain_loops),
        cmocka_unit_test(uneven_products_do_not_depend_on_the_cut),
        cmocka_unit_test(transformer_products_run_in_fast_kernels),
        cmocka_unit_test(plans_are_cached_and_bools_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
