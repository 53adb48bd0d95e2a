/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/launcher.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

typedef struct family_row {
    const char *name, *file, *package;
} family_row;

static const family_row families[MPI_NUM_FAMILIES] = {
    [MPI_OPENMPI] = {.name = "Open MPI", .file = "libmtf_openmpi.so", .package = "libopenmpi-dev"},
    [MPI_MPICH] = {.name = "MPICH", .file = "libmtf_mpich.so", .package = "libmpich-dev"},
};

const char *module_family_name(mpi_family f)
{
    return families[f].name;
}

/* The variable as a number of at least `least`, or -1. */
static int number(const char *variable, int least)
{
    const char *text = getenv(variable);
    if (!text || !*text) return -1;
    char *end;
    const long n = strtol(text, &end, 10);
    return *end == '\0' && n >= least && n <= INT_MAX ? (int)n : -1;
}

typedef struct launcher_row {
    const char *name, *needs, *ranks, *rank;
    mpi_family family;
} launcher_row;

/* Inside an allocation of Slurm, mpirun's own variables are the ones that hold. Slurm's are set for
 * a batch script too, which is no step: only a step has a number of tasks of its own. */
static const launcher_row launchers[] = {
    {.name = "Open MPI's mpirun",
     .needs = "OMPI_COMM_WORLD_SIZE",
     .ranks = "OMPI_COMM_WORLD_SIZE",
     .rank = "OMPI_COMM_WORLD_RANK",
     .family = MPI_OPENMPI},
    {.name = "MPICH's mpirun",
     .needs = "PMI_SIZE",
     .ranks = "PMI_SIZE",
     .rank = "PMI_RANK",
     .family = MPI_MPICH},
    {.name = "Slurm's srun",
     .needs = "SLURM_STEP_ID",
     .ranks = "SLURM_STEP_NUM_TASKS",
     .rank = "SLURM_PROCID",
     .family = MPI_MPICH},
    {.name = "Slurm's srun",
     .needs = "SLURM_STEP_ID",
     .ranks = "SLURM_NTASKS",
     .rank = "SLURM_PROCID",
     .family = MPI_MPICH},
};

launcher launcher_detect(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher_row *row = &launchers[i];
        const int ranks = number(row->ranks, 1), rank = number(row->rank, 0);
        if (!getenv(row->needs) || ranks < 1) continue;
        launcher l = {.name = row->name,
                      .variable = row->ranks,
                      .ranks = ranks,
                      .rank = rank < 0 ? 0 : rank,
                      .family = {row->family},
                      .nfamilies = 1};
        if (strcmp(row->needs, "SLURM_STEP_ID") == 0) {
            l.family[0] = getenv("PMIX_RANK") ? MPI_OPENMPI : MPI_MPICH;
            l.family[1] = getenv("PMIX_RANK") ? MPI_MPICH : MPI_OPENMPI;
            l.nfamilies = 2;
        }
        return l;
    }
    return (launcher){.ranks = 1};
}

/* Cuts the last part of a path off. */
static void to_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
}

static bool exists(char *path, size_t size, const char *folder, const char *below, const char *file)
{
    const int n = snprintf(path, size, "%s%s/%s", folder, below, file);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* The folder of the running program. */
static bool program_folder(char *folder, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", folder, size - 1);
    if (n <= 0) return false;
    folder[n] = '\0';
    to_folder(folder);
    return true;
}

/* The folder of the library, where it is a shared one; else that of the program. */
static bool library_folder(char *folder)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)library_folder, &info) || !info.dli_fname) return false;
    if (!realpath(info.dli_fname, folder)) return false;
    to_folder(folder);
    return true;
}

/* A build folder keeps modules one above its examples and tests. A static library knows only where
 * it was to be installed. */
bool module_find(mpi_family f, char *path, size_t size)
{
    static const char *const beside_program[] = {"", "/..", "/../lib/mtf", "/../lib64/mtf",
                                                 "/../lib/" MTF_MULTIARCH "/mtf"};
    static const char *const beside_library[] = {"", "/mtf"};
    const char *file = families[f].file;
    char folder[PATH_MAX];
    if (program_folder(folder, sizeof folder))
        for (size_t i = 0; i < sizeof beside_program / sizeof beside_program[0]; i++)
            if (exists(path, size, folder, beside_program[i], file)) return true;
    if (library_folder(folder))
        for (size_t i = 0; i < sizeof beside_library / sizeof beside_library[0]; i++)
            if (exists(path, size, folder, beside_library[i], file)) return true;
    return exists(path, size, MTF_INSTALLED_MODULES, "", file);
}

static mtf_status load(const launcher *l, const char *path, const transport **out, mtf_err *err)
{
    /* Open MPI and UCX load plugins of their own that look for symbols of the library. */
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module)
        return err_set(err, MTF_INVALID, "starting under %s: cannot load its MPI module: %s",
                       l->name, dlerror());
    transport_fn *table;
    *(void **)&table = dlsym(module, TRANSPORT_SYMBOL);
    if (!table || table()->version != TRANSPORT_VERSION)
        return err_set(err, MTF_INVALID,
                       "starting under %s: the MPI module '%s' was built for another version of "
                       "mtf; build and install both again",
                       l->name, path);
    *out = table();
    return MTF_OK;
}

mtf_status module_load(const launcher *l, const transport **out, mtf_err *err)
{
    char path[PATH_MAX + 64];
    for (int i = 0; i < l->nfamilies; i++)
        if (module_find(l->family[i], path, sizeof path)) return load(l, path, out, err);
    const family_row *f = &families[l->family[0]];
    return err_set(err, MTF_INVALID,
                   "starting under %s (%s=%d): the MPI module %s is not installed next to this "
                   "program or in lib/mtf; install %s (Debian: %s), then build mtf again",
                   l->name, l->variable, l->ranks, f->file, f->name, f->package);
}
