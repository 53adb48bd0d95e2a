/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#ifndef MTF_COMMIT
#define MTF_COMMIT "unknown"
#endif

const char *version_text(void)
{
    return MTF_VERSION;
}

const char *version_commit(void)
{
    return MTF_COMMIT;
}

const char *version_compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}
