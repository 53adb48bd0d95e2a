/* SPDX-License-Identifier: Apache-2.0 */
#include "support/comm_reference.h"

#include <math.h>
#include <string.h>

#include "base/bfloat.h"

/* A bf16 is held as the f32 that it is added as. */
typedef struct number {
    mtf_dtype type;
    union {
        float f;
        double d;
        int32_t i;
    } as;
} number;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Magnitudes from 2^-12 to 2^12, so that rounding depends on the order; a maximum also meets NaN,
 * infinity and both zeros. */
static number input(int proc, int64_t i, comm_op op, mtf_dtype type)
{
    const uint64_t h = mix((uint64_t)proc * 1000003u + (uint64_t)i + 17u);
    const double unit = (double)(h >> 12) / (double)(1ull << 52) - 0.5;
    double v = ldexp(unit, (int)(h % 25) - 12);
    if (op != COMM_SUM) {
        const uint64_t kind = h % 31;
        v = kind == 0 ? NAN : kind == 1 ? INFINITY : kind == 2 ? 0.0 : kind == 3 ? -0.0 : v;
    }
    number n = {.type = type};
    if (type == MTF_F32) n.as.f = (float)v;
    if (type == MTF_F64) n.as.d = v;
    if (type == MTF_BF16) n.as.f = bf16_to_f32(bf16_from_f64(v));
    if (type == MTF_I32) n.as.i = (int32_t)(uint32_t)(h >> 32);
    return n;
}

static double join_real(double a, double b, comm_op op)
{
    if (isnan(a) || isnan(b)) return NAN;
    if (op == COMM_MAX) return a > b ? a : b;
    return a < b ? a : b;
}

static int32_t join_int(int32_t a, int32_t b, comm_op op)
{
    if (op == COMM_SUM) return (int32_t)(uint32_t)((int64_t)a + (int64_t)b);
    if (op == COMM_MAX) return a > b ? a : b;
    return a < b ? a : b;
}

static number join(number a, number b, comm_op op)
{
    if (a.type == MTF_I32) {
        a.as.i = join_int(a.as.i, b.as.i, op);
    } else if (a.type == MTF_F64) {
        a.as.d = op == COMM_SUM ? a.as.d + b.as.d : join_real(a.as.d, b.as.d, op);
    } else {
        a.as.f = op == COMM_SUM ? a.as.f + b.as.f : (float)join_real(a.as.f, b.as.f, op);
    }
    return a;
}

static void store(number n, void *to)
{
    const bf16 narrow = bf16_from_f32(n.as.f);
    const void *from = n.type == MTF_BF16 ? (const void *)&narrow : (const void *)&n.as;
    memcpy(to, from, (size_t)mtf_dtype_size(n.type));
}

void reference_input(int proc, int64_t i, comm_op op, mtf_dtype type, void *to)
{
    store(input(proc, i, op, type), to);
}

typedef struct walk {
    const comm_mesh *m;
    bool reduced[COMM_MAX_AXES];
    int64_t element;
    comm_op op;
    mtf_dtype type;
} walk;

static int64_t stride_of(const comm_mesh *m, int axis)
{
    int64_t stride = 1;
    for (int a = axis + 1; a < m->naxes; a++)
        stride *= m->size[a];
    return stride;
}

static number over_axes(const walk *w, int axis, int64_t proc);

/* Coordinates lo .. lo + n - 1 of `axis`; `proc` has coordinate 0 on it. */
static number over_coordinates(const walk *w, int axis, int64_t proc, int64_t lo, int64_t n)
{
    if (n == 1) return over_axes(w, axis + 1, proc + lo * stride_of(w->m, axis));
    return join(over_coordinates(w, axis, proc, lo, n / 2),
                over_coordinates(w, axis, proc, lo + n / 2, n - n / 2), w->op);
}

/* The minor axes are the inner ones, so they are added first. */
static number over_axes(const walk *w, int axis, int64_t proc)
{
    if (axis == w->m->naxes) return input((int)proc, w->element, w->op, w->type);
    if (!w->reduced[axis]) return over_axes(w, axis + 1, proc);
    return over_coordinates(w, axis, proc, 0, w->m->size[axis]);
}

static int64_t base_of(const comm_mesh *m, comm_axes axes, int proc)
{
    int64_t base = proc;
    for (int k = 0; k < axes.n; k++) {
        const int64_t stride = stride_of(m, axes.axis[k]);
        base -= proc / stride % m->size[axes.axis[k]] * stride;
    }
    return base;
}

void reference_reduce(const comm_mesh *m, comm_axes axes, int proc, int64_t i, comm_op op,
                      mtf_dtype type, void *to)
{
    walk w = {.m = m, .element = i, .op = op, .type = type};
    for (int k = 0; k < axes.n; k++)
        w.reduced[axes.axis[k]] = true;
    store(over_axes(&w, 0, base_of(m, axes, proc)), to);
}

int reference_members(const comm_mesh *m, comm_axes axes, int proc, int *members)
{
    int n = 1;
    members[0] = (int)base_of(m, axes, proc);
    for (int k = axes.n - 1; k >= 0; k--) {
        const int64_t stride = stride_of(m, axes.axis[k]), size = m->size[axes.axis[k]];
        for (int64_t x = 1; x < size; x++)
            for (int j = 0; j < n; j++)
                members[x * n + j] = members[j] + (int)(x * stride);
        n *= (int)size;
    }
    return n;
}

void reference_other_order(const comm_mesh *m, comm_axes axes, int proc, int64_t i, comm_op op,
                           mtf_dtype type, void *to)
{
    int members[1024];
    const int n = reference_members(m, axes, proc, members);
    number sum = input(members[0], i, op, type);
    for (int k = 1; k < n; k++)
        sum = join(sum, input(members[k], i, op, type), op);
    store(sum, to);
}
