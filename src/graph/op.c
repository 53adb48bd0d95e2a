/* SPDX-License-Identifier: Apache-2.0
 * What follows from a row: iteration space, defaults, attributes as text. */
#include "graph/op.h"

#include <inttypes.h>
#include <string.h>

static int add_dims(const mtf_shape *s, mtf_dim *dims, int n)
{
    for (int i = 0; i < s->rank && i < MTF_MAX_RANK; i++) {
        int at = 0;
        while (at < n && dims[at].name != s->dim[i].name)
            at++;
        if (at < n) continue;
        if (n == KERNEL_MAX_SPACE) return -1;
        dims[n++] = s->dim[i];
    }
    return n;
}

int op_space(const mtf_node *n, mtf_dim *dims)
{
    int count = 0;
    for (int i = 0; i < n->nout && count >= 0; i++)
        count = add_dims(&n->out[i].shape, dims, count);
    for (int i = 0; i < n->nin && count >= 0; i++)
        count = add_dims(&n->in[i]->shape, dims, count);
    return count;
}

role op_role(const mtf_node *n, const char *dim)
{
    if (n->op->role) return n->op->role(n, dim);
    for (int i = 0; i < n->nout; i++)
        if (shape_find(&n->out[i].shape, dim) >= 0) return ROLE_MAP;
    return ROLE_SUM;
}

bool op_linear(const mtf_node *n, unsigned mask)
{
    return n->op->linear && n->op->linear(n, mask);
}

static const void *at(const void *attr, const op_field *f)
{
    return (const char *)attr + f->offset;
}

static void print_field(const op_field *f, const void *attr, FILE *out)
{
    const void *p = at(attr, f);
    switch (f->kind) {
    case FIELD_INT:
        fprintf(out, "%d", *(const int *)p);
        break;
    case FIELD_I64:
        fprintf(out, "%" PRId64, *(const int64_t *)p);
        break;
    case FIELD_U64:
        fprintf(out, "%016" PRIx64, *(const uint64_t *)p);
        break;
    case FIELD_F64:
        fprintf(out, "%.9g", *(const double *)p);
        break;
    case FIELD_NAME: {
        const char *s = *(const char *const *)p;
        fputs(s ? s : "-", out);
        break;
    }
    case FIELD_DTYPE:
        fputs(mtf_dtype_name(*(const mtf_dtype *)p), out);
        break;
    case FIELD_SHAPE:
        fputs(shape_text(p), out);
        break;
    case FIELD_LIST: {
        const op_list *l = p;
        for (int64_t i = 0; i < l->n; i++)
            fprintf(out, "%s%" PRId64, i ? "," : "", l->at[i]);
        break;
    }
    }
}

void op_print_attr(const op *row, const void *attr, FILE *f)
{
    for (const op_field *d = row->fields; d && d->name; d++) {
        fprintf(f, " %s=", d->name);
        print_field(d, attr, f);
    }
}

static size_t field_size(field_kind kind)
{
    static const size_t size[] = {
        [FIELD_INT] = sizeof(int),         [FIELD_I64] = sizeof(int64_t),
        [FIELD_U64] = sizeof(uint64_t),    [FIELD_F64] = sizeof(double),
        [FIELD_NAME] = sizeof(char *),     [FIELD_DTYPE] = sizeof(mtf_dtype),
        [FIELD_SHAPE] = sizeof(mtf_shape), [FIELD_LIST] = sizeof(op_list),
    };
    return size[kind];
}

bool op_equal_attr(const op *row, const void *a, const void *b)
{
    for (const op_field *d = row->fields; d && d->name; d++) {
        const bool same = d->kind == FIELD_SHAPE
                              ? shape_equal(at(a, d), at(b, d))
                              : memcmp(at(a, d), at(b, d), field_size(d->kind)) == 0;
        if (!same) return false;
    }
    return true;
}

static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

uint64_t op_hash_attr(const op *row, const void *attr)
{
    uint64_t h = 1469598103934665603u;
    for (const op_field *d = row->fields; d && d->name; d++) {
        const void *p = at(attr, d);
        if (d->kind == FIELD_NAME) {
            const char *s = *(const char *const *)p;
            if (s) h = mix(h, s, strlen(s));
        } else if (d->kind == FIELD_SHAPE) {
            const char *s = shape_text(p);
            h = mix(h, s, strlen(s));
        } else {
            h = mix(h, p, field_size(d->kind));
        }
    }
    return h;
}
