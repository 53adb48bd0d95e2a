/* SPDX-License-Identifier: Apache-2.0
 * Bugs of our own: checked always, printed with their place, and then the whole job ends. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/* Aborts with the expression, the message and the current context when `cond` is false. */
#define MTF_CHECK(cond, ...)                                                                       \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0)) check_failed(__FILE__, __LINE__, #cond, __VA_ARGS__);    \
    } while (0)

/* As MTF_CHECK, for hot loops: compiled in debug builds only. */
#ifdef MTF_DEBUG
#define MTF_DCHECK(cond, ...) MTF_CHECK(cond, __VA_ARGS__)
#else
#define MTF_DCHECK(cond, ...) ((void)0)
#endif

_Noreturn __attribute__((format(printf, 4, 5))) void
check_failed(const char *file, int line, const char *expr, const char *fmt, ...);

/* What this thread is doing, for the message of a failed check. The string is borrowed. */
void check_set_context(const char *what);

/* How the process ends after a failed check. A transport with peers installs a function that takes
 * them along; the default is abort(). */
void check_set_abort(void (*fn)(void));

#endif
