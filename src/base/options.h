/* SPDX-License-Identifier: Apache-2.0
 * Options: one table of rows drives the command line, configuration files, --help and dumps.
 *
 * A table describes the fields of one plain struct ("values"). A key may have a section and a dot:
 * "train.batch". Everything here is local. Texts in the struct are copies that it owns. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdio.h>

#include "base/err.h"

typedef enum option_type {
    OPTION_BOOL,   /* bool */
    OPTION_INT,    /* int64_t */
    OPTION_REAL,   /* double, finite */
    OPTION_TEXT,   /* char *, UTF-8, never NULL */
    OPTION_CHOICE, /* int, an index into `names` */
    OPTION_LIST,   /* option_list of texts: every setting adds one; command line only */
} option_type;

typedef struct option_list {
    char **items;
    int64_t count, capacity;
} option_list;

typedef struct option_row {
    const char *key;
    const char *help;  /* what it is, one short phrase */
    const char *value; /* what --help calls a command-line value: "FILE"; NULL: by its type */
    option_type type;
    size_t offset;            /* of the field in the struct */
    const char *standard;     /* the default as text; NULL: the empty text, false */
    int64_t min, max;         /* OPTION_INT: bounds, both allowed */
    double real_min;          /* OPTION_REAL */
    double real_max;          /* OPTION_REAL; infinity: no bound */
    bool above, below;        /* OPTION_REAL: real_min, real_max themselves are not allowed */
    const char *const *names; /* OPTION_CHOICE: ends with NULL */
    unsigned flags;           /* free for the owner of the table */
} option_row;

typedef struct option_table {
    const option_row *rows;
    int count;        /* at most 64 for options_parse */
    const char *noun; /* what a message calls a row: "key" or "option" */
} option_table;

/* What options_parse found besides the values. */
typedef struct option_args {
    char **items;   /* the arguments that are no options, in order; free with mem_free; the texts
                     * belong to argv */
    int count;      /* of items */
    uint64_t given; /* bit i: row i was on the command line */
} option_args;

/* Sets every field to its default. `values` need not be initialised: old texts are not freed. */
void options_defaults(const option_table *t, void *values);

/* Frees the texts and lists, and sets them to NULL and empty. Accepts a zeroed struct. */
void options_free(const option_table *t, void *values);

/* Makes `to`, which need not be initialised, a copy with texts of its own. */
void options_copy(const option_table *t, const void *from, void *to);

/* The row of `key`, or NULL. */
const option_row *options_find(const option_table *t, const char *key);

/* The known key that is nearest to a misspelt one. A key may be meant without its section. */
const char *options_nearest(const option_table *t, const char *key);

/* Sets one field from text. MTF_INVALID, and nothing changed, for a value of the wrong kind or out
 * of range: "train.batch is '12x': expected a whole number from 1 to 1000". */
mtf_status options_set_row(const option_row *row, void *values, const char *text, mtf_err *err);

/* As options_set_row for the row of `key`. MTF_INVALID also for a key that is not known: "unknown
 * key 'model.layrs'; did you mean 'model.layers'?" */
mtf_status options_set(const option_table *t, void *values, const char *key, const char *text,
                       mtf_err *err);

/* Reads a command line: "--key value", "--key=value", "--flag" for a bool, "-h" for "--help"; "--"
 * ends the options. Every other argument goes to args->items, which is filled also on failure. */
mtf_status options_parse(const option_table *t, int argc, char *const *argv, void *values,
                         option_args *args, mtf_err *err);

/* One line per row: key, default, help. `dashes`: as options of the command line. */
void options_print_help(const option_table *t, bool dashes, FILE *out);

/* Writes all values as YAML, sections nested, that reads back as exactly the same values. Rows of
 * one section stand together in the table. Lists are left out. */
void options_print_yaml(const option_table *t, const void *values, FILE *out);

/* The value of a row as text that options_set_row reads back; free with mem_free. Not for lists. */
char *options_text(const option_row *row, const void *values);

/* The first row, without any of the flags in `skip`, whose values differ; NULL: none does. */
const option_row *options_difference(const option_table *t, const void *a, const void *b,
                                     unsigned skip);

/* The number of edits (insert, delete, replace, swap neighbours) that turn `a` into `b`. */
int options_distance(const char *a, const char *b);

#endif
