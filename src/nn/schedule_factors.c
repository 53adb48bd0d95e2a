/* SPDX-License-Identifier: Apache-2.0
 * The factors of schedules, each a function and a row. */
#include <math.h>

#include "nn/schedule.h"

/* A number of steps, or a part of all. */
static double steps_of(double part, double T)
{
    return part > 1 ? part : part * T;
}

static double constant(const double *a, int n, double s, double T)
{
    (void)n, (void)s, (void)T;
    return a[0];
}

static double linear_warmup(const double *a, int n, double s, double T)
{
    (void)n;
    return fmin(1, s / steps_of(a[0], T));
}

static double linear_decay(const double *a, int n, double s, double T)
{
    (void)n;
    return fmax(0, fmin(1, (T - s) / steps_of(a[0], T)));
}

static double rsqrt(const double *a, int n, double s, double T)
{
    (void)n, (void)T;
    return 1 / sqrt(fmax(s, a[0]));
}

/* How much of the way from step `from` to the end is done; at its end where there is none. */
static double progress(double from, double s, double T)
{
    if (s <= from) return 0;
    return s < T ? (s - from) / (T - from) : 1;
}

static double linear(const double *a, int n, double s, double T)
{
    (void)n;
    return 1 + (a[1] - 1) * progress(a[0], s, T);
}

static double cosine(const double *a, int n, double s, double T)
{
    (void)n;
    const double pi = 3.14159265358979323846;
    return a[1] + (1 - a[1]) * 0.5 * (1 + cos(pi * progress(a[0], s, T)));
}

static double inverse_sqrt(const double *a, int n, double s, double T)
{
    (void)n, (void)T;
    return fmax(a[1], sqrt(a[0] / fmax(s, a[0])));
}

static double relative(const double *a, int n, double s, double T)
{
    (void)n, (void)T;
    return fmin(a[0], 1 / sqrt(s));
}

static double noam(const double *a, int n, double s, double T)
{
    return rsqrt(a, n, s, T) * (a[1] > 0 ? linear_decay(a + 1, n, s, T) : 1) * a[2];
}

static double slanted_triangular(const double *a, int n, double s, double T)
{
    (void)n;
    const double cut = fmax(1, floor(T * a[0])), x = fmax(0, s - a[3]);
    const double p = x < cut ? x / cut : fmax(0, 1 - (x - cut) / (cut * (1 / a[0] - 1)));
    return a[2] * (1 + p * (a[1] - 1)) / a[1];
}

static double linear_decay_learning_rate(const double *a, int n, double s, double T)
{
    (void)n;
    return a[0] * fmax(0, fmin(1, (T - s) / fmax(1, T - a[1])));
}

static double piecewise(const double *a, int n, double s, double T)
{
    (void)T;
    int at = 0;
    while (at + 2 < n && s > a[at + 1])
        at += 2;
    return a[at];
}

#define STEPS(name_, standard_)                                                                    \
    {                                                                                              \
        .name = name_, .standard = standard_, .low = 0, .high = 1e15                               \
    }
#define POSITIVE_STEPS(name_, standard_)                                                           \
    {                                                                                              \
        .name = name_, .standard = standard_, .low = 0, .high = 1e15, .above = true                \
    }
#define FLOOR                                                                                      \
    {                                                                                              \
        .name = "floor", .standard = 0, .low = 0, .high = 1                                        \
    }
#define RATE(name_, standard_)                                                                     \
    {                                                                                              \
        .name = name_, .standard = standard_, .low = 0, .high = INFINITY, .below = true            \
    }

const factor_row factor_rows[MTF_NUM_FACTOR_KINDS] = {
    [MTF_FACTOR_CONSTANT] = {.name = "constant",
                             .help = "the value; a plain number is the same",
                             .narguments = 1,
                             .argument = {RATE("value", 1)},
                             .value = constant},
    [MTF_FACTOR_LINEAR_WARMUP] = {.name = "linear_warmup",
                                  .help = "up to 1 in so many steps, or a part of all",
                                  .narguments = 1,
                                  .argument = {POSITIVE_STEPS("part", 10000)},
                                  .value = linear_warmup},
    [MTF_FACTOR_LINEAR_DECAY] = {.name = "linear_decay",
                                 .help = "down to 0 in the last steps, or the last part of all",
                                 .narguments = 1,
                                 .argument = {POSITIVE_STEPS("part", 0.1)},
                                 .value = linear_decay},
    [MTF_FACTOR_RSQRT] = {.name = "rsqrt",
                          .help = "1 / sqrt(max(step, warmup))",
                          .narguments = 1,
                          .argument = {POSITIVE_STEPS("warmup", 10000)},
                          .value = rsqrt},
    [MTF_FACTOR_LINEAR] = {.name = "linear",
                           .help = "straight from 1 at step `from` to the floor at the end",
                           .narguments = 2,
                           .argument = {STEPS("from", 0), FLOOR},
                           .value = linear},
    [MTF_FACTOR_COSINE] = {.name = "cosine",
                           .help = "half a cosine from 1 at step `from` to the floor at the end",
                           .narguments = 2,
                           .argument = {STEPS("from", 0), FLOOR},
                           .value = cosine},
    [MTF_FACTOR_INVERSE_SQRT] = {.name = "inverse_sqrt",
                                 .help =
                                     "1 up to step `from`, then sqrt(from / step), to the floor",
                                 .narguments = 2,
                                 .argument = {POSITIVE_STEPS("from", 1), FLOOR},
                                 .value = inverse_sqrt},
    [MTF_FACTOR_RELATIVE] = {.name = "relative",
                             .help = "min(highest, 1 / sqrt(step)), which suits adafactor",
                             .narguments = 1,
                             .argument = {RATE("highest", 0.01)},
                             .value = relative},
    [MTF_FACTOR_NOAM] = {.name = "noam",
                         .help = "rsqrt(warmup) * linear_decay(fraction) * multiplier",
                         .narguments = 3,
                         .argument = {POSITIVE_STEPS("warmup", 10000),
                                      {.name = "fraction", .standard = 0.1, .low = 0, .high = 1},
                                      RATE("multiplier", 1)},
                         .value = noam},
    [MTF_FACTOR_SLANTED_TRIANGULAR] =
        {.name = "slanted_triangular",
         .help = "up in the part `cut` of the steps, then down",
         .narguments = 4,
         .argument =
             {{.name = "cut", .standard = 0.1, .low = 0, .high = 1, .above = true, .below = true},
              {.name = "ratio", .standard = 32, .low = 1, .high = INFINITY, .below = true},
              RATE("highest", 0.01),
              STEPS("start", 0)},
         .value = slanted_triangular},
    [MTF_FACTOR_LINEAR_DECAY_LEARNING_RATE] = {.name = "linear_decay_learning_rate",
                                               .help =
                                                   "straight from `initial` at step `offset` to "
                                                   "0 at the end",
                                               .narguments = 2,
                                               .argument = {RATE("initial", 0.1),
                                                            STEPS("offset", 0)},
                                               .value = linear_decay_learning_rate},
    [MTF_FACTOR_PIECEWISE] = {.name = "piecewise",
                              .help = "the value behind the last step that is over",
                              .narguments = -1,
                              .value = piecewise},
};

void schedule_print_factors(FILE *f)
{
    for (int k = 0; k < MTF_NUM_FACTOR_KINDS; k++) {
        const factor_row *r = &factor_rows[k];
        char form[128];
        int n = snprintf(form, sizeof form, "%s(%s", r->name,
                         r->narguments < 0 ? "value, step, value, ..." : "");
        for (int i = 0; i < r->narguments; i++)
            n += snprintf(form + n, sizeof form - (size_t)n, "%s%s=%g", i ? ", " : "",
                          r->argument[i].name, r->argument[i].standard);
        fprintf(f, "  %s)\n      %s\n", form, r->help);
    }
}
