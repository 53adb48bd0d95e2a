/* SPDX-License-Identifier: Apache-2.0
 * Estimates by which the compiler compares plans before anything runs: what a call, a message, a
 * byte and a floating-point operation cost on a common cluster. They decide between plans only, so
 * their ratios matter and not their size. */
#ifndef MESH_LINK_H
#define MESH_LINK_H

#define LINK_SECONDS_PER_CALL      5e-6 /* one round of messages among the members of a group */
#define LINK_SECONDS_PER_MESSAGE   5e-7 /* for a processor to send and receive one */
#define LINK_BYTES_PER_SECOND      1e10 /* into one processor */
#define LINK_OPERATIONS_PER_SECOND 1e11 /* of one processor */

/* Seconds for `calls` rounds in which a processor receives `messages` messages of `bytes` bytes in
 * all. */
static inline double link_time(double calls, double messages, double bytes)
{
    return calls * LINK_SECONDS_PER_CALL + messages * LINK_SECONDS_PER_MESSAGE +
           bytes / LINK_BYTES_PER_SECOND;
}

/* Seconds for local work. */
static inline double link_work_time(double operations)
{
    return operations / LINK_OPERATIONS_PER_SECOND;
}

#endif
