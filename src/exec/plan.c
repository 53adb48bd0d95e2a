/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/pool.h"

/* ---- collectives ---- */

comm_mesh plan_comm_mesh(const mtf_mesh *m)
{
    comm_mesh c = {.naxes = m->naxes};
    for (int i = 0; i < m->naxes; i++)
        c.size[i] = m->size[i];
    return c;
}

static int64_t largest(const mtf_program *p, const value *v, int d)
{
    return block_bound(v->shape.dim[d].size, split_parts(p->mesh, v->split[d]));
}

/* The fewest elements of a block of `v` on any processor. */
static int64_t fewest(const mtf_program *p, const value *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->shape.rank; d++)
        n *= v->shape.dim[d].size / split_parts(p->mesh, v->split[d]);
    return n;
}

/* A bucket is one buffer of fixed size; a single sum has the size of the block. */
static int64_t reduce_scratch(const mtf_program *p, const instr *i, const comm_mesh *m)
{
    const int64_t size = mtf_dtype_size(i->in[0]->dtype);
    int64_t most = value_bound(p, i->in[0]), least = fewest(p, i->in[0]);
    if (i->nin > 1) {
        most = 0;
        for (int k = 0; k < i->nin; k++)
            most += i->in[k]->bytes / size;
        least = most;
    }
    return comm_scratch_all_reduce(m, axes_of(i->axes), size, least, most);
}

static int64_t pieces_scratch(const mtf_program *p, const instr *i, const comm_mesh *m)
{
    const bool gather = i->kind == INSTR_ALL_GATHER;
    const value *whole = gather ? i->out[0] : i->in[0], *part = gather ? i->in[0] : i->out[0];
    const int64_t size = mtf_dtype_size(part->dtype);
    comm_cut c = {.n = part->shape.dim[i->dim].size,
                  .parts = split_parts(p->mesh, part->split[i->dim]),
                  .outer = 1,
                  .inner = 1};
    for (int d = 0; d < i->dim; d++)
        c.outer *= largest(p, whole, d);
    for (int d = i->dim + 1; d < whole->shape.rank; d++)
        c.inner *= largest(p, whole, d);
    return (gather ? comm_scratch_all_gather : comm_scratch_reduce_scatter)(m, axes_of(i->axes),
                                                                            size, &c);
}

/* ---- exchanges ---- */

/* Layers are alike: what was found for one exchange holds for equal ones. */
typedef struct known_exchange {
    const instr *i;
    int64_t bytes;
} known_exchange;

typedef struct known {
    known_exchange *list;
    int64_t n, cap;
} known;

static bool same_block(const value *a, const value *b)
{
    return a->dtype == b->dtype && shape_equal(&a->shape, &b->shape) &&
           memcmp(a->split, b->split, sizeof a->split) == 0;
}

static bool same_exchange(const instr *a, const instr *b)
{
    if (a->kind != b->kind || a->nin != b->nin || a->dim != b->dim || a->start != b->start ||
        a->period != b->period)
        return false;
    for (int k = 0; k < a->nin; k++)
        if (!same_block(a->in[k], b->in[k])) return false;
    return same_block(a->out[0], b->out[0]);
}

/* Messages lie one behind the other, those to send and those that arrive. */
static int64_t exchange_scratch(const mtf_program *p, const instr *i, known *k)
{
    for (int64_t n = 0; n < k->n; n++)
        if (same_exchange(k->list[n].i, i)) return k->list[n].bytes;
    int64_t elements = 0;
    for (int in = 0; in < i->nin; in++) {
        const exchange x = instr_exchange(p, i, in);
        elements += exchange_traffic(&x) / (FAULT(FAULT_PLAN_EXCHANGE) ? 2 : 1);
    }
    mem_grow((void **)&k->list, k->n, &k->cap, sizeof *k->list);
    k->list[k->n].i = i;
    return k->list[k->n++].bytes = elements * mtf_dtype_size(i->in[0]->dtype);
}

static int64_t scratch_of(const mtf_program *p)
{
    const comm_mesh m = plan_comm_mesh(p->mesh);
    known k = {0};
    int64_t most = 0;
    for (const instr *i = p->first; i; i = i->next) {
        int64_t bytes = 0;
        if (instr_exchanges(i))
            bytes = exchange_scratch(p, i, &k);
        else if (i->kind == INSTR_ALL_REDUCE)
            bytes = reduce_scratch(p, i, &m);
        else if (instr_is_collective(i))
            bytes = pieces_scratch(p, i, &m);
        if (bytes > most) most = bytes;
    }
    mem_free(k.list);
    return (most + 63) / 64 * 64;
}

/* ---- the session ---- */

session_plan plan_session(int nprograms, mtf_program *const *programs, bool processes)
{
    session_plan s = {.state = programs[0]->state_bytes};
    for (int i = 0; i < nprograms; i++) {
        const mtf_program *p = programs[i];
        const int64_t scratch = processes ? scratch_of(p) : 0, work = plan_work(p);
        if (p->slab_bytes > s.slab) s.slab = p->slab_bytes;
        if (scratch > s.scratch) s.scratch = scratch;
        if (work > s.work) s.work = work;
    }
    return s;
}

int plan_local_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_NTASKS_PER_NODE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        const int n = text ? atoi(text) : 0;
        if (n > 0) return n;
    }
    return 1;
}

int plan_threads(int asked)
{
    const int own = pool_default_threads();
    if (asked > 0) return asked;
    if (getenv("OMP_NUM_THREADS")) return own;
    const int share = (int)sysconf(_SC_NPROCESSORS_ONLN) / plan_local_ranks();
    return share < 1 ? 1 : share < own ? share : own;
}

mtf_memory mtf_plan_memory(int nprograms, mtf_program *const *programs, int threads, bool processes)
{
    const session_plan s = plan_session(nprograms, programs, processes);
    return (mtf_memory){.state = s.state,
                        .slab = s.slab,
                        .scratch = s.scratch,
                        .workers = s.work * plan_threads(threads)};
}
