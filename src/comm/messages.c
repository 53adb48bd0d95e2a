/* SPDX-License-Identifier: Apache-2.0
 * What the collectives by messages share: tags, and how pieces travel in rounds through scratch. */
#include "base/check.h"
#include "comm/internal.h"

enum {
    TAGS = 1 << 15,
    LINE = 64,
    /* All slots of scratch together: what arrives stays in the cache until it has been added, and
     * scratch is bounded however large a buffer is. In a large group messages would become small,
     * so there the slots stop shrinking. */
    SCRATCH_BYTES = 4 << 20,
    MIN_SLOT_BYTES = 1 << 16,
};

int comm_next_tag(comm *c)
{
    return (int)(c->calls++ % TAGS);
}

static int64_t slot_bytes(int members, int64_t piece, int64_t most)
{
    int64_t slot = SCRATCH_BYTES / (2 * members) / LINE * LINE;
    if (slot < MIN_SLOT_BYTES) slot = MIN_SLOT_BYTES;
    if (slot > most) slot = most;
    return piece < slot ? (piece + LINE - 1) / LINE * LINE : slot;
}

int64_t comm_slots(int members, int64_t slots, int64_t piece)
{
    return slots * slot_bytes(members, piece, INT64_MAX);
}

member comm_member(comm *c, comm_axes axes, void *const *scratch, int64_t piece)
{
    MTF_CHECK(c->nhosted == 1, "%d processors are hosted here, of %d", c->nhosted, c->size);
    member m = {.g = groups_over(&c->mesh, axes), .proc = c->first, .tag = comm_next_tag(c)};
    m.base = group_base(&m.g, m.proc);
    m.index = group_index(&m.g, m.proc);
    m.slot = slot_bytes(m.g.members, piece, c->max_slot);
    m.scratch = scratch ? scratch[0] : NULL;
    return m;
}

int64_t member_round_bytes(const member *m, const pieces *p, int i, int64_t at)
{
    const int64_t left = piece_bytes(p, i) - at;
    return left < 0 ? 0 : left < m->slot ? left : m->slot;
}

typedef struct copy {
    const pieces *p;
    int i;
    int64_t at;
    void *whole, *flat;
    bool pack;
} copy;

static void copy_grain(void *ctx, int item, int64_t begin, int64_t end)
{
    (void)item;
    const copy *k = ctx;
    char *flat = (char *)k->flat + begin;
    if (k->pack) {
        piece_pack(k->p, k->i, k->at + begin, end - begin, k->whole, flat);
    } else {
        piece_unpack(k->p, k->i, k->at + begin, end - begin, flat, k->whole);
    }
}

void comm_pack(comm *c, const pieces *p, int i, int64_t at, int64_t bytes, const void *whole,
               void *flat)
{
    copy k = {.p = p, .i = i, .at = at, .whole = (void *)whole, .flat = flat, .pack = true};
    c->work[0] = bytes;
    comm_run_grains(c, 1, GRAIN_BYTES, copy_grain, &k);
}

void comm_unpack(comm *c, const pieces *p, int i, int64_t at, int64_t bytes, const void *flat,
                 void *whole)
{
    copy k = {.p = p, .i = i, .at = at, .whole = whole, .flat = (void *)flat, .pack = false};
    c->work[0] = bytes;
    comm_run_grains(c, 1, GRAIN_BYTES, copy_grain, &k);
}
