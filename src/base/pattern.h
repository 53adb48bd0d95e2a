/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions that users write. */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include <regex.h>

#include "base/err.h"

/* Compiles the extended regular expression `text` for regexec without places of matches; the caller
 * frees it with regfree. "'(' is no regular expression: .." where it is none. */
mtf_status pattern_compile(const char *text, regex_t *out, mtf_err *err);

#endif
