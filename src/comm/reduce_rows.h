/* SPDX-License-Identifier: Apache-2.0
 * The loops of one element type and one operation: T, JOIN(a, b), and the names ROWS and FOLD.
 * Up to four leaves have only one possible tree, so they are read in one pass. */

static void ROWS(const void *const *row, int leaves, int64_t at, int64_t n, void *to)
{
    T *restrict out = to;
    const T *a = (const T *)row[0] + at;
    if (leaves == 1) {
        memcpy(out, a, (size_t)n * sizeof *out);
        return;
    }
    const T *b = (const T *)row[1] + at;
    if (leaves == 2) {
        for (int64_t i = 0; i < n; i++)
            out[i] = JOIN(a[i], b[i]);
        return;
    }
    const T *c = (const T *)row[2] + at;
    if (leaves == 3) {
        for (int64_t i = 0; i < n; i++)
            out[i] = JOIN(a[i], JOIN(b[i], c[i]));
        return;
    }
    const T *d = (const T *)row[3] + at;
    for (int64_t i = 0; i < n; i++)
        out[i] = JOIN(JOIN(a[i], b[i]), JOIN(c[i], d[i]));
}

static void FOLD(void *to, const void *from, int64_t n)
{
    T *restrict out = to;
    const T *restrict more = from;
    for (int64_t i = 0; i < n; i++)
        out[i] = JOIN(out[i], more[i]);
}

#undef T
#undef JOIN
#undef ROWS
#undef FOLD
