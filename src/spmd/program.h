/* SPDX-License-Identifier: Apache-2.0
 * The SPMD program: values with a layout, and instructions on them.
 *
 * Every processor runs the same program; its coordinates enter only through block offsets.
 * Invariant (SSA): a value is written by one instruction, before every use. A value that is pending
 * over axes is a partial value there: its processors' blocks combine with `combine` to the value
 * proper.
 *
 * Moves (slice, all_gather, all_to_all, permute, exchange, and the reductions) change how a value
 * is cut or over which axes it is partial; verify_move says exactly how. A value that is partial
 * over other axes than those of a move stays partial over them. */
#ifndef SPMD_PROGRAM_H
#define SPMD_PROGRAM_H

#include "graph/op.h"
#include "mesh/exchange.h"
#include "mesh/mesh.h"
#include "mtf/program.h"

typedef enum instr_kind {
    INSTR_COMPUTE,        /* local work of a row */
    INSTR_VIEW,           /* the operand's memory under another shape */
    INSTR_COPY,           /* the operand in memory of its own */
    INSTR_SLICE,          /* the own part of dim `dim`: `axes` come behind the operand's */
    INSTR_ALL_REDUCE,     /* over `axes`; several operands: a bucket */
    INSTR_REDUCE_SCATTER, /* over `axes`, keeping the own part of dim `dim` as a slice does */
    INSTR_ALL_GATHER,     /* dim `dim` without its minor-most `axes` */
    INSTR_ALL_TO_ALL,     /* the minor-most `axes` of dim `dim` come behind those of dim `to_dim` */
    INSTR_PERMUTE,        /* every dim in as many parts, over other axes: blocks change places */
    INSTR_EXCHANGE,       /* the same elements under the result's shape and cuts */
    INSTR_WINDOW, /* of the operands one behind the other along dim `dim`, the elements from `start`
                   * on, under the result's cuts; zeros where there are none */
    INSTR_ASSIGN, /* state `state` = operand */
    INSTR_KINDS
} instr_kind;

typedef enum combine { COMBINE_SUM, COMBINE_MAX, COMBINE_MIN } combine;

typedef struct instr instr;

typedef enum value_kind { VALUE_LOCAL, VALUE_FEED, VALUE_STATE } value_kind;

typedef struct value {
    int id;
    value_kind kind;
    const mtf_tensor *tensor; /* the graph's tensor that it is a copy of */
    mtf_dtype dtype;
    mtf_shape shape; /* global */
    split split[MTF_MAX_RANK];
    unsigned pending; /* axes, as bits */
    combine combine;
    instr *def; /* NULL for feeds and states */
    int uses;   /* operands that name it, fetches included; kept by count_uses */
    int state;  /* VALUE_STATE: which */
    /* memory plan */
    int64_t bytes;  /* an upper bound over all processors, a multiple of 64 */
    int64_t offset; /* in the slab, or in the state block where in_state */
    bool in_state;  /* lives in the state block */
} value;

typedef struct space_dim {
    mtf_dim dim;
    split split;
} space_dim;

struct instr {
    instr *prev, *next;
    int id; /* position, kept by number_instrs */
    instr_kind kind;
    const mtf_node *node; /* where it comes from */
    const op *op;         /* COMPUTE */
    const void *attr;
    int nin, nout;
    value **in, **out;
    int nspace; /* COMPUTE: the iteration space with its cuts */
    space_dim *space;
    split axes; /* moves, major first; permute, exchange: all that operand or result are cut over */
    int dim;    /* position in the operand's shape; -1: none */
    int to_dim; /* ALL_TO_ALL: the dim that receives the axes; else -1 */
    int64_t start, period; /* WINDOW: the first element; beyond the ends it goes on at the other
                            * end, `period` elements away, or with 0 not at all */
    combine combine;
    int state;
};

/* A value that is live where most memory is, with what shares its memory. */
typedef struct peak_value {
    const value *value;
    int64_t bytes;
} peak_value;

enum { PROGRAM_PEAK = 10 };

typedef struct state_slot {
    const mtf_node *node; /* the variable */
    value *value;         /* its value before the run */
    int64_t offset;       /* in the state block */
    bool assigned;        /* does this program write it */
} state_slot;

struct mtf_program {
    arena *mem;
    const char *name;
    mtf_graph *graph;
    const mtf_mesh *mesh;
    const mtf_layout *layout;
    value **value;
    int64_t nvalues, values_cap;
    instr *first, *last;
    int ninstrs;
    value **feed; /* in order of the placeholders' ids */
    int nfeeds;
    state_slot *state; /* in order of the variables' ids: all of the graph, used here or not */
    int nstates;
    value **fetch;
    int nfetches;
    int64_t slab_bytes, state_bytes; /* of the largest processor */
    int64_t live_bytes;              /* the largest live set: a lower bound for slab_bytes */
    int npeak;
    peak_value peak[PROGRAM_PEAK]; /* of that set the largest, the largest first */
};

/* ---- building; program.c ---- */
value *program_value(mtf_program *p, const mtf_tensor *t, const mtf_shape *shape);
/* A new instruction behind `after` (NULL: at the end), with room for its operands. */
instr *program_instr(mtf_program *p, instr *after, instr_kind kind, const mtf_node *node, int nin,
                     int nout);
void program_remove(mtf_program *p, instr *i);
/* Numbers the instructions and counts the uses of values. */
void program_count(mtf_program *p);

/* ---- values and costs; program.c, report.c ---- */
/* Local elements: an upper bound over all processors; on processor `proc`. */
int64_t value_bound(const mtf_program *p, const value *v);
int64_t value_local(const mtf_program *p, const value *v, int64_t proc);
/* Do both take the same bytes for the same elements, on every processor? */
bool value_same_block(const value *a, const value *b);
/* The axes that any dim of `v` is cut over, as bits. */
unsigned value_axes(const value *v);
/* Local extent and first element of dim `d` cut by `s` on processor `proc`. */
kernel_dim dim_block(const mtf_mesh *m, mtf_dim d, split s, int64_t proc);

typedef struct instr_cost {
    int64_t elements; /* of the local operand, the largest processor */
    double bytes;     /* sent by the busiest processor */
    double flops;
} instr_cost;
instr_cost instr_cost_of(const mtf_program *p, const instr *i);
/* Operations of a row on the largest block of its iteration space. */
double space_flops(const mtf_mesh *m, const op *row, const mtf_node *n, int dims,
                   const space_dim *space);
const char *instr_name(const instr *i); /* "all_reduce", or the row's name */
bool instr_is_collective(const instr *i);
bool instr_exchanges(const instr *i); /* a collective that the exchange of blocks carries out */

/* Who sends what of operand k to whom, where instr_exchanges. */
exchange instr_exchange(const mtf_program *p, const instr *i, int k);
/* Elements of dim `dim` of all operands of a WINDOW; does it have elements that no operand has? */
int64_t window_length(const instr *i);
bool window_has_gap(const instr *i);

/* ---- stages ---- */
mtf_status partition(mtf_program *p, const mtf_request *r, mtf_err *err);
void pass_share(mtf_program *p);    /* equal local work is done once; unused work is dropped */
void pass_sink(mtf_program *p);     /* reductions move past linear work where that pays */
void pass_scatter(mtf_program *p);  /* all_reduce + slice = reduce_scatter */
void pass_bucket(mtf_program *p);   /* reductions over the same axes become one call */
void pass_schedule(mtf_program *p); /* the order of instructions that needs less memory */
void plan_memory(mtf_program *p);
/* Aborts with a message where an invariant is broken; `stage` names what ran before. */
void program_verify(mtf_program *p, const char *stage);
/* The part of it that looks at moves: verify_moves.c. */
void verify_move(const mtf_program *p, const instr *i, const char *stage);
/* The same for the memory plan: nothing is written where a value lies that is still read. */
void program_verify_memory(mtf_program *p);

#endif
