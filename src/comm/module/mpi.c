/* SPDX-License-Identifier: Apache-2.0
 * The transport over MPI: a module that is built once per MPI library, and the only file that knows
 * MPI. It stands alone: it uses nothing of the library but the header.
 *
 * All waiting goes through wait_all, which gives the core away: with more ranks than cores, a rank
 * that spins keeps the very peer that it waits for from running. */
#include "comm/transport.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SPINS = 50,           /* looks before the core is given away: some ten microseconds */
    YIELDS = 20000,       /* then looks before it sleeps as well: several milliseconds */
    SLEEP_NS = 50 * 1000, /* one sleep */
};

/* Largest piece of a message: MPI's counts are int. */
static const int64_t LARGEST_CHUNK = 1 << 30;

typedef struct link {
    MPI_Comm comm;
    int ranks, rank;
    int64_t chunk; /* bytes of one MPI message at most */
    int n, capacity;
    MPI_Request *request; /* [capacity] of which n are in use */
    MPI_Status *status;
    int *expected; /* bytes that a receive must bring, -1 for a send */
} link_t;

static MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

/* A launcher forwards what a rank has printed through a pipe, and some throw away what is still in
 * it when the job is aborted: MPICH's loses the one message that matters in one run of ten. */
static void end_job(int code)
{
    const struct timespec moment = {.tv_nsec = 200 * 1000 * 1000};
    fflush(stdout);
    fflush(stderr);
    nanosleep(&moment, NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
    abort();
}

static void die(const char *what)
{
    fprintf(stderr, "mtf: %s\n", what);
    end_job(1);
}

static void on_error(MPI_Comm *failed, int *code, ...)
{
    (void)failed;
    char reason[MPI_MAX_ERROR_STRING], text[MPI_MAX_ERROR_STRING + 64];
    int len = 0;
    MPI_Error_string(*code, reason, &len);
    snprintf(text, sizeof text, "MPI failed: %.*s", len, reason);
    die(text);
}

static bool start(int *ranks, int *rank, char *text, int64_t size)
{
    int provided = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        snprintf(text, (size_t)size, "MPI_Init_thread failed");
        return false;
    }
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (provided < MPI_THREAD_FUNNELED) {
        snprintf(text, (size_t)size, "this MPI library does not allow threads");
        return false;
    }
    return true;
}

static void finish(void)
{
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
}

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..." become name and version. */
static const char *library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 16];
    if (text[0]) return text;
    char full[MPI_MAX_LIBRARY_VERSION_STRING], version[64] = "";
    int len = 0;
    MPI_Get_library_version(full, &len);
    if (sscanf(full, "Open MPI v%63[^, \n]", version) == 1) {
        snprintf(text, sizeof text, "Open MPI %s", version);
    } else if (sscanf(full, "MPICH Version: %63s", version) == 1) {
        snprintf(text, sizeof text, "MPICH %s", version);
    } else {
        full[strcspn(full, "\n,")] = '\0';
        snprintf(text, sizeof text, "%s", full);
    }
    return text;
}

static void *open_link(void)
{
    link_t *l = calloc(1, sizeof *l);
    if (!l) die("out of memory for an MPI communicator");
    MPI_Comm_dup(MPI_COMM_WORLD, &l->comm);
    MPI_Comm_set_errhandler(l->comm, handler);
    MPI_Comm_size(l->comm, &l->ranks);
    MPI_Comm_rank(l->comm, &l->rank);
    l->chunk = LARGEST_CHUNK;
    return l;
}

static void close_link(void *handle)
{
    link_t *l = handle;
    MPI_Comm_free(&l->comm);
    free(l->request);
    free(l->status);
    free(l->expected);
    free(l);
}

static void set_chunk(void *handle, int64_t bytes)
{
    link_t *l = handle;
    l->chunk = bytes < 1 ? 1 : bytes < LARGEST_CHUNK ? bytes : LARGEST_CHUNK;
}

static void *resized(void *p, int n, size_t size)
{
    p = realloc(p, (size_t)n * size);
    if (!p) die("out of memory for the requests of MPI messages");
    return p;
}

/* Room for one more request, that receives `bytes` (-1: it sends). It keeps the room: a step that
 * has run once allocates no more. */
static MPI_Request *next_request(link_t *l, int bytes)
{
    if (l->n == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 64;
        l->request = resized(l->request, l->capacity, sizeof *l->request);
        l->status = resized(l->status, l->capacity, sizeof *l->status);
        l->expected = resized(l->expected, l->capacity, sizeof *l->expected);
    }
    l->expected[l->n] = bytes;
    return &l->request[l->n++];
}

static void give_way(int64_t looks)
{
    if (looks < SPINS) return;
    if (looks < SPINS + YIELDS) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
}

static void check_received(const link_t *l)
{
    for (int i = 0; i < l->n; i++) {
        if (l->expected[i] < 0) continue;
        int bytes = 0;
        MPI_Get_count(&l->status[i], MPI_BYTE, &bytes);
        if (bytes == l->expected[i]) continue;
        char text[160];
        snprintf(text, sizeof text,
                 "bug: rank %d expected %d bytes from rank %d and got %d; the ranks do not run the "
                 "same program",
                 l->rank, l->expected[i], l->status[i].MPI_SOURCE, bytes);
        die(text);
    }
}

static void wait_all(link_t *l)
{
    int done = l->n == 0;
    for (int64_t looks = 0; !done; looks++) {
        MPI_Testall(l->n, l->request, &done, l->status);
        if (!done) give_way(looks);
    }
    check_received(l);
    l->n = 0;
}

static int chunk_of(const link_t *l, const comm_msg *m, int64_t at)
{
    return (int)(m->bytes - at < l->chunk ? m->bytes - at : l->chunk);
}

static void exchange(void *handle, const comm_msg *msg, int64_t nmsg, int tag)
{
    link_t *l = handle;
    for (const comm_msg *m = msg; m < msg + nmsg; m++) {
        if (m->dst != l->rank || m->src == l->rank) continue;
        for (int64_t at = 0; at < m->bytes; at += l->chunk) {
            const int bytes = chunk_of(l, m, at);
            MPI_Irecv((char *)m->to + at, bytes, MPI_BYTE, m->src, tag, l->comm,
                      next_request(l, bytes));
        }
    }
    for (const comm_msg *m = msg; m < msg + nmsg; m++) {
        if (m->src != l->rank || m->dst == l->rank) continue;
        for (int64_t at = 0; at < m->bytes; at += l->chunk)
            MPI_Isend((const char *)m->from + at, chunk_of(l, m, at), MPI_BYTE, m->dst, tag,
                      l->comm, next_request(l, -1));
    }
    wait_all(l);
}

static void gather(void *handle, const void *mine, int64_t bytes, void *all)
{
    link_t *l = handle;
    MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, l->comm,
                   next_request(l, -1));
    wait_all(l);
}

static void broadcast(void *handle, void *data, int64_t bytes)
{
    link_t *l = handle;
    for (int64_t at = 0; at < bytes; at += l->chunk) {
        const int64_t left = bytes - at;
        MPI_Ibcast((char *)data + at, (int)(left < l->chunk ? left : l->chunk), MPI_BYTE, 0,
                   l->comm, next_request(l, -1));
        wait_all(l);
    }
}

const transport *mtf_transport_1(void);

const transport *mtf_transport_1(void)
{
    static const transport table = {
        .version = TRANSPORT_VERSION,
        .start = start,
        .finish = finish,
        .library = library,
        .abort = end_job,
        .open = open_link,
        .close = close_link,
        .set_chunk = set_chunk,
        .exchange = exchange,
        .gather = gather,
        .broadcast = broadcast,
    };
    return &table;
}
