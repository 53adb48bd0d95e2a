/* SPDX-License-Identifier: Apache-2.0 */
#include "support/painted.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

static char *inside(const painted_block *b)
{
    return b->whole + PAINTED_GUARD;
}

static char *swap(painted_block *b, void *place, int64_t bytes, int paint)
{
    const size_t whole = (size_t)(bytes + 2 * PAINTED_GUARD);
    *b = (painted_block){.whole = mem_aligned(whole), .bytes = bytes};
    memset(b->whole, paint, whole);
    mem_free(place);
    return inside(b);
}

painted painted_new(mtf_session *s, int paint)
{
    painted p = {.n = s->nhosted, .workers = pool_threads(s->pool), .paint = paint};
    MTF_CHECK(p.n <= PAINTED_MOST && p.workers <= PAINTED_MOST, "%d processors, %d workers", p.n,
              p.workers);
    for (int h = 0; h < p.n; h++) {
        s->memory[h] = swap(&p.memory[h], s->memory[h], s->plan.state + s->plan.slab, paint);
        s->scratch[h] = swap(&p.scratch[h], s->scratch[h], s->plan.scratch, paint);
    }
    for (int w = 0; w < p.workers; w++)
        s->work[w] = swap(&p.work[w], s->work[w], s->plan.work, paint);
    return p;
}

void painted_free(mtf_session *s, painted *p)
{
    for (int h = 0; h < p->n; h++) {
        mem_free(p->memory[h].whole);
        mem_free(p->scratch[h].whole);
        s->memory[h] = NULL;
        s->scratch[h] = NULL;
    }
    for (int w = 0; w < p->workers; w++) {
        mem_free(p->work[w].whole);
        s->work[w] = NULL;
    }
}

void painted_slabs(const mtf_session *s, painted *p)
{
    for (int h = 0; h < p->n; h++)
        memset(inside(&p->memory[h]) + s->plan.state, p->paint, (size_t)s->plan.slab);
}

int64_t painted_most(const painted_block *b, int n, int64_t from, int paint)
{
    int64_t most = 0;
    for (int k = 0; k < n; k++) {
        int64_t end = b[k].bytes;
        while (end > from && inside(&b[k])[end - 1] == (char)paint)
            end--;
        if (end - from > most) most = end - from;
    }
    return (most + PAINTED_ALIGN - 1) / PAINTED_ALIGN * PAINTED_ALIGN;
}

static int64_t guards(const painted_block *b, int n, int paint)
{
    int64_t bytes = 0;
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < PAINTED_GUARD; i++)
            bytes +=
                (b[k].whole[i] != (char)paint) + (inside(&b[k])[b[k].bytes + i] != (char)paint);
    return bytes;
}

int64_t painted_outside(const painted *p)
{
    return guards(p->memory, p->n, p->paint) + guards(p->scratch, p->n, p->paint) +
           guards(p->work, p->workers, p->paint);
}
