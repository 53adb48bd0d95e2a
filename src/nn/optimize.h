/* SPDX-License-Identifier: Apache-2.0
 * What the files of optimisers share: one row per kind, and how it gets its slots. */
#ifndef NN_OPTIMIZE_H
#define NN_OPTIMIZE_H

#include "mtf/optimize.h"

/* The assignments of a step so far. */
typedef struct update_list {
    mtf_tensor **update;
    int n;
} update_list;

typedef struct optimizer_row {
    const char *name;
    /* Checks the options and makes what the whole optimiser needs; may be NULL. */
    void (*begin)(mtf_graph *g, mtf_optimizer *o);
    /* Makes the slots of variable i; NULL: there are none. */
    void (*slots)(mtf_graph *g, mtf_optimizer *o, int i);
    /* What is taken off variable i; adds the assignments of its slots. */
    mtf_tensor *(*change)(const mtf_optimizer *o, int i, mtf_tensor *gradient, update_list *list);
} optimizer_row;

extern const optimizer_row optimizer_sgd, optimizer_momentum, optimizer_nesterov, optimizer_adam,
    optimizer_adamw, optimizer_adafactor;

/* The type of slots, placeholders and the work: that of the variables, but f32 for bf16. */
mtf_dtype optimizer_type(const mtf_optimizer *o);

/* Variable i in that type. */
mtf_tensor *optimizer_value(const mtf_optimizer *o, int i);

/* A slot "<variable>/<name>" of zeros that is part of `o`; NULL after an error. */
mtf_tensor *optimizer_slot(mtf_optimizer *o, int i, const char *name, mtf_shape shape);

/* Stores an error unless `epsilon`, which keeps a root that is divided by above 0, is itself above
 * 0 in the optimiser's type: else an element whose gradient was always 0 would become NaN. */
void optimizer_check_epsilon(mtf_graph *g, const mtf_optimizer *o, const char *name,
                             double epsilon);

/* rate_of variable i, as fed for a step. */
mtf_tensor *optimizer_rate(const mtf_optimizer *o, int i);

/* Sets mark[i] where the extended regular expression `pattern` matches somewhere in the name of
 * variable i. False, with a message in the graph that begins with `what`, where the pattern is
 * broken or matches no name at all. */
bool optimizer_match(mtf_graph *g, const char *what, const char *pattern, int n,
                     mtf_tensor *const *variables, bool *mark);

#endif
