/* SPDX-License-Identifier: Apache-2.0
 * Memory: wrappers that end the process when there is none, and arenas.
 *
 * mem_count counts every allocation of ours, so that a test can show that a step makes none. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);            /* not cleared; at least 1 byte */
void *mem_zalloc(size_t bytes);           /* cleared */
void *mem_realloc(void *p, size_t bytes); /* as realloc */
void *mem_aligned(size_t bytes);          /* cleared, aligned to 64 bytes, free with mem_free */
char *mem_strdup(const char *s);
void mem_free(void *p);
int64_t mem_count(void);   /* allocations since the process began */
int64_t mem_machine(void); /* bytes of the machine, or of the container that we run in */

/* Grows `*items` so that one more element of `size` bytes fits; doubles the capacity. */
void mem_grow(void **items, int64_t count, int64_t *capacity, size_t size);

/* An arena: memory that lives and dies together. */
typedef struct arena arena;
arena *arena_new(void);
void arena_free(arena **a);                /* accepts a NULL handle and clears it */
void *arena_alloc(arena *a, size_t bytes); /* cleared, aligned to 16 bytes */
char *arena_strdup(arena *a, const char *s);
__attribute__((format(printf, 2, 3))) char *arena_printf(arena *a, const char *fmt, ...);
int64_t arena_bytes(const arena *a); /* bytes handed out */

#endif
