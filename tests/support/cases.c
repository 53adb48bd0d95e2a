/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cases.h"

#include <math.h>
#include <stddef.h>

#include "base/mem.h"
#include "check.h"
#include "support/stored.h"

cases cases_open(const char *file, int ncases, int ncolumns, int ntensors, const char *const *names)
{
    cases c = {.ncases = ncases, .ncolumns = ncolumns, .ntensors = ntensors, .names = names};
    assert_true(ntensors <= CASES_MAX_TENSORS);
    safetensors *stored = stored_open(file);
    int64_t cells;
    c.table = stored_read(stored, "table", MTF_F64, &cells);
    assert_int_equal(cells, (int64_t)ncases * ncolumns);
    for (int k = 0; k < ntensors; k++)
        c.data[k] = stored_read(stored, names[k], MTF_F64, &c.length[k]);
    safetensors_close(&stored);
    return c;
}

void cases_close(cases *c)
{
    for (int k = 0; k < c->ntensors; k++) {
        if (c->at[k] != c->length[k])
            fail_msg("'%s' has %lld elements, the cases %lld", c->names[k], (long long)c->length[k],
                     (long long)c->at[k]);
        mem_free(c->data[k]);
    }
    mem_free(c->table);
}

const double *cases_row(const cases *c, int index)
{
    return c->table + (ptrdiff_t)index * c->ncolumns;
}

double *cases_take(cases *c, int tensor, int64_t n)
{
    double *data = c->data[tensor] + c->at[tensor];
    c->at[tensor] += n;
    if (c->at[tensor] > c->length[tensor]) fail_msg("'%s' ends too early", c->names[tensor]);
    return data;
}

void cases_compare(int index, const char *layout, const char *name, const double *got,
                   const double *want, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
            fail_msg("case %d, layout '%s': %s, element %lld is %.17g instead of %.17g", index,
                     layout, name, (long long)i, got[i], want[i]);
}
