/* SPDX-License-Identifier: Apache-2.0
 * How long messages take between two processors: the model by which plans of the same result are
 * compared. It has two figures, near those of a current cluster network through MPI; only which of
 * two plans is faster depends on them, never a result. */
#ifndef MESH_LINK_H
#define MESH_LINK_H

/* Seconds until `messages` messages, one behind the other, have carried `bytes` bytes in all: 2
 * microseconds for each message, and 10 GB/s. */
static inline double link_time(double messages, double bytes)
{
    const double seconds_per_message = 2e-6, bytes_per_second = 10e9;
    return messages * seconds_per_message + bytes / bytes_per_second;
}

#endif
