/* SPDX-License-Identifier: Apache-2.0
 * Which values share memory, on programs made by hand. */
#include "check.h"

#include <stdlib.h>

#include "mtf/mtf.h"
#include "spmd/memory.h"

enum { N = 32, BYTES = N * 4 };

/* A program over vectors of N elements, instruction by instruction. */
typedef struct maker {
    mtf_graph *g;
    mtf_tensor *relu, *add; /* nodes that instructions may come from */
    mtf_mesh *mesh;
    mtf_program *p;
} maker;

static maker begin(void)
{
    mtf_err err = {0};
    maker m = {.g = mtf_graph_new(), .mesh = mtf_mesh_parse("x:2;y:2", &err)};
    mtf_tensor *t = mtf_placeholder(m.g, "t", MTF_SHAPE(((mtf_dim){"n", N})), MTF_F32);
    m.relu = mtf_relu(t);
    m.add = mtf_add(t, t);
    assert_int_equal(mtf_graph_status(m.g, &err), MTF_OK);
    m.p = mem_zalloc(sizeof *m.p);
    m.p->mem = arena_new();
    m.p->graph = m.g;
    m.p->mesh = m.mesh;
    return m;
}

static void end(maker *m)
{
    mtf_program_free(&m->p);
    mtf_mesh_free(&m->mesh);
    mtf_graph_free(&m->g);
}

static value *new_value(maker *m)
{
    return program_value(m->p, m->relu, &m->relu->shape);
}

static value *feed(maker *m)
{
    value *v = new_value(m);
    v->kind = VALUE_FEED;
    m->p->feed = arena_alloc(m->p->mem, sizeof *m->p->feed);
    m->p->feed[m->p->nfeeds++] = v;
    return v;
}

static value *compute(maker *m, mtf_tensor *from, int nin, value *const *in)
{
    instr *i = program_instr(m->p, NULL, INSTR_COMPUTE, from->node, nin, 1);
    i->op = from->node->op;
    for (int k = 0; k < nin; k++)
        i->in[k] = in[k];
    return i->out[0] = new_value(m);
}

static value *relu(maker *m, value *v)
{
    return compute(m, m->relu, 1, &v);
}

static value *add(maker *m, value *a, value *b)
{
    return compute(m, m->add, 2, (value *[]){a, b});
}

/* One call for all of them, each of which becomes its result. */
static void bucket(maker *m, int axis, int n, value **v)
{
    instr *i = program_instr(m->p, NULL, INSTR_ALL_REDUCE, m->add->node, n, n);
    i->axes = (split){.n = 1, .axis = {(int8_t)axis}};
    for (int k = 0; k < n; k++) {
        i->in[k] = v[k];
        v[k] = i->out[k] = new_value(m);
    }
}

static void fetch(maker *m, int n, value **v)
{
    m->p->fetch = v;
    m->p->nfetches = n;
    plan_memory(m->p);
    program_verify_memory(m->p);
}

/* What is made of a bucket's result in its place stays out of the next bucket: its members would
 * not lie side by side. */
static void one_bucket_after_another(void **state)
{
    (void)state;
    maker m = begin();
    value *x = feed(&m), *v[3], *w[3];
    for (int k = 0; k < 3; k++)
        v[k] = add(&m, x, x);
    value *last = relu(&m, x);
    bucket(&m, 0, 3, v);
    w[0] = relu(&m, v[0]);
    w[1] = relu(&m, v[2]);
    bucket(&m, 1, 2, w);
    w[2] = add(&m, relu(&m, v[1]), last);
    fetch(&m, 3, w);
    assert_int_equal(llabs(w[1]->offset - w[0]->offset), BYTES);
    assert_int_equal(w[2]->offset, v[1]->offset);
    end(&m);
}

/* A bucket takes its members in the order in which their memory is first written: here the last
 * operand's, whose sum begins in the place of what was made first. */
static void members_lie_as_they_are_formed(void **state)
{
    (void)state;
    maker m = begin();
    value *x = feed(&m);
    value *early = relu(&m, x), *v[3];
    v[0] = relu(&m, x);
    v[1] = relu(&m, x);
    v[2] = add(&m, early, x);
    bucket(&m, 0, 3, v);
    fetch(&m, 3, v);
    assert_int_equal(v[2]->offset + BYTES, v[0]->offset);
    assert_int_equal(v[0]->offset + BYTES, v[1]->offset);
    assert_int_equal(m.p->slab_bytes, 4 * BYTES);
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bucket_after_another),
        cmocka_unit_test(members_lie_as_they_are_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
