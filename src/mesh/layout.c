/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "mesh/mesh.h"
#include "mesh/pieces.h"

static mtf_status read_axes(mtf_layout *l, const piece *p, const char *text, bool strict, rule *r,
                            mtf_err *warning, mtf_err *err)
{
    char axes[MTF_MAX_AXES * 70], *rest = NULL;
    if (strlen(p->value) >= sizeof axes || p->value[0] == '+' ||
        p->value[strlen(p->value) - 1] == '+' || strstr(p->value, "++"))
        return err_set(err, MTF_INVALID, "layout '%s': '%s' is no list of axes like rows+cols",
                       text, p->value);
    snprintf(axes, sizeof axes, "%s", p->value);
    unsigned seen = 0;
    for (char *a = strtok_r(axes, "+", &rest); a; a = strtok_r(NULL, "+", &rest)) {
        const int axis = mesh_find_axis(l->mesh, a);
        if (axis < 0) {
            mtf_err *to = strict ? err : warning;
            err_set(to, MTF_INVALID, "layout rule '%s:%s': the mesh '%s' has no axis called '%s'%s",
                    p->name, p->value, l->mesh->text, a, strict ? "" : "; the axis is left out");
            if (strict) return MTF_INVALID;
            continue;
        }
        if (seen >> axis & 1)
            return err_set(err, MTF_INVALID, "layout '%s': axis %s stands twice in the rule of %s",
                           text, a, p->name);
        seen |= 1u << axis;
        if (l->mesh->size[axis] > 1) r->split.axis[r->split.n++] = (int8_t)axis;
    }
    return MTF_OK;
}

static mtf_status read_rule(mtf_layout *l, const piece *p, const char *text, bool strict,
                            mtf_err *warning, mtf_err *err)
{
    for (int i = 0; i < l->nrules; i++)
        if (strcmp(l->rule[i].dim, p->name) == 0)
            return err_set(err, MTF_INVALID,
                           "layout '%s': dim %s has two rules; join them as %s:%s+...", text,
                           p->name, p->name, p->value);
    rule *r = &l->rule[l->nrules++];
    *r = (rule){0};
    snprintf(r->dim, sizeof r->dim, "%s", p->name);
    TRY(read_axes(l, p, text, strict, r, warning, err));
    return MTF_OK;
}

static char *normal_text(const pieces *ps, size_t room)
{
    char *text = mem_zalloc(room + 1);
    for (int i = 0; i < ps->n; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, room + 1 - used, "%s%s:%s", i ? ";" : "", ps->piece[i].name,
                 ps->piece[i].value);
    }
    return text;
}

mtf_layout *mtf_layout_parse(const char *text, const mtf_mesh *m, bool strict, mtf_err *warning,
                             mtf_err *err)
{
    mtf_layout *l = mem_zalloc(sizeof *l);
    l->mesh = m;
    pieces ps;
    mtf_status s =
        pieces_read(text, "layout", "dim:axis, for example batch:rows;d_ff:cols", &ps, err);
    l->rule = mem_zalloc(sizeof *l->rule * (size_t)(ps.n + 1));
    for (int i = 0; s == MTF_OK && i < ps.n; i++)
        s = read_rule(l, &ps.piece[i], text, strict, warning, err);
    l->text = normal_text(&ps, strlen(text) + (size_t)ps.n);
    pieces_free(&ps);
    if (s != MTF_OK) mtf_layout_free(&l);
    return l;
}

void mtf_layout_free(mtf_layout **l)
{
    if (!*l) return;
    mem_free((*l)->rule);
    mem_free((*l)->text);
    mem_free(*l);
    *l = NULL;
}

const char *mtf_layout_text(const mtf_layout *l)
{
    return l->text;
}

split layout_split(const mtf_layout *l, const char *dim)
{
    for (int i = 0; i < l->nrules; i++)
        if (strcmp(l->rule[i].dim, dim) == 0) return l->rule[i].split;
    return (split){0};
}

split split_append(split s, split more)
{
    for (int i = 0; i < more.n; i++)
        s.axis[s.n++] = more.axis[i];
    return s;
}

split split_head(split s, int n)
{
    split head = {.n = (int8_t)n};
    for (int i = 0; i < n; i++)
        head.axis[i] = s.axis[i];
    return head;
}

split split_tail(split s, int n)
{
    split tail = {.n = (int8_t)n};
    for (int i = 0; i < n; i++)
        tail.axis[i] = s.axis[s.n - n + i];
    return tail;
}

unsigned split_mask(split s)
{
    unsigned mask = 0;
    for (int i = 0; i < s.n; i++)
        mask |= 1u << s.axis[i];
    return mask;
}

int64_t split_parts(const mtf_mesh *m, split s)
{
    int64_t p = 1;
    for (int i = 0; i < s.n; i++)
        p *= m->size[s.axis[i]];
    return p;
}

int64_t split_part(const mtf_mesh *m, split s, int64_t proc)
{
    int64_t part = 0;
    if (FAULT(FAULT_SPLIT_ORDER) && s.n == 2) s = (split){.n = 2, .axis = {s.axis[1], s.axis[0]}};
    for (int i = 0; i < s.n; i++)
        part = part * m->size[s.axis[i]] + mesh_coordinate(m, proc, s.axis[i]);
    return part;
}

static bool graph_has_dim(const mtf_graph *g, const char *dim)
{
    for (int64_t i = 0; i < g->nnodes; i++)
        for (int o = 0; o < g->node[i]->nout; o++)
            if (mtf_shape_find(&g->node[i]->out[o].shape, dim) >= 0) return true;
    return false;
}

mtf_status mtf_layout_check_dims(const mtf_layout *l, const mtf_graph *g, bool strict,
                                 mtf_err *warning, mtf_err *err)
{
    for (int i = 0; i < l->nrules; i++) {
        if (graph_has_dim(g, l->rule[i].dim)) continue;
        err_set(strict ? err : warning, MTF_INVALID,
                "layout rule for '%s': no tensor has a dim of this name%s", l->rule[i].dim,
                strict ? "" : "; the rule has no effect");
        if (strict) return MTF_INVALID;
    }
    return MTF_OK;
}
