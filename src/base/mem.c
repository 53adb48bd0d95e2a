/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

enum { CHUNK = 1 << 16 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char data[];
} chunk;

struct arena {
    chunk *head;
    int64_t bytes;
};

static atomic_llong allocations;

static void *counted(void *p, size_t bytes)
{
    MTF_CHECK(p, "out of memory: %zu bytes more were asked for", bytes);
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return p;
}

void *mem_alloc(size_t bytes)
{
    return counted(malloc(bytes ? bytes : 1), bytes);
}

void *mem_zalloc(size_t bytes)
{
    return counted(calloc(bytes ? bytes : 1, 1), bytes);
}

void *mem_realloc(void *p, size_t bytes)
{
    return counted(realloc(p, bytes ? bytes : 1), bytes);
}

void *mem_aligned(size_t bytes)
{
    const size_t round = (bytes + 64) / 64 * 64;
    void *p = counted(aligned_alloc(64, round), round);
    memset(p, 0, round);
    return p;
}

char *mem_strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    return memcpy(mem_alloc(n), s, n);
}

void mem_free(void *p)
{
    free(p);
}

int64_t mem_count(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

/* The number in a file, or the largest where there is none ("max"). */
static int64_t limit_in(const char *path)
{
    long long limit = 0;
    FILE *f = fopen(path, "r");
    const bool got = f && fscanf(f, "%lld", &limit) == 1;
    if (f) fclose(f);
    return got && limit > 0 ? limit : INT64_MAX;
}

int64_t mem_machine(void)
{
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    const int64_t limit[] = {limit_in("/sys/fs/cgroup/memory.max"),
                             limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")};
    for (int i = 0; i < 2; i++)
        if (limit[i] < bytes) bytes = limit[i];
    return bytes;
}

void mem_grow(void **items, int64_t count, int64_t *capacity, size_t size)
{
    if (count < *capacity) return;
    *capacity = *capacity ? 2 * *capacity : 16;
    *items = mem_realloc(*items, (size_t)*capacity * size);
}

arena *arena_new(void)
{
    return mem_zalloc(sizeof(arena));
}

void arena_free(arena **a)
{
    if (!*a) return;
    for (chunk *c = (*a)->head, *next; c; c = next) {
        next = c->next;
        mem_free(c);
    }
    mem_free(*a);
    *a = NULL;
}

void *arena_alloc(arena *a, size_t bytes)
{
    bytes = (bytes + 15) / 16 * 16;
    chunk *c = a->head;
    if (!c || c->size - c->used < bytes) {
        const size_t size = bytes > CHUNK ? bytes : CHUNK;
        c = mem_alloc(sizeof *c + size);
        *c = (chunk){.next = a->head, .used = 0, .size = size};
        a->head = c;
    }
    void *p = c->data + c->used;
    c->used += bytes;
    a->bytes += (int64_t)bytes;
    return memset(p, 0, bytes);
}

char *arena_strdup(arena *a, const char *s)
{
    const size_t n = strlen(s) + 1;
    return memcpy(arena_alloc(a, n), s, n);
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

int64_t arena_bytes(const arena *a)
{
    return a->bytes;
}
