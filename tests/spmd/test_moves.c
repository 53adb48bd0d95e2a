/* SPDX-License-Identifier: Apache-2.0
 * Moves one by one and in chains, through the executor; and what the verifier says of wrong ones.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/move_cases.h"

/* ---- values ---- */

static void every_move_of_every_layout(void **state)
{
    (void)state;
    const move_counts n = check_all_moves(2);
    const char *const names[INSTR_KINDS] = {
        [INSTR_SLICE] = "slice",           [INSTR_ALL_REDUCE] = "all_reduce",
        [INSTR_ALL_GATHER] = "all_gather", [INSTR_REDUCE_SCATTER] = "reduce_scatter",
        [INSTR_ALL_TO_ALL] = "all_to_all", [INSTR_PERMUTE] = "permute",
        [INSTR_EXCHANGE] = "exchange"};
    for (int k = 0; k < INSTR_KINDS; k++) {
        if (!names[k]) continue;
        printf("%-14s %6lld, of partial values %6lld\n", names[k], (long long)n.moves[k],
               (long long)n.partial[k]);
        assert_true(n.moves[k] > 100 && n.partial[k] > 100);
    }
}

/* ---- the verifier ---- */

/* A legal program of one move (permute and exchange: to swapped axes) on 2 x 2 x 2 processors, in
 * which one thing is then made wrong. */
typedef struct broken {
    const char *name;
    instr_kind kind;
    int dim, to_dim;
    split axes;
    void (*make_wrong)(moves *x, instr *i);
    const char *says;
} broken;

enum { A, B, C }; /* axes */
#define AXES(...)                                                                                  \
    {                                                                                              \
        .n = sizeof((int8_t[]){__VA_ARGS__}), .axis = { __VA_ARGS__ }                              \
    }

static void swap_tail(moves *x, instr *i)
{
    (void)x;
    i->axes = (split)AXES(A); /* the major axis of dim 0 */
}

static void swap_axes(moves *x, instr *i)
{
    (void)x;
    i->axes = (split)AXES(B, A);
}

static void no_axes(moves *x, instr *i)
{
    (void)x;
    i->axes.n = 0;
}

static void keep_cut(moves *x, instr *i)
{
    (void)x;
    memcpy(i->out[0]->split, i->in[0]->split, sizeof i->out[0]->split);
}

static void put_in_front(moves *x, instr *i)
{
    (void)x;
    split *s = &i->out[0]->split[i->to_dim >= 0 ? i->to_dim : i->dim];
    const int8_t last = s->axis[s->n - 1];
    memmove(s->axis + 1, s->axis, (size_t)s->n - 1);
    s->axis[0] = last;
}

static void cut_other_dim(moves *x, instr *i)
{
    (void)x;
    i->out[0]->split[2] = (split)AXES(C);
}

static void swap_dims(moves *x, instr *i)
{
    (void)x;
    const int dim = i->dim;
    i->dim = i->to_dim;
    i->to_dim = dim;
}

static void wrong_dim(moves *x, instr *i)
{
    (void)x;
    i->dim = 3;
}

static void same_dims(moves *x, instr *i)
{
    (void)x;
    i->to_dim = i->dim;
}

static void second_dim(moves *x, instr *i)
{
    (void)x;
    i->to_dim = 1;
}

static void other_shape(moves *x, instr *i)
{
    (void)x;
    i->out[0]->shape.dim[2].size++;
}

static void other_type(moves *x, instr *i)
{
    (void)x;
    i->out[0]->dtype = MTF_F32;
}

static void fewer_parts(moves *x, instr *i)
{
    (void)x;
    i->out[0]->split[0].n--;
}

static void fewer_axes(moves *x, instr *i)
{
    (void)x;
    i->axes.n--;
}

static void lose_pending(moves *x, instr *i)
{
    (void)x;
    i->out[0]->pending = 0;
}

static void combine_otherwise(moves *x, instr *i)
{
    (void)x;
    i->out[0]->combine = COMBINE_MAX;
}

static void reduce_otherwise(moves *x, instr *i)
{
    (void)x;
    i->combine = COMBINE_MAX;
}

static void pend_over_moved(moves *x, instr *i)
{
    x->operand->pending |= split_mask(i->axes);
    i->out[0]->pending |= split_mask(i->axes);
}

static void pend_nothing(moves *x, instr *i)
{
    x->operand->pending = i->out[0]->pending = 0;
}

static void axis_twice(moves *x, instr *i)
{
    (void)x;
    split *s = &i->out[0]->split[1];
    s->axis[s->n++] = i->out[0]->split[0].axis[0];
}

static void two_results(moves *x, instr *i)
{
    value **both = arena_alloc(x->p->mem, 2 * sizeof *both);
    both[0] = both[1] = i->in[0];
    i->in = both;
    i->nin = 2;
}

/* The operand is [dim 0 over A+B, dim 1, dim 2], partial over C. */
static const broken cases[] = {
    {"gather of no tail", INSTR_ALL_GATHER, 0, -1, AXES(B), swap_tail, "minor-most of its dim"},
    {"gather in wrong order", INSTR_ALL_GATHER, 0, -1, AXES(A, B), swap_axes, "minor-most"},
    {"gather that gathers nothing", INSTR_ALL_GATHER, 0, -1, AXES(B), keep_cut, "minor-most"},
    {"gather over no axes", INSTR_ALL_GATHER, 0, -1, AXES(B), no_axes, "has no axes"},
    {"gather of no dim", INSTR_ALL_GATHER, 0, -1, AXES(B), wrong_dim, "a wrong dim"},
    {"gather to a second dim", INSTR_ALL_GATHER, 0, -1, AXES(B), second_dim, "second dim"},
    {"gather that cuts", INSTR_ALL_GATHER, 0, -1, AXES(B), cut_other_dim, "cut of another dim"},
    {"gather that drops a sum", INSTR_ALL_GATHER, 0, -1, AXES(B), lose_pending, "over other axes"},
    {"gather of another shape", INSTR_ALL_GATHER, 0, -1, AXES(B), other_shape, "the shape"},
    {"gather of another type", INSTR_ALL_GATHER, 0, -1, AXES(B), other_type, "the type"},
    {"gather with two operands", INSTR_ALL_GATHER, 0, -1, AXES(B), two_results, "as operands"},
    {"max of a sum", INSTR_ALL_GATHER, 0, -1, AXES(B), combine_otherwise, "in another way"},
    {"scatter of what is whole", INSTR_REDUCE_SCATTER, 0, -1, AXES(C), pend_nothing, "not partial"},
    {"scatter as a maximum", INSTR_REDUCE_SCATTER, 0, -1, AXES(C), reduce_otherwise, "in a way"},
    {"scatter to the front", INSTR_REDUCE_SCATTER, 0, -1, AXES(C), put_in_front, "behind those"},
    {"reduction over a cut axis", INSTR_ALL_REDUCE, -1, -1, AXES(C), swap_tail, "not partial"},
    {"reduction that cuts", INSTR_ALL_REDUCE, -1, -1, AXES(C), cut_other_dim, "of another dim"},
    {"turn to the front", INSTR_ALL_TO_ALL, 0, 1, AXES(A, B), put_in_front, "behind those"},
    {"turn of swapped dims", INSTR_ALL_TO_ALL, 0, 1, AXES(B), swap_dims, "behind those"},
    {"turn of no tail", INSTR_ALL_TO_ALL, 0, 1, AXES(B), swap_tail, "minor-most"},
    {"turn to the same dim", INSTR_ALL_TO_ALL, 0, 1, AXES(B), same_dims, "second dim"},
    {"turn that cuts twice", INSTR_ALL_TO_ALL, 0, 1, AXES(B), axis_twice, "behind those"},
    {"permute to fewer parts", INSTR_PERMUTE, -1, -1, AXES(A, B), fewer_parts, "number of parts"},
    {"permute over an axis", INSTR_PERMUTE, -1, -1, AXES(A, B), fewer_axes, "the axes that it"},
    {"permute to another shape", INSTR_PERMUTE, -1, -1, AXES(A, B), other_shape, "the shape"},
    {"permute that drops a sum", INSTR_PERMUTE, -1, -1, AXES(A, B), lose_pending, "other axes"},
    {"exchange to more elements", INSTR_EXCHANGE, -1, -1, AXES(A, B), other_shape, "of elements"},
    {"exchange over an axis", INSTR_EXCHANGE, -1, -1, AXES(A, B), fewer_axes, "the axes that it"},
    {"exchange to one axis twice", INSTR_EXCHANGE, -1, -1, AXES(A, B), axis_twice, "cut twice"},
    {"exchange over a sum", INSTR_EXCHANGE, -1, -1, AXES(A, B), pend_over_moved, "partial over"},
    {"exchange that drops a sum", INSTR_EXCHANGE, -1, -1, AXES(A, B), lose_pending, "other axes"},
};

/* What the verifier prints of the program before it ends the process; empty where it does not. */
static void verdict(moves *x, char *text, size_t size)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        program_verify(x->p, "a test");
        _exit(0);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(pipes[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(pipes[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (n == 0) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (n > 0) assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static const split swapped[MTF_MAX_RANK] = {AXES(B, A)};

static hand_move legal_move(const value *v, const broken *b)
{
    const bool to_layout = b->kind == INSTR_PERMUTE || b->kind == INSTR_EXCHANGE;
    return to_layout ? move_to(v, b->kind, v->shape, swapped)
                     : move_over(v, b->kind, b->dim, b->to_dim, b->axes);
}

static void verifier_refuses_wrong_moves(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const broken *b = &cases[k];
        moves x = moves_open("a:2;b:2;c:2", MTF_SHAPE({"x", 5}, {"y", 3}, {"z", 4}));
        x.operand->split[0] = (split)AXES(A, B);
        x.operand->pending = 1u << C;
        const hand_move right = legal_move(x.operand, b);
        moves_add(&x, x.operand, &right);
        char text[2048];
        verdict(&x, text, sizeof text);
        if (*text) fail_msg("'%s' is refused before it is made wrong: %s", b->name, text);
        b->make_wrong(&x, moves_last(&x));
        verdict(&x, text, sizeof text);
        if (!strstr(text, b->says)) fail_msg("'%s': the verifier says '%s'", b->name, text);
        moves_close(&x);
    }
}

static void axes_of_size_1_are_refused(void **state)
{
    (void)state;
    moves x = moves_open("a:2;b:1", MTF_SHAPE({"x", 5}));
    const hand_move k = move_over(x.operand, INSTR_SLICE, 0, -1, (split)AXES(B));
    moves_add(&x, x.operand, &k);
    char text[2048];
    verdict(&x, text, sizeof text);
    assert_non_null(strstr(text, "axis of size 1"));
    moves_close(&x);
}

/* ---- passes ---- */

static value *add_over(moves *x, value *v, instr_kind kind, int dim, split axes)
{
    const hand_move k = move_over(v, kind, dim, -1, axes);
    return moves_add(x, v, &k);
}

/* all_reduce and slice become reduce_scatter, on a dim that is cut already; not where the slice is
 * over another axis, nor where the sum has a further use. */
static void sums_that_are_cut_are_scattered(void **state)
{
    (void)state;
    moves x = moves_open("a:2;b:2;c:2", MTF_SHAPE({"x", 7}, {"y", 3}));
    x.operand->split[0] = (split)AXES(A);
    x.operand->pending = 1u << C;
    value *sum = add_over(&x, x.operand, INSTR_ALL_REDUCE, -1, (split)AXES(C));
    value *used = add_over(&x, x.operand, INSTR_ALL_REDUCE, -1, (split)AXES(C));
    value *other = add_over(&x, x.operand, INSTR_ALL_REDUCE, -1, (split)AXES(C));
    const value *cut = add_over(&x, sum, INSTR_SLICE, 0, (split)AXES(C));
    const value *stays = add_over(&x, used, INSTR_SLICE, 0, (split)AXES(C));
    const value *whole = add_over(&x, used, INSTR_ALL_GATHER, 0, (split)AXES(A));
    const value *elsewhere = add_over(&x, other, INSTR_SLICE, 0, (split)AXES(B));
    pass_scatter(x.p);
    assert_int_equal(cut->def->kind, INSTR_REDUCE_SCATTER);
    assert_ptr_equal(cut->def->in[0], x.operand);
    assert_int_equal(stays->def->kind, INSTR_SLICE);
    assert_ptr_equal(whole->def->in[0], used);
    assert_int_equal(elsewhere->def->kind, INSTR_SLICE);
    assert_int_equal(x.p->ninstrs, 6);
    moves_run(&x);
    moves_close(&x);
}

/* Equal moves are one; moves that differ in the dim, the axes or the layout alone are not. */
static void equal_moves_are_shared(void **state)
{
    (void)state;
    moves x = moves_open("a:2;b:2", MTF_SHAPE({"x", 5}, {"y", 3}, {"z", 4}));
    x.operand->split[0] = (split)AXES(A, B);
    static hand_move list[MAX_MOVES];
    const int n = all_moves(x.m, x.operand, list);
    value **fetch = arena_alloc(x.p->mem, sizeof *fetch * 2 * (size_t)n);
    for (int i = 0; i < 2 * n; i++)
        fetch[i] = moves_add(&x, x.operand, &list[i % n]);
    x.p->fetch = fetch;
    x.p->nfetches = 2 * n;
    pass_share(x.p);
    assert_true(n > 30);
    assert_int_equal(x.p->ninstrs, n);
    for (int i = 0; i < n; i++)
        assert_ptr_equal(fetch[i], fetch[n + i]);
    moves_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_move_of_every_layout),
                                       cmocka_unit_test(verifier_refuses_wrong_moves),
                                       cmocka_unit_test(axes_of_size_1_are_refused),
                                       cmocka_unit_test(sums_that_are_cut_are_scattered),
                                       cmocka_unit_test(equal_moves_are_shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
