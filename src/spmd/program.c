/* SPDX-License-Identifier: Apache-2.0 */
#include "spmd/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

value *program_value(mtf_program *p, const mtf_tensor *t, const mtf_shape *shape)
{
    value *v = arena_alloc(p->mem, sizeof *v);
    *v = (value){.id = (int)p->nvalues, .tensor = t, .dtype = t->dtype, .shape = *shape};
    mem_grow((void **)&p->value, p->nvalues, &p->values_cap, sizeof(value *));
    p->value[p->nvalues++] = v;
    return v;
}

instr *program_instr(mtf_program *p, instr *after, instr_kind kind, const mtf_node *node, int nin,
                     int nout)
{
    instr *i = arena_alloc(p->mem, sizeof *i);
    *i = (instr){.kind = kind, .node = node, .nin = nin, .nout = nout, .dim = -1, .to_dim = -1};
    i->in = arena_alloc(p->mem, sizeof *i->in * (size_t)(nin ? nin : 1));
    i->out = arena_alloc(p->mem, sizeof *i->out * (size_t)(nout ? nout : 1));
    i->prev = after ? after : p->last;
    i->next = after ? after->next : NULL;
    if (i->prev)
        i->prev->next = i;
    else
        p->first = i;
    if (i->next)
        i->next->prev = i;
    else
        p->last = i;
    p->ninstrs++;
    return i;
}

void program_remove(mtf_program *p, instr *i)
{
    if (i->prev)
        i->prev->next = i->next;
    else
        p->first = i->next;
    if (i->next)
        i->next->prev = i->prev;
    else
        p->last = i->prev;
    p->ninstrs--;
}

void program_count(mtf_program *p)
{
    for (int64_t v = 0; v < p->nvalues; v++)
        p->value[v]->uses = 0;
    int id = 0;
    for (instr *i = p->first; i; i = i->next) {
        i->id = id++;
        for (int k = 0; k < i->nin; k++)
            i->in[k]->uses++;
        for (int k = 0; k < i->nout; k++)
            i->out[k]->def = i;
    }
    for (int k = 0; k < p->nfetches; k++)
        p->fetch[k]->uses++;
}

int64_t value_bound(const mtf_program *p, const value *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->shape.rank; i++)
        n *= block_bound(v->shape.dim[i].size, split_parts(p->mesh, v->split[i]));
    return n;
}

kernel_dim dim_block(const mtf_mesh *m, mtf_dim d, split s, int64_t proc)
{
    const int64_t parts = split_parts(m, s), part = split_part(m, s, proc);
    const int64_t lo = block_start(d.size, parts, part), hi = block_start(d.size, parts, part + 1);
    return (kernel_dim){.local = hi - lo, .global = d.size, .offset = lo};
}

int64_t value_local(const mtf_program *p, const value *v, int64_t proc)
{
    int64_t n = 1;
    for (int i = 0; i < v->shape.rank; i++)
        n *= dim_block(p->mesh, v->shape.dim[i], v->split[i], proc).local;
    return n;
}

bool value_same_block(const value *a, const value *b)
{
    return mtf_dtype_size(a->dtype) == mtf_dtype_size(b->dtype) &&
           shape_equal(&a->shape, &b->shape) && memcmp(a->split, b->split, sizeof a->split) == 0;
}

unsigned value_axes(const value *v)
{
    unsigned mask = 0;
    for (int d = 0; d < v->shape.rank; d++)
        mask |= split_mask(v->split[d]);
    return mask;
}

bool instr_exchanges(const instr *i)
{
    return i->kind == INSTR_ALL_TO_ALL || i->kind == INSTR_PERMUTE || i->kind == INSTR_EXCHANGE ||
           i->kind == INSTR_WINDOW;
}

/* Elements of the dim of a WINDOW that operands before operand k have. */
static int64_t window_before(const instr *i, int k)
{
    int64_t n = 0;
    for (int j = 0; j < k; j++)
        n += i->in[j]->shape.dim[i->dim].size;
    return n;
}

int64_t window_length(const instr *i)
{
    return window_before(i, i->nin);
}

bool window_has_gap(const instr *i)
{
    const int64_t end = i->start + i->out[0]->shape.dim[i->dim].size;
    return !i->period && (i->start < 0 || end > window_length(i));
}

exchange instr_exchange(const mtf_program *p, const instr *i, int k)
{
    exchange x;
    const value *a = i->in[k], *b = i->out[0];
    if (i->kind != INSTR_WINDOW) {
        exchange_describe(&x, p->mesh, &a->shape, a->split, &b->shape, b->split);
        return x;
    }
    const window w = {.dim = i->dim, .start = i->start - window_before(i, k), .period = i->period};
    exchange_describe_window(&x, p->mesh, &a->shape, a->split, &b->shape, b->split, w);
    return x;
}

bool instr_is_collective(const instr *i)
{
    return i->kind == INSTR_ALL_REDUCE || i->kind == INSTR_REDUCE_SCATTER ||
           i->kind == INSTR_ALL_GATHER || instr_exchanges(i);
}

const char *instr_name(const instr *i)
{
    static const char *const names[INSTR_KINDS] = {
        [INSTR_COMPUTE] = "compute",
        [INSTR_VIEW] = "view",
        [INSTR_COPY] = "copy",
        [INSTR_SLICE] = "slice",
        [INSTR_ALL_REDUCE] = "all_reduce",
        [INSTR_REDUCE_SCATTER] = "reduce_scatter",
        [INSTR_ALL_GATHER] = "all_gather",
        [INSTR_ALL_TO_ALL] = "all_to_all",
        [INSTR_PERMUTE] = "permute",
        [INSTR_EXCHANGE] = "exchange",
        [INSTR_WINDOW] = "window",
        [INSTR_ASSIGN] = "assign",
    };
    return i->kind == INSTR_COMPUTE ? i->op->name : names[i->kind];
}

static mtf_program *start(mtf_graph *g, const mtf_mesh *m, const mtf_layout *l, const char *name)
{
    mtf_program *p = mem_zalloc(sizeof *p);
    p->mem = arena_new();
    p->graph = g;
    p->mesh = m;
    p->layout = l;
    p->name = arena_strdup(p->mem, name ? name : "program");
    return p;
}

/* MTF_DUMP names a folder: the graph and the program after every stage are written there. */
static FILE *open_dump(const mtf_program *p, int number, const char *stage)
{
    const char *folder = getenv("MTF_DUMP");
    if (!folder || !*folder) return NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%d-%s.txt", folder, p->name, number, stage);
    FILE *f = fopen(path, "w");
    if (!f) fprintf(stderr, "mtf: warning: MTF_DUMP: '%s' cannot be written\n", path);
    return f;
}

static void end_stage(mtf_program *p, int number, const char *stage)
{
    program_verify(p, stage);
    FILE *f = open_dump(p, number, stage);
    if (!f) return;
    mtf_program_print(p, f);
    fclose(f);
}

static void dump_graph(const mtf_program *p)
{
    FILE *f = open_dump(p, 0, "graph");
    if (!f) return;
    mtf_graph_print(p->graph, f);
    fclose(f);
}

typedef struct stage {
    const char *name;
    void (*run)(mtf_program *p);
} stage;

static const stage stages[] = {{"share", pass_share},       {"sink", pass_sink},
                               {"scatter", pass_scatter},   {"bucket", pass_bucket},
                               {"schedule", pass_schedule}, {"memory", plan_memory}};

mtf_program *mtf_compile(mtf_graph *g, const mtf_mesh *m, const mtf_layout *l, const mtf_request *r,
                         mtf_err *err)
{
    if (mtf_graph_status(g, err) != MTF_OK) return NULL;
    if (l->mesh != m) {
        err_set(err, MTF_INVALID,
                "program '%s': the layout '%s' was read for the mesh '%s', not for '%s'",
                r->name ? r->name : "program", l->text, l->mesh->text, m->text);
        return NULL;
    }
    graph_verify(g);
    mtf_program *p = start(g, m, l, r->name);
    dump_graph(p);
    if (partition(p, r, err) != MTF_OK) {
        mtf_program_free(&p);
        return NULL;
    }
    end_stage(p, 1, "partition");
    for (int i = 0; i < (int)(sizeof stages / sizeof *stages); i++) {
        if (stages[i].run == pass_bucket && r->no_buckets) continue;
        stages[i].run(p);
        end_stage(p, i + 2, stages[i].name);
    }
    program_verify_memory(p);
    return p;
}

mtf_program *mtf_compile_initial(mtf_graph *g, const mtf_mesh *m, const mtf_layout *l, mtf_err *err)
{
    if (mtf_graph_status(g, err) != MTF_OK) return NULL;
    mtf_tensor **updates = mem_alloc(sizeof *updates * (size_t)(g->nnodes + 1));
    int n = 0;
    const int64_t nodes = g->nnodes;
    for (int64_t i = 0; i < nodes; i++)
        if (g->node[i]->op->traits & TRAIT_STATE) {
            mtf_tensor *v = &g->node[i]->out[0];
            updates[n++] = graph_initial_assign(g, v);
        }
    const mtf_request r = {.name = "initial", .nupdates = n, .updates = updates};
    mtf_program *p = mtf_compile(g, m, l, &r, err);
    mem_free(updates);
    return p;
}

void mtf_program_free(mtf_program **handle)
{
    mtf_program *p = *handle;
    if (!p) return;
    arena_free(&p->mem);
    mem_free(p->value);
    mem_free(p);
    *handle = NULL;
}
