/* SPDX-License-Identifier: Apache-2.0
 * Random programs: graphs of 5 to 30 rows with gradients, fetches of anything and assignments
 * between variables, all from one seed. */
#ifndef TESTS_SUPPORT_RANDOM_PROGRAM_H
#define TESTS_SUPPORT_RANDOM_PROGRAM_H

#include "mtf/mtf.h"

enum { NAMES = 7, POOL = 56, MAX_FEEDS = 64, MAX_FETCHES = 12, VARIABLES = 3, RANK = 4, STEPS = 2 };
enum { MAX_NODES = 4096 };

/* A stream of random choices. */
typedef struct draw {
    uint64_t state;
} draw;

typedef struct random_program {
    draw r;
    uint64_t seed;
    mtf_graph *g;
    mtf_dim dim[NAMES];
    int nfloats, nfeeds, nfetches, nupdates;
    int64_t max_value_bytes;  /* for the next run */
    mtf_tensor *floats[POOL]; /* f64 */
    mtf_feed feed[MAX_FEEDS];
    mtf_tensor *variable[VARIABLES], *updates[VARIABLES], *fetch[MAX_FETCHES];
    int samples;  /* operands of samples so far */
    int fan_outs; /* runs so far in which a partial value had several readers */
} random_program;

random_program program_new(uint64_t seed);
void program_free(random_program *p);
/* A row or layer of which no program so far has a sample; NULL: there is none. */
const char *unused_sample(void);

/* What a program gives: the fetches of two steps, then its variables. */
enum { RESULTS = STEPS * MAX_FETCHES + VARIABLES };

typedef struct results {
    int n;
    int64_t size[RESULTS];
    double *value[RESULTS];
} results;

void results_free(results *r);

/* Runs a program; false where the layout is refused, or where max_value_bytes leaves no way. `all`
 * fetches every value of the graph besides: what is fetched keeps its memory, so nothing works in
 * place. Fails the test on anything else. */
bool program_run(random_program *p, const char *mesh, const char *layout, int threads, bool all,
                 results *r);

/* Fails the test where two results differ beyond rounding. */
void results_compare(const random_program *p, const char *mesh, const char *layout,
                     const results *want, const results *got);

/* Each name over no axis, or over some of the mesh's in any order. */
void any_layout(draw *r, const char *mesh, char *text, size_t room);

#endif
