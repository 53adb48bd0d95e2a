/* SPDX-License-Identifier: Apache-2.0
 * What the subcommands share: parsing, messages, configuration, exit codes. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/options.h"
#include "train/config.h"

/* A subcommand. `run` gets its arguments without the program's and its own name and returns the
 * exit code. */
typedef struct command {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);
} command;

extern const command command_train, command_eval, command_generate, command_explain, command_verify;
extern const command *const commands[];
extern const int command_count;

/* Prints "mtf: <message>" on the rank that prints, ends MPI, and gives the exit code: 0, 1 or 2. */
int cli_finish(mtf_status st, const mtf_err *err);
/* "mtf: warning: ..." on the rank that prints; empties the warning. */
void cli_warn(mtf_err *warning);
/* Is this the rank that prints? Before MPI has started, the launcher's variables tell. */
bool cli_is_root(void);

/* Reads a subcommand's options into `values`. True where the command is to go on; otherwise *code
 * is the exit code: --help was printed, or a mistake. `arguments`: how many it takes, least and
 * most. On false everything is freed. */
bool cli_parse(const command *c, const option_table *t, int argc, char **argv, void *values,
               option_args *args, int least, int most, int *code);

/* A configuration from its file, --set and --mesh, --layout where they were given (NULL: not). In a
 * job rank 0 reads the file. Call mtf_launch first. Collective. */
mtf_status cli_config(const char *path, const option_list *set, const char *mesh,
                      const char *layout, config *c, mtf_err *err);

/* Was the option on the command line? */
bool cli_given(const option_table *t, const option_args *args, const char *key);

/* Flushes stdout; an error there (a closed pipe is quiet) is MTF_FAILED. */
mtf_status cli_flush(mtf_err *err);

#define CLI_HELP_ROW(type_)                                                                        \
    {                                                                                              \
        .key = "help", .type = OPTION_BOOL, .offset = offsetof(type_, help),                       \
        .help = "show this help and exit"                                                          \
    }
#define CLI_THREADS_ROW(type_)                                                                     \
    {                                                                                              \
        .key = "threads", .type = OPTION_INT, .offset = offsetof(type_, threads), .min = 0,        \
        .max = 4096, .standard = "0", .value = "N",                                                \
        .help = "worker threads; 0: OMP_NUM_THREADS, else the processors that the system allows"   \
    }
#define CLI_MESH_ROW(type_)                                                                        \
    {                                                                                              \
        .key = "mesh", .type = OPTION_TEXT, .offset = offsetof(type_, mesh), .value = "MESH",      \
        .help = "mesh instead of the configuration's, for example rows:2;cols:2"                   \
    }
#define CLI_LAYOUT_ROW(type_)                                                                      \
    {                                                                                              \
        .key = "layout", .type = OPTION_TEXT, .offset = offsetof(type_, layout),                   \
        .value = "LAYOUT",                                                                         \
        .help = "layout instead of the configuration's, for example batch:rows;d_ff:cols"          \
    }
#define CLI_STRICT_ROW(type_)                                                                      \
    {                                                                                              \
        .key = "strict", .type = OPTION_BOOL, .offset = offsetof(type_, strict),                   \
        .help = "refuse layout rules that name no axis or no dim"                                  \
    }
#define CLI_JSON_ROW(type_)                                                                        \
    {                                                                                              \
        .key = "json", .type = OPTION_BOOL, .offset = offsetof(type_, json),                       \
        .help = "print the result as one JSON object on one line"                                  \
    }
#define CLI_SET_ROW(type_)                                                                         \
    {                                                                                              \
        .key = "set", .type = OPTION_LIST, .offset = offsetof(type_, set), .value = "KEY=VALUE",   \
        .help = "set a key of the configuration; may be given several times"                       \
    }
#define CLI_QUIET_ROW(type_)                                                                       \
    {                                                                                              \
        .key = "quiet", .type = OPTION_BOOL, .offset = offsetof(type_, quiet),                     \
        .help = "no progress on stderr"                                                            \
    }

#endif
