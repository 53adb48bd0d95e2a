/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pattern.h"

#include "base/utf8.h"

enum { SHOWN = 160 };

mtf_status pattern_compile(const char *text, regex_t *out, mtf_err *err)
{
    const int code = regcomp(out, text, REG_EXTENDED | REG_NOSUB);
    if (code == 0) return MTF_OK;
    char why[128], shown[SHOWN];
    regerror(code, out, why, sizeof why);
    return err_set(err, MTF_INVALID, "'%s' is no regular expression: %s",
                   utf8_quote(text, shown, sizeof shown), why);
}
