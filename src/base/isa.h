/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets: one kernel body compiled for several, chosen when the program runs.
 *
 * Invariant: every variant gives the same bits. Bodies therefore hold no fused multiply-add (the
 * build switches contraction off), and they write reductions with ISA_LANES explicit lanes. */
#ifndef BASE_ISA_H
#define BASE_ISA_H

typedef enum isa_level { ISA_BASE, ISA_AVX2, ISA_AVX512, ISA_LEVELS } isa_level;

/* Lanes of a reduction, on every instruction set. */
enum { ISA_LANES = 16 };

/* The widest level that this machine and its system offer. */
isa_level isa_best(void);

/* The level in use: isa_best() until isa_set() is called. Any thread may ask. */
isa_level isa_current(void);

/* Uses `level`, or the best one where the machine lacks it. For tests; no kernel may be running. */
void isa_set(isa_level level);

/* "base", "avx2" or "avx512"; the string is static. */
const char *isa_name(isa_level level);

/* For the body of a kernel and for the helpers that it calls in its inner loops: they must be
 * inlined to be compiled for the instruction set of the caller. */
#define ISA_BODY static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define ISA_TARGET_AVX2 __attribute__((target("avx2")))
#if defined(__clang__)
#define ISA_TARGET_AVX512                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), min_vector_width(512)))
#else
#define ISA_TARGET_AVX512                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif

/* Defines `static void name params`, which runs the variant of the current level:
 *
 *     ISA_BODY void scale_body(const tile_args *t) { ... }
 *     ISA_VARIANTS(scale, scale_body, (const tile_args *t), (t))
 *
 * The variants are name_base, name_avx2 and name_avx512. */
#define ISA_VARIANTS(name, body, params, args)                                                     \
    static void name##_base params                                                                 \
    {                                                                                              \
        body args;                                                                                 \
    }                                                                                              \
    ISA_TARGET_AVX2 static void name##_avx2 params                                                 \
    {                                                                                              \
        body args;                                                                                 \
    }                                                                                              \
    ISA_TARGET_AVX512 static void name##_avx512 params                                             \
    {                                                                                              \
        body args;                                                                                 \
    }                                                                                              \
    static void name params                                                                        \
    {                                                                                              \
        const isa_level isa_level_ = isa_current();                                                \
        if (isa_level_ == ISA_AVX512)                                                              \
            name##_avx512 args;                                                                    \
        else if (isa_level_ == ISA_AVX2)                                                           \
            name##_avx2 args;                                                                      \
        else                                                                                       \
            name##_base args;                                                                      \
    }
#else
#define ISA_VARIANTS(name, body, params, args)                                                     \
    static void name params                                                                        \
    {                                                                                              \
        body args;                                                                                 \
    }
#endif

#endif
