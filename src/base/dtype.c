/* SPDX-License-Identifier: Apache-2.0 */
#include "mtf/types.h"

static const struct {
    const char *name;
    int64_t size;
    bool is_float;
    mtf_dtype sums;
} table[MTF_NUM_DTYPES] = {
    [MTF_F32] = {"f32", 4, true, MTF_F32},   [MTF_F64] = {"f64", 8, true, MTF_F64},
    [MTF_I32] = {"i32", 4, false, MTF_I32},  [MTF_BOOL] = {"bool", 1, false, MTF_BOOL},
    [MTF_BF16] = {"bf16", 2, true, MTF_F32},
};

static bool known(mtf_dtype t)
{
    return t >= 0 && t < MTF_NUM_DTYPES;
}

int64_t mtf_dtype_size(mtf_dtype t)
{
    return known(t) ? table[t].size : 0;
}

const char *mtf_dtype_name(mtf_dtype t)
{
    return known(t) ? table[t].name : "unknown";
}

bool mtf_dtype_is_float(mtf_dtype t)
{
    return known(t) && table[t].is_float;
}

mtf_dtype mtf_dtype_of_sums(mtf_dtype t)
{
    return known(t) ? table[t].sums : t;
}
