/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "comm/internal.h"

/* A copy of this size is cut into grains by itself; smaller ones are shared out whole. */
enum { LARGE_BYTES = 8 * GRAIN_BYTES, CHUNKS = 256 };

/* Does this process copy the message by itself: both ends are here. */
static bool is_copy(const comm *c, const comm_msg *m)
{
    const int last = c->first + c->nhosted - 1;
    return m->src >= c->first && m->src <= last && m->dst >= c->first && m->dst <= last &&
           m->bytes > 0;
}

typedef struct copies {
    const comm *c;
    const comm_msg *msg;
} copies;

static void copy_small(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const copies *k = ctx;
    for (const comm_msg *m = k->msg + begin; m < k->msg + end; m++)
        if (is_copy(k->c, m) && m->bytes < LARGE_BYTES) memcpy(m->to, m->from, (size_t)m->bytes);
}

static void copy_grain(void *ctx, int item, int64_t begin, int64_t end)
{
    (void)item;
    const comm_msg *m = ctx;
    memcpy((char *)m->to + begin, (const char *)m->from + begin, (size_t)(end - begin));
}

void comm_move(comm *c, const comm_msg *msg, int64_t nmsg)
{
    const int tag = comm_next_tag(c);
    copies k = {.c = c, .msg = msg};
    pool_for(c->pool, nmsg, nmsg / CHUNKS + 1, copy_small, &k);
    for (int64_t i = 0; i < nmsg; i++) {
        if (!is_copy(c, &msg[i]) || msg[i].bytes < LARGE_BYTES) continue;
        c->work[0] = msg[i].bytes;
        comm_run_grains(c, 1, GRAIN_BYTES, copy_grain, (void *)&msg[i]);
    }
    c->transport->exchange(c->link, msg, nmsg, tag);
}
