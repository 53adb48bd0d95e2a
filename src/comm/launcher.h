/* SPDX-License-Identifier: Apache-2.0
 * Which launcher started this process, and which MPI modules are installed. No MPI in here. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include "comm/transport.h"

typedef enum mpi_family { MPI_OPENMPI, MPI_MPICH, MPI_NUM_FAMILIES } mpi_family;

/* What the environment says. */
typedef struct launcher {
    const char *name;     /* for messages; NULL where nobody launched this process */
    const char *variable; /* the one that holds the number of ranks */
    int ranks, rank;
    mpi_family family[MPI_NUM_FAMILIES]; /* the modules to try, best first */
    int nfamilies;
} launcher;

launcher launcher_detect(void);

/* "Open MPI" or "MPICH". */
const char *module_family_name(mpi_family f);

/* Writes the module's path, or returns false where it is not installed. */
bool module_find(mpi_family f, char *path, size_t size);

/* Loads the first module of the launcher that is installed. MTF_INVALID with what to install. */
mtf_status module_load(const launcher *l, const transport **out, mtf_err *err);

#endif
