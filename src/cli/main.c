/* SPDX-License-Identifier: Apache-2.0
 * mtf: the command line. One file per subcommand; this one finds it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/isa.h"
#include "base/utf8.h"
#include "base/version.h"
#include "cli/cli.h"
#include "comm/comm.h"
#include "kernels/gemm.h"

const command *const commands[] = {&command_train, &command_eval, &command_generate,
                                   &command_explain, &command_verify};
const int command_count = sizeof commands / sizeof *commands;

/* The exit code after something was printed. */
static int printed(void)
{
    mtf_err err = {0};
    return cli_finish(cli_flush(&err), &err);
}

static int print_help(void)
{
    if (!cli_is_root()) return 0;
    printf("mtf: distributed tensor programs with named dimensions, meshes and layouts\n\n"
           "usage: mtf COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < command_count; i++)
        printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n'mtf COMMAND --help' shows the options of a command. 'mtf --version' shows the "
           "version.\nUnder mpirun or srun each rank hosts one processor of the mesh.\n");
    return printed();
}

static int print_version(void)
{
    if (!cli_is_root()) return 0;
    printf("mtf %s\ncommit: %s\ncompiler: %s\ninstruction set: %s\noneDNN: %s\nMPI: %s\n",
           version_text(), version_commit(), version_compiler(), isa_name(isa_best()),
           gemm_library(), comm_library());
    return printed();
}

static int unknown(const char *name)
{
    char shown[80];
    const command *nearest = commands[0];
    for (int i = 1; i < command_count; i++)
        if (options_distance(name, commands[i]->name) < options_distance(name, nearest->name))
            nearest = commands[i];
    mtf_err err = {0};
    err_set(&err, MTF_INVALID, "unknown command '%s'; did you mean '%s'? 'mtf --help' lists them",
            utf8_quote(name, shown, sizeof shown), nearest->name);
    return cli_finish(MTF_INVALID, &err);
}

/* A standard descriptor that the caller has closed would go to the next file that is opened, a log
 * or a checkpoint, and messages with it. What stands there instead refuses reads or writes. */
static void keep_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv)
{
    keep_descriptors();
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        mtf_err err = {0};
        err_set(&err, MTF_INVALID, "no command; 'mtf --help' lists them");
        return cli_finish(MTF_INVALID, &err);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0) return print_version();
    for (int i = 0; i < command_count; i++)
        if (strcmp(argv[1], commands[i]->name) == 0) return commands[i]->run(argc - 2, argv + 2);
    return unknown(argv[1]);
}
