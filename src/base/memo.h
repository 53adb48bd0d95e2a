/* SPDX-License-Identifier: Apache-2.0
 * Results of pure functions, by the bytes of their arguments. */
#ifndef BASE_MEMO_H
#define BASE_MEMO_H

#include <stddef.h>

typedef struct memo memo;

memo *memo_new(void);
void memo_free(memo **m);
/* The bytes that were added for this key, which stay where they are, or NULL. */
const void *memo_find(const memo *m, const void *key, size_t bytes);
/* Copies both. The key must not be there yet. */
void memo_add(memo *m, const void *key, size_t bytes, const void *value, size_t value_bytes);

#endif
