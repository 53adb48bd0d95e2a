/* SPDX-License-Identifier: Apache-2.0
 * What a training step of the Transformer communicates under the paper's layout. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mtf/mtf.h"
#include "spmd/program.h"
#include "support/golden.h"

enum { LAYERS = 2, MAX_VARIABLES = 64 };

typedef struct step {
    mtf_graph *g;
    int nfetches, nupdates;
    mtf_tensor *fetch[3];
    mtf_tensor *update[3 * MAX_VARIABLES];
} step;

/* A whole step: loss, count, gradients / count, clipping, Adam. */
static step build(bool tied, double dropout)
{
    step s = {.g = mtf_graph_new()};
    const mtf_transformer_options o = {.vocab = 64,
                                       .layers = LAYERS,
                                       .d_model = 32,
                                       .heads = 4,
                                       .d_kv = 8,
                                       .d_ff = 48,
                                       .length = 16,
                                       .dropout = dropout,
                                       .activation = MTF_GELU,
                                       .tied = tied};
    const mtf_optimizer_options adam = {
        .kind = MTF_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    mtf_transformer *m = mtf_transformer_variables(s.g, &o);
    const mtf_transformer_tensors t = mtf_transformer_apply(m, 8, 16, true);
    mtf_optimizer *a = mtf_optimizer_new(s.g, &adam, m->nvariables, m->variable);
    mtf_tensor *d[MAX_VARIABLES];
    mtf_gradients(t.loss_sum, m->nvariables, m->variable, d);
    mtf_tensor *count = mtf_placeholder(s.g, "total", MTF_SCALAR, MTF_F32);
    for (int i = 0; i < m->nvariables; i++)
        d[i] = mtf_div(d[i], count);
    mtf_tensor *norm = mtf_global_norm(m->nvariables, d);
    mtf_tensor *factor = mtf_clip_factor(norm, 1.0);
    for (int i = 0; i < m->nvariables; i++)
        d[i] = mtf_mul(d[i], factor);
    s.nupdates = mtf_optimizer_updates(a, d, s.update);
    s.fetch[s.nfetches++] = t.loss_sum;
    s.fetch[s.nfetches++] = t.count;
    s.fetch[s.nfetches++] = norm;
    return s;
}

static void print_collective(const mtf_program *p, const instr *i, FILE *f)
{
    fprintf(f, "%s", instr_name(i));
    for (int a = 0; a < i->axes.n; a++)
        fprintf(f, "%c%s", a ? '+' : ' ', p->mesh->name[i->axes.axis[a]]);
    fprintf(f, " %s", i->combine == COMBINE_MAX ? "max" : "sum");
    if (i->nin > 1) fprintf(f, ", %d in one call", i->nin);
    for (int k = 0; k < i->nin; k++) {
        const value *v = i->in[k];
        fprintf(f, "%s%s [", i->nin > 1 ? "\n    " : " ", v->tensor->node->name);
        for (int d = 0; d < v->shape.rank; d++) {
            const int64_t parts = split_parts(p->mesh, v->split[d]);
            fprintf(f, "%s%s", d ? " " : "", v->shape.dim[d].name);
            if (parts > 1) fprintf(f, "/%lld", (long long)parts);
        }
        fputc(']', f);
    }
    fputc('\n', f);
}

#define PAPER "batch:rows;vocab:cols;d_ff:cols;heads:cols"

/* A step that is compiled. */
typedef struct compiled {
    step s;
    mtf_mesh *m;
    mtf_layout *l;
    mtf_program *p;
} compiled;

static compiled compile(const char *layout, bool tied, double dropout, bool buckets)
{
    mtf_err err = {0};
    compiled c = {.s = build(tied, dropout), .m = mtf_mesh_parse("rows:2;cols:2", &err)};
    c.l = mtf_layout_parse(layout, c.m, true, NULL, &err);
    const mtf_request r = {.nfetches = c.s.nfetches,
                           .fetches = c.s.fetch,
                           .nupdates = c.s.nupdates,
                           .updates = c.s.update,
                           .no_buckets = !buckets};
    c.p = mtf_compile(c.s.g, c.m, c.l, &r, &err);
    if (!c.p) fail_msg("%s", err.text);
    return c;
}

static void compiled_free(compiled *c)
{
    mtf_program_free(&c->p);
    mtf_layout_free(&c->l);
    mtf_mesh_free(&c->m);
    mtf_graph_free(&c->s.g);
}

static char *collectives(const char *layout, bool tied, double dropout, bool buckets)
{
    compiled c = compile(layout, tied, dropout, buckets);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (const instr *i = c.p->first; i; i = i->next)
        if (instr_is_collective(i)) print_collective(c.p, i, f);
    fclose(f);
    compiled_free(&c);
    return text;
}

/* Calls and bytes of the activations of the layers: values [batch stream_length d_model]. */
static double layer_bytes(const char *layout, int *calls)
{
    compiled c = compile(layout, false, 0.1, false);
    double bytes = 0;
    *calls = 0;
    for (const instr *i = c.p->first; i; i = i->next) {
        if (!instr_is_collective(i) || strncmp(i->node->name, "layer_", 6) != 0) continue;
        const mtf_shape *shape = &i->in[0]->shape;
        if (mtf_shape_find(shape, "batch") < 0 || mtf_shape_find(shape, "d_model") < 0) continue;
        bytes += instr_cost_of(c.p, i).bytes;
        ++*calls;
    }
    compiled_free(&c);
    return bytes;
}

/* Lines of `text` that begin with `start` and do not end with the shape of a scalar. */
static int count_lines(const char *text, const char *start)
{
    int n = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, start, strlen(start)) == 0 && strncmp(strchr(line, '\n') - 2, "[]", 2))
            n++;
    return n;
}

/* Over cols: the embedding; per layer attention and feed-forward, forward and backward; the
 * softmax's max, sum and target, and its gradient. */
enum { OVER_COLS = 1 + LAYERS * 4 + 3 + 1 };

static void each_reduction(void **state)
{
    (void)state;
    char *text = collectives(PAPER, false, 0.1, false);
    assert_int_equal(count_lines(text, "all_reduce cols"), OVER_COLS);
    assert_int_equal(count_lines(text, "all_gather"), 0);
    golden_check("transformer_reductions.txt", text);
    free(text);
}

static void buckets(void **state)
{
    (void)state;
    char *text = collectives(PAPER, false, 0.0, true);
    assert_int_equal(count_lines(text, "all_reduce rows"), 1);
    golden_check("transformer_buckets.txt", text);
    free(text);
}

/* The embedding's two gradients are one sum. */
static void tied_weights(void **state)
{
    (void)state;
    char *text = collectives(PAPER, true, 0.0, true);
    assert_int_equal(count_lines(text, "all_reduce rows"), 1);
    golden_check("transformer_tied.txt", text);
    free(text);
}

/* One more rule, and every all_reduce of a layer is a reduce_scatter and an all_gather of the same
 * bytes: per layer four of each. Besides: the embedding's table (small here, so gathering it moves
 * less than reducing what is looked up) and its gradient, the input of the softmax layer and its
 * gradient, and the gradient of the positions. */
static void sequence_parallel(void **state)
{
    (void)state;
    char *text = collectives(PAPER ";stream_length:cols", false, 0.1, false);
    assert_int_equal(count_lines(text, "reduce_scatter cols"), 4 * LAYERS + 2);
    assert_int_equal(count_lines(text, "all_gather cols"), 4 * LAYERS + 3);
    golden_check("transformer_sequence.txt", text);
    free(text);
}

static void sequence_parallel_moves_the_same_bytes(void **state)
{
    (void)state;
    int reduced, pairs;
    const double before = layer_bytes(PAPER, &reduced);
    const double after = layer_bytes(PAPER ";stream_length:cols", &pairs);
    assert_int_equal(reduced, 4 * LAYERS);
    assert_int_equal(pairs, 8 * LAYERS);
    assert_true(before > 0 && before == after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_reduction), cmocka_unit_test(buckets),
                                       cmocka_unit_test(tied_weights),
                                       cmocka_unit_test(sequence_parallel),
                                       cmocka_unit_test(sequence_parallel_moves_the_same_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
