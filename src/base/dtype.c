/* SPDX-License-Identifier: Apache-2.0 */
#include "mtf/types.h"

static const struct {
    const char *name;
    int64_t size;
} table[MTF_NUM_DTYPES] = {
    [MTF_F32] = {"f32", 4},
    [MTF_F64] = {"f64", 8},
    [MTF_I32] = {"i32", 4},
    [MTF_BOOL] = {"bool", 1},
};

int64_t mtf_dtype_size(mtf_dtype t)
{
    return table[t].size;
}

const char *mtf_dtype_name(mtf_dtype t)
{
    return t >= 0 && t < MTF_NUM_DTYPES ? table[t].name : "unknown";
}
