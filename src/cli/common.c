/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "exec/job.h"
#include "mtf/session.h"
#include "nn/schedule.h"

bool cli_is_root(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank && *rank) return strcmp(rank, "0") == 0;
    }
    return true;
}

/* The first rank that ends with an error makes the launcher end the others: the root, which speaks
 * for all, gets the time to say why. */
static void let_root_speak(void)
{
    const struct timespec moment = {.tv_nsec = 500 * 1000 * 1000};
    if (!cli_is_root()) nanosleep(&moment, NULL);
}

int cli_finish(mtf_status st, const mtf_err *err)
{
    if (st != MTF_OK) let_root_speak();
    if (st != MTF_OK && cli_is_root()) {
        char line[2 * sizeof err->text];
        fflush(stdout);
        fprintf(stderr, "mtf: %s\n", utf8_quote(err->text, line, sizeof line));
    }
    mtf_finish();
    return (int)st;
}

void cli_warn(mtf_err *warning)
{
    if (warning->status != MTF_OK && cli_is_root())
        fprintf(stderr, "mtf: warning: %s\n", warning->text);
    *warning = (mtf_err){0};
}

bool cli_given(const option_table *t, const option_args *args, const char *key)
{
    const option_row *row = options_find(t, key);
    return row && (args->given >> (row - t->rows) & 1);
}

static void print_help(const command *c, const option_table *t)
{
    printf("usage: mtf %s %s\n\n%s\n\noptions:\n", c->name, c->arguments, c->summary);
    options_print_help(t, true, stdout);
    if (!options_find(t, "set")) return;
    printf("\nkeys of the configuration, with their defaults:\n");
    options_print_help(&config_options, false, stdout);
    printf(
        "\nfactors of train.schedule, joined by '*', with their defaults; a `part` is a number of "
        "steps\nor, up to 1, a part of all:\n");
    schedule_print_factors(stdout);
}

bool cli_parse(const command *c, const option_table *t, int argc, char **argv, void *values,
               option_args *args, int least, int most, int *code)
{
    mtf_err err = {0};
    options_defaults(t, values);
    mtf_status st = options_parse(t, argc, argv, values, args, &err);
    if (st == MTF_OK && cli_given(t, args, "help")) {
        if (cli_is_root()) print_help(c, t);
        *code = cli_finish(cli_flush(&err), &err);
    } else {
        if (st == MTF_OK && (args->count < least || args->count > most))
            st = err_set(&err, MTF_INVALID, "%s: %d arguments given; usage: mtf %s %s", c->name,
                         args->count, c->name, c->arguments);
        if (st == MTF_OK) return true;
        *code = cli_finish(st, &err);
    }
    mem_free(args->items);
    options_free(t, values);
    return false;
}

/* In a job the root reads for all: a pipe has one reader, and no rank can see another file. */
static mtf_status read_for_all(const char *path, config *c, mtf_err *err)
{
    int ranks = 1, rank = 0;
    TRY(mtf_launch(&ranks, &rank, err));
    if (ranks == 1) return config_read(c, path, err);
    char *text = NULL;
    size_t read = 0;
    TRY(job_agree(rank == 0 ? config_load(path, &text, &read, err) : MTF_OK, err));
    int64_t bytes = (int64_t)read;
    mtf_status st = job_broadcast(&bytes, sizeof bytes, err);
    if (!text) text = mem_zalloc((size_t)bytes + 1);
    if (st == MTF_OK) st = job_broadcast(text, bytes, err);
    if (st == MTF_OK) st = config_parse(c, path, text, (size_t)bytes, err);
    mem_free(text);
    return st;
}

static mtf_status change_config(const option_list *set, const char *mesh, const char *layout,
                                config *c, mtf_err *err)
{
    for (int64_t i = 0; i < set->count; i++)
        TRY(config_set(c, set->items[i], err));
    if (mesh) TRY(options_set(&config_options, c, "mesh", mesh, err));
    if (layout) TRY(options_set(&config_options, c, "layout", layout, err));
    return config_check(c, err);
}

mtf_status cli_config(const char *path, const option_list *set, const char *mesh,
                      const char *layout, config *c, mtf_err *err)
{
    TRY(read_for_all(path, c, err));
    return job_agree(change_config(set, mesh, layout, c, err), err);
}

mtf_status cli_flush(mtf_err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return MTF_OK;
    return err_set(err, MTF_FAILED, "writing to stdout: %s", strerror(errno));
}
