/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"

#include <string.h>

#include "base/check.h"
#include "graph/op.h"

mtf_graph *mtf_graph_new(void)
{
    mtf_graph *g = mem_zalloc(sizeof *g);
    g->mem = arena_new();
    g->scope = "";
    return g;
}

void mtf_graph_free(mtf_graph **handle)
{
    mtf_graph *g = *handle;
    if (!g) return;
    arena_free(&g->mem);
    mem_free(g->node);
    mem_free(g->names);
    mem_free(g->uses);
    mem_free(g->streams);
    mem_free(g->scopes);
    mem_free(g->region);
    mem_free(g);
    *handle = NULL;
}

mtf_status mtf_graph_status(const mtf_graph *g, mtf_err *err)
{
    if (g->err.status != MTF_OK) err_set(err, g->err.status, "%s", g->err.text);
    return g->err.status;
}

mtf_tensor *graph_fail(mtf_graph *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(&g->err, MTF_INVALID, fmt, ap);
    va_end(ap);
    return NULL;
}

static mtf_node *make_node(mtf_graph *g, arena *mem, const op *row, const char *name, int nin,
                           mtf_tensor *const *in, const void *attr)
{
    mtf_node *n = arena_alloc(mem, sizeof *n);
    *n = (mtf_node){.op = row, .graph = g, .id = -1, .name = name, .nin = nin};
    n->nout = row->nout < 0 ? *(const int *)attr : row->nout ? row->nout : 1;
    n->in = arena_alloc(mem, sizeof *n->in * (size_t)(nin ? nin : 1));
    for (int i = 0; i < nin; i++)
        n->in[i] = in[i];
    n->out = arena_alloc(mem, sizeof *n->out * (size_t)n->nout);
    for (int i = 0; i < n->nout; i++)
        n->out[i] = (mtf_tensor){.node = n, .index = i};
    n->attr = arena_alloc(mem, row->attr_size);
    if (row->attr_size) memcpy(n->attr, attr, row->attr_size);
    return n;
}

/* Does a kernel of its own work on all operands at once? Views of memory with a lowering of their
 * own do not. */
static bool is_work(const op *row)
{
    return !(row->lower && (row->traits & TRAIT_VIEW));
}

/* One name may have only one size in one operation; rows that move or view elements are exceptions.
 */
static bool sizes_agree(mtf_graph *g, const mtf_node *n)
{
    if (!is_work(n->op) || (n->op->traits & TRAIT_RESIZES)) return true;
    for (int i = 0; i < n->nin; i++)
        for (int j = 0; j < i; j++)
            for (int d = 0; d < n->in[i]->shape.rank; d++) {
                const mtf_dim a = n->in[i]->shape.dim[d];
                const int at = shape_find(&n->in[j]->shape, a.name);
                if (at < 0 || n->in[j]->shape.dim[at].size == a.size) continue;
                graph_fail(g,
                           "%s '%s': dim %s has size %lld in operand %d and %lld in operand %d; "
                           "rename it in one of them",
                           n->op->name, n->name, a.name, (long long)n->in[j]->shape.dim[at].size, j,
                           (long long)a.size, i);
                return false;
            }
    return true;
}

static bool inputs_usable(mtf_graph *g, const op *row, int nin, mtf_tensor *const *in)
{
    for (int i = 0; i < nin; i++) {
        if (!in[i]) {
            graph_fail(g, "%s: operand %d is NULL", row->name, i);
            return false;
        }
        if (in[i]->node->graph != g) {
            graph_fail(g, "%s: operand '%s' belongs to another graph", row->name,
                       in[i]->node->name);
            return false;
        }
    }
    if (nin > KERNEL_MAX_IN && is_work(row)) {
        graph_fail(g, "%s: %d operands; at most %d are possible", row->name, nin, KERNEL_MAX_IN);
        return false;
    }
    return true;
}

static bool infer(mtf_graph *g, mtf_node *n)
{
    if (!sizes_agree(g, n) || !n->op->infer(g, n)) return false;
    mtf_dim dims[KERNEL_MAX_SPACE];
    for (int i = 0; i < n->nout; i++) {
        if (!graph_check_shape(g, &n->out[i].shape, n->name)) return false;
        if (n->out[i].dtype >= 0 && n->out[i].dtype < MTF_NUM_DTYPES) continue;
        graph_fail(g,
                   "%s '%s': %d is no element type; use MTF_F32, MTF_F64, MTF_I32, MTF_BOOL or "
                   "MTF_BF16",
                   n->op->name, n->name, (int)n->out[i].dtype);
        return false;
    }
    return !is_work(n->op) || op_space(n, dims) >= 0 ||
           graph_fail(g, "%s '%s': more than %d dims in one operation", n->op->name, n->name,
                      KERNEL_MAX_SPACE);
}

mtf_tensor *graph_add(mtf_graph *g, const op *row, const char *name, int nin, mtf_tensor *const *in,
                      const void *attr)
{
    if (!g || g->err.status != MTF_OK || !inputs_usable(g, row, nin, in)) return NULL;
    const char *path = graph_unique_name(g, name ? name : row->name);
    mtf_node *n = make_node(g, g->mem, row, path, nin, in, attr);
    if (!infer(g, n)) return NULL;
    n->region = g->open ? (int)g->nregions : 0;
    n->copy = g->copy;
    mem_grow((void **)&g->node, g->nnodes, &g->nodes_cap, sizeof(mtf_node *));
    n->id = (int)g->nnodes;
    g->node[g->nnodes++] = n;
    return &n->out[0];
}

mtf_graph *graph_of(int n, mtf_tensor *const *ts)
{
    for (int i = 0; i < n && ts; i++)
        if (ts[i]) return ts[i]->node->graph;
    return NULL;
}

mtf_node *graph_detached(mtf_graph *g, arena *mem, const op *row, const mtf_node *origin, int nin,
                         mtf_tensor *const *in, const void *attr)
{
    mtf_node *n = make_node(g, mem, row, origin->name, nin, in, attr);
    n->copy = origin->copy;
    const bool ok = infer(g, n);
    MTF_CHECK(ok, "lowering '%s': %s", origin->name, g->err.text);
    return n;
}

mtf_shape mtf_tensor_shape(const mtf_tensor *t)
{
    return t ? t->shape : MTF_SCALAR;
}

mtf_dim mtf_tensor_dim(const mtf_tensor *t, const char *name)
{
    if (!t) return (mtf_dim){name, 1};
    const int at = mtf_shape_find(&t->shape, name);
    if (at >= 0) return t->shape.dim[at];
    graph_fail(t->node->graph, "'%s' has no dim %s; its shape is %s", t->node->name,
               name ? name : "NULL", shape_text(&t->shape));
    return (mtf_dim){name, 1};
}

mtf_dtype mtf_tensor_dtype(const mtf_tensor *t)
{
    return t ? t->dtype : MTF_F32;
}

const char *mtf_tensor_name(const mtf_tensor *t)
{
    return t ? t->node->name : "";
}

mtf_graph *mtf_tensor_graph(const mtf_tensor *t)
{
    return t ? t->node->graph : NULL;
}
