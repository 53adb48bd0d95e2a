/* SPDX-License-Identifier: Apache-2.0
 * Who belongs to which group, and which block is whose: pure index arithmetic.
 *
 * A group has two orders. Its index order is the caller's (the listed axes, major first) and says
 * which piece of a cut dim a member owns. Its leaf order is the mesh's and says where a member
 * stands in the tree of a sum: so a sum depends on the set of axes, never on how they are listed.
 */
#ifndef COMM_GROUPS_H
#define COMM_GROUPS_H

#include "comm/comm.h"

/* What all groups over one set of axes have in common. Axes of size 1 are left out. */
typedef struct groups {
    int n;       /* axes */
    int members; /* processors of one group */
    struct {
        int size;   /* coordinates on the axis */
        int stride; /* distance of neighbours on it, in processors */
    } listed[COMM_MAX_AXES], sorted[COMM_MAX_AXES]; /* the caller's order; the mesh's order */
} groups;

/* Processors of a mesh; 0 where it is not a mesh (a size below 1, too many axes or processors). */
int mesh_processors(const comm_mesh *m);

/* `axes` are axes of `m` without repeats. */
groups groups_over(const comm_mesh *m, comm_axes axes);

/* The member of `proc`'s group whose coordinates on the axes are all 0. */
int group_base(const groups *g, int proc);

/* Index and leaf of `proc` in its group, and the members with a given index or leaf in the group
 * that begins at `base`. */
int group_index(const groups *g, int proc);
int group_leaf(const groups *g, int proc);
int group_at_index(const groups *g, int base, int index);
int group_at_leaf(const groups *g, int base, int leaf);

/* floor(i n / parts), also where i * n does not fit. 0 <= i <= parts, parts < 2^31. */
int64_t block_begin(int64_t i, int64_t n, int64_t parts);

#endif
