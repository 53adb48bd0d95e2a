/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm_dnnl.h"

#ifdef MTF_HAVE_ONEDNN

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

#define DNNL_OK(call)                                                                              \
    do {                                                                                           \
        const dnnl_status_t status_ = (call);                                                      \
        MTF_CHECK(status_ == dnnl_success, "oneDNN answers %d", (int)status_);                     \
    } while (0)

/* What one running call needs; kept and used again, so that a step allocates nothing. */
enum { SLOTS = 64, LONG_DEPTH = 4096 };
typedef struct slot {
    atomic_bool taken;
    bool made;
    dnnl_memory_t memory[4]; /* A, B, C, scratch */
} slot;

struct dnnl_kernel {
    dnnl_primitive_t primitive;
    dnnl_primitive_desc_t desc;
    int64_t scratch;
    const char *impl;
    bool leaves_stack; /* see execute */
    slot *slots;
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library may have been built with OpenMP, with threads of its own, or without: where OpenMP
 * is there, these keep it on the calling thread, and otherwise they are NULL. */
static int (*omp_get)(void);
static void (*omp_set)(int);

static void start(void)
{
    *(void **)&omp_get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    *(void **)&omp_set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    DNNL_OK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    DNNL_OK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

/* One thread for this call, and then what the caller had: the number is the calling thread's. */
static int single_thread(void)
{
    if (!omp_get || !omp_set) return 0;
    const int before = omp_get();
    if (before != 1) omp_set(1);
    return before;
}

static void restore_threads(int before)
{
    if (before > 1) omp_set(before);
}

/* Entries lie in four dims with a leading 1, because that is the only rank at which the library
 * knows layouts whose batch is not the outermost dim in memory. */
static dnnl_status_t describe(dnnl_memory_desc_t *out, int64_t entries, int64_t rows,
                              int64_t columns, const dnnl_matrix *x, dnnl_data_type_t type)
{
    int64_t reach = entries * x->entry; /* the leading stride is that of a dense tensor */
    if (rows * x->row > reach) reach = rows * x->row;
    if (columns * x->column > reach) reach = columns * x->column;
    dnnl_dims_t dims = {1, entries, rows, columns};
    dnnl_dims_t strides = {reach, x->entry, x->row, x->column};
    const int skip = entries > 1 ? 0 : 2;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_strides(out, 4 - skip, dims + skip, type, strides + skip);
#else
    return dnnl_memory_desc_init_by_strides(out, 4 - skip, dims + skip, type, strides + skip);
#endif
}

static const char *impl_of(dnnl_primitive_desc_t desc)
{
    const char *name = "";
    DNNL_OK(dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name));
    return name;
}

/* What an implementation must be. */
typedef struct wish {
    bool gemm; /* one named gemm:*: those are the faster ones */
    bool bf16; /* one for the instructions of bf16: without them others convert, and are slow */
} wish;

/* Never a reference. */
static bool wanted(const char *impl, wish w)
{
    if (strncmp(impl, "ref", 3) == 0) return false;
    if (w.bf16) return strstr(impl, "bf16") || strstr(impl, "amx");
    return !w.gemm || strncmp(impl, "gemm", 4) == 0;
}

#if DNNL_VERSION_MAJOR >= 3

/* The first implementation that is wanted, or NULL. */
static dnnl_primitive_desc_t choose(dnnl_memory_desc_t *md, dnnl_primitive_attr_t attr, wish w)
{
    dnnl_primitive_desc_t desc = NULL;
    if (dnnl_matmul_primitive_desc_create(&desc, engine, md[0], md[1], NULL, md[2], attr) !=
        dnnl_success)
        return NULL;
    while (!wanted(impl_of(desc), w)) {
        if (dnnl_primitive_desc_next_impl(desc) == dnnl_success) continue;
        dnnl_primitive_desc_destroy(desc);
        return NULL;
    }
    return desc;
}

static void forget(dnnl_memory_desc_t *md, int n)
{
    for (int i = 0; i < n; i++)
        dnnl_memory_desc_destroy(md[i]);
}

static int64_t bytes_of(const_dnnl_memory_desc_t md)
{
    return md ? (int64_t)dnnl_memory_desc_get_size(md) : 0;
}

typedef const_dnnl_memory_desc_t queried;

#else

static dnnl_primitive_desc_t choose(dnnl_memory_desc_t *md, dnnl_primitive_attr_t attr, wish w)
{
    dnnl_matmul_desc_t op;
    if (dnnl_matmul_desc_init(&op, &md[0], &md[1], NULL, &md[2]) != dnnl_success) return NULL;
    dnnl_primitive_desc_iterator_t it = NULL;
    dnnl_primitive_desc_t found = NULL;
    if (dnnl_primitive_desc_iterator_create(&it, &op, attr, engine, NULL) != dnnl_success)
        return NULL;
    do {
        dnnl_primitive_desc_t desc = dnnl_primitive_desc_iterator_fetch(it);
        if (desc && wanted(impl_of(desc), w))
            found = desc;
        else if (desc)
            dnnl_primitive_desc_destroy(desc);
    } while (!found && dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(it);
    return found;
}

static void forget(dnnl_memory_desc_t *md, int n)
{
    (void)md;
    (void)n;
}

static int64_t bytes_of(const dnnl_memory_desc_t *md)
{
    return md ? (int64_t)dnnl_memory_desc_get_size(md) : 0;
}

typedef const dnnl_memory_desc_t *queried;

#endif

static dnnl_primitive_desc_t describe_product(const dnnl_product *p)
{
    dnnl_memory_desc_t md[3];
    /* measured: the library's first choice loses with a transposed A, and where k is very long
     * and no operand is transposed */
    const bool transposed = p->a.column != 1 && p->k > 1 && p->m > 1;
    const bool gemm = transposed || (p->k >= LONG_DEPTH && p->b.column == 1);
    const dnnl_data_type_t type = p->bf16 ? dnnl_bf16 : dnnl_f32;
    int made = 0;
    bool ok = describe(&md[0], p->entries, p->m, p->k, &p->a, type) == dnnl_success && ++made;
    ok = ok && describe(&md[1], p->entries, p->k, p->n, &p->b, type) == dnnl_success && ++made;
    ok = ok && describe(&md[2], p->entries, p->m, p->n, &p->c, dnnl_f32) == dnnl_success && ++made;
    dnnl_primitive_desc_t desc = NULL;
    if (ok) {
        dnnl_primitive_attr_t attr;
        DNNL_OK(dnnl_primitive_attr_create(&attr));
        DNNL_OK(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
        desc = choose(md, attr, (wish){gemm, p->bf16});
        if (!desc && gemm) desc = choose(md, attr, (wish){false, p->bf16});
        dnnl_primitive_attr_destroy(attr);
    }
    forget(md, made);
    return desc;
}

dnnl_kernel *dnnl_kernel_new(const dnnl_product *p)
{
    pthread_once(&once, start);
    const int threads = single_thread(); /* the kernel is shaped for the number it finds here */
    dnnl_kernel *k = NULL;
    dnnl_primitive_desc_t desc = describe_product(p);
    if (desc) {
        k = mem_zalloc(sizeof *k);
        k->desc = desc;
        k->impl = impl_of(desc);
        k->leaves_stack = strncmp(k->impl, "gemm", 4) == 0;
        k->scratch = bytes_of(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
        k->slots = mem_zalloc(sizeof *k->slots * SLOTS);
    }
    restore_threads(threads);
    return k;
}

void dnnl_kernel_build(dnnl_kernel *k)
{
    const int threads = single_thread();
    DNNL_OK(dnnl_primitive_create(&k->primitive, k->desc));
    restore_threads(threads);
}

static void slot_clear(slot *s)
{
    for (int i = 0; i < 4 && s->made; i++)
        dnnl_memory_destroy(s->memory[i]);
    s->made = false;
}

void dnnl_kernel_free(dnnl_kernel **handle)
{
    dnnl_kernel *k = *handle;
    if (!k) return;
    for (int i = 0; i < SLOTS; i++)
        slot_clear(&k->slots[i]);
    if (k->primitive) dnnl_primitive_destroy(k->primitive);
    dnnl_primitive_desc_destroy(k->desc);
    mem_free(k->slots);
    mem_free(k);
    *handle = NULL;
}

int64_t dnnl_kernel_scratch(const dnnl_kernel *k)
{
    return k->scratch;
}

const char *dnnl_kernel_impl(const dnnl_kernel *k)
{
    return k->impl;
}

static void slot_make(slot *s, const dnnl_kernel *k)
{
    static const dnnl_query_t what[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md,
                                        dnnl_query_scratchpad_md};
    for (int i = 0; i < 4; i++) {
        queried md = dnnl_primitive_desc_query_md(k->desc, what[i], 0);
        DNNL_OK(dnnl_memory_create(&s->memory[i], md, engine, DNNL_MEMORY_NONE));
    }
    s->made = true;
}

/* A free slot of the kernel; `own` where all are taken. */
static slot *slot_take(const dnnl_kernel *k, slot *own)
{
    slot *s = own;
    for (int i = 0; i < SLOTS && s == own; i++)
        if (!atomic_exchange_explicit(&k->slots[i].taken, true, memory_order_acquire))
            s = &k->slots[i];
    if (!s->made) slot_make(s, k);
    return s;
}

/* The gemm kernels, where the product is deep, point the stack pointer at a buffer on the heap
 * while they run. A signal handler of the program that we are part of would write its frame there,
 * over what lies before the buffer; so signals wait until the kernel has ended. */
static void execute(const dnnl_kernel *k, const dnnl_exec_arg_t args[4])
{
    sigset_t all, before;
    if (k->leaves_stack) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    DNNL_OK(dnnl_primitive_execute(k->primitive, stream, 4, args));
    if (k->leaves_stack) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void dnnl_kernel_run(const dnnl_kernel *k, const void *a, const void *b, float *c, void *scratch)
{
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    slot own = {.made = false};
    slot *s = slot_take(k, &own);
    void *data[] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, c, scratch};
    dnnl_exec_arg_t args[4];
    for (int i = 0; i < 4; i++) {
        DNNL_OK(dnnl_memory_set_data_handle(s->memory[i], data[i]));
        args[i] = (dnnl_exec_arg_t){names[i], s->memory[i]};
    }
    const int threads = single_thread();
    execute(k, args);
    restore_threads(threads);
    if (s == &own)
        slot_clear(&own);
    else
        atomic_store_explicit(&s->taken, false, memory_order_release);
}

const char *dnnl_kernel_library(void)
{
    static char text[64]; /* written with the same bytes by whoever comes */
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

#else

#include <stddef.h>

dnnl_kernel *dnnl_kernel_new(const dnnl_product *p)
{
    (void)p;
    return NULL;
}

void dnnl_kernel_build(dnnl_kernel *k)
{
    (void)k;
}

int64_t dnnl_kernel_scratch(const dnnl_kernel *k)
{
    (void)k;
    return 0;
}

const char *dnnl_kernel_impl(const dnnl_kernel *k)
{
    (void)k;
    return "none";
}

void dnnl_kernel_free(dnnl_kernel **k)
{
    *k = NULL;
}

void dnnl_kernel_run(const dnnl_kernel *k, const void *a, const void *b, float *c, void *scratch)
{
    (void)k;
    (void)a;
    (void)b;
    (void)c;
    (void)scratch;
}

const char *dnnl_kernel_library(void)
{
    return "none";
}

#endif
