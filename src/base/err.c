/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

mtf_status err_vset(mtf_err *e, mtf_status status, const char *fmt, va_list ap)
{
    if (e && e->status == MTF_OK) {
        e->status = status;
        vsnprintf(e->text, sizeof e->text, fmt, ap);
    }
    return status;
}

mtf_status err_set(mtf_err *e, mtf_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, status, fmt, ap);
    va_end(ap);
    return status;
}

void err_prefix(mtf_err *e, const char *fmt, ...)
{
    if (!e || e->status == MTF_OK) return;
    char head[512], tail[sizeof e->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    memcpy(tail, e->text, sizeof tail);
    size_t used = strlen(head);
    memcpy(e->text, head, used);
    size_t room = sizeof e->text - used - 1, len = strlen(tail);
    if (len > room) len = room;
    memcpy(e->text + used, tail, len);
    e->text[used + len] = '\0';
}
