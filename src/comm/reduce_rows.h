/* SPDX-License-Identifier: Apache-2.0
 * The loops of one element type and one operation: the type S of operands, the type T of partial
 * results, LOAD(s) from one to the other, JOIN(a, b), and the names ROWS and FOLD (undefined:
 * another's is used). Up to four leaves have only one possible tree, so they are read in one pass.
 */

static void ROWS(const void *const *row, int leaves, int64_t at, int64_t n, void *to)
{
    T *restrict out = to;
    const S *a = (const S *)row[0] + at;
    if (leaves == 1) {
        for (int64_t i = 0; i < n; i++)
            out[i] = LOAD(a[i]);
        return;
    }
    const S *b = (const S *)row[1] + at;
    if (leaves == 2) {
        for (int64_t i = 0; i < n; i++)
            out[i] = JOIN(LOAD(a[i]), LOAD(b[i]));
        return;
    }
    const S *c = (const S *)row[2] + at;
    if (leaves == 3) {
        for (int64_t i = 0; i < n; i++)
            out[i] = JOIN(LOAD(a[i]), JOIN(LOAD(b[i]), LOAD(c[i])));
        return;
    }
    const S *d = (const S *)row[3] + at;
    for (int64_t i = 0; i < n; i++)
        out[i] = JOIN(JOIN(LOAD(a[i]), LOAD(b[i])), JOIN(LOAD(c[i]), LOAD(d[i])));
}

#ifdef FOLD
static void FOLD(void *to, const void *from, int64_t n)
{
    T *restrict out = to;
    const T *restrict more = from;
    for (int64_t i = 0; i < n; i++)
        out[i] = JOIN(out[i], more[i]);
}
#undef FOLD
#endif

#undef S
#undef T
#undef LOAD
#undef JOIN
#undef ROWS
