/* SPDX-License-Identifier: Apache-2.0
 * Planted faults: mistakes that a test build can be told to make, one at a time, to show that a
 * test would see them. MTF_FAULT names one; in a normal build every FAULT is false and costs
 * nothing. */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

/* Name as in MTF_FAULT; the tests that must see it stand in tests/faults.txt. */
#define FAULT_LIST(F)                                                                              \
    F(FAULT_DROP_ALL_REDUCE, "drop_all_reduce")                                                    \
    F(FAULT_WRONG_AXIS, "wrong_axis")                                                              \
    F(FAULT_GATHER_OFFSET, "gather_offset")                                                        \
    F(FAULT_ONE_HOT_OFFSET, "one_hot_offset")                                                      \
    F(FAULT_RANGE_OFFSET, "range_offset")                                                          \
    F(FAULT_DROPOUT_OFFSET, "dropout_offset")                                                      \
    F(FAULT_MASK_OFFSET, "mask_offset")                                                            \
    F(FAULT_EINSUM_GRADIENT, "einsum_gradient")                                                    \
    F(FAULT_NORM_REPLICAS, "norm_replicas")                                                        \
    F(FAULT_SPLIT_ORDER, "split_order")                                                            \
    F(FAULT_BLOCK_BOUND, "block_bound")                                                            \
    F(FAULT_INPLACE_EARLY, "inplace_early")                                                        \
    F(FAULT_RESUME_SLOT, "resume_slot")                                                            \
    F(FAULT_RESUME_POSITION, "resume_position")                                                    \
    F(FAULT_RESUME_STEP, "resume_step")                                                            \
    F(FAULT_EXCHANGE_STRIDE, "exchange_stride")                                                    \
    F(FAULT_EXCHANGE_PIECE, "exchange_piece")                                                      \
    F(FAULT_EXCHANGE_REPLICA, "exchange_replica")                                                  \
    F(FAULT_RESHAPE_KEEP, "reshape_keep")                                                          \
    F(FAULT_SLICE_OFFSET, "slice_offset")                                                          \
    F(FAULT_GATHER_ORDER, "gather_order")                                                          \
    F(FAULT_BUCKET_MEMBER, "bucket_member")                                                        \
    F(FAULT_BUCKET_EARLY, "bucket_early")                                                          \
    F(FAULT_SINK_REPLICATED, "sink_replicated")                                                    \
    F(FAULT_SINK_NONLINEAR, "sink_nonlinear")                                                      \
    F(FAULT_SINK_PARTIAL, "sink_partial")                                                          \
    F(FAULT_SINK_ORDER, "sink_order")                                                              \
    F(FAULT_CUT_JOINT, "cut_joint")                                                                \
    F(FAULT_CUT_SIDE, "cut_side")                                                                  \
    F(FAULT_CUT_CALLS, "cut_calls")                                                                \
    F(FAULT_MEMORY_LIFETIME, "memory_lifetime")                                                    \
    F(FAULT_MEMORY_VIEW, "memory_view")                                                            \
    F(FAULT_MEMORY_STACK, "memory_stack")                                                          \
    F(FAULT_MEMORY_BUCKETS, "memory_buckets")                                                      \
    F(FAULT_PLAN_EXCHANGE, "plan_exchange")                                                        \
    F(FAULT_PLAN_WORK, "plan_work")                                                                \
    F(FAULT_SCHEDULE_ORDER, "schedule_order")                                                      \
    F(FAULT_SCHEDULE_WORSE, "schedule_worse")                                                      \
    F(FAULT_STATE_EARLY, "state_early")                                                            \
    F(FAULT_STATE_SWAP, "state_swap")                                                              \
    F(FAULT_SHARE_ATTRIBUTES, "share_attributes")                                                  \
    F(FAULT_COPY_SHARED, "copy_shared")                                                            \
    F(FAULT_SHARE_RECOMPUTED, "share_recomputed")                                                  \
    F(FAULT_SCHEDULE_HOIST, "schedule_hoist")                                                      \
    F(FAULT_SHUFFLE_RANK, "shuffle_rank")                                                          \
    F(FAULT_GATHER_BASE, "gather_base")                                                            \
    F(FAULT_SLICE_BASE, "slice_base")                                                              \
    F(FAULT_PERMUTE_KEEP, "permute_keep")                                                          \
    F(FAULT_PERMUTE_TURN, "permute_turn")                                                          \
    F(FAULT_PERMUTE_PARTIAL, "permute_partial")                                                    \
    F(FAULT_SHARE_LAYOUT, "share_layout")                                                          \
    F(FAULT_SCATTER_AXES, "scatter_axes")                                                          \
    F(FAULT_VERIFY_TAIL, "verify_tail")                                                            \
    F(FAULT_VERIFY_PENDING, "verify_pending")                                                      \
    F(FAULT_RESHARD_USES, "reshard_uses")                                                          \
    F(FAULT_WINDOW_START, "window_start")                                                          \
    F(FAULT_CHUNK_LOST, "chunk_lost")                                                              \
    F(FAULT_ROUND_PARTIAL, "round_partial")                                                        \
    F(FAULT_WRITE_BACK, "write_back")                                                              \
    F(FAULT_SUM_ORDER, "sum_order")                                                                \
    F(FAULT_WINDOW_GAP, "window_gap")                                                              \
    F(FAULT_WINDOW_PERIOD, "window_period")                                                        \
    F(FAULT_CUMSUM_BLOCKS, "cumsum_blocks")                                                        \
    F(FAULT_TOP_K_TIES, "top_k_ties")                                                              \
    F(FAULT_STACK_OFFSET, "stack_offset")                                                          \
    F(FAULT_SHARE_WINDOW, "share_window")                                                          \
    F(FAULT_MOVE_LIMIT, "move_limit")

#define FAULT_ENUM(id, name) id,
typedef enum fault { FAULT_LIST(FAULT_ENUM) FAULT_COUNT } fault;

#ifdef MTF_FAULTS
#define FAULT(id) fault_is_planted(id)
#else
#define FAULT(id) false
#endif

/* Is this the fault that MTF_FAULT names? An unknown name ends the process. */
bool fault_is_planted(fault id);

#endif
