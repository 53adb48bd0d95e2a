/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/element.h"
#include "base/fault.h"
#include "train/files.h"

/* The range of a tensor's flat index that each process writes or reads. */
typedef struct ranges {
    int processes;
    int64_t *lo, *hi;
} ranges;

static ranges ranges_of(const mtf_session *s, int64_t elements)
{
    ranges r = {.processes = session_processes(s)};
    r.lo = mem_alloc(sizeof *r.lo * 2 * (size_t)r.processes);
    r.hi = r.lo + r.processes;
    for (int q = 0; q < r.processes; q++) {
        r.lo[q] = block_start(elements, r.processes, q);
        r.hi[q] = block_start(elements, r.processes, q + 1);
    }
    return r;
}

static const value *value_of(const mtf_session *s, const mtf_tensor *variable)
{
    const mtf_program *p = s->bound[0].p;
    for (int i = 0; i < p->nstates; i++)
        if (&p->state[i].node->out[0] == variable) return p->state[i].value;
    return NULL;
}

/* ---- writing ---- */

static safetensors_tensor describe(const mtf_tensor *t)
{
    safetensors_tensor d = {
        .name = t->node->name, .dtype = graph_master_type(t), .rank = t->shape.rank};
    for (int i = 0; i < d.rank; i++)
        d.extents[i] = t->shape.dim[i].size;
    return d;
}

static mtf_status create(const checkpoint *c, const char *path, safetensors **out, mtf_err *err)
{
    safetensors_tensor *list = mem_zalloc(sizeof *list * (size_t)(c->count + 1));
    for (int i = 0; i < c->count; i++)
        list[i] = describe(c->variables[i]);
    const mtf_status st = safetensors_create(path, list, c->count, c->meta, c->metas, out, err);
    mem_free(list);
    return st;
}

static bool all_finite(mtf_dtype type, const void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(element_get(data, type, i))) return false;
    return true;
}

/* An update may end in infinity after a loss that was finite; such a model is worth nothing, and
 * must not take the place of one that is. */
static mtf_status check_finite(const mtf_tensor *t, const void *data, int64_t n, mtf_err *err)
{
    if (all_finite(t->dtype, data, n)) return MTF_OK;
    return err_set(err, MTF_FAILED,
                   "'%s' has become infinite or NaN, so it is not saved; the last checkpoint is "
                   "kept. Lower train.learning_rate, raise train.warmup_steps or set "
                   "train.clip_norm",
                   t->node->name);
}

/* n elements of one type as another's, in memory of their own. */
static void *converted(void *data, mtf_dtype from, mtf_dtype to, int64_t n)
{
    if (from == to) return data;
    void *out = mem_alloc((size_t)(n * mtf_dtype_size(to)));
    for (int64_t i = 0; i < n; i++)
        element_put(out, to, i, element_get(data, from, i));
    mem_free(data);
    return out;
}

/* Every process takes part in the exchange even after its disk has failed. */
static mtf_status write_variable(mtf_session *s, const mtf_tensor *t, safetensors *file,
                                 mtf_status before, mtf_err *err)
{
    const ranges r = ranges_of(s, mtf_shape_size(&t->shape));
    const int me = session_process(s);
    const int64_t n = r.hi[me] - r.lo[me], size = mtf_dtype_size(graph_master_type(t));
    void *data = mem_alloc((size_t)(n * mtf_dtype_size(t->dtype)));
    blocks_gather(s, value_of(s, t), r.lo, r.hi, data);
    mtf_status st = before;
    if (st == MTF_OK) st = check_finite(t, data, n, err);
    data = converted(data, t->dtype, graph_master_type(t), n);
    if (st == MTF_OK && n > 0)
        st = safetensors_write(file, safetensors_find(file, t->node->name), r.lo[me] * size, data,
                               n * size, err);
    mem_free(data);
    mem_free(r.lo);
    return st;
}

static mtf_status write_all(mtf_session *s, const checkpoint *c, const char *tmp, mtf_err *err)
{
    safetensors *file = NULL;
    mtf_status st = MTF_OK;
    if (comm_is_root(s->comm)) st = create(c, tmp, &file, err);
    TRY(comm_agree(s->comm, st, err));
    if (!file) st = safetensors_open_write(tmp, &file, err);
    st = comm_agree(s->comm, st, err);
    const bool opened = st == MTF_OK; /* everywhere, or nowhere */
    for (int i = 0; opened && i < c->count; i++)
        st = write_variable(s, c->variables[i], file, st, err);
    if (st == MTF_OK)
        st = safetensors_finish(&file, err);
    else
        safetensors_close(&file);
    return comm_agree(s->comm, st, err);
}

mtf_status checkpoint_write(mtf_session *s, const checkpoint *c, const char *path, mtf_err *err)
{
    char tmp[4096];
    snprintf(tmp, sizeof tmp, "%s.tmp", path);
    mtf_status st = write_all(s, c, tmp, err);
    if (comm_is_root(s->comm)) {
        if (st == MTF_OK)
            st = file_sync_rename(tmp, path, err);
        else
            unlink(tmp);
    }
    return comm_agree(s->comm, st, err);
}

/* ---- reading ---- */

static mtf_status find_tensor(const checkpoint *c, const mtf_tensor *t, const safetensors *file,
                              int *index, mtf_err *err)
{
    const char *suffix = c->suffix ? c->suffix : "";
    const size_t room = strlen(t->node->name) + strlen(suffix) + 1;
    char *name = mem_alloc(room);
    snprintf(name, room, "%s%s", t->node->name, suffix);
    *index = safetensors_find(file, name);
    if (*index < 0)
        err_set(err, MTF_INVALID, "the checkpoint has no tensor '%s'; it belongs to another model",
                name);
    mem_free(name);
    return *index < 0 ? MTF_INVALID : MTF_OK;
}

static mtf_status check_tensor(const checkpoint *c, const mtf_tensor *t, const safetensors *file,
                               int *index, mtf_err *err)
{
    TRY(find_tensor(c, t, file, index, err));
    const safetensors_tensor *f = safetensors_at(file, *index);
    const mtf_dtype type = graph_master_type(t);
    bool same = f->rank == t->shape.rank;
    for (int i = 0; same && i < f->rank; i++)
        same = f->extents[i] == t->shape.dim[i].size;
    if (same && f->dtype == type) return MTF_OK;
    const bool other_master = same && mtf_dtype_is_float(f->dtype);
    mtf_shape shape = {.rank = f->rank};
    for (int i = 0; i < f->rank; i++)
        shape.dim[i] = (mtf_dim){i < t->shape.rank ? t->shape.dim[i].name : "?", f->extents[i]};
    return err_set(err, MTF_INVALID,
                   "tensor '%s' of the checkpoint is %s%s; the configuration asks for %s%s%s",
                   t->node->name, mtf_dtype_name(f->dtype), shape_text(&shape),
                   mtf_dtype_name(type), shape_text(&t->shape),
                   other_master ? " (train.master_dtype)" : "");
}

static mtf_status check_extra(const checkpoint *c, const safetensors *file, mtf_err *err)
{
    for (int i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        int k = 0;
        while (k < c->count && strcmp(c->variables[k]->node->name, name) != 0)
            k++;
        if (k == c->count)
            return err_set(err, MTF_INVALID,
                           "the checkpoint has a tensor '%s' that the configuration does not; it "
                           "belongs to another model or optimizer",
                           name);
    }
    return MTF_OK;
}

static mtf_status read_variable(mtf_session *s, const mtf_tensor *t, int index,
                                const safetensors *file, mtf_status before, mtf_err *err)
{
    const ranges r = ranges_of(s, mtf_shape_size(&t->shape));
    const int me = session_process(s);
    const int64_t n = r.hi[me] - r.lo[me], size = mtf_dtype_size(graph_master_type(t));
    void *data = mem_zalloc((size_t)(n * size));
    mtf_status st = before;
    if (st == MTF_OK && n > 0)
        st = safetensors_read(file, index, r.lo[me] * size, data, n * size, err);
    data = converted(data, graph_master_type(t), t->dtype, n);
    blocks_scatter(s, value_of(s, t), r.lo, r.hi, data);
    mem_free(data);
    mem_free(r.lo);
    return st;
}

static bool is_second_moment(const mtf_tensor *t)
{
    const char *slash = strrchr(t->node->name, '/');
    return slash && strcmp(slash, "/v") == 0;
}

mtf_status checkpoint_read(mtf_session *s, const checkpoint *c, const safetensors *file, bool exact,
                           mtf_err *err)
{
    int *index = mem_zalloc(sizeof *index * (size_t)(c->count + 1));
    mtf_status st = exact ? check_extra(c, file, err) : MTF_OK;
    for (int i = 0; st == MTF_OK && i < c->count; i++)
        st = check_tensor(c, c->variables[i], file, &index[i], err);
    st = comm_agree(s->comm, st, err);
    for (int i = 0; st == MTF_OK && i < c->count; i++) {
        if (FAULT(FAULT_RESUME_SLOT) && is_second_moment(c->variables[i])) continue;
        st = read_variable(s, c->variables[i], index[i], file, st, err);
        st = comm_agree(s->comm, st, err);
    }
    mem_free(index);
    return st;
}
