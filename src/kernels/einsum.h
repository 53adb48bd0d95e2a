/* SPDX-License-Identifier: Apache-2.0
 * einsum of two operands as a batched matrix product (kernels/gemm.h). */
#ifndef KERNELS_EINSUM_H
#define KERNELS_EINSUM_H

#include "kernels/table.h"

extern const kernel_impl kernel_einsum;

#endif
