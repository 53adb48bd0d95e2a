/* SPDX-License-Identifier: Apache-2.0
 * Types that every part of mtf shares: status codes, error messages and element types. */
#ifndef MTF_TYPES_H
#define MTF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call that can fail. The values are the exit codes of the command line. */
typedef enum mtf_status {
    MTF_OK = 0,      /* done */
    MTF_FAILED = 1,  /* failed while running: a file, the disk, a peer, a loss that is not finite */
    MTF_INVALID = 2, /* the caller's input is wrong; nothing was changed */
} mtf_status;

/* A message for people. The first message that is stored stays; a zeroed struct is empty. */
typedef struct mtf_err {
    mtf_status status; /* MTF_OK while empty */
    char text[1024];   /* one line without a newline: what was being done, to what, and the fix */
} mtf_err;

/* Element types of tensors. A bool is one byte, 0 or 1. A bf16 is the upper half of an f32, held in
 * a uint16_t: operations widen it to f32, and round their result to the nearest, ties to even. */
typedef enum mtf_dtype { MTF_F32, MTF_F64, MTF_I32, MTF_BOOL, MTF_BF16, MTF_NUM_DTYPES } mtf_dtype;

/* Bytes of one element of `t`, 0 for what is no type. */
int64_t mtf_dtype_size(mtf_dtype t);

/* "f32", "f64", "i32", "bool" or "bf16", "unknown" for what is no type; the string is static. */
const char *mtf_dtype_name(mtf_dtype t);

/* Is it f32, f64 or bf16: a type that has gradients? */
bool mtf_dtype_is_float(mtf_dtype t);

/* The type in which sums of elements of `t` are formed and travel: f32 for bf16, else `t`. */
mtf_dtype mtf_dtype_of_sums(mtf_dtype t);

#ifdef __cplusplus
}
#endif
#endif
