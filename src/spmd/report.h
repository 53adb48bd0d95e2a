/* SPDX-License-Identifier: Apache-2.0
 * What the reports of a program share. */
#ifndef SPMD_REPORT_H
#define SPMD_REPORT_H

#include <stdio.h>

#include "mesh/exchange.h"
#include "spmd/program.h"

/* The names of axes, major first, with `between` between them. */
void print_axes(const mtf_program *p, split s, const char *between, FILE *f);
/* "f32[batch=64/rows io=16] sum over cols" */
void print_layout(const mtf_program *p, const value *v, FILE *f);

/* Bytes that `elements` says of the busiest processor, for an instruction that exchanges. */
int64_t exchanged_bytes(const mtf_program *p, const instr *i, exchange_asked *elements);

/* The exchange that makes `to` of `from`. */
exchange exchange_between(const mtf_program *p, const value *from, const value *to);

/* ---- report_moves.c ---- */

/* A chain of moves of one value (of several side by side in a bucket), each the only use of the one
 * before. Between two moves the value may be viewed under another shape. */
typedef struct reshard_chain {
    const instr *first, *last;
    const instr *last_call; /* NULL: nothing but slices */
    int moves;
    double received; /* bytes, by the busiest processor */
    double bound;    /* the least that any plan receives */
} reshard_chain;

typedef struct reshard_list {
    int n;
    reshard_chain *reshard; /* in the order of their first moves */
    int *of;                /* per instruction: the reshard that it belongs to, or -1 */
} reshard_list;

reshard_list reshards_find(const mtf_program *p);
void reshards_free(reshard_list *l);

/* Bytes that the busiest processor receives in one move. */
double received_bytes(const mtf_program *p, const instr *i);

#endif
