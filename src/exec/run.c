/* SPDX-License-Identifier: Apache-2.0
 * One run of a program: feeds in, instructions, fetches out. */
#include <string.h>

#include "base/check.h"
#include "exec/session.h"

static const mtf_feed *find_feed(const value *v, int nfeeds, const mtf_feed *feeds)
{
    for (int i = 0; i < nfeeds; i++)
        if (feeds[i].placeholder == v->tensor) return &feeds[i];
    return NULL;
}

static mtf_status check_feed(const mtf_program *p, const value *v, int nfeeds,
                             const mtf_feed *feeds, mtf_err *err)
{
    const char *name = v->tensor->node->name;
    const mtf_feed *f = find_feed(v, nfeeds, feeds);
    if (!f)
        return err_set(err, MTF_INVALID, "program '%s' needs a feed for placeholder '%s'%s",
                       p->name, name, shape_text(&v->shape));
    if (!f->data && !f->fn)
        return err_set(
            err, MTF_INVALID,
            "program '%s': the feed for placeholder '%s' has neither data nor a callback", p->name,
            name);
    if (find_feed(v, (int)(feeds + nfeeds - f) - 1, f + 1))
        return err_set(err, MTF_INVALID, "program '%s': placeholder '%s' has two feeds; keep one",
                       p->name, name);
    return MTF_OK;
}

/* The block that starts at `offset` of a whole row-major array. */
static void copy_block(const value *v, const int64_t *offset, const int64_t *extent,
                       const char *whole, char *block)
{
    const int rank = v->shape.rank;
    const int64_t size = mtf_dtype_size(v->dtype);
    const int64_t run = rank ? extent[rank - 1] : 1;
    int64_t runs = 1;
    for (int d = 0; d + 1 < rank; d++)
        runs *= extent[d];
    for (int64_t r = 0; r < runs; r++) {
        int64_t rest = r, from = 0, stride = 1;
        for (int d = rank - 1; d >= 0; d--) {
            int64_t i = 0;
            if (d < rank - 1) {
                i = rest % extent[d];
                rest /= extent[d];
            }
            from += (offset[d] + i) * stride;
            stride *= v->shape.dim[d].size;
        }
        memcpy(block + r * run * size, whole + from * size, (size_t)(run * size));
    }
}

static mtf_status fill_feed(mtf_session *s, const value *v, const mtf_feed *f, mtf_err *err)
{
    for (int h = 0; h < s->nhosted; h++) {
        int64_t offset[MTF_MAX_RANK], extent[MTF_MAX_RANK], elements = 1;
        for (int d = 0; d < v->shape.rank; d++) {
            const kernel_dim b = dim_block(s->mesh, v->shape.dim[d], v->split[d], s->first + h);
            offset[d] = b.offset;
            extent[d] = b.local;
            elements *= b.local;
        }
        char *block = session_memory(s, h, session_offset(s, v));
        if (elements == 0) continue;
        if (f->fn)
            TRY(f->fn(f->ctx, offset, extent, block, err));
        else
            copy_block(v, offset, extent, f->data, block);
    }
    return MTF_OK;
}

static mtf_status fill_feeds(mtf_session *s, const mtf_program *p, int nfeeds,
                             const mtf_feed *feeds, mtf_err *err)
{
    for (int k = 0; k < p->nfeeds; k++)
        TRY(check_feed(p, p->feed[k], nfeeds, feeds, err));
    for (int k = 0; k < p->nfeeds; k++)
        TRY(fill_feed(s, p->feed[k], find_feed(p->feed[k], nfeeds, feeds), err));
    return MTF_OK;
}

static const bound *find_bound(const mtf_session *s, const mtf_program *p)
{
    for (int i = 0; i < s->nbound; i++)
        if (s->bound[i].p == p) return &s->bound[i];
    return NULL;
}

static void fetch_whole(mtf_session *s, const value *v, void *out)
{
    const int64_t n = mtf_shape_size(&v->shape);
    bool whole = true;
    for (int d = 0; d < v->shape.rank; d++)
        whole = whole && !v->split[d].n;
    if (whole) { /* every processor has it: nothing moves and nothing is allocated */
        memcpy(out, session_memory(s, 0, session_offset(s, v)),
               (size_t)(n * mtf_dtype_size(v->dtype)));
        return;
    }
    const int processes = session_processes(s);
    int64_t *range = mem_alloc(sizeof *range * 2 * (size_t)processes);
    for (int q = 0; q < processes; q++) {
        range[q] = 0;
        range[processes + q] = n;
    }
    blocks_gather(s, v, range, range + processes, out);
    mem_free(range);
}

mtf_status mtf_run(mtf_session *s, const mtf_program *p, int nfeeds, const mtf_feed *feeds,
                   void *const *fetched, const mtf_run_values *values, mtf_err *err)
{
    const bound *b = find_bound(s, p);
    if (!b) return err_set(err, MTF_INVALID, "program '%s' is none of the session's", p->name);
    mtf_err local = {0};
    mtf_status st = fill_feeds(s, p, nfeeds, feeds, &local);
    if (p->nfeeds) st = comm_agree(s->comm, st, &local);
    if (st != MTF_OK) return err_set(err, st, "%s", local.text);
    s->run = (kernel_run){.seed = s->seed,
                          .step = values ? values->step : 0,
                          .batch_offset = values ? values->batch_offset : 0};
    session_execute(s, b);
    for (int i = 0; i < p->nfetches; i++)
        if (fetched && fetched[i]) fetch_whole(s, p->fetch[i], fetched[i]);
    return MTF_OK;
}

static const value *find_state(const mtf_session *s, const mtf_tensor *variable, mtf_err *err)
{
    const mtf_program *p = s->bound[0].p;
    for (int i = 0; i < p->nstates; i++)
        if (&p->state[i].node->out[0] == variable) return p->state[i].value;
    err_set(err, MTF_INVALID, "'%s' is no variable of the session", mtf_tensor_name(variable));
    return NULL;
}

mtf_status mtf_state_get(mtf_session *s, const mtf_tensor *variable, void *whole, mtf_err *err)
{
    const value *v = find_state(s, variable, err);
    if (!v) return MTF_INVALID;
    fetch_whole(s, v, whole);
    return MTF_OK;
}

mtf_status mtf_state_set(mtf_session *s, const mtf_tensor *variable, const void *whole,
                         mtf_err *err)
{
    const value *v = find_state(s, variable, err);
    if (!v) return MTF_INVALID;
    for (int h = 0; h < s->nhosted; h++) {
        int64_t offset[MTF_MAX_RANK], extent[MTF_MAX_RANK], elements = 1;
        for (int d = 0; d < v->shape.rank; d++) {
            const kernel_dim b = dim_block(s->mesh, v->shape.dim[d], v->split[d], s->first + h);
            offset[d] = b.offset;
            extent[d] = b.local;
            elements *= b.local;
        }
        if (elements)
            copy_block(v, offset, extent, whole, session_memory(s, h, session_offset(s, v)));
    }
    return MTF_OK;
}
