/* SPDX-License-Identifier: Apache-2.0
 * The pieces of a dim that is cut over a group. A whole is [outer, extent, inner]; piece i of it,
 * alone and without gaps, is [outer, its length, inner] and is called flat. Offsets are in bytes.
 */
#ifndef COMM_PIECES_H
#define COMM_PIECES_H

#include "comm/groups.h"

typedef struct pieces {
    int members;    /* of the group */
    int64_t n;      /* the dim's full extent, cut in `parts` pieces of which the group owns */
    int64_t parts;  /* base .. base + members - 1 */
    int64_t base;   /* */
    int64_t outer;  /* rows of the whole */
    int64_t unit;   /* bytes of [inner] */
    int64_t start;  /* where the group's first piece begins in the dim */
    int64_t extent; /* of the dim in the whole: all pieces of the group */
} pieces;

/* The pieces of a group of `members`, of elements of `size` bytes. */
pieces pieces_of(const comm_cut *cut, int members, int64_t size);

int64_t pieces_whole_bytes(const pieces *p);
int64_t piece_bytes(const pieces *p, int i);
/* Bytes of the group's largest piece; of the largest of all groups. */
int64_t pieces_longest(const pieces *p);
int64_t cut_longest(const comm_cut *cut, int64_t size);

/* Where flat offset `at` of piece i lies in the whole, and how many bytes follow it there without a
 * gap (in *run, if not NULL). The piece is not empty. */
int64_t piece_offset(const pieces *p, int i, int64_t at, int64_t *run);

/* Is every piece one run of bytes in the whole. */
bool pieces_contiguous(const pieces *p);

/* Copies the flat range [at, at + bytes) of piece i out of the whole, or into it. */
void piece_pack(const pieces *p, int i, int64_t at, int64_t bytes, const void *whole, void *flat);
void piece_unpack(const pieces *p, int i, int64_t at, int64_t bytes, const void *flat, void *whole);

#endif
