/* SPDX-License-Identifier: Apache-2.0
 * Which values share memory, and how long it is needed.
 *
 * Values that share memory form a group: a view and its operand, an elementwise result in the place
 * of an operand that dies there, a sum in place. A group lives from its first definition to its
 * last use. The next value of a variable is formed in the variable's own memory where the old value
 * has its last read before. The members of a bucket lie side by side, in the order in which they
 * are formed; each takes its place only while it lives. */
#ifndef SPMD_MEMORY_H
#define SPMD_MEMORY_H

#include "spmd/pack.h"
#include "spmd/program.h"

typedef struct group {
    int parent; /* union-find: itself for the root */
    int begin,
        end; /* instructions: first definition (-1: before the first), last use (-1: unused) */
    int64_t bytes;
    int state;          /* the variable whose memory it is, or -1 */
    int bucket;         /* the bucket that it is a member of, or -1 */
    int64_t at;         /* its place in the bucket */
    bool reduced;       /* holds the result of a bucket */
    const instr *maker; /* what defines its first value */
    int64_t offset;     /* in the slab, or in the state block */
} group;

typedef struct memory {
    mtf_program *p;
    group *g;        /* one per value, which may have joined another's */
    int *next_of;    /* per value: the variable whose next value it is, or -1 */
    bool *to_bucket; /* per value: it, or what may be formed in its place, is an operand of a bucket
                      */
    int nbuckets;
} memory;

/* Finds the groups of a program as its instructions stand; numbers these. Only the order of the
 * members of buckets changes. Free with memory_free. */
memory memory_form(mtf_program *p);
void memory_free(memory *m);

group *memory_group(const memory *m, const value *v);

/* The groups that need a place in the slab, for packing, and in of[k] the k-th one's index (`of`
 * may be NULL). Free both. */
int64_t memory_blocks(const memory *m, pack_block **blocks, int **of);

/* Bytes of the slab that the plan will need for the order as it is; numbers the instructions. */
int64_t memory_slab(mtf_program *p);

#endif
