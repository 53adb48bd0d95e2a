/* SPDX-License-Identifier: Apache-2.0
 * Packing: blocks that live at the same time never overlap, stacks stay together, easy cases need
 * no more than the largest live set. */
#include "check.h"

#include <stdlib.h>

#include "spmd/pack.h"

enum { MOST = 400, MOMENTS = 120 };

/* A small generator, so that every run tests the same. */
static int draw(uint64_t *state, int below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)below);
}

static void check_places(const pack_block *b, int n, int64_t top)
{
    int64_t highest = 0;
    for (int i = 0; i < n; i++) {
        const pack_block *x = &b[i];
        assert_true(x->offset >= 0);
        if (x->offset + x->bytes > highest) highest = x->offset + x->bytes;
        if (i > 0 && x->stack >= 0 && x->stack == x[-1].stack)
            assert_int_equal(x->offset, x[-1].offset + x[-1].bytes);
        for (int j = 0; j < i; j++) {
            const pack_block *y = &b[j];
            if (x->end < y->begin || y->end < x->begin) continue;
            if (x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes)
                fail_msg("blocks %d and %d overlap", i, j);
        }
    }
    assert_int_equal(top, highest);
    assert_true(top >= pack_bound(b, n, NULL));
}

/* The first tenth of the blocks in stacks of 1 to 7 members that live up to one moment. */
static int random_blocks(uint64_t seed, pack_block *b)
{
    uint64_t s = seed;
    const int n = 1 + draw(&s, MOST);
    int stacks = 0, left = 0, call = 0;
    for (int i = 0; i < n; i++) {
        const int begin = draw(&s, MOMENTS) - 1;
        b[i] = (pack_block){.begin = begin, .end = begin + draw(&s, 30), .stack = -1};
        b[i].bytes = 64 * (1 + draw(&s, draw(&s, 8) ? 20 : 2000));
        if (i >= n / 10) continue;
        if (left-- <= 0) {
            left = draw(&s, 7);
            call = draw(&s, MOMENTS);
            stacks++;
        }
        b[i].stack = stacks;
        if (b[i].begin > call) b[i].begin = call;
        b[i].end = call + draw(&s, 10);
    }
    return n;
}

static void random_lives(void **state)
{
    (void)state;
    static pack_block b[MOST];
    int64_t used = 0, bound = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        const int n = random_blocks(seed, b);
        const int64_t top = pack_blocks(b, n, NULL);
        check_places(b, n, top);
        used += top;
        bound += pack_bound(b, n, NULL);
    }
    print_message("packed in %.3f times the bound\n", (double)used / (double)bound);
    assert_true((double)used < 1.15 * (double)bound);
}

static void nothing_and_one(void **state)
{
    (void)state;
    int moment = 0;
    assert_int_equal(pack_blocks(NULL, 0, NULL), 0);
    assert_int_equal(pack_bound(NULL, 0, &moment), 0);
    assert_int_equal(moment, -1);
    pack_block b = {.begin = -1, .end = 3, .bytes = 64, .stack = -1, .offset = 9};
    assert_int_equal(pack_blocks(&b, 1, NULL), 64);
    assert_int_equal(b.offset, 0);
}

/* Forward and backward: what layer i keeps lives from 2 i to the same place on the way back. */
static void nested_lives_reach_the_bound(void **state)
{
    (void)state;
    static pack_block b[2 * 50];
    for (int i = 0; i < 50; i++) {
        b[i] = (pack_block){2 * i, 200 - 2 * i, 64 * (1 + i * 7 % 13), -1, 0};
        b[50 + i] = (pack_block){2 * i + 1, 2 * i + 2, 64 * (1 + i * 5 % 11), -1, 0};
    }
    const int64_t top = pack_blocks(b, 100, NULL);
    check_places(b, 100, top);
    assert_int_equal(top, pack_bound(b, 100, NULL));
}

/* A stack fills while other blocks die: they share its room. */
static void a_stack_takes_its_places_one_by_one(void **state)
{
    (void)state;
    pack_block b[8];
    for (int i = 0; i < 4; i++) {
        b[i] = (pack_block){.begin = 10 + i, .end = 20, .bytes = 640, .stack = 0};
        b[4 + i] = (pack_block){.begin = i, .end = 10 + i - 1, .bytes = 640, .stack = -1};
    }
    const int64_t top = pack_blocks(b, 8, NULL);
    check_places(b, 8, top);
    assert_int_equal(top, 4 * 640);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lives),
        cmocka_unit_test(nothing_and_one),
        cmocka_unit_test(nested_lives_reach_the_bound),
        cmocka_unit_test(a_stack_takes_its_places_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
