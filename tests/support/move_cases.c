/* SPDX-License-Identifier: Apache-2.0 */
#include "support/move_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "mtf/mtf.h"
#include "spmd/report.h"

static const mtf_shape shapes[] = {
    {.rank = 1, .dim = {{"x", 7}}},
    {.rank = 2, .dim = {{"x", 5}, {"y", 3}}},
    {.rank = 2, .dim = {{"x", 1}, {"y", 6}}},
    {.rank = 3, .dim = {{"x", 2}, {"y", 7}, {"z", 4}}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, CHAINED = 12 };

typedef struct checker {
    const char *mesh;
    int thin;
    int64_t turn;
    move_counts *n;
} checker;

static void take(checker *c, moves *x, value *v, const hand_move *k)
{
    moves_add(x, v, k);
    c->n->moves[k->kind]++;
    if (v->pending & ~split_mask(k->axes)) c->n->partial[k->kind]++;
}

/* No chain may receive less than what is said to be the least. */
static void check_bounds(const moves *x)
{
    program_count(x->p);
    reshard_list l = reshards_find(x->p);
    for (int k = 0; k < l.n; k++) {
        const reshard_chain *r = &l.reshard[k];
        if (r->received >= r->bound * (1 - 1e-12)) continue;
        mtf_program_print(x->p, stderr);
        fprintf(stderr, "moves: from %%%d to %%%d: %g bytes, less than the bound of %g\n",
                r->first->in[0]->id, r->last->out[0]->id, r->received, r->bound);
        exit(1);
    }
    reshards_free(&l);
}

/* In a permute nobody sends more than its block, once. */
static void check_permutes(const moves *x)
{
    for (const instr *i = x->p->first; i; i = i->next) {
        if (i->kind != INSTR_PERMUTE) continue;
        const exchange e = exchange_between(x->p, i->in[0], i->out[0]);
        for (int64_t q = 0; q < x->m->processors; q++) {
            if (exchange_sent(&e, q) <= value_local(x->p, i->in[0], q)) continue;
            mtf_program_print(x->p, stderr);
            fprintf(stderr, "moves: processor %lld sends twice what %%%d needs\n", (long long)q,
                    i->out[0]->id);
            exit(1);
        }
    }
}

/* All moves of the operand, then moves of their results and so on. */
static void check_operand(checker *c, mtf_shape shape, const cuts *cut, unsigned pending)
{
    static hand_move list[MAX_MOVES];
    moves x = moves_open(c->mesh, shape);
    memcpy(x.operand->split, cut->s, sizeof x.operand->split);
    x.operand->pending = pending;
    x.operand->combine = c->turn % 4 ? COMBINE_SUM : COMBINE_MAX;
    const int n = all_moves(x.m, x.operand, list);
    for (int i = 0; i < n; i++) {
        const bool many = list[i].kind == INSTR_EXCHANGE || list[i].kind == INSTR_PERMUTE;
        if (!many || c->turn++ % c->thin == 0) take(c, &x, x.operand, &list[i]);
    }
    for (int k = 0; k < CHAINED; k++) {
        value *v = x.p->value[random_u32(1, 2, 0, (uint64_t)c->turn++) % (uint32_t)x.p->nvalues];
        const int m = all_moves(x.m, v, list);
        if (!m) continue;
        take(c, &x, v, &list[random_u32(1, 3, 0, (uint64_t)c->turn++) % (uint32_t)m]);
    }
    check_bounds(&x);
    check_permutes(&x);
    moves_run(&x);
    moves_close(&x);
}

static void check_shape(checker *c, mtf_shape shape)
{
    static cuts list[MAX_MOVES];
    mtf_err err = {0};
    mtf_mesh *m = mtf_mesh_parse(c->mesh, &err);
    for (unsigned pending = 0; pending < 1u << m->naxes; pending++) {
        const int n = all_cuts(m, &shape, pending, list);
        for (int i = 0; i < n; i++)
            check_operand(c, shape, &list[i], pending);
    }
    mtf_mesh_free(&m);
}

void check_moves_on(const char *mesh, int thin, move_counts *n)
{
    checker c = {.mesh = mesh, .thin = thin, .n = n};
    for (int s = 0; s < SHAPES; s++)
        check_shape(&c, shapes[s]);
}

move_counts check_all_moves(int thin)
{
    static const char *const meshes[] = {"a:2", "a:3", "a:2;b:2", "a:3;b:2", "a:2;b:2;c:2"};
    move_counts n = {0};
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++)
        check_moves_on(meshes[m], thin, &n);
    return n;
}
