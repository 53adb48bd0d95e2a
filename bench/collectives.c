/* SPDX-License-Identifier: Apache-2.0
 * Time of collectives: bench/collectives [PROCESSORS[,..] [BYTES[,..] [THREADS[,..]]]]
 *
 * Without a launcher all processors are in this process; under mpirun there is one per rank. GB/s
 * counts each processor's buffer read once and written once; the last column compares with the
 * speed of memcpy over as many bytes (read and written), so 100 % is the speed of memory. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/comm.h"

enum { MAX_LIST = 16, MAX_REPEATS = 400 };

static int list(const char *text, int64_t *to)
{
    int n = 0;
    for (char *at = (char *)text; *at && n < MAX_LIST; at += *at == ',') {
        char *end;
        to[n] = strtoll(at, &end, 10);
        if (end == at || to[n++] < 1) return 0;
        at = end;
    }
    return n;
}

typedef struct buffers {
    comm *c;
    void **buf, **scratch;
    int64_t *count;
    int64_t bytes;
} buffers;

typedef void timed_fn(buffers *b);

static void all_reduce(buffers *b)
{
    const comm_axes axes = {.n = 1, .axis = {0}};
    comm_all_reduce(b->c, axes, COMM_SUM, MTF_F32, b->buf, b->count, b->scratch);
}

static void copy_halves(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    buffers *b = ctx;
    const int64_t n = comm_nhosted(b->c), grain = 1 << 14;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i / n * grain, left = b->bytes - at;
        memcpy((char *)b->scratch[i % n] + at, (char *)b->buf[i % n] + at,
               (size_t)(left < grain ? left : grain));
    }
}

/* Median seconds of one call: enough calls for 0.2 seconds, at least three. */
static double measure(buffers *b, timed_fn *fn)
{
    double t[MAX_REPEATS], begin = measure_now();
    fn(b);
    double once = measure_now() - begin;
    int n = (int)(0.2 / (once + 1e-9));
    n = n < 3 ? 3 : n > MAX_REPEATS ? MAX_REPEATS : n;
    comm_broadcast(b->c, &n, sizeof n);
    for (int i = 0; i < n; i++) {
        begin = measure_now();
        fn(b);
        t[i] = measure_now() - begin;
    }
    return measure_median(t, n);
}

static pool *workers;

static void copy_all(buffers *b)
{
    const int64_t grains = (b->bytes + (1 << 14) - 1) >> 14;
    pool_for(workers, grains * comm_nhosted(b->c), 1, copy_halves, b);
}

static void time_one(comm *c, int64_t bytes, int threads)
{
    const comm_axes axes = {.n = 1, .axis = {0}};
    const int n = comm_nhosted(c);
    buffers b = {.c = c, .bytes = bytes};
    b.buf = mem_zalloc((size_t)n * sizeof *b.buf);
    b.scratch = mem_zalloc((size_t)n * sizeof *b.scratch);
    b.count = mem_zalloc((size_t)n * sizeof *b.count);
    const comm_mesh line = {.naxes = 1, .size = {comm_size(c)}};
    int64_t room = comm_scratch_all_reduce(&line, axes, 4, bytes / 4, bytes / 4);
    if (room < bytes) room = bytes;
    for (int h = 0; h < n; h++) {
        b.buf[h] = mem_aligned((size_t)bytes);
        b.scratch[h] = mem_aligned((size_t)room);
        b.count[h] = bytes / 4;
    }
    const double copy = measure(&b, copy_all), reduce = measure(&b, all_reduce);
    const double moved = 2.0 * (double)bytes * n;
    if (comm_is_root(c))
        printf("%10d %11lld %8d %12.1f %9.2f %9.2f %6.0f %%\n", comm_size(c), (long long)bytes,
               threads, 1e6 * reduce, 1e-9 * moved / reduce, 1e-9 * moved / copy,
               100 * copy / reduce);
    for (int h = 0; h < n; h++) {
        mem_free(b.buf[h]);
        mem_free(b.scratch[h]);
    }
    mem_free(b.buf);
    mem_free(b.scratch);
    mem_free(b.count);
}

int main(int argc, char **argv)
{
    int64_t procs[MAX_LIST], bytes[MAX_LIST], threads[MAX_LIST];
    int np = list(argc > 1 ? argv[1] : "2,4,8,64", procs);
    const int nb = list(argc > 2 ? argv[2] : "4096,65536,1048576,4194304,67108864", bytes);
    const int nt = list(argc > 3 ? argv[3] : "1,2", threads);
    mtf_err err = {0};
    int ranks = 1, rank = 0;
    mtf_status s = comm_launch(&ranks, &rank, &err);
    if (s == MTF_OK && (!np || !nb || !nt))
        s = err_set(&err, MTF_INVALID, "arguments are lists of numbers from 1 on, as 2,4,8");
    if (ranks > 1) {
        np = 1;
        procs[0] = ranks;
    }
    if (s == MTF_OK && rank == 0)
        printf("all_reduce of f32, %s\nprocessors       bytes  threads           us      GB/s    "
               "memcpy\n",
               ranks > 1 ? comm_library() : "one process");
    for (int i = 0; i < np * nb * nt && s == MTF_OK; i++) {
        const comm_mesh m = {.naxes = 1, .size = {procs[i / nb / nt]}};
        comm *c = NULL;
        workers = pool_new((int)threads[i % nt]);
        s = ranks > 1 ? comm_new_mpi(&m, workers, &c, &err) : comm_new_local(&m, workers, &c, &err);
        if (s == MTF_OK) time_one(c, bytes[i / nt % nb], (int)threads[i % nt]);
        comm_free(&c);
        pool_free(&workers);
    }
    if (s != MTF_OK && rank == 0) fprintf(stderr, "collectives: %s\n", err.text);
    comm_finish();
    return (int)s;
}
