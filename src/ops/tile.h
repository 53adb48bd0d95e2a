/* SPDX-License-Identifier: Apache-2.0
 * Loops of elementwise functions. A row writes its expression once; the loops here make it a
 * function over a tile for each type, and base/isa.h compiles that for each instruction set.
 *
 * These are macros that hold function bodies, against the rule of the house: the alternative is the
 * same loop written out some two hundred times. */
#ifndef OPS_TILE_H
#define OPS_TILE_H

#include "base/element.h"
#include "base/isa.h"
#include "base/vmath.h"
#include "graph/op.h"

/* The result may be the operand's memory, element for element, so no iteration depends on another.
 */
#if defined(__clang__)
#define TILE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TILE_LOOP _Pragma("GCC ivdep")
#endif

/* The types of elements in memory: what an expression sees of one, and how its value becomes one. A
 * bf16 is seen as an f32, and rounded once. */
#define TILE_SEEN_float      float
#define TILE_SEEN_double     double
#define TILE_SEEN_int32_t    int32_t
#define TILE_SEEN_uint8_t    uint8_t
#define TILE_SEEN_bf16       float
#define TILE_LOAD_float(v)   (v)
#define TILE_LOAD_double(v)  (v)
#define TILE_LOAD_int32_t(v) (v)
#define TILE_LOAD_uint8_t(v) (v)
#define TILE_LOAD_bf16(v)    bf16_to_f32(v)
#define TILE_AS_float(v)     ((float)(v))
#define TILE_AS_double(v)    ((double)(v))
#define TILE_AS_int32_t(v)   ((int32_t)(v))
#define TILE_AS_uint8_t(v)   ((uint8_t)(v))
#define TILE_AS_bf16(v)      _Generic((v), float : bf16_from_f32, default : bf16_from_f64)(v)

/* o[i] = expr(x) with operands of type T in memory and results of type O. */
#define TILE_1(T, O, expr)                                                                         \
    do {                                                                                           \
        const T *a = t->in[0];                                                                     \
        O *o = t->out;                                                                             \
        const int64_t n = t->n, s = t->stride[0];                                                  \
        if (s == 1) {                                                                              \
            TILE_LOOP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                      \
                const TILE_SEEN_##T x = TILE_LOAD_##T(a[i]);                                       \
                o[i] = TILE_AS_##O(expr);                                                          \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const TILE_SEEN_##T x = TILE_LOAD_##T(a[i * s]);                                   \
                o[i] = TILE_AS_##O(expr);                                                          \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#define TILE_2_LOOP(T, O, expr, sa, sb)                                                            \
    TILE_LOOP for (int64_t i = 0; i < n; i++)                                                      \
    {                                                                                              \
        const TILE_SEEN_##T x = TILE_LOAD_##T(a[i * (sa)]), y = TILE_LOAD_##T(b[i * (sb)]);        \
        o[i] = TILE_AS_##O(expr);                                                                  \
    }

/* o[i] = expr(x, y). The strides 0 and 1 get loops of their own, which vectorise. */
#define TILE_2(T, O, expr)                                                                         \
    do {                                                                                           \
        const T *a = t->in[0], *b = t->in[1];                                                      \
        O *o = t->out;                                                                             \
        const int64_t n = t->n, sa = t->stride[0], sb = t->stride[1];                              \
        if (sa == 1 && sb == 1) {                                                                  \
            TILE_2_LOOP(T, O, expr, 1, 1)                                                          \
        } else if (sa == 1 && sb == 0) {                                                           \
            TILE_2_LOOP(T, O, expr, 1, 0)                                                          \
        } else if (sa == 0 && sb == 1) {                                                           \
            TILE_2_LOOP(T, O, expr, 0, 1)                                                          \
        } else {                                                                                   \
            TILE_2_LOOP(T, O, expr, sa, sb)                                                        \
        }                                                                                          \
    } while (0)

#define TILE_BODY(name)                                                                            \
    static inline __attribute__((always_inline)) void name##_body(const tile_args *t)
#define TILE_VARIANTS(name) ISA_VARIANTS(name, name##_body, (const tile_args *t), (t))

/* Floating-point functions of one and two operands: an expression per type. */
#define TILE_FLOAT_1(name, expr32, expr64)                                                         \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        if (t->dtype == MTF_F64)                                                                   \
            TILE_1(double, double, expr64);                                                        \
        else if (t->dtype == MTF_BF16)                                                             \
            TILE_1(bf16, bf16, expr32);                                                            \
        else                                                                                       \
            TILE_1(float, float, expr32);                                                          \
    }                                                                                              \
    TILE_VARIANTS(name)

#define TILE_FLOAT_2(name, expr32, expr64)                                                         \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        if (t->dtype == MTF_F64)                                                                   \
            TILE_2(double, double, expr64);                                                        \
        else if (t->dtype == MTF_BF16)                                                             \
            TILE_2(bf16, bf16, expr32);                                                            \
        else                                                                                       \
            TILE_2(float, float, expr32);                                                          \
    }                                                                                              \
    TILE_VARIANTS(name)

/* One expression for all floating-point types, one for integers. */
#define TILE_NUMBER_1(name, expr_f, expr_i)                                                        \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        if (t->dtype == MTF_F64)                                                                   \
            TILE_1(double, double, expr_f);                                                        \
        else if (t->dtype == MTF_F32)                                                              \
            TILE_1(float, float, expr_f);                                                          \
        else if (t->dtype == MTF_BF16)                                                             \
            TILE_1(bf16, bf16, expr_f);                                                            \
        else                                                                                       \
            TILE_1(int32_t, int32_t, expr_i);                                                      \
    }                                                                                              \
    TILE_VARIANTS(name)

#define TILE_NUMBER_2(name, expr_f, expr_i)                                                        \
    TILE_BODY(name)                                                                                \
    {                                                                                              \
        if (t->dtype == MTF_F64)                                                                   \
            TILE_2(double, double, expr_f);                                                        \
        else if (t->dtype == MTF_F32)                                                              \
            TILE_2(float, float, expr_f);                                                          \
        else if (t->dtype == MTF_BF16)                                                             \
            TILE_2(bf16, bf16, expr_f);                                                            \
        else                                                                                       \
            TILE_2(int32_t, int32_t, expr_i);                                                      \
    }                                                                                              \
    TILE_VARIANTS(name)

/* Shapes of elementwise rows. unary: as the operand, which must be of a type in `types` (bits
 * 1 << dtype). nary: operands broadcast by name; all operands from `first` on have one type. */
enum {
    TYPES_FLOAT = 1 << MTF_F32 | 1 << MTF_F64 | 1 << MTF_BF16,
    TYPES_NUMBER = TYPES_FLOAT | 1 << MTF_I32,
    TYPES_BOOL = 1 << MTF_BOOL,
    TYPES_ANY = TYPES_NUMBER | TYPES_BOOL,
};
bool tile_infer_unary(mtf_graph *g, mtf_node *n, unsigned types);
bool tile_infer_nary(mtf_graph *g, mtf_node *n, int first, unsigned types);
/* The two common cases as `infer` functions. */
bool tile_infer_float1(mtf_graph *g, mtf_node *n);
bool tile_infer_number1(mtf_graph *g, mtf_node *n);
bool tile_infer_float2(mtf_graph *g, mtf_node *n);
bool tile_infer_number2(mtf_graph *g, mtf_node *n);

/* The shape that two shapes broadcast to: the longer where one's dims all stand in the other, else
 * the dims of a followed by those of b that a lacks. */
mtf_shape tile_broadcast(const mtf_shape *a, const mtf_shape *b);
/* dy summed to the shape of x, for the gradient of a broadcast operand. */
mtf_tensor *tile_reduce_to(mtf_tensor *dy, const mtf_tensor *x);

/* The floating-point type that samples are built of: f64, where the tests asked for no other. */
mtf_dtype sample_float(void);
void sample_use_float(mtf_dtype type);

/* Real operands of the next samples are fn of their placeholders, so that a sample can be a part of
 * a larger graph; NULL: the placeholders themselves. */
typedef mtf_tensor *sample_wrap(void *context, mtf_tensor *placeholder);
void sample_use_wrap(sample_wrap *fn, void *context);

/* Shapes that samples of elementwise rows should not lack, k from 0 to SAMPLE_EDGES - 1: a scalar;
 * dims of size 1 and 3, which leave processors without elements; nothing but dims of size 1. */
enum { SAMPLE_EDGES = 3 };
mtf_shape sample_edge(int k);

/* Operands of samples: f64 placeholders whose name tells the tests what to feed, as sample_float().
 */
mtf_tensor *sample_normal(mtf_graph *g, mtf_shape s);   /* normal(0, 1) */
mtf_tensor *sample_positive(mtf_graph *g, mtf_shape s); /* in [0.5, 2) */
mtf_tensor *sample_ties(mtf_graph *g, mtf_shape s);     /* few distinct values */
mtf_tensor *sample_integers(mtf_graph *g, mtf_shape s); /* i32 in [-2, 7] */
mtf_tensor *sample_flags(mtf_graph *g, mtf_shape s);    /* bool */

#endif
