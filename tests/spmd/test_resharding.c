/* SPDX-License-Identifier: Apache-2.0
 * What explain says of reshards: which moves are one, what they receive and would have to, and why
 * one receives much more. */
#include "check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "spmd/report.h"
#include "support/golden.h"
#include "support/moves.h"

enum { P, Q, R }; /* axes: of 4, 2 and 2 processors */
#define AXES(...)                                                                                  \
    {                                                                                              \
        .n = sizeof((int8_t[]){__VA_ARGS__}), .axis = { __VA_ARGS__ }                              \
    }

static value *over(moves *x, value *v, instr_kind kind, int dim, int to_dim, split axes)
{
    const hand_move k = move_over(v, kind, dim, to_dim, axes);
    return moves_add(x, v, &k);
}

static value *to(moves *x, value *v, instr_kind kind, mtf_shape shape, split first)
{
    const split cut[MTF_MAX_RANK] = {first};
    const hand_move k = move_to(v, kind, shape, cut);
    return moves_add(x, v, &k);
}

/* One of each kind, equal ones, and two that are just bad. */
static moves blocks(void)
{
    moves x = moves_open("p:4;q:2;r:2", MTF_SHAPE({"x", 16}, {"y", 12}));
    value *v = x.operand;
    v->split[0] = (split)AXES(P, Q);
    over(&x, v, INSTR_ALL_GATHER, 0, -1, (split)AXES(Q));
    over(&x, v, INSTR_ALL_TO_ALL, 0, 1, (split)AXES(Q));
    to(&x, v, INSTR_EXCHANGE, MTF_SHAPE({"flat", 192}), (split)AXES(Q, P));
    for (int i = 0; i < 2; i++)
        over(&x, to(&x, v, INSTR_PERMUTE, v->shape, (split)AXES(Q, P)), INSTR_SLICE, 1, -1,
             (split)AXES(R));
    value *half = over(&x, v, INSTR_ALL_GATHER, 0, -1, (split)AXES(Q));
    value *whole = over(&x, half, INSTR_ALL_GATHER, 0, -1, (split)AXES(P));
    over(&x, whole, INSTR_SLICE, 1, -1, (split)AXES(P, Q));
    whole = over(&x, v, INSTR_ALL_GATHER, 0, -1, (split)AXES(P, Q));
    over(&x, whole, INSTR_SLICE, 0, -1, (split)AXES(P, Q));
    return x;
}

/* A sum over two axes in two calls, a part of it, and a sum whose parts come together elsewhere. */
static moves sums(void)
{
    moves x = moves_open("p:4;q:2;r:2", MTF_SHAPE({"x", 16}, {"y", 12}));
    value *v = x.operand;
    v->split[0] = (split)AXES(P);
    v->pending = 1u << Q | 1u << R;
    over(&x, over(&x, v, INSTR_ALL_REDUCE, -1, -1, (split)AXES(R)), INSTR_ALL_REDUCE, -1, -1,
         (split)AXES(Q));
    value *part = over(&x, v, INSTR_REDUCE_SCATTER, 1, -1, (split)AXES(Q, R));
    over(&x, part, INSTR_ALL_GATHER, 0, -1, (split)AXES(P));
    over(&x, v, INSTR_ALL_TO_ALL, 0, 1, (split)AXES(P));
    return x;
}

/* Many processors with little each: gathering takes fewer messages than asking every owner. */
static moves many(void)
{
    moves x = moves_open("p:16;q:32;r:4", MTF_SHAPE({"x", 32}, {"y", 32}));
    value *v = x.operand;
    v->split[0] = (split)AXES(P);
    v->split[1] = (split)AXES(Q);
    value *half = over(&x, v, INSTR_ALL_GATHER, 1, -1, (split)AXES(Q));
    value *whole = over(&x, half, INSTR_ALL_GATHER, 0, -1, (split)AXES(P));
    over(&x, whole, INSTR_SLICE, 1, -1, (split)AXES(R));
    return x;
}

/* ---- tests ---- */

static void text_of_reshards(void **state)
{
    (void)state;
    moves (*const build[])(void) = {blocks, many, sums};
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (int k = 0; k < 3; k++) {
        moves x = build[k]();
        program_count(x.p);
        mtf_program_print_resharding(x.p, f);
        moves_run(&x);
        moves_close(&x);
    }
    fclose(f);
    golden_check("resharding.txt", text);
    free(text);
}

static json_t *json_of(const mtf_program *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    mtf_program_json(p, f);
    fclose(f);
    json_t *list = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(list);
    return list;
}

/* Every collective has both keys; the bound of a reshard stands at its last one. */
static void json_of_reshards(void **state)
{
    (void)state;
    moves x = sums();
    program_count(x.p);
    static const double wanted[][2] = {
        /* S = 48 elements of 8 bytes */
        {384, 0}, /* all_reduce over r: 2 (1/2) S */
        {384, 8 * 48 * 1.5} /* over q as well; of both 2 (3/4) S */,
        {8 * 36, 0}, /* reduce_scatter over q+r: 3 parts of 12 */
        {8 * 36, 8 * (192 * 2 / 16.0 + 48)},
        {8 * 36, 8 * 36}, /* all_to_all over p */
    };
    json_t *list = json_of(x.p), *row;
    size_t at;
    assert_int_equal(json_array_size(list), sizeof wanted / sizeof *wanted);
    json_array_foreach(list, at, row)
    {
        assert_float_equal(json_number_value(json_object_get(row, "received")), wanted[at][0],
                           1e-9);
        assert_float_equal(json_number_value(json_object_get(row, "bound")), wanted[at][1], 1e-9);
    }
    json_decref(list);
    moves_close(&x);
}

/* A value with a further use ends a reshard. */
static void reshards_end_where_values_are_used(void **state)
{
    (void)state;
    moves x = moves_open("p:4;q:2", MTF_SHAPE({"x", 16}, {"y", 12}));
    x.operand->split[0] = (split)AXES(P, Q);
    value *half = over(&x, x.operand, INSTR_ALL_GATHER, 0, -1, (split)AXES(Q));
    value *whole = over(&x, half, INSTR_ALL_GATHER, 0, -1, (split)AXES(P));
    program_count(x.p);
    reshard_list l = reshards_find(x.p);
    assert_int_equal(l.n, 1);
    assert_ptr_equal(l.reshard[0].last, whole->def);
    reshards_free(&l);
    over(&x, half, INSTR_SLICE, 1, -1, (split)AXES(Q));
    program_count(x.p);
    l = reshards_find(x.p);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.of[half->def->id], 0);
    assert_int_equal(l.of[whole->def->id], 1);
    assert_null(l.reshard[2].last_call);
    reshards_free(&l);
    moves_close(&x);
}

/* A view between two moves does not end it: both are one reshard between two shapes. */
static void views_carry_a_reshard_on(void **state)
{
    (void)state;
    moves x = moves_open("p:4;q:2", MTF_SHAPE({"x", 16}, {"y", 12}));
    x.operand->split[0] = (split)AXES(P, Q);
    value *half = over(&x, x.operand, INSTR_ALL_GATHER, 0, -1, (split)AXES(Q));
    value *view = program_value(x.p, half->tensor, &MTF_SHAPE({"a", 4}, {"b", 4}, {"y", 12}));
    instr *i = program_instr(x.p, NULL, INSTR_VIEW, half->tensor->node, 1, 1);
    i->in[0] = half;
    i->out[0] = view;
    view->split[0] = (split)AXES(P);
    const value *end = over(&x, view, INSTR_ALL_TO_ALL, 0, 2, (split)AXES(P));
    program_count(x.p);
    reshard_list l = reshards_find(x.p);
    assert_int_equal(l.n, 1);
    assert_ptr_equal(l.reshard[0].last, end->def);
    /* of the 48 elements at the end 6 are there from the start, and 12 after the gather */
    assert_float_equal(l.reshard[0].received, 8 * (24 + 36), 0);
    assert_float_equal(l.reshard[0].bound, 8 * 42, 0);
    assert_int_equal(l.of[i->id], -1);
    reshards_free(&l);
    moves_run(&x);
    moves_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_of_reshards),
                                       cmocka_unit_test(json_of_reshards),
                                       cmocka_unit_test(reshards_end_where_values_are_used),
                                       cmocka_unit_test(views_carry_a_reshard_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
