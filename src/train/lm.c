/* SPDX-License-Identifier: Apache-2.0 */
#include "train/lm.h"

#include <stdio.h>
#include <string.h>

#include "train/update.h"

/* ---- graph ---- */

static void make_variables(lm *m)
{
    const config_model *c = &m->config->model;
    const config_train *t = &m->config->train;
    const mtf_transformer_options o = {
        .vocab = m->vocab,
        .layers = c->layers,
        .d_model = c->d_model,
        .heads = c->heads,
        .d_kv = c->d_kv,
        .d_ff = c->d_ff,
        .length = c->length,
        .dropout = c->dropout,
        .loss = {.label_smoothing = t->label_smoothing, .z_loss = t->z_loss},
        .activation = c->activation == CONFIG_GELU ? MTF_GELU : MTF_RELU,
        .tied = c->tied,
        .recompute = c->recompute,
        .dtype = m->types.activation,
        .variables = &m->types};
    m->transformer = mtf_transformer_variables(m->graph, &o);
    if (!m->transformer) return;
    m->nvariables = m->transformer->nvariables;
    m->variables = m->transformer->variable;
    for (int i = 0; i < m->nvariables; i++) {
        const mtf_shape s = mtf_tensor_shape(m->variables[i]);
        m->parameters += mtf_shape_size(&s);
    }
    m->model_parameters =
        m->parameters - c->length * c->d_model - (c->tied ? 0 : m->vocab * c->d_model);
}

static void list_saved(lm *m)
{
    const int slots = m->optimizer ? m->optimizer->nslots : 0;
    m->saved = arena_alloc(m->mem, sizeof *m->saved * (size_t)(m->nvariables + slots + 1));
    for (int i = 0; i < m->nvariables; i++)
        m->saved[m->nsaved++] = m->variables[i];
    for (int i = 0; i < slots; i++)
        m->saved[m->nsaved++] = m->optimizer->slot[i];
}

static mtf_tensor **tensor_list(lm *m, int n)
{
    return arena_alloc(m->mem, sizeof(mtf_tensor *) * (size_t)(n + 1));
}

/* ---- programs ---- */

/* The instance of the model for one batch size. */
static mtf_transformer_tensors apply(lm *m, lm_batch *b, int64_t size, int64_t full, bool training)
{
    b->size = size;
    mtf_graph_set_batch(m->graph, "batch", full);
    const mtf_transformer_tensors t =
        mtf_transformer_apply(m->transformer, size, m->config->model.length, training);
    b->inputs = t.inputs;
    b->targets = t.targets;
    return t;
}

static mtf_status compile(lm *m, const char *name, int nfetches, mtf_tensor *const *fetches,
                          int nupdates, mtf_tensor *const *updates, mtf_program **out, mtf_err *err)
{
    const mtf_request r = {.name = name,
                           .nfetches = nfetches,
                           .fetches = fetches,
                           .nupdates = nupdates,
                           .updates = updates,
                           .max_value_bytes = m->config->max_value_bytes};
    *out = mtf_compile(m->graph, m->mesh, m->layout, &r, err);
    return *out ? MTF_OK : MTF_INVALID;
}

/* The program that ends a step: fetches loss_sum, count and the norm of the mean gradient. */
static mtf_status compile_update(lm *m, const char *name, mtf_tensor *loss_sum, mtf_tensor *count,
                                 mtf_tensor **gradients, int nextra, mtf_tensor *const *extra,
                                 mtf_program **out, mtf_err *err)
{
    mtf_tensor *norm = NULL;
    mtf_tensor **updates = tensor_list(m, MTF_MAX_VARIABLE_UPDATES * m->nvariables + nextra);
    int n = update_build(m, count, gradients, updates, &norm);
    TRY(mtf_graph_status(m->graph, err));
    for (int i = 0; i < nextra; i++)
        updates[n++] = extra[i];
    return compile(m, name, 3, (mtf_tensor *[]){loss_sum, count, norm}, n, updates, out, err);
}

/* For validations: see lm.swap. */
static mtf_status build_swap(lm *m, mtf_err *err)
{
    mtf_tensor **updates = tensor_list(m, 2 * m->nvariables);
    const int n = mtf_optimizer_swap_averages(m->optimizer, updates);
    return n ? compile(m, "swap", 0, NULL, n, updates, &m->swap, err) : MTF_OK;
}

static mtf_status build_whole(lm *m, mtf_err *err)
{
    const int64_t batch = m->config->train.batch;
    const mtf_transformer_tensors t = apply(m, &m->micro[0], batch, batch, true);
    mtf_tensor **gradients = tensor_list(m, m->nvariables);
    TRY(mtf_gradients(t.loss_sum, m->nvariables, m->variables, gradients) == MTF_OK
            ? MTF_OK
            : mtf_graph_status(m->graph, err));
    m->nmicro = 1;
    return compile_update(m, "train", t.loss_sum, t.count, gradients, 0, NULL, &m->micro[0].program,
                          err);
}

/* The sums of a step over its microbatches. */
typedef struct accumulators {
    mtf_tensor *loss_sum, *count, **gradient;
} accumulators;

static mtf_tensor *accumulator(lm *m, const char *name, mtf_shape shape)
{
    mtf_tensor *zero = mtf_constant(m->graph, 0.0, shape, m->dtype);
    return mtf_variable(m->graph, name, zero, false);
}

static accumulators make_accumulators(lm *m)
{
    accumulators a = {.gradient = tensor_list(m, m->nvariables)};
    mtf_scope_push(m->graph, "accumulator");
    a.loss_sum = accumulator(m, "loss_sum", MTF_SCALAR);
    a.count = accumulator(m, "count", MTF_SCALAR);
    for (int i = 0; i < m->nvariables; i++)
        a.gradient[i] =
            accumulator(m, mtf_tensor_name(m->variables[i]), mtf_tensor_shape(m->variables[i]));
    mtf_scope_pop(m->graph);
    return a;
}

static mtf_status build_micro(lm *m, const accumulators *a, lm_batch *b, int64_t size, mtf_err *err)
{
    const int n = m->nvariables;
    const mtf_transformer_tensors t = apply(m, b, size, m->config->train.batch, true);
    mtf_tensor **d = tensor_list(m, n), **updates = tensor_list(m, n + 2);
    if (mtf_gradients(t.loss_sum, n, m->variables, d) != MTF_OK)
        return mtf_graph_status(m->graph, err);
    for (int i = 0; i < n; i++)
        updates[i] = mtf_assign(a->gradient[i], mtf_add(a->gradient[i], mtf_cast(d[i], m->dtype)));
    updates[n] = mtf_assign(a->loss_sum, mtf_add(a->loss_sum, t.loss_sum));
    updates[n + 1] = mtf_assign(a->count, mtf_add(a->count, t.count));
    return compile(m, "microbatch", 0, NULL, n + 2, updates, &b->program, err);
}

static mtf_tensor *reset(lm *m, mtf_tensor *variable)
{
    return mtf_assign(variable, mtf_constant(m->graph, 0.0, mtf_tensor_shape(variable), m->dtype));
}

static mtf_status build_microbatches(lm *m, mtf_err *err)
{
    const int64_t batch = m->config->train.batch, k = m->config->train.microbatches;
    const accumulators a = make_accumulators(m);
    m->nmicro = batch % k ? 2 : 1;
    for (int i = 0; i < m->nmicro; i++)
        TRY(build_micro(m, &a, &m->micro[i], batch / k + i, err));
    mtf_tensor **resets = tensor_list(m, m->nvariables + 2);
    for (int i = 0; i < m->nvariables; i++)
        resets[i] = reset(m, a.gradient[i]);
    resets[m->nvariables] = reset(m, a.loss_sum);
    resets[m->nvariables + 1] = reset(m, a.count);
    return compile_update(m, "apply", a.loss_sum, a.count, a.gradient, m->nvariables + 2, resets,
                          &m->apply, err);
}

static mtf_status build_gradients(lm *m, mtf_err *err)
{
    const int n = m->nvariables;
    const int64_t batch = m->config->train.batch;
    const mtf_transformer_tensors t = apply(m, &m->gradients, batch, batch, true);
    mtf_tensor **fetches = tensor_list(m, n + 2);
    fetches[0] = t.loss_sum;
    fetches[1] = t.count;
    if (mtf_gradients(t.loss_sum, n, m->variables, fetches + 2) != MTF_OK)
        return mtf_graph_status(m->graph, err);
    return compile(m, "gradients", n + 2, fetches, 0, NULL, &m->gradients.program, err);
}

static mtf_status build_programs(lm *m, unsigned parts, mtf_err *err)
{
    const int64_t batch = m->config->train.batch;
    if (parts & LM_TRAIN)
        TRY(m->config->train.microbatches > 1 ? build_microbatches(m, err) : build_whole(m, err));
    if (parts & LM_GRADIENTS) TRY(build_gradients(m, err));
    if (parts & LM_EVAL) {
        const mtf_transformer_tensors t = apply(m, &m->eval, batch, batch, false);
        TRY(compile(m, "eval", 2, (mtf_tensor *[]){t.loss_sum, t.count}, 0, NULL, &m->eval.program,
                    err));
        TRY(build_swap(m, err));
    }
    if (parts & LM_PREDICT) {
        const mtf_transformer_tensors t = apply(m, &m->predict, 1, 1, false);
        mtf_tensor *logits = mtf_cast(t.logits, m->dtype);
        TRY(compile(m, "predict", 1, &logits, 0, NULL, &m->predict.program, err));
    }
    m->initial = mtf_compile_initial(m->graph, m->mesh, m->layout, err);
    return m->initial ? MTF_OK : MTF_INVALID;
}

/* ---- opening ---- */

static mtf_status open_layout(lm *m, const lm_request *r, mtf_err *warning, mtf_err *err)
{
    m->mesh = mtf_mesh_parse(r->mesh ? r->mesh : m->config->mesh, err);
    if (!m->mesh) return MTF_INVALID;
    m->layout = mtf_layout_parse(r->layout ? r->layout : m->config->layout, m->mesh, r->strict,
                                 warning, err);
    return m->layout ? MTF_OK : MTF_INVALID;
}

static mtf_status build(lm *m, const lm_request *r, mtf_err *warning, mtf_err *err)
{
    TRY(open_layout(m, r, warning, err));
    m->graph = mtf_graph_new();
    make_variables(m);
    TRY(mtf_graph_status(m->graph, err));
    if (r->parts & LM_TRAIN) TRY(update_optimizer(m, err));
    list_saved(m);
    TRY(build_programs(m, r->parts, err));
    return mtf_layout_check_dims(m->layout, m->graph, r->strict, warning, err);
}

static const mtf_dtype dtypes[] = {
    [CONFIG_F32] = MTF_F32, [CONFIG_F64] = MTF_F64, [CONFIG_BF16] = MTF_BF16};

static mtf_variable_types all_of(int dtype)
{
    return (mtf_variable_types){dtypes[dtype], dtypes[dtype], dtypes[dtype]};
}

static mtf_variable_types types_of(const config_train *c)
{
    return (mtf_variable_types){.master = dtypes[config_master_dtype(c)],
                                .stored = dtypes[config_stored_dtype(c)],
                                .activation = dtypes[c->dtype]};
}

mtf_status lm_open(const config *c, const lm_request *r, lm **out, mtf_err *warning, mtf_err *err)
{
    lm *m = mem_zalloc(sizeof *m);
    m->config = c;
    m->vocab = r->vocab;
    m->types = r->dtype >= 0 ? all_of(r->dtype) : types_of(&c->train);
    m->dtype = mtf_dtype_of_sums(m->types.activation);
    m->mem = arena_new();
    const mtf_status st = build(m, r, warning, err);
    if (st != MTF_OK) lm_close(&m);
    *out = m;
    return st;
}

/* All programs that were built, the initial one first. */
static int list_programs(const lm *m, mtf_program **list)
{
    mtf_program *const all[] = {
        m->initial,           m->micro[0].program, m->micro[1].program, m->apply,
        m->gradients.program, m->eval.program,     m->predict.program,  m->swap};
    int n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) list[n++] = all[i];
    return n;
}

void lm_close(lm **handle)
{
    lm *m = *handle;
    if (!m) return;
    mtf_program *list[9];
    mtf_session_free(&m->session);
    const int n = list_programs(m, list);
    for (int i = 0; i < n; i++)
        mtf_program_free(&list[i]);
    mtf_graph_free(&m->graph);
    mtf_layout_free(&m->layout);
    mtf_mesh_free(&m->mesh);
    arena_free(&m->mem);
    mem_free(m);
    *handle = NULL;
}

mtf_memory lm_memory(const lm *m, int threads, bool processes)
{
    mtf_program *list[9];
    const int n = list_programs(m, list);
    return mtf_plan_memory(n, list, threads, processes);
}

mtf_status lm_start(lm *m, int threads, mtf_err *err)
{
    mtf_program *list[9];
    const int n = list_programs(m, list);
    const mtf_session_options o = {.threads = threads, .seed = (uint64_t)m->config->train.seed};
    m->session = mtf_session_new(n, list, &o, err);
    return m->session ? MTF_OK : err->status;
}

mtf_status lm_initialise(lm *m, mtf_err *err)
{
    return mtf_run(m->session, m->initial, 0, NULL, NULL, NULL, err);
}

int64_t lm_microbatch(const lm *m, int64_t i, int64_t *first)
{
    const int64_t n = m->config->train.batch, k = m->config->train.microbatches;
    *first = i * n / k;
    return (i + 1) * n / k - *first;
}

double lm_model_flops(const lm *m)
{
    const config_model *c = &m->config->model;
    const double tokens = (double)m->config->train.batch * (double)c->length;
    return tokens *
           (6.0 * (double)m->model_parameters +
            12.0 * (double)c->layers * (double)c->heads * (double)c->d_kv * (double)c->length);
}

double lm_step_flops(const lm *m)
{
    if (!m->apply) return mtf_program_totals(m->micro[0].program).flops;
    double flops = mtf_program_totals(m->apply).flops;
    for (int64_t i = 0, first; i < m->config->train.microbatches; i++) {
        const bool small = lm_microbatch(m, i, &first) == m->micro[0].size;
        flops += mtf_program_totals(m->micro[small ? 0 : 1].program).flops;
    }
    return flops;
}
