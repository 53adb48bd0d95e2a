/* SPDX-License-Identifier: Apache-2.0
 * The version of the project. The build sets MTF_VERSION from CMakeLists.txt. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

/* "0.1.0"; the commit that was built, or "unknown"; the compiler. All static. */
const char *version_text(void);
const char *version_commit(void);
const char *version_compiler(void);

#endif
