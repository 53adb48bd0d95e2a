/* SPDX-License-Identifier: Apache-2.0
 * One process that hosts every processor of the mesh: `self` is a mesh of one, `local` any other.
 * Its transport has nobody to talk to. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/internal.h"

static void close_nothing(void *link)
{
    (void)link;
}

static void exchange_nothing(void *link, const comm_msg *msg, int64_t nmsg, int tag)
{
    (void)link, (void)msg, (void)nmsg, (void)tag;
}

static void gather_own(void *link, const void *mine, int64_t bytes, void *all)
{
    (void)link;
    memcpy(all, mine, (size_t)bytes);
}

static void broadcast_nothing(void *link, void *data, int64_t bytes)
{
    (void)link, (void)data, (void)bytes;
}

static void end_process(int code)
{
    fflush(NULL);
    _exit(code);
}

const transport transport_one_process = {
    .version = TRANSPORT_VERSION,
    .abort = end_process,
    .close = close_nothing,
    .exchange = exchange_nothing,
    .gather = gather_own,
    .broadcast = broadcast_nothing,
};

mtf_status comm_new_local(const comm_mesh *m, pool *workers, comm **out, mtf_err *err)
{
    *out = NULL;
    if (!mesh_processors(m))
        return err_set(
            err, MTF_INVALID,
            "a mesh of %d axes is not usable: it needs at most %d axes, each of size 1 or "
            "more, and at most 2^24 processors",
            m->naxes, COMM_MAX_AXES);
    *out = comm_over(&transport_one_process, NULL, 1, 0, m, workers);
    return MTF_OK;
}
