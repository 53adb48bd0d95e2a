/* SPDX-License-Identifier: Apache-2.0
 * The rows, and what the rows of one family share with their neighbours. */
#ifndef OPS_ROWS_H
#define OPS_ROWS_H

#include "graph/op.h"

#define OP_DECLARE(name) extern const op op_##name;
#define OP_ADDRESS(name) &op_##name,

/* Every row, one line each. Adding an operation adds its line here. */
#define OP_LIST(F)                                                                                 \
    F(placeholder)                                                                                 \
    F(variable)                                                                                    \
    F(assign)                                                                                      \
    F(constant)                                                                                    \
    F(range)                                                                                       \
    F(causal_bias)                                                                                 \
    F(random_uniform)                                                                              \
    F(random_normal)                                                                               \
    F(random_truncated_normal)                                                                     \
    F(dropout)                                                                                     \
    F(identity)                                                                                    \
    F(recompute_input)                                                                             \
    F(custom_gradient)                                                                             \
    F(stop_gradient)                                                                               \
    F(negative)                                                                                    \
    F(abs)                                                                                         \
    F(sign)                                                                                        \
    F(square)                                                                                      \
    F(reciprocal)                                                                                  \
    F(sqrt)                                                                                        \
    F(rsqrt)                                                                                       \
    F(exp)                                                                                         \
    F(log)                                                                                         \
    F(sin)                                                                                         \
    F(cos)                                                                                         \
    F(tanh)                                                                                        \
    F(sigmoid)                                                                                     \
    F(relu)                                                                                        \
    F(relu_grad)                                                                                   \
    F(leaky_relu)                                                                                  \
    F(elu)                                                                                         \
    F(selu)                                                                                        \
    F(softplus)                                                                                    \
    F(gelu)                                                                                        \
    F(gelu_grad)                                                                                   \
    F(swish)                                                                                       \
    F(logical_not)                                                                                 \
    F(cast)                                                                                        \
    F(scale)                                                                                       \
    F(offset)                                                                                      \
    F(add)                                                                                         \
    F(sub)                                                                                         \
    F(mul)                                                                                         \
    F(div)                                                                                         \
    F(pow)                                                                                         \
    F(maximum)                                                                                     \
    F(minimum)                                                                                     \
    F(floordiv)                                                                                    \
    F(mod)                                                                                         \
    F(less)                                                                                        \
    F(less_equal)                                                                                  \
    F(greater)                                                                                     \
    F(greater_equal)                                                                               \
    F(equal)                                                                                       \
    F(not_equal)                                                                                   \
    F(logical_and)                                                                                 \
    F(logical_or)                                                                                  \
    F(where)                                                                                       \
    F(einsum)                                                                                      \
    F(reduce_sum)                                                                                  \
    F(reduce_mean)                                                                                 \
    F(reduce_max)                                                                                  \
    F(reduce_min)                                                                                  \
    F(softmax)                                                                                     \
    F(broadcast)                                                                                   \
    F(transpose)                                                                                   \
    F(reshape)                                                                                     \
    F(rename)                                                                                      \
    F(slice)                                                                                       \
    F(pad)                                                                                         \
    F(shift)                                                                                       \
    F(dynamic_shift)                                                                               \
    F(halo_exchange)                                                                               \
    F(concat)                                                                                      \
    F(split)                                                                                       \
    F(stack)                                                                                       \
    F(cumsum)                                                                                      \
    F(top_k)                                                                                       \
    F(order)                                                                                       \
    F(reduce_flags)                                                                                \
    F(pool_1d)                                                                                     \
    F(sample)                                                                                      \
    F(gather)                                                                                      \
    F(scatter_add)                                                                                 \
    F(one_hot)

OP_LIST(OP_DECLARE)

/* The attributes of a variable; `initial` is computed when a session is initialised. */
typedef struct variable_attr {
    int trainable;
    mtf_tensor *initial;
    mtf_dtype master, activation; /* the stored type is the variable's own */
} variable_attr;

typedef struct assign_attr {
    mtf_tensor *variable;
} assign_attr;

typedef struct cast_attr {
    mtf_dtype type;
} cast_attr;

/* Where t is an f32 that was rounded to bf16, behind it perhaps reshaped: what it was before, in
 * the shape of t. Otherwise NULL. */
mtf_tensor *op_unrounded(mtf_tensor *t);

/* Gradients of activations as one function: y or x, and dy. */
mtf_tensor *op_build_relu_grad(mtf_tensor *y, mtf_tensor *dy);
mtf_tensor *op_build_gelu_grad(mtf_tensor *x, mtf_tensor *dy);

#endif
