/* SPDX-License-Identifier: Apache-2.0
 * Whole tensors from blocks, and back, by direct exchange of intersected runs.
 *
 * A processor's block is a box; in the flat row-major index it is a list of runs of equal length. A
 * process asks for a range of that index. Every pair (owner, process) meets in the runs that both
 * have, which both enumerate in the same order, so they are packed into one message. Among replicas
 * the processor whose coordinates on the unused axes are 0 is the owner. */
#include <string.h>

#include "base/check.h"
#include "exec/session.h"

int session_processes(const mtf_session *s)
{
    return comm_size(s->comm) / s->nhosted;
}

int session_process_of(const mtf_session *s, int proc)
{
    return proc / s->nhosted;
}

int session_process(const mtf_session *s)
{
    return s->first / s->nhosted;
}

/* The box of a processor, with trailing whole dims merged into the run. */
typedef struct box {
    int rank;
    int64_t lo[MTF_MAX_RANK], n[MTF_MAX_RANK], stride[MTF_MAX_RANK]; /* flat strides */
    int64_t run;                                                     /* elements */
    int64_t runs;
} box;

static box box_of(const mtf_session *s, const value *v, int proc)
{
    box b = {.rank = v->shape.rank, .run = 1, .runs = 1};
    int64_t flat = 1;
    for (int d = b.rank - 1; d >= 0; d--) {
        const kernel_dim k = dim_block(s->mesh, v->shape.dim[d], v->split[d], proc);
        b.lo[d] = k.offset;
        b.n[d] = k.local;
        b.stride[d] = flat;
        flat *= k.global;
    }
    int d = b.rank;
    while (d > 0) { /* the first cut dim from the right ends the run */
        d--;
        b.run *= b.n[d];
        if (b.n[d] * b.stride[d] != (d ? b.stride[d - 1] : flat)) break;
    }
    b.rank = d;
    for (int i = 0; i < d; i++)
        b.runs *= b.n[i];
    if (b.run == 0) b.runs = 0;
    return b;
}

static int64_t run_start(const box *b, const value *v, int64_t r)
{
    int64_t at = 0;
    for (int d = b->rank; d < v->shape.rank; d++)
        at += b->lo[d] * b->stride[d];
    for (int d = b->rank - 1; d >= 0; d--) {
        at += (b->lo[d] + r % b->n[d]) * b->stride[d];
        r /= b->n[d];
    }
    return at;
}

/* What a walk over the runs in [lo, hi) does with each piece. */
typedef void piece_fn(void *ctx, int64_t in_block, int64_t in_range, int64_t n);

static int64_t walk(const box *b, const value *v, int64_t lo, int64_t hi, piece_fn *fn, void *ctx)
{
    int64_t total = 0;
    for (int64_t r = 0; r < b->runs; r++) {
        const int64_t start = run_start(b, v, r), end = start + b->run;
        const int64_t from = start > lo ? start : lo, to = end < hi ? end : hi;
        if (from >= to) continue;
        if (fn) fn(ctx, r * b->run + from - start, from - lo, to - from);
        total += to - from;
    }
    return total;
}

static bool is_owner(const mtf_session *s, const value *v, int proc)
{
    unsigned used = 0;
    for (int d = 0; d < v->shape.rank; d++)
        used |= split_mask(v->split[d]);
    for (int a = 0; a < s->mesh->naxes; a++)
        if (!(used >> a & 1) && mesh_coordinate(s->mesh, proc, a) != 0) return false;
    return true;
}

typedef struct packing {
    char *packed;
    char *block; /* or the range */
    int64_t size, used;
    bool pack, by_range;
} packing;

static void pack_piece(void *ctx, int64_t in_block, int64_t in_range, int64_t n)
{
    packing *p = ctx;
    char *plain = p->block + (p->by_range ? in_range : in_block) * p->size;
    char *packed = p->packed + p->used;
    memcpy(p->pack ? packed : plain, p->pack ? plain : packed, (size_t)(n * p->size));
    p->used += n * p->size;
}

/* One message of the exchange between processor `proc` and process `q`. */
typedef struct transfer {
    int proc, process;
    char *buffer;
    int64_t bytes;
} transfer;

/* Messages in which this process has an end: all owners (or all processors) times all processes. */
static int64_t list_transfers(mtf_session *s, const value *v, const int64_t *lo, const int64_t *hi,
                              bool owners_only, transfer *out)
{
    const int me = session_process(s), processes = session_processes(s);
    const int64_t size = mtf_dtype_size(v->dtype);
    int64_t n = 0;
    for (int proc = 0; proc < comm_size(s->comm); proc++) {
        if (owners_only && !is_owner(s, v, proc)) continue;
        const box b = box_of(s, v, proc);
        for (int q = 0; q < processes; q++) {
            if (q != me && session_process_of(s, proc) != me) continue;
            const int64_t bytes = walk(&b, v, lo[q], hi[q], NULL, NULL) * size;
            if (bytes) out[n++] = (transfer){.proc = proc, .process = q, .bytes = bytes};
        }
    }
    return n;
}

static void transfer_copy(mtf_session *s, const value *v, const transfer *t, int64_t lo, int64_t hi,
                          char *plain, bool by_range, bool pack)
{
    const box b = box_of(s, v, t->proc);
    packing p = {.packed = t->buffer,
                 .block = plain,
                 .size = mtf_dtype_size(v->dtype),
                 .pack = pack,
                 .by_range = by_range};
    walk(&b, v, lo, hi, pack_piece, &p);
}

static void move_ranges(mtf_session *s, const value *v, const int64_t *lo, const int64_t *hi,
                        char *mine, bool gather)
{
    const int me = session_process(s);
    const int64_t most = (int64_t)comm_size(s->comm) * session_processes(s);
    transfer *t = mem_zalloc(sizeof *t * (size_t)most);
    comm_msg *msg = mem_zalloc(sizeof *msg * (size_t)most);
    const int64_t n = list_transfers(s, v, lo, hi, gather, t);
    int64_t messages = 0;
    for (int64_t i = 0; i < n; i++) {
        t[i].buffer = mem_alloc((size_t)t[i].bytes);
        const bool here = session_process_of(s, t[i].proc) == me;
        char *block = here ? session_memory(s, t[i].proc - s->first, session_offset(s, v)) : NULL;
        if (gather ? here : t[i].process == me)
            transfer_copy(s, v, &t[i], lo[t[i].process], hi[t[i].process], gather ? block : mine,
                          !gather, true);
        if (here && t[i].process == me) continue; /* stays in this process */
        const int other = t[i].process * s->nhosted;
        msg[messages++] = (comm_msg){.src = gather ? t[i].proc : other,
                                     .dst = gather ? other : t[i].proc,
                                     .from = t[i].buffer,
                                     .to = t[i].buffer,
                                     .bytes = t[i].bytes};
    }
    if (session_processes(s) > 1) comm_move(s->comm, msg, messages);
    for (int64_t i = 0; i < n; i++) {
        const bool here = session_process_of(s, t[i].proc) == me;
        char *block = here ? session_memory(s, t[i].proc - s->first, session_offset(s, v)) : NULL;
        if (gather ? t[i].process == me : here)
            transfer_copy(s, v, &t[i], lo[t[i].process], hi[t[i].process], gather ? mine : block,
                          gather, false);
        mem_free(t[i].buffer);
    }
    mem_free(t);
    mem_free(msg);
}

void blocks_gather(mtf_session *s, const value *v, const int64_t *lo, const int64_t *hi, void *out)
{
    move_ranges(s, v, lo, hi, out, true);
}

void blocks_scatter(mtf_session *s, const value *v, const int64_t *lo, const int64_t *hi,
                    const void *in)
{
    move_ranges(s, v, lo, hi, (char *)(uintptr_t)in, false);
}
