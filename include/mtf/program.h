/* SPDX-License-Identifier: Apache-2.0
 * Programs: what a graph becomes under a mesh and a layout. One program serves every processor. */
#ifndef MTF_PROGRAM_H
#define MTF_PROGRAM_H

#include "mtf/graph.h"
#include "mtf/mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_program mtf_program;

/* What a program computes. All arrays are read during the call only. */
typedef struct mtf_request {
    const char *name; /* for messages; NULL is "program" */
    int nfetches;
    mtf_tensor *const *fetches; /* tensors whose values a run returns */
    int nupdates;
    mtf_tensor *const *updates; /* results of mtf_assign that a run carries out */
    bool no_buckets;            /* keep every reduction a call of its own */
    /* No value that is gathered or moved may be larger than this on one processor, in bytes; 0: no
     * limit. Products whose operands would be larger are worked off in parts of a reduced dim. */
    int64_t max_value_bytes;
} mtf_request;

/* Compiles. Fails (NULL, MTF_INVALID) where the graph has an error, where a layout cuts two dims of
 * one tensor over the same axis or was read for another mesh, where a fetch is NULL, where a
 * variable is assigned twice, where max_value_bytes leaves no way. Cost
 * does not grow with the number of processors. Graph, mesh and layout must outlive the program.
 * Local; all ranks compile the same program. */
mtf_program *mtf_compile(mtf_graph *g, const mtf_mesh *m, const mtf_layout *l, const mtf_request *r,
                         mtf_err *err);

/* Compiles the program that gives every variable its initial value. */
mtf_program *mtf_compile_initial(mtf_graph *g, const mtf_mesh *m, const mtf_layout *l,
                                 mtf_err *err);
void mtf_program_free(mtf_program **p);

/* The program as text, one instruction per line. */
void mtf_program_print(const mtf_program *p, FILE *f);

/* The memory plan as text: the slab, its lower bound (the largest set of values that live at once),
 * and the ten largest values of that set. */
void mtf_program_print_memory(const mtf_program *p, FILE *f);

/* Every reshard (a chain of moves of one value from one layout to another, its reductions included)
 * as text: the bytes that the busiest processor receives, and the least that any plan could do with
 * (which is less than an all_reduce's where replicas could each reduce a part).
 * Equal ones are one line. Where more than twice the least is received a further line says why. */
void mtf_program_print_resharding(const mtf_program *p, FILE *f);

/* The instructions as a JSON array: op, name, axes, elements (of the local operand), bytes (sent by
 * the busiest processor under the bandwidth-optimal schedule), flops. Collectives have besides
 * received (bytes, by the busiest processor) and bound (the least for the whole reshard, at its
 * last collective; 0 at those before). One line, no newline. */
void mtf_program_json(const mtf_program *p, FILE *f);

/* Totals of one processor, the largest. */
typedef struct mtf_totals {
    double flops;                /* per run */
    double sent_bytes;           /* per run, over all collectives */
    int64_t peak_bytes;          /* state and values; mtf_plan_memory knows the rest as well */
    int64_t state_bytes;         /* of variables */
    int64_t instructions, calls; /* calls: of collectives */
} mtf_totals;
mtf_totals mtf_program_totals(const mtf_program *p);

/* A hash of the program's text; equal programs have equal hashes. */
uint64_t mtf_program_hash(const mtf_program *p);

#ifdef __cplusplus
}
#endif
#endif
