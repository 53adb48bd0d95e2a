/* SPDX-License-Identifier: Apache-2.0
 * The collectives by messages, without MPI: every processor is a thread with a communicator of its
 * own, and a transport that copies between threads. Checks what MPI would not: that both ends of a
 * message agree on its length, and that no message is left over. */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "comm/internal.h"
#include "support/comm_cases.h"

enum { MAX_RANKS = 16 };

/* A message that was sent and has not been received: a queue per pair of ranks. */
typedef struct letter {
    struct letter *next;
    int tag;
    int64_t bytes;
    char data[];
} letter;

typedef struct post {
    pthread_mutex_t lock;
    pthread_cond_t news[MAX_RANKS]; /* [dst] */
    int ranks;
    letter *first[MAX_RANKS][MAX_RANKS]; /* [src][dst] */
    int64_t sent;
} post;

typedef struct mailbox {
    post *p;
    int rank;
} mailbox;

static void send_letter(post *p, const comm_msg *m, int tag)
{
    letter *l = mem_alloc(sizeof *l + (size_t)m->bytes);
    *l = (letter){.tag = tag, .bytes = m->bytes};
    memcpy(l->data, m->from, (size_t)m->bytes);
    pthread_mutex_lock(&p->lock);
    letter **end = &p->first[m->src][m->dst];
    while (*end)
        end = &(*end)->next;
    *end = l;
    p->sent++;
    pthread_cond_signal(&p->news[m->dst]);
    pthread_mutex_unlock(&p->lock);
}

static void receive_letter(post *p, const comm_msg *m, int tag)
{
    pthread_mutex_lock(&p->lock);
    letter **queue = &p->first[m->src][m->dst];
    while (!*queue)
        pthread_cond_wait(&p->news[m->dst], &p->lock);
    letter *l = *queue;
    *queue = l->next;
    pthread_mutex_unlock(&p->lock);
    MTF_CHECK(l->tag == tag && l->bytes == m->bytes,
              "rank %d expected %lld bytes, tag %d, not %lld", m->dst, (long long)m->bytes, tag,
              (long long)l->bytes);
    memcpy(m->to, l->data, (size_t)l->bytes);
    mem_free(l);
}

static void exchange(void *link, const comm_msg *msg, int64_t nmsg, int tag)
{
    const mailbox *b = link;
    for (const comm_msg *m = msg; m < msg + nmsg; m++)
        if (m->src == b->rank && m->dst != b->rank && m->bytes > 0) send_letter(b->p, m, tag);
    for (const comm_msg *m = msg; m < msg + nmsg; m++)
        if (m->dst == b->rank && m->src != b->rank && m->bytes > 0) receive_letter(b->p, m, tag);
}

static void broadcast(void *link, void *data, int64_t bytes)
{
    const mailbox *b = link;
    for (int r = 1; r < b->p->ranks; r++) {
        const comm_msg m = {.src = 0, .dst = r, .from = data, .to = data, .bytes = bytes};
        exchange(link, &m, 1, -1);
    }
}

static void gather(void *link, const void *mine, int64_t bytes, void *all)
{
    const mailbox *b = link;
    memcpy((char *)all + b->rank * bytes, mine, (size_t)bytes);
    for (int src = 0; src < b->p->ranks; src++)
        for (int dst = 0; dst < b->p->ranks; dst++) {
            const comm_msg m = {.src = src,
                                .dst = dst,
                                .from = mine,
                                .to = (char *)all + src * bytes,
                                .bytes = bytes};
            exchange(link, &m, 1, -2);
        }
}

static void close_mailbox(void *link)
{
    (void)link;
}

static const transport threads_transport = {
    .version = TRANSPORT_VERSION,
    .close = close_mailbox,
    .exchange = exchange,
    .gather = gather,
    .broadcast = broadcast,
};

/* What one thread runs: `body` with the communicator of its rank. */
typedef struct runner {
    mailbox box;
    const comm_mesh *m;
    int64_t max_slot;
    void (*body)(comm *c, struct runner *r);
    cases_result result;
} runner;

static void *run(void *arg)
{
    runner *r = arg;
    comm *c = comm_over(&threads_transport, &r->box, r->box.p->ranks, r->box.rank, r->m, NULL);
    if (r->max_slot) c->max_slot = r->max_slot;
    r->body(c, r);
    comm_free(&c);
    return NULL;
}

/* Runs `body` on every processor of the mesh; adds up the results, and the letters into *sent. */
static cases_result on_threads(const comm_mesh *m, int64_t max_slot, void (*body)(comm *, runner *),
                               int64_t *sent)
{
    post p = {.ranks = mesh_processors(m)};
    pthread_mutex_init(&p.lock, NULL);
    for (int i = 0; i < MAX_RANKS; i++)
        pthread_cond_init(&p.news[i], NULL);
    runner r[MAX_RANKS];
    pthread_t thread[MAX_RANKS];
    for (int i = 0; i < p.ranks; i++) {
        r[i] = (runner){.box = {.p = &p, .rank = i}, .m = m, .max_slot = max_slot, .body = body};
        assert_int_equal(pthread_create(&thread[i], NULL, run, &r[i]), 0);
    }
    cases_result sum = {0};
    for (int i = 0; i < p.ranks; i++) {
        pthread_join(thread[i], NULL);
        sum.compared += r[i].result.compared;
        sum.wrong += r[i].result.wrong;
        sum.reordered += r[i].result.reordered;
        sum.unused += r[i].result.unused;
    }
    for (int i = 0; i < p.ranks; i++)
        for (int j = 0; j < p.ranks; j++)
            assert_null(p.first[i][j]);
    if (sent) *sent += p.sent;
    return sum;
}

static void run_cases(comm *c, runner *r)
{
    r->result = cases_run(c, r->m, true);
}

static void all_meshes(int64_t max_slot, int64_t *sent)
{
    for (int i = 0; i < cases_num_meshes; i++) {
        if (mesh_processors(&cases_meshes[i]) < 2) continue;
        const cases_result r = on_threads(&cases_meshes[i], max_slot, run_cases, sent);
        assert_int_equal(r.wrong, 0);
        assert_true(r.compared > 1000);
        if (!max_slot) assert_int_equal(r.unused, 0);
    }
}

static void in_one_round(void **state)
{
    (void)state;
    int64_t sent = 0;
    all_meshes(0, &sent);
    assert_true(sent > 10000);
}

static void in_many_rounds(void **state)
{
    (void)state;
    int64_t few = 0, many = 0;
    const comm_mesh m = {.naxes = 2, .size = {3, 2}};
    on_threads(&m, 0, run_cases, &few);
    on_threads(&m, 64, run_cases, &many);
    assert_true(many > 2 * few);
    all_meshes(192, &many);
}

static void agree_on_each_failure(comm *c, runner *r)
{
    for (int failing = 0; failing < r->box.p->ranks; failing++) {
        char want[64];
        mtf_err err = {0};
        mtf_status mine = MTF_OK;
        if (r->box.rank >= failing)
            mine = err_set(&err, r->box.rank == failing ? MTF_INVALID : MTF_FAILED,
                           "rank %d cannot", r->box.rank);
        snprintf(want, sizeof want, "rank %d cannot", failing);
        const mtf_status all = comm_agree(c, mine, &err);
        r->result.wrong += all != MTF_INVALID || err.status != all || strcmp(err.text, want) != 0;
        err = (mtf_err){0};
        r->result.wrong += comm_agree(c, MTF_OK, &err) != MTF_OK || err.text[0];
        r->result.wrong +=
            comm_agree(c, failing == r->box.rank ? MTF_FAILED : MTF_OK, NULL) != MTF_FAILED;
    }
}

static void small_agreements(comm *c, runner *r)
{
    agree_on_each_failure(c, r);
    const int rank = r->box.rank, last = r->box.p->ranks - 1;
    int data[3] = {rank, rank, rank};
    comm_broadcast(c, data, sizeof data);
    r->result.wrong += data[0] != 0 || data[2] != 0;
    r->result.wrong += !comm_equal(c, 1ull << 40);
    r->result.wrong += comm_equal(c, rank == last ? 1ull << 40 : 1);
    r->result.wrong += comm_any(c, 0) != 0;
    r->result.wrong += comm_any(c, rank == last ? 15 : 0) != 15;
    r->result.wrong += comm_is_root(c) != (rank == 0) || comm_first(c) != rank;
    r->result.compared++;
}

static void small_agreements_hold(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++) {
        const comm_mesh m = {.naxes = 1, .size = {n}};
        const cases_result r = on_threads(&m, 0, small_agreements, NULL);
        assert_int_equal(r.wrong, 0);
        assert_int_equal(r.compared, n);
    }
}

static void scratch_does_not_grow_with_the_buffer(void **state)
{
    (void)state;
    const comm_mesh m = {.naxes = 1, .size = {4}};
    const comm_axes all = {.n = 1, .axis = {0}}, none = {.n = 0};
    const int64_t huge = (int64_t)1 << 40;
    const comm_cut cut = {.n = huge, .parts = 4, .outer = 2, .inner = 3};
    const int64_t large[] = {comm_scratch_all_reduce(&m, all, 4, huge, huge),
                             comm_scratch_reduce_scatter(&m, all, 4, &cut),
                             comm_scratch_all_gather(&m, all, 4, &cut)};
    for (int i = 0; i < 3; i++)
        assert_true(large[i] <= 4 << 20 && large[i] >= 1 << 20);
    assert_int_equal(comm_scratch_all_reduce(&m, none, 4, 1 << 20, 1 << 20), 0);
    assert_int_equal(comm_scratch_reduce_scatter(&m, none, 4, &cut), 0);
    assert_int_equal(comm_scratch_all_gather(&m, none, 4, &cut), 0);
    int64_t before = 0;
    for (int64_t n = 0; n < 4 << 20; n += 97) { /* more elements never take less */
        const int64_t bytes = comm_scratch_all_reduce(&m, all, 4, 0, n);
        assert_true(bytes >= before && bytes >= comm_scratch_all_reduce(&m, all, 4, n, n));
        before = bytes;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_one_round),
        cmocka_unit_test(in_many_rounds),
        cmocka_unit_test(small_agreements_hold),
        cmocka_unit_test(scratch_does_not_grow_with_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
