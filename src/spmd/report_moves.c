/* SPDX-License-Identifier: Apache-2.0
 * Reshards: what brings a value from one layout to another, how much of it a processor receives,
 * and how much it would have to receive in any plan. They are read off the final program, so no
 * pass has to keep records of them. */
#include "spmd/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "mesh/link.h"

/* ---- chains ---- */

static bool is_move(const instr *i)
{
    return i->kind == INSTR_SLICE || instr_is_collective(i);
}

static bool reduces(const instr *i)
{
    return i->kind == INSTR_ALL_REDUCE || i->kind == INSTR_REDUCE_SCATTER;
}

/* A part of a value: a reshard of its own, of which no element comes twice. */
static bool is_part(const instr *i)
{
    return i->kind == INSTR_WINDOW;
}

static bool used_once(const value *v)
{
    return v->uses == 1 || FAULT(FAULT_RESHARD_USES);
}

/* The value of which `v` is a view, or of whose view, each the only use of the one before. */
static const value *viewed(const value *v)
{
    while (v->def && v->def->kind == INSTR_VIEW && used_once(v))
        v = v->def->in[0];
    return v;
}

static const instr *maker(const instr *i)
{
    return viewed(i->in[0])->def;
}

/* The move all of whose results `i` takes, by whatever name, and nobody else; NULL: none. */
static const instr *link_before(const instr *i)
{
    const instr *d = maker(i);
    if (!d || !is_move(d) || d->nout != i->nin || is_part(i) || is_part(d)) return NULL;
    for (int k = 0; k < i->nin; k++)
        if (viewed(i->in[k]) != d->out[k] || !used_once(d->out[k])) return NULL;
    return d;
}

/* ---- bytes ---- */

static double size_of(const mtf_program *p, const value *v)
{
    return (double)value_bound(p, v) * (double)mtf_dtype_size(v->dtype);
}

/* What an exchange from one to the other receives, and what any plan must. */
static double missing_bytes(const mtf_program *p, const value *from, const value *to)
{
    const exchange x = exchange_between(p, from, to);
    return (double)exchange_most(&x, exchange_bound) * (double)mtf_dtype_size(from->dtype);
}

/* A reduction by the schedule of fewest bytes: each member reduces its part; in an all_reduce the
 * parts are then gathered. */
static double reduction_bytes(const mtf_program *p, const instr *i, int k)
{
    const double n = (double)split_parts(p->mesh, i->axes);
    if (i->kind == INSTR_REDUCE_SCATTER) return (n - 1) * size_of(p, i->out[k]);
    return 2 * (n - 1) / n * size_of(p, i->in[k]);
}

static double part_bytes(const mtf_program *p, const instr *i)
{
    return (double)exchanged_bytes(p, i, exchange_bound);
}

double received_bytes(const mtf_program *p, const instr *i)
{
    if (is_part(i)) return part_bytes(p, i);
    if (!reduces(i)) return missing_bytes(p, i->in[0], i->out[0]);
    double bytes = 0;
    for (int k = 0; k < i->nin; k++)
        bytes += reduction_bytes(p, i, k);
    return bytes;
}

/* The axes that the chain reduces over. */
static unsigned reduced_axes(const reshard_chain *r)
{
    return r->first->in[0]->pending & ~r->last->out[0]->pending;
}

static double size_of_axes(const mtf_mesh *m, unsigned axes)
{
    double n = 1;
    for (int a = 0; a < m->naxes; a++)
        if (axes >> a & 1) n *= (double)m->size[a];
    return n;
}

/* An element with n shares on different processors, whose sum w processors want, takes n - 1
 * messages until the first has the sum, and one more for each other that wants it: n - 2 + w. All
 * elements together, spread over all processors evenly, are one bound. The other is that everybody
 * must receive at least once what it wants of sums. */
static double sum_bound(const mtf_program *p, const value *to, double n)
{
    const double elements = (double)mtf_shape_size(&to->shape);
    const double wanted = elements / size_of_axes(p->mesh, value_axes(to));
    const double even = elements * (n - 2) / (double)p->mesh->processors + wanted;
    const double bytes = even * (double)mtf_dtype_size(to->dtype), own = size_of(p, to);
    return bytes > own ? bytes : own;
}

static double bound_of(const mtf_program *p, const reshard_chain *r)
{
    if (is_part(r->first)) return part_bytes(p, r->first);
    const double n = size_of_axes(p->mesh, reduced_axes(r));
    double bytes = 0;
    for (int k = 0; k < r->first->nin; k++) {
        const value *from = r->first->in[k], *to = r->last->out[k];
        bytes += n > 1 ? sum_bound(p, to, n) : missing_bytes(p, from, to);
    }
    return bytes;
}

static void add_move(const mtf_program *p, reshard_list *l, const instr *i)
{
    const instr *before = link_before(i);
    if (!before) {
        l->of[i->id] = l->n;
        l->reshard[l->n++] = (reshard_chain){.first = i};
    } else {
        l->of[i->id] = l->of[before->id];
    }
    reshard_chain *r = &l->reshard[l->of[i->id]];
    r->last = i;
    if (instr_is_collective(i)) r->last_call = i;
    r->moves++;
    r->received += received_bytes(p, i);
}

reshard_list reshards_find(const mtf_program *p)
{
    reshard_list l = {.reshard = mem_alloc(sizeof *l.reshard * (size_t)(p->ninstrs + 1)),
                      .of = mem_alloc(sizeof *l.of * (size_t)(p->ninstrs + 1))};
    for (const instr *i = p->first; i; i = i->next) {
        l.of[i->id] = -1;
        if (is_move(i)) add_move(p, &l, i);
    }
    for (int k = 0; k < l.n; k++)
        l.reshard[k].bound = bound_of(p, &l.reshard[k]);
    return l;
}

void reshards_free(reshard_list *l)
{
    mem_free(l->reshard);
    mem_free(l->of);
    *l = (reshard_list){0};
}

/* ---- why so much ---- */

static double messages_between(const mtf_program *p, const value *from, const value *to)
{
    const exchange x = exchange_between(p, from, to);
    return (double)exchange_most(&x, exchange_senders);
}

/* Messages that a processor receives in one move. */
static double messages_of(const mtf_program *p, const instr *i)
{
    const double n = (double)split_parts(p->mesh, i->axes);
    switch (i->kind) {
    case INSTR_SLICE:
        return 0;
    case INSTR_ALL_REDUCE:
        return 2 * (n - 1);
    case INSTR_PERMUTE:
    case INSTR_EXCHANGE:
        return messages_between(p, i->in[0], i->out[0]);
    default:
        return n - 1;
    }
}

/* Rounds of messages: an all_reduce has two. */
static double rounds_of(const instr *i)
{
    if (!instr_is_collective(i)) return 0;
    return i->kind == INSTR_ALL_REDUCE ? 2 : 1;
}

typedef struct traffic {
    double rounds, messages;
} traffic;

/* The chain's moves, from the last back to the first. */
static traffic traffic_of(const mtf_program *p, const reshard_chain *r)
{
    traffic t = {0};
    for (const instr *i = r->last; i; i = i == r->first ? NULL : maker(i)) {
        t.rounds += rounds_of(i);
        t.messages += messages_of(p, i);
    }
    return t;
}

/* Reductions in one step over all axes, and one exchange. */
static traffic traffic_of_direct(const mtf_program *p, const reshard_chain *r)
{
    const value *from = r->first->in[0], *to = r->last->out[0];
    const unsigned over = reduced_axes(r);
    const double n = size_of_axes(p->mesh, over);
    const double copies = n / size_of_axes(p->mesh, over & value_axes(to));
    const double moves = messages_between(p, from, to);
    return (traffic){.rounds = (n > 1) + (copies > 1) + (moves > 0),
                     .messages = n - 1 + copies - 1 + moves};
}

static void print_reason(const mtf_program *p, const reshard_chain *r, FILE *f)
{
    const traffic t = traffic_of(p, r), least = traffic_of_direct(p, r);
    const double time = link_time(t.rounds, t.messages, r->received);
    const double other = link_time(least.rounds, least.messages, r->bound);
    fprintf(f, "%31smore than twice the bound: %.0f message%s in about %.1f us, ", "", t.messages,
            t.messages == 1 ? "" : "s", time * 1e6);
    fprintf(f, "%s a plan of the least bytes would take %.0f in about %.1f us\n",
            time <= other ? "because" : "although", least.messages, other * 1e6);
}

/* ---- text ---- */

static void print_calls(const mtf_program *p, const reshard_chain *r, const instr *i, FILE *f)
{
    if (i != r->first) {
        print_calls(p, r, maker(i), f);
        fputs(", ", f);
    }
    fprintf(f, "%s%s", instr_name(i), i->axes.n ? " over " : "");
    print_axes(p, i->axes, "+", f);
}

/* All that two reshards of different tensors have in common, as text; free it. */
static char *text_of(const mtf_program *p, const reshard_chain *r)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    fprintf(f, "%14.0f %14.0f  ", r->received, r->bound);
    if (r->first->nin > 1) {
        fprintf(f, "%d values in one call", r->first->nin);
    } else {
        print_layout(p, r->first->in[0], f);
        fputs(" -> ", f);
        print_layout(p, r->last->out[0], f);
    }
    fputs(": ", f);
    print_calls(p, r, r->last, f);
    fclose(f);
    return text;
}

/* One line of the report: the first of its kind, and how many there are. */
typedef struct line {
    const reshard_chain *first;
    char *text;
    int count;
} line;

static int add_line(line *lines, int n, const reshard_chain *r, char *text)
{
    for (int k = 0; k < n; k++)
        if (strcmp(lines[k].text, text) == 0) {
            lines[k].count++;
            free(text);
            return n;
        }
    lines[n] = (line){.first = r, .text = text, .count = 1};
    return n + 1;
}

static void print_line(const mtf_program *p, const line *l, FILE *f)
{
    fprintf(f, "%s '%s'", l->text, l->first->first->in[0]->tensor->node->name);
    if (l->count > 1) fprintf(f, " x %d", l->count);
    fputc('\n', f);
    if (l->first->received > 2.000001 * l->first->bound) print_reason(p, l->first, f);
}

static void print_lines(const mtf_program *p, const reshard_list *l, FILE *f)
{
    line *lines = mem_alloc(sizeof *lines * (size_t)(l->n + 1));
    int n = 0;
    for (int k = 0; k < l->n; k++)
        n = add_line(lines, n, &l->reshard[k], text_of(p, &l->reshard[k]));
    for (int k = 0; k < n; k++) {
        print_line(p, &lines[k], f);
        free(lines[k].text);
    }
    mem_free(lines);
}

void mtf_program_print_resharding(const mtf_program *p, FILE *f)
{
    reshard_list l = reshards_find(p);
    double received = 0, bound = 0;
    for (int k = 0; k < l.n; k++) {
        received += l.reshard[k].received;
        bound += l.reshard[k].bound;
    }
    fprintf(f,
            "resharding: the busiest processor receives %.0f bytes; the sum of lower bounds is "
            "%.0f:\n",
            received, bound);
    if (l.n) fprintf(f, "%14s %14s\n", "received", "lower bound");
    print_lines(p, &l, f);
    reshards_free(&l);
}
