/* SPDX-License-Identifier: Apache-2.0
 * How bytes travel between processes: the seam for transports, and the interface between the
 * library and the loadable MPI modules. It knows ranks and bytes, no meshes and no elements.
 *
 * A module is built apart from the library, so this header is an ABI: whoever changes anything here
 * raises TRANSPORT_VERSION, and a module of another version is then refused instead of crashing. */
#ifndef COMM_TRANSPORT_H
#define COMM_TRANSPORT_H

#include "comm/comm.h"

#define TRANSPORT_VERSION 1
#define TRANSPORT_SYMBOL  "mtf_transport_1"

/* Ends the whole job if the transport itself fails: no function here returns an error but `start`.
 * A link is a communicator of its own: nothing sent on one is received on another. */
typedef struct transport {
    int version;

    /* Joins the job. Returns false with one line in text[0 .. size) where that fails.
     * Collective. */
    bool (*start)(int *ranks, int *rank, char *text, int64_t size);
    /* Leaves the job. Collective. */
    void (*finish)(void);
    /* Name and version of the library below, as "Open MPI 4.1.4". May be called after start. */
    const char *(*library)(void);
    /* Ends all processes of the job with this exit code, from one process alone. */
    void (*abort)(int code);

    /* A new link between all processes. Collective. */
    void *(*open)(void);
    void (*close)(void *link);
    /* Cuts what travels on this link into pieces of at most `bytes`, the same on all processes. */
    void (*set_chunk)(void *link, int64_t bytes);

    /* Sends and receives all messages that have this rank at one end, and returns when every buffer
     * may be used again. Others, copies (src == dst) and empty messages are passed over. Messages
     * of one pair of ranks and one `tag` (0 .. 32767) match in list order. Not collective: a rank
     * without messages returns at once. */
    void (*exchange)(void *link, const comm_msg *msg, int64_t nmsg, int tag);
    /* all[r * bytes ..] becomes rank r's `mine`, on every rank. Collective. */
    void (*gather)(void *link, const void *mine, int64_t bytes, void *all);
    /* Rank 0's bytes on every rank. Collective. */
    void (*broadcast)(void *link, void *data, int64_t bytes);
} transport;

/* The type of the one symbol that a module exports, TRANSPORT_SYMBOL. */
typedef const transport *transport_fn(void);

#endif
