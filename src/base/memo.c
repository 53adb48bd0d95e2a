/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memo.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

typedef struct entry {
    uint64_t hash;
    size_t bytes;
    const void *key, *value; /* NULL: a free place */
} entry;

struct memo {
    arena *mem;
    entry *table; /* open addressing; never more than half full */
    size_t n, cap;
};

memo *memo_new(void)
{
    memo *m = mem_zalloc(sizeof *m);
    m->mem = arena_new();
    m->cap = 64;
    m->table = mem_zalloc(m->cap * sizeof *m->table);
    return m;
}

void memo_free(memo **handle)
{
    memo *m = *handle;
    if (!m) return;
    arena_free(&m->mem);
    mem_free(m->table);
    mem_free(m);
    *handle = NULL;
}

static uint64_t hash_of(const void *key, size_t bytes)
{
    const unsigned char *k = key;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ k[i]) * 1099511628211u;
    return h;
}

static entry *place_of(const memo *m, uint64_t hash, const void *key, size_t bytes)
{
    size_t at = (size_t)hash & (m->cap - 1);
    for (;; at = (at + 1) & (m->cap - 1)) {
        entry *e = &m->table[at];
        if (!e->key) return e;
        if (e->hash == hash && e->bytes == bytes && memcmp(e->key, key, bytes) == 0) return e;
    }
}

const void *memo_find(const memo *m, const void *key, size_t bytes)
{
    return place_of(m, hash_of(key, bytes), key, bytes)->value;
}

static void grow(memo *m)
{
    entry *old = m->table;
    const size_t cap = m->cap;
    m->cap *= 2;
    m->table = mem_zalloc(m->cap * sizeof *m->table);
    for (size_t i = 0; i < cap; i++)
        if (old[i].key) *place_of(m, old[i].hash, old[i].key, old[i].bytes) = old[i];
    mem_free(old);
}

static void *copy_of(memo *m, const void *data, size_t bytes)
{
    void *copy = arena_alloc(m->mem, bytes ? bytes : 1);
    memcpy(copy, data, bytes);
    return copy;
}

void memo_add(memo *m, const void *key, size_t bytes, const void *value, size_t value_bytes)
{
    if (2 * (m->n + 1) > m->cap) grow(m);
    const uint64_t hash = hash_of(key, bytes);
    *place_of(m, hash, key, bytes) = (entry){.hash = hash,
                                             .bytes = bytes,
                                             .key = copy_of(m, key, bytes),
                                             .value = copy_of(m, value, value_bytes)};
    m->n++;
}
