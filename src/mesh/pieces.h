/* SPDX-License-Identifier: Apache-2.0
 * The common form of mesh and layout strings: name:value pieces between `; , .` or space. */
#ifndef MESH_PIECES_H
#define MESH_PIECES_H

#include "base/err.h"

typedef struct piece {
    const char *name, *value;
} piece;

typedef struct pieces {
    int n;
    piece *piece;
    char *text; /* what the pieces point into */
} pieces;

/* Cuts `text`. `what` ("mesh") and `form` (what a piece looks like) are for the messages. */
mtf_status pieces_read(const char *text, const char *what, const char *form, pieces *out,
                       mtf_err *err);
void pieces_free(pieces *p);

#endif
