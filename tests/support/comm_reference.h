/* SPDX-License-Identifier: Apache-2.0
 * The canonical order of a reduction, one element at a time, written as the definition reads. */
#ifndef SUPPORT_COMM_REFERENCE_H
#define SUPPORT_COMM_REFERENCE_H

#include "comm/comm.h"

/* Writes processor `proc`'s input element `i`. */
void reference_input(int proc, int64_t i, comm_op op, mtf_dtype type, void *to);

/* Writes element `i` reduced over `proc`'s group. */
void reference_reduce(const comm_mesh *m, comm_axes axes, int proc, int64_t i, comm_op op,
                      mtf_dtype type, void *to);

/* The same operands added one after the other: another order for three operands or more. */
void reference_other_order(const comm_mesh *m, comm_axes axes, int proc, int64_t i, comm_op op,
                           mtf_dtype type, void *to);

/* Members of `proc`'s group in index order (the listed axes, major first); returns how many. */
int reference_members(const comm_mesh *m, comm_axes axes, int proc, int *members);

#endif
