/* SPDX-License-Identifier: Apache-2.0
 * Errors of the user and of the environment: one message, stored once, where it is known. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>

#include "mtf/types.h"

/* Stores `status` and the formatted message in `e` unless `e` already holds a message.
 * `e` may be NULL. Returns `status`, so that a caller can write `return err_set(...)`. */
__attribute__((format(printf, 3, 4))) mtf_status err_set(mtf_err *e, mtf_status status,
                                                         const char *fmt, ...);
mtf_status err_vset(mtf_err *e, mtf_status status, const char *fmt, va_list ap);

/* Puts `prefix` before a message that is already stored: "reading 'x': <old text>". */
__attribute__((format(printf, 2, 3))) void err_prefix(mtf_err *e, const char *fmt, ...);

/* Returns early with the status of a call that failed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        mtf_status try_status_ = (call);                                                           \
        if (try_status_ != MTF_OK) return try_status_;                                             \
    } while (0)

#endif
