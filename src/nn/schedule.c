/* SPDX-License-Identifier: Apache-2.0
 * What the host computes for each step, in double: learning rates. */
#include "nn/schedule.h"

#include <math.h>

#include "base/err.h"
#include "base/number.h"

/* The arguments of a factor with their defaults; returns their number. */
static int arguments_of(const mtf_factor *f, const factor_row *row, double *a)
{
    const int n = row->narguments < 0 ? f->narguments : row->narguments;
    for (int i = 0; i < n; i++)
        a[i] = i < f->narguments ? f->argument[i] : row->argument[i].standard;
    return n;
}

double mtf_schedule_rate(const mtf_schedule *s, int64_t step, int64_t total)
{
    const int64_t now = (step < total ? step : total) - s->offset, all = total - s->offset;
    double rate = 1, a[MTF_MAX_ARGUMENTS];
    for (int i = 0; i < s->nfactors; i++) {
        const factor_row *row = &factor_rows[s->factor[i].kind];
        const int n = arguments_of(&s->factor[i], row, a);
        rate *= row->value(a, n, (double)(now > 0 ? now : 0), (double)(all > 1 ? all : 1));
    }
    return rate;
}

/* ---- checks ---- */

static mtf_status check_argument(const char *factor, const factor_argument *r, double x,
                                 mtf_err *err)
{
    if ((r->above ? x > r->low : x >= r->low) && (r->below ? x < r->high : x <= r->high))
        return MTF_OK;
    if (isinf(r->high))
        return err_set(err, MTF_INVALID, "%s: the %s is %g; it must be a number of at least %g",
                       factor, r->name, x, r->low);
    return err_set(err, MTF_INVALID, "%s: the %s is %g; it must be %s %g and %s %g", factor,
                   r->name, x, r->above ? "above" : "at least", r->low,
                   r->below ? "below" : "at most", r->high);
}

static mtf_status check_pieces(const char *factor, const mtf_factor *f, mtf_err *err)
{
    if (f->narguments < 3 || f->narguments % 2 == 0)
        return err_set(err, MTF_INVALID,
                       "%s has %d arguments; it takes value, step, value, and so on: an odd number "
                       "from 3 to %d",
                       factor, f->narguments, (int)MTF_MAX_ARGUMENTS);
    const factor_argument value = {.name = "value", .low = 0, .high = INFINITY, .below = true};
    for (int i = 0; i < f->narguments; i += 2)
        TRY(check_argument(factor, &value, f->argument[i], err));
    for (int i = 1; i < f->narguments; i += 2)
        if (!(f->argument[i] > (i > 1 ? f->argument[i - 2] : 0)))
            return err_set(err, MTF_INVALID, "%s: step %g does not come behind %g; steps rise",
                           factor, f->argument[i], i > 1 ? f->argument[i - 2] : 0);
    return MTF_OK;
}

static mtf_status check_factor(const mtf_factor *f, mtf_err *err)
{
    if ((unsigned)f->kind >= MTF_NUM_FACTOR_KINDS)
        return err_set(err, MTF_INVALID, "there is no factor of kind %d", (int)f->kind);
    const factor_row *row = &factor_rows[f->kind];
    if (row->narguments < 0) return check_pieces(row->name, f, err);
    if (f->narguments < 0 || f->narguments > row->narguments)
        return err_set(err, MTF_INVALID, "%s has %d arguments; it takes %s%d", row->name,
                       f->narguments, row->narguments > 1 ? "at most " : "", row->narguments);
    for (int i = 0; i < f->narguments; i++)
        TRY(check_argument(row->name, &row->argument[i], f->argument[i], err));
    return MTF_OK;
}

mtf_status mtf_schedule_check(const mtf_schedule *s, mtf_err *err)
{
    if (s->nfactors < 0 || s->nfactors > MTF_MAX_FACTORS)
        return err_set(err, MTF_INVALID, "a product of %d factors; there may be %d", s->nfactors,
                       (int)MTF_MAX_FACTORS);
    if (s->offset < 0)
        return err_set(err, MTF_INVALID, "the offset is %lld; it must be at least 0",
                       (long long)s->offset);
    for (int i = 0; i < s->nfactors; i++)
        TRY(check_factor(&s->factor[i], err));
    return MTF_OK;
}
