/* SPDX-License-Identifier: Apache-2.0
 * The schedule: graphs that were built in a wasteful order need little memory all the same, no
 * order becomes worse, and every result stays behind what it is made of. */
#include "check.h"

#include <stdlib.h>

#include "mtf/mtf.h"
#include "spmd/memory.h"
#include "train/lm.h"

/* ---- orders of graphs ---- */

static int64_t compiled_slab(mtf_graph *g, mtf_tensor *fetch)
{
    mtf_err err = {0};
    mtf_mesh *mesh = mtf_mesh_parse("", &err);
    mtf_layout *layout = mtf_layout_parse("", mesh, true, NULL, &err);
    const mtf_request r = {.nfetches = 1, .fetches = &fetch};
    mtf_program *p = mtf_compile(g, mesh, layout, &r, &err);
    if (!p) fail_msg("%s", err.text);
    const int64_t bytes = p->slab_bytes;
    mtf_program_free(&p);
    mtf_layout_free(&layout);
    mtf_mesh_free(&mesh);
    return bytes;
}

enum { PARTS = 12, N = 64, M = 128, LARGE = N * M * 4 };

/* First all large values, then their sums: as written, all live at once. */
static void sums_follow_what_they_reduce(void **state)
{
    (void)state;
    const mtf_dim n = {"n", N}, m = {"m", M};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", MTF_SHAPE(n), MTF_F32);
    mtf_tensor *y = mtf_placeholder(g, "y", MTF_SHAPE(m), MTF_F32);
    mtf_tensor *large[PARTS], *sum = NULL;
    for (int i = 0; i < PARTS; i++)
        large[i] = mtf_matmul(mtf_scale(x, i + 1), y, MTF_SHAPE(n, m));
    for (int i = 0; i < PARTS; i++) {
        mtf_tensor *part = mtf_reduce_sum(mtf_exp(large[i]), MTF_SCALAR);
        sum = sum ? mtf_add(sum, part) : part;
    }
    assert_true(compiled_slab(g, sum) < 2 * LARGE);
    mtf_graph_free(&g);
}

/* The list schedule would make `r` late, in place of a smaller operand, when `p` is there already;
 * made early it needs its operand and its result at a time when little else lives. */
static void a_better_order_stays(void **state)
{
    (void)state;
    enum { A = 8, B = 72, C = 128, D = 64 };
    const mtf_dim a = {"a", A}, b = {"b", B}, c = {"c", C}, d = {"d", D};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x[4];
    const mtf_dim dims[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        x[i] = mtf_placeholder(g, dims[i].name, MTF_SHAPE(dims[i]), MTF_F32);
    mtf_tensor *w = mtf_variable(g, "w", mtf_constant(g, 1, MTF_SHAPE(b, c), MTF_F32), true);
    mtf_tensor *r = mtf_matmul(mtf_matmul(x[0], x[1], MTF_SHAPE(a, b)), w, MTF_SHAPE(a, c));
    mtf_tensor *p = mtf_exp(mtf_matmul(x[2], x[3], MTF_SHAPE(c, d)));
    mtf_tensor *product = mtf_matmul(r, p, MTF_SHAPE(a, d));
    assert_true(compiled_slab(g, product) <= 4 * (A * C + C * D + A * D));
    mtf_graph_free(&g);
}

/* ---- orders drawn at random ---- */

static int draw(uint64_t *state, int below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)below);
}

static void append(mtf_program *p, instr *i)
{
    i->prev = p->last;
    i->next = NULL;
    *(p->last ? &p->last->next : &p->first) = i;
    p->last = i;
}

/* Any order in which results stay behind operands; assignments stay at the end. */
static void shuffle(mtf_program *p, uint64_t *state)
{
    program_count(p);
    const int n = p->ninstrs;
    instr **all = mem_alloc(sizeof *all * (size_t)n),
          **ready = mem_alloc(sizeof *ready * (size_t)n);
    bool *done = mem_zalloc((size_t)n);
    int nready = 0, left = 0;
    for (instr *i = p->first; i; i = i->next)
        all[i->id] = i;
    p->first = p->last = NULL;
    while (left < n && all[left]->kind != INSTR_ASSIGN)
        left++;
    for (int placed = 0; placed < left; placed++) {
        nready = 0;
        for (int k = 0; k < left; k++) {
            bool may = !done[k];
            for (int o = 0; o < all[k]->nin && may; o++)
                may = !all[k]->in[o]->def || done[all[k]->in[o]->def->id];
            if (may) ready[nready++] = all[k];
        }
        instr *i = ready[draw(state, nready)];
        done[i->id] = true;
        append(p, i);
    }
    for (int k = left; k < n; k++)
        append(p, all[k]);
    mem_free(all);
    mem_free(ready);
    mem_free(done);
}

static lm *small_model(config *c, const char *layout, const char *optimizer)
{
    static const char *const keys[] = {"model.layers=2", "model.d_model=64", "model.heads=4",
                                       "model.d_kv=16",  "model.d_ff=256",   "model.length=32",
                                       "train.batch=8",  "model.vocab=512"};
    mtf_err err = {0};
    lm *m = NULL;
    config_defaults(c);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (config_set(c, keys[i], &err) != MTF_OK) fail_msg("%s", err.text);
    if (config_set(c, optimizer, &err) != MTF_OK) fail_msg("%s", err.text);
    const lm_request r = {
        .parts = LM_TRAIN, .vocab = 512, .mesh = "rows:2;cols:2", .layout = layout, .dtype = -1};
    if (lm_open(c, &r, &m, NULL, &err) != MTF_OK) fail_msg("%s", err.text);
    return m;
}

/* No random order gets worse, and from most the pass comes back to about what the order of the
 * graph needs: of 80 here five stay more than 2 % above, by one activation that is live at the
 * peak, which is 3 % of it. */
static void no_order_becomes_worse(void **state)
{
    (void)state;
    static const char *const layouts[] = {"", "batch:rows;vocab:cols;d_ff:cols;heads:cols"};
    static const char *const optimizers[] = {"train.optimizer=adam", "train.optimizer=sgd"};
    enum { TRIALS = 20 };
    uint64_t random = 7;
    for (int k = 0; k < 4; k++) {
        config c;
        lm *m = small_model(&c, layouts[k / 2], optimizers[k % 2]);
        mtf_program *p = m->micro[0].program;
        const int64_t built = memory_slab(p);
        pass_schedule(p);
        assert_true(memory_slab(p) <= built);
        int far = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            shuffle(p, &random);
            const int64_t before = memory_slab(p);
            pass_schedule(p);
            const int64_t after = memory_slab(p);
            program_verify(p, "a shuffled order");
            assert_true(after <= before && after <= built + built / 32);
            far += after > built + built / 50;
        }
        assert_true(6 * far <= TRIALS);
        lm_close(&m);
        config_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_follow_what_they_reduce),
        cmocka_unit_test(a_better_order_stays),
        cmocka_unit_test(no_order_becomes_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
