/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/pieces.h"

#include <string.h>

#include "base/mem.h"

#define SEPARATORS ";,. \t\r\n"

static mtf_status read_piece(char *p, const char *whole, const char *what, const char *form,
                             piece *out, mtf_err *err)
{
    char *colon = strchr(p, ':');
    if (!colon || strchr(colon + 1, ':') || colon == p || !colon[1])
        return err_set(err, MTF_INVALID, "%s '%s': '%s' is no %s", what, whole, p, form);
    *colon = '\0';
    if (strlen(p) > 63)
        return err_set(err, MTF_INVALID, "%s '%s': the name '%s' is longer than 63 characters",
                       what, whole, p);
    *out = (piece){p, colon + 1};
    return MTF_OK;
}

mtf_status pieces_read(const char *text, const char *what, const char *form, pieces *out,
                       mtf_err *err)
{
    *out = (pieces){.text = mem_strdup(text)};
    out->piece = mem_alloc(sizeof *out->piece * (strlen(text) / 2 + 1));
    char *rest = NULL;
    for (char *p = strtok_r(out->text, SEPARATORS, &rest); p;
         p = strtok_r(NULL, SEPARATORS, &rest)) {
        TRY(read_piece(p, text, what, form, &out->piece[out->n], err));
        out->n++;
    }
    return MTF_OK;
}

void pieces_free(pieces *p)
{
    mem_free(p->piece);
    mem_free(p->text);
}
