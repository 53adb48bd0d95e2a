/* SPDX-License-Identifier: Apache-2.0
 * Programs as text, as JSON, as totals, as a hash. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "spmd/report.h"

/* ---- costs ---- */

double space_flops(const mtf_mesh *m, const op *row, const mtf_node *n, int dims,
                   const space_dim *space)
{
    kernel_args k = {.space = dims};
    double points = 1;
    for (int d = 0; d < dims; d++) {
        k.dim[d].global = space[d].dim.size;
        k.dim[d].local = block_bound(space[d].dim.size, split_parts(m, space[d].split));
        points *= (double)k.dim[d].local;
    }
    return row->cost ? row->cost(n, &k) : points;
}

exchange exchange_between(const mtf_program *p, const value *from, const value *to)
{
    exchange x;
    exchange_describe(&x, p->mesh, &from->shape, from->split, &to->shape, to->split);
    return x;
}

/* The most over the processors, of all operands together. */
int64_t exchanged_bytes(const mtf_program *p, const instr *i, exchange_asked *elements)
{
    const int64_t procs = p->mesh->processors, many = procs < 16 ? procs : 16;
    int64_t most = 0;
    for (int64_t s = 0; s < many; s++) {
        int64_t n = 0;
        for (int k = 0; k < i->nin; k++) {
            const exchange x = instr_exchange(p, i, k);
            n += elements(&x, mesh_sample(p->mesh, s, many));
        }
        if (n > most) most = n;
    }
    return most * mtf_dtype_size(i->in[0]->dtype);
}

/* Bytes that the busiest processor sends by the bandwidth-optimal schedule. */
static double sent_bytes(const mtf_program *p, const instr *i, double operand, double result)
{
    const double n = (double)split_parts(p->mesh, i->axes);
    switch (i->kind) {
    case INSTR_EXCHANGE:
        return (double)exchanged_bytes(p, i, exchange_sent);
    case INSTR_WINDOW: /* of a part its owners send; over all parts each processor sends its share
                        */
        return (double)exchanged_bytes(p, i, i->op ? exchange_sent : exchange_received);
    case INSTR_ALL_REDUCE:
        return 2 * (n - 1) / n * operand;
    case INSTR_REDUCE_SCATTER:
    case INSTR_ALL_TO_ALL:
        return (n - 1) / n * operand;
    case INSTR_PERMUTE:
        return operand;
    case INSTR_ALL_GATHER:
        return (n - 1) / n * result;
    default:
        return 0;
    }
}

instr_cost instr_cost_of(const mtf_program *p, const instr *i)
{
    instr_cost c = {0};
    double operand = 0, result = 0;
    for (int k = 0; k < i->nin; k++) {
        const int64_t n = value_bound(p, i->in[k]);
        if (k == 0 || instr_is_collective(i)) c.elements += n;
        operand += (double)n * (double)mtf_dtype_size(i->in[k]->dtype);
    }
    for (int k = 0; k < i->nout; k++)
        result += (double)value_bound(p, i->out[k]) * (double)mtf_dtype_size(i->out[k]->dtype);
    if (i->kind == INSTR_COMPUTE)
        c.flops = space_flops(p->mesh, i->op, i->out[0]->tensor->node, i->nspace, i->space);
    c.bytes = sent_bytes(p, i, operand, result);
    return c;
}

mtf_totals mtf_program_totals(const mtf_program *p)
{
    mtf_totals t = {.state_bytes = p->state_bytes,
                    .peak_bytes = p->state_bytes + p->slab_bytes,
                    .instructions = p->ninstrs};
    for (const instr *i = p->first; i; i = i->next) {
        const instr_cost c = instr_cost_of(p, i);
        t.flops += c.flops;
        t.sent_bytes += c.bytes;
        t.calls += instr_is_collective(i) && i->axes.n > 0; /* a window of what is there is none */
    }
    return t;
}

/* ---- text ---- */

void print_axes(const mtf_program *p, split s, const char *between, FILE *f)
{
    for (int i = 0; i < s.n; i++)
        fprintf(f, "%s%s", i ? between : "", p->mesh->name[s.axis[i]]);
}

void print_layout(const mtf_program *p, const value *v, FILE *f)
{
    fprintf(f, "%s[", mtf_dtype_name(v->dtype));
    for (int i = 0; i < v->shape.rank; i++) {
        fprintf(f, "%s%s=%" PRId64, i ? " " : "", v->shape.dim[i].name, v->shape.dim[i].size);
        if (!v->split[i].n) continue;
        fputc('/', f);
        print_axes(p, v->split[i], "+", f);
    }
    fputc(']', f);
    if (!v->pending) return;
    static const char *const how[] = {"sum", "max", "min"};
    fprintf(f, " %s over", how[v->combine]);
    for (int a = 0; a < p->mesh->naxes; a++)
        if (v->pending >> a & 1) fprintf(f, " %s", p->mesh->name[a]);
}

static void print_value(const mtf_program *p, const value *v, FILE *f)
{
    fprintf(f, "%%%d ", v->id);
    print_layout(p, v, f);
}

static void print_instr(const mtf_program *p, const instr *i, FILE *f)
{
    for (int k = 0; k < i->nout; k++) {
        if (k) fputs(", ", f);
        print_value(p, i->out[k], f);
    }
    fprintf(f, "%s%s(", i->nout ? " = " : "", instr_name(i));
    for (int k = 0; k < i->nin; k++)
        fprintf(f, "%s%%%d", k ? ", " : "", i->in[k]->id);
    fputc(')', f);
    if (i->axes.n) {
        fputs(" over ", f);
        print_axes(p, i->axes, "+", f);
    }
    if (i->dim >= 0) fprintf(f, " dim %s", i->in[0]->shape.dim[i->dim].name);
    if (i->kind == INSTR_WINDOW) fprintf(f, " from %" PRId64, i->start);
    if (i->period) fprintf(f, " period %" PRId64, i->period);
    if (i->to_dim >= 0) fprintf(f, " to dim %s", i->in[0]->shape.dim[i->to_dim].name);
    if (i->kind == INSTR_EXCHANGE)
        fprintf(f, " receives %" PRId64 " bytes (lower bound %" PRId64 ")",
                exchanged_bytes(p, i, exchange_received), exchanged_bytes(p, i, exchange_bound));
    if (i->kind == INSTR_COMPUTE) op_print_attr(i->op, i->attr, f);
    if (i->kind == INSTR_ASSIGN) fprintf(f, " to '%s'", p->state[i->state].node->name);
    fprintf(f, " '%s'\n", i->node->name);
}

static void print_sources(const mtf_program *p, FILE *f)
{
    for (int k = 0; k < p->nstates; k++) {
        print_value(p, p->state[k].value, f);
        fprintf(f, " = variable '%s'\n", p->state[k].node->name);
    }
    for (int k = 0; k < p->nfeeds; k++) {
        print_value(p, p->feed[k], f);
        fprintf(f, " = placeholder '%s'\n", p->feed[k]->tensor->node->name);
    }
}

void mtf_program_print(const mtf_program *p, FILE *f)
{
    fprintf(f, "program '%s' mesh '%s' layout '%s'\n", p->name, p->mesh->text, p->layout->text);
    print_sources(p, f);
    for (const instr *i = p->first; i; i = i->next)
        print_instr(p, i, f);
    for (int k = 0; k < p->nfetches; k++)
        fprintf(f, "fetch %%%d '%s'\n", p->fetch[k]->id, p->fetch[k]->tensor->node->name);
    fprintf(f, "slab %" PRId64 " bytes (lower bound %" PRId64 "), state %" PRId64 " bytes\n",
            p->slab_bytes, p->live_bytes, p->state_bytes);
}

void mtf_program_print_memory(const mtf_program *p, FILE *f)
{
    fprintf(f,
            "memory of values: %" PRId64 " bytes; lower bound %" PRId64
            "; the largest at the peak:\n",
            p->slab_bytes, p->live_bytes);
    for (int k = 0; k < p->npeak; k++) {
        fprintf(f, "%14" PRId64 "  ", p->peak[k].bytes);
        print_value(p, p->peak[k].value, f);
        fprintf(f, " '%s'\n", p->peak[k].value->tensor->node->name);
    }
}

uint64_t mtf_program_hash(const mtf_program *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    mtf_program_print(p, f);
    fclose(f);
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    free(text);
    return h;
}

/* ---- JSON ---- */

/* Each collective says what it receives; the last of a reshard, what the whole needs at least. */
static void add_received(const mtf_program *p, const instr *i, const reshard_list *l, json_t *o)
{
    const reshard_chain *r = &l->reshard[l->of[i->id]];
    json_object_set_new(o, "received", json_real(received_bytes(p, i)));
    json_object_set_new(o, "bound", json_real(i == r->last_call ? r->bound : 0));
}

static json_t *instr_json(const mtf_program *p, const instr *i, const reshard_list *l)
{
    const instr_cost c = instr_cost_of(p, i);
    json_t *axes = json_array();
    for (int k = 0; k < i->axes.n; k++)
        json_array_append_new(axes, json_string(p->mesh->name[i->axes.axis[k]]));
    json_t *o = json_pack("{s:s, s:s, s:o, s:I, s:f, s:f}", "op", instr_name(i), "name",
                          i->node->name, "axes", axes, "elements", (json_int_t)c.elements, "bytes",
                          c.bytes, "flops", c.flops);
    if (instr_is_collective(i)) add_received(p, i, l, o);
    return o;
}

void mtf_program_json(const mtf_program *p, FILE *f)
{
    json_t *list = json_array();
    reshard_list l = reshards_find(p);
    for (const instr *i = p->first; i; i = i->next)
        json_array_append_new(list, instr_json(p, i, &l));
    reshards_free(&l);
    json_dumpf(list, f, JSON_COMPACT);
    json_decref(list);
}
