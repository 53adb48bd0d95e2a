/* SPDX-License-Identifier: Apache-2.0
 * Cost of compiling for many processors: bench/compile [LAYERS [REPEATS]]
 *
 * Builds the training step of a large Transformer for several meshes, each in a process of its own,
 * and prints time, instructions and peak memory. All lines should be about equal: the compiler's
 * work must not grow with the number of processors. Nothing runs. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/lm.h"

static const char *const meshes[] = {"rows:2;cols:2", "rows:4;cols:8", "rows:16;cols:32"};

static const char *const keys[] = {"model.d_model=4096",
                                   "model.heads=32",
                                   "model.d_kv=128",
                                   "model.d_ff=16384",
                                   "model.length=256",
                                   "train.batch=512",
                                   "train.optimizer=adam",
                                   "model.vocab=32768",
                                   "layout=batch:rows;vocab:cols;d_ff:cols;heads:cols"};

static mtf_status set_keys(config *c, const char *layers, const char *mesh, mtf_err *err)
{
    char text[64];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        TRY(config_set(c, keys[i], err));
    snprintf(text, sizeof text, "model.layers=%s", layers);
    TRY(config_set(c, text, err));
    snprintf(text, sizeof text, "mesh=%s", mesh);
    return config_set(c, text, err);
}

/* What the child tells. */
typedef struct figures {
    double seconds;
    int64_t instructions, parameters;
} figures;

/* In the child: compiles once. */
static int compile(const char *layers, const char *mesh, figures *f)
{
    config c;
    lm *m = NULL;
    mtf_err err = {0};
    config_defaults(&c);
    mtf_status st = set_keys(&c, layers, mesh, &err);
    const double before = measure_now();
    const lm_request r = {.parts = LM_TRAIN, .vocab = c.model.vocab, .strict = true, .dtype = -1};
    if (st == MTF_OK) st = lm_open(&c, &r, &m, NULL, &err);
    if (st == MTF_OK) {
        const mtf_totals t = mtf_program_totals(m->micro[0].program);
        *f = (figures){measure_now() - before, t.instructions, m->parameters};
    } else {
        fprintf(stderr, "%s\n", err.text);
    }
    lm_close(&m);
    config_free(&c);
    return (int)st;
}

/* One compilation in a process of its own. */
static bool measure(const char *layers, const char *mesh, figures *f, double *megabytes)
{
    int ends[2], status = 0;
    struct rusage used;
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        const int failed = compile(layers, mesh, f);
        const bool told = write(ends[1], f, sizeof *f) == (ssize_t)sizeof *f;
        _exit(failed || !told);
    }
    close(ends[1]);
    const bool heard = read(ends[0], f, sizeof *f) == (ssize_t)sizeof *f;
    close(ends[0]);
    if (wait4(child, &status, 0, &used) < 0) return false;
    *megabytes = (double)used.ru_maxrss / 1024;
    return heard && status == 0;
}

enum { MAX_REPEATS = 99 };

int main(int argc, char **argv)
{
    const char *layers = argc > 1 ? argv[1] : "24";
    const int asked = argc > 2 ? atoi(argv[2]) : 1;
    const int repeats = asked < 1 ? 1 : asked > MAX_REPEATS ? MAX_REPEATS : asked;
    printf("mesh              seconds  instructions  parameters   peak MB   (median of %d)\n",
           repeats);
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        figures f = {0};
        double seconds[MAX_REPEATS], megabytes = 0;
        for (int k = 0; k < repeats; k++) {
            if (!measure(layers, meshes[i], &f, &megabytes)) return 1;
            seconds[k] = f.seconds;
        }
        printf("%-16s %8.4f %13lld %11.3fe9 %9.1f\n", meshes[i], measure_median(seconds, repeats),
               (long long)f.instructions, (double)f.parameters / 1e9, megabytes);
    }
    return 0;
}
