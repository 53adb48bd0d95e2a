/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session.h"

#include <string.h>

#include "base/check.h"

enum { MAX_THREADS = 4096 };

mtf_status mtf_launch(int *ranks, int *rank, mtf_err *err)
{
    int n = 1, r = 0;
    TRY(comm_launch(&n, &r, err));
    if (ranks) *ranks = n;
    if (rank) *rank = r;
    return MTF_OK;
}

void mtf_finish(void)
{
    comm_finish();
}

static mtf_status open_comm(mtf_session *s, mtf_err *err)
{
    const comm_mesh m = plan_comm_mesh(s->mesh);
    int ranks = 1, rank = 0;
    TRY(comm_launch(&ranks, &rank, err));
    TRY(ranks > 1 ? comm_new_mpi(&m, s->pool, &s->comm, err)
                  : comm_new_local(&m, s->pool, &s->comm, err));
    s->first = comm_first(s->comm);
    s->nhosted = comm_nhosted(s->comm);
    return MTF_OK;
}

/* What the machine has is shared by all processors on it: those that this process hosts, and those
 * of the other ranks that the launcher put here. */
static mtf_status check_memory(const mtf_session *s, mtf_err *err)
{
    const double machine = (double)mem_machine();
    const int here = s->nhosted * (s->nhosted == comm_size(s->comm) ? 1 : plan_local_ranks());
    const session_plan *p = &s->plan;
    const double each = (double)p->state + (double)p->slab + (double)p->scratch;
    const int workers = here / s->nhosted * pool_threads(s->pool);
    const double need = each * here + (double)p->work * workers;
    if (need <= machine) return MTF_OK;
    return err_set(err, MTF_INVALID,
                   "the plan needs %.3f GB of memory (%d processor%s of %.3f GB) and the machine "
                   "has %.3f GB; use a smaller batch or model, a layout that splits more, or more "
                   "machines",
                   need / 1e9, here, here == 1 ? "" : "s", each / 1e9, machine / 1e9);
}

static void allocate(mtf_session *s)
{
    const size_t n = (size_t)s->nhosted;
    s->memory = mem_zalloc(n * sizeof *s->memory);
    s->scratch = mem_zalloc(n * sizeof *s->scratch);
    for (size_t h = 0; h < n; h++) {
        s->memory[h] = mem_aligned((size_t)(s->plan.state + s->plan.slab));
        s->scratch[h] = mem_aligned((size_t)s->plan.scratch);
    }
    s->work = mem_zalloc((size_t)pool_threads(s->pool) * sizeof *s->work);
    for (int w = 0; w < pool_threads(s->pool); w++)
        s->work[w] = mem_aligned((size_t)s->plan.work);
    for (int k = 0; k < 2; k++)
        s->ptr[k] = mem_zalloc(n * sizeof(void *));
    s->count = mem_zalloc(n * sizeof *s->count);
    s->cut = mem_zalloc(n * sizeof *s->cut);
}

/* Do both programs find the same variables, cut in the same way? */
static bool same_state(const mtf_program *a, const mtf_program *b)
{
    if (a->graph != b->graph || a->nstates != b->nstates) return false;
    for (int i = 0; i < a->nstates; i++)
        if (memcmp(a->state[i].value->split, b->state[i].value->split,
                   sizeof a->state[i].value->split) != 0)
            return false;
    return true;
}

static mtf_status check_together(int n, mtf_program *const *programs, mtf_err *err)
{
    if (n < 1) return err_set(err, MTF_INVALID, "a session needs at least one program");
    for (int i = 1; i < n; i++) {
        const mtf_program *p = programs[i], *first = programs[0];
        if (p->mesh != first->mesh)
            return err_set(err, MTF_INVALID,
                           "programs '%s' and '%s' of one session were compiled for two meshes, "
                           "'%s' and '%s'; compile both for the same mtf_mesh",
                           first->name, p->name, first->mesh->text, p->mesh->text);
        if (!same_state(first, p))
            return err_set(err, MTF_INVALID,
                           "programs '%s' and '%s' of one session need the same variables under "
                           "the same layout; compile both after the last variable was made",
                           first->name, p->name);
    }
    return MTF_OK;
}

static mtf_status check_threads(const mtf_session_options *o, mtf_err *err)
{
    if (!o || (o->threads >= 0 && o->threads <= MAX_THREADS)) return MTF_OK;
    return err_set(err, MTF_INVALID, "a session of %d threads; use 1 to %d, or 0 for one per core",
                   o->threads, MAX_THREADS);
}

static mtf_status prepare(mtf_session *s, int nprograms, mtf_program *const *programs, mtf_err *err)
{
    TRY(open_comm(s, err));
    s->bound = mem_zalloc(sizeof *s->bound * (size_t)nprograms);
    for (int i = 0; i < nprograms; i++) {
        const mtf_program *p = programs[i];
        if (!comm_equal(s->comm, mtf_program_hash(p)))
            return err_set(err, MTF_FAILED,
                           "program '%s' is not the same on all ranks; run the same "
                           "binary with the same arguments everywhere",
                           p->name);
    }
    s->plan = plan_session(nprograms, programs, session_processes(s) > 1);
    TRY(check_memory(s, err));
    for (int i = 0; i < nprograms; i++) {
        s->nbound = i + 1;
        TRY(session_bind(s, &s->bound[i], programs[i], err));
    }
    return MTF_OK;
}

mtf_session *mtf_session_new(int nprograms, mtf_program *const *programs,
                             const mtf_session_options *options, mtf_err *err)
{
    if (check_threads(options, err) != MTF_OK) return NULL;
    if (check_together(nprograms, programs, err) != MTF_OK) return NULL;
    mtf_session *s = mem_zalloc(sizeof *s);
    s->mesh = programs[0]->mesh;
    s->seed = options ? options->seed : 0;
    s->pool = pool_new(plan_threads(options ? options->threads : 0));
    mtf_err local = {0};
    mtf_status st = prepare(s, nprograms, programs, &local);
    if (s->comm) st = comm_agree(s->comm, st, &local);
    if (st != MTF_OK) {
        err_set(err, st, "%s", local.text);
        mtf_session_free(&s);
        return NULL;
    }
    allocate(s);
    return s;
}

void mtf_session_free(mtf_session **handle)
{
    mtf_session *s = *handle;
    if (!s) return;
    for (int i = 0; i < s->nbound; i++)
        session_unbind(&s->bound[i]);
    for (int h = 0; s->memory && h < s->nhosted; h++) {
        mem_free(s->memory[h]);
        mem_free(s->scratch[h]);
    }
    for (int w = 0; s->work && w < pool_threads(s->pool); w++)
        mem_free(s->work[w]);
    mem_free(s->bound);
    mem_free(s->memory);
    mem_free(s->scratch);
    mem_free(s->work);
    mem_free(s->ptr[0]);
    mem_free(s->ptr[1]);
    mem_free(s->count);
    mem_free(s->cut);
    comm_free(&s->comm);
    pool_free(&s->pool);
    mem_free(s);
    *handle = NULL;
}

bool mtf_session_is_root(const mtf_session *s)
{
    return comm_is_root(s->comm);
}

mtf_memory mtf_session_memory(const mtf_session *s)
{
    return (mtf_memory){.state = s->plan.state,
                        .slab = s->plan.slab,
                        .scratch = s->plan.scratch,
                        .workers = s->plan.work * pool_threads(s->pool)};
}
