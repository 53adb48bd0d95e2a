/* SPDX-License-Identifier: Apache-2.0
 * The five layouts of the Mesh-TensorFlow paper's section 8 on the two-layer example: exactly the
 * reductions of its Table 1, and the same losses. */
#include "check.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"

enum { BATCH = 24, IO = 20, HIDDEN = 28, STEPS = 20, MAX_SUMS = 16 };

/* The one JSON object that the example prints. */
static json_t *example(const char *mesh, const char *layout, const char *more)
{
    char command[1024];
    snprintf(command, sizeof command,
             "\"%s/examples/two_layer\" --json --batch %d --io %d --hidden %d --steps %d --dtype "
             "f64 --threads 1 --mesh '%s' --layout '%s' %s 2>/dev/null",
             getenv("MTF_BUILD_DIR"), BATCH, IO, HIDDEN, STEPS, mesh, layout, more);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    json_error_t error;
    json_t *object = json_loadf(f, 0, &error);
    const int code = pclose(f);
    if (!object || code != 0) fail_msg("%s: exit %d, %s", command, code, error.text);
    return object;
}

/* ---- the reductions ---- */

typedef struct sum {
    const char *what; /* as in Table 1; "dx" is there with the input gradient alone */
    const char *axis;
    int elements; /* of the operand on one processor */
} sum;

typedef struct row {
    const char *mesh, *layout;
    sum sums[MAX_SUMS];
} row;

enum { R = 4, C = 2, P = 2 };
static const row table[] = {
    {"all:4", "", {{0}}},
    {"all:4",
     "batch:all",
     {{"loss", "all", 1},
      {"dV", "all", HIDDEN *IO},
      {"dbias", "all", HIDDEN},
      {"dW", "all", IO *HIDDEN}}},
    {"all:4", "hidden:all", {{"y", "all", BATCH *IO}, {"dx", "all", BATCH *IO}}},
    {"rows:4;cols:2",
     "batch:rows;hidden:cols",
     {{"y", "cols", BATCH / R *IO},
      {"loss", "rows", 1},
      {"dV", "rows", HIDDEN / C *IO},
      {"dbias", "rows", HIDDEN / C},
      {"dx", "cols", BATCH / R *IO},
      {"dW", "rows", IO *HIDDEN / C}}},
    {"rows:4;cols:2;planes:2",
     "batch:rows;hidden:cols;io:planes",
     {{"xW", "planes", BATCH / R *HIDDEN / C},
      {"y", "cols", BATCH / R *IO / P},
      {"loss", "planes", 1},
      {"loss", "rows", 1},
      {"dh", "planes", BATCH / R *HIDDEN / C},
      {"dV", "rows", HIDDEN / C *IO / P},
      {"dbias", "rows", HIDDEN / C},
      {"dx", "cols", BATCH / R *IO / P},
      {"dW", "rows", IO / P *HIDDEN / C}}},
};
enum { ROWS = sizeof table / sizeof *table };

/* Strikes the line of Table 1 that `axis` and `elements` fit; false when there is none. */
static bool strike(const row *r, bool *struck, bool input_gradient, const char *axis, int elements)
{
    for (int i = 0; i < MAX_SUMS && r->sums[i].what; i++) {
        const sum *s = &r->sums[i];
        if (struck[i] || s->elements != elements || strcmp(s->axis, axis) != 0) continue;
        if (strcmp(s->what, "dx") == 0 && !input_gradient) continue;
        struck[i] = true;
        return true;
    }
    return false;
}

static void check_row(const row *r, bool input_gradient, FILE *golden)
{
    json_t *o =
        example(r->mesh, r->layout, input_gradient ? "--explain --input-gradient" : "--explain");
    bool struck[MAX_SUMS] = {false};
    fprintf(golden, "mesh '%s' layout '%s'%s\n", r->mesh, r->layout,
            input_gradient ? " with the input gradient" : "");
    size_t at;
    json_t *instr;
    json_array_foreach(json_object_get(o, "instructions"), at, instr)
    {
        const char *kind = json_string_value(json_object_get(instr, "op"));
        const json_t *axes = json_object_get(instr, "axes");
        const int elements = (int)json_integer_value(json_object_get(instr, "elements"));
        if (json_array_size(axes) == 0) continue; /* local work */
        const char *axis = json_string_value(json_array_get(axes, 0));
        fprintf(golden, "  %s '%s' over %s: %d elements\n", kind,
                json_string_value(json_object_get(instr, "name")), axis, elements);
        assert_string_equal(kind, "all_reduce");
        assert_int_equal(json_array_size(axes), 1);
        if (!strike(r, struck, input_gradient, axis, elements))
            fail_msg("layout %s: all_reduce of %d elements over %s is not in Table 1", r->layout,
                     elements, axis);
    }
    for (int i = 0; i < MAX_SUMS && r->sums[i].what; i++)
        if (!struck[i] && (input_gradient || strcmp(r->sums[i].what, "dx") != 0))
            fail_msg("layout %s: the all_reduce of %s is missing", r->layout, r->sums[i].what);
    json_decref(o);
}

static void reductions_are_those_of_table_1(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *golden = open_memstream(&text, &size);
    for (int i = 0; i < ROWS; i++)
        for (int g = 0; g < 2; g++)
            check_row(&table[i], g, golden);
    fclose(golden);
    golden_check("table1.txt", text);
    free(text);
}

/* ---- the losses ---- */

/* `all` is every axis of the mesh; axes that a mesh lacks are left out of a rule. */
typedef struct grid {
    const char *mesh, *all;
} grid;
static const grid grids[] = {
    {"rows:2", "rows"},
    {"rows:4", "rows"},
    {"rows:2;cols:2", "rows+cols"},
    {"rows:3;cols:2", "rows+cols"},
    {"rows:2;cols:2;planes:2", "rows+cols+planes"},
};

static void compare_losses(const json_t *want, const char *mesh, const char *layout)
{
    json_t *o = example(mesh, layout, "");
    const json_t *got = json_object_get(o, "losses");
    assert_int_equal(json_array_size(got), STEPS);
    for (size_t i = 0; i < STEPS; i++) {
        const double a = json_number_value(json_array_get(want, i)),
                     b = json_number_value(json_array_get(got, i));
        if (!(fabs(a - b) <= 1e-9 * fabs(a)))
            fail_msg("mesh %s, layout %s: loss %d is %.17g instead of %.17g", mesh, layout,
                     (int)i + 1, b, a);
    }
    json_decref(o);
}

static void losses_are_the_same(void **state)
{
    (void)state;
    json_t *one = example("", "", "");
    const json_t *want = json_object_get(one, "losses");
    assert_int_equal(json_array_size(want), STEPS);
    assert_true(json_number_value(json_array_get(want, STEPS - 1)) <
                0.5 * json_number_value(json_array_get(want, 0)));
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        char layout[100];
        compare_losses(want, grids[g].mesh, "");
        snprintf(layout, sizeof layout, "batch:%s", grids[g].all);
        compare_losses(want, grids[g].mesh, layout);
        snprintf(layout, sizeof layout, "hidden:%s", grids[g].all);
        compare_losses(want, grids[g].mesh, layout);
        compare_losses(want, grids[g].mesh, "batch:rows;hidden:cols");
        compare_losses(want, grids[g].mesh, "batch:rows;hidden:cols;io:planes");
    }
    json_decref(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_are_those_of_table_1),
        cmocka_unit_test(losses_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
