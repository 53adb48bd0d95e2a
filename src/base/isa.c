/* SPDX-License-Identifier: Apache-2.0 */
#include "base/isa.h"

#include <stdatomic.h>

static atomic_int current = -1; /* -1 until somebody asks */

isa_level isa_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return ISA_AVX512;
    if (__builtin_cpu_supports("avx2")) return ISA_AVX2;
#endif
    return ISA_BASE;
}

isa_level isa_current(void)
{
    int level = atomic_load_explicit(&current, memory_order_relaxed);
    if (level < 0) {
        level = (int)isa_best();
        atomic_store_explicit(&current, level, memory_order_relaxed);
    }
    return (isa_level)level;
}

void isa_set(isa_level level)
{
    const isa_level best = isa_best();
    atomic_store(&current, (int)(level < best ? level : best));
}

const char *isa_name(isa_level level)
{
    static const char *const names[ISA_LEVELS] = {"base", "avx2", "avx512"};
    return names[level];
}
