/* SPDX-License-Identifier: Apache-2.0
 * Small agreements between processes. A process that hosts everything agrees with itself. */
#include <stdio.h>
#include <stdlib.h>

#include "comm/internal.h"

/* Collects eight bytes of every process, in rank order. */
static const uint64_t *gather_words(comm *c, uint64_t mine)
{
    c->transport->gather(c->link, &mine, sizeof mine, c->gathered);
    return c->gathered;
}

mtf_status comm_agree(comm *c, mtf_status mine, mtf_err *err)
{
    if (c->ranks == 1) return mine;
    const uint64_t *all = gather_words(c, (uint64_t)mine);
    int failed = 0;
    while (failed < c->ranks && all[failed] == MTF_OK)
        failed++;
    if (failed == c->ranks) return MTF_OK;

    mtf_err first = {.status = (mtf_status)all[failed]};
    const comm_msg ask = {
        .src = failed, .dst = 0, .from = &first, .to = &first, .bytes = sizeof first};
    if (failed == c->first) {
        if (err) first = *err;
        if (!first.text[0]) snprintf(first.text, sizeof first.text, "processor %d failed", failed);
        first.status = mine;
    }
    c->transport->exchange(c->link, &ask, 1, comm_next_tag(c));
    comm_broadcast(c, &first, sizeof first);
    if (err) *err = first;
    return first.status;
}

void comm_broadcast(comm *c, void *data, int64_t bytes)
{
    c->transport->broadcast(c->link, data, bytes);
}

bool comm_equal(comm *c, uint64_t value)
{
    const uint64_t *all = gather_words(c, value);
    for (int r = 1; r < c->ranks; r++)
        if (all[r] != all[0]) return false;
    return true;
}

int comm_any(comm *c, int flag)
{
    const uint64_t *all = gather_words(c, (uint64_t)(uint32_t)flag);
    for (int r = 0; r < c->ranks; r++)
        if (all[r]) return (int)(uint32_t)all[r];
    return 0;
}

void comm_abort(comm *c, int code)
{
    (c ? c->transport : comm_launched())->abort(code);
    abort();
}
