/* SPDX-License-Identifier: Apache-2.0 */
#include "spmd/plan_node.h"

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "mesh/link.h"

/* Above this number of assignments the axes are tried one after the other, the rest held. */
enum { MAX_ASSIGNMENTS = 1024 };

/* Another plan than the layout's own must take less than this share of its time: the estimate is
 * not better than that. */
#define MUCH_BETTER 0.8

typedef struct choice {
    const node_task *t;
    node_plan best;
    bool found;
    double favour; /* the share of the best plan's time that a better one may take */
    int naxes;     /* that may be assigned */
    int axis[MTF_MAX_AXES];
    int dim[MTF_MAX_AXES]; /* of each axis; -1: none */
} choice;

/* ---- what a plan needs and gives ---- */

static int space_find(const node_task *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (t->dim[i].name == name) return i;
    return -1;
}

static placement cuts_of(const node_task *t, const node_plan *plan, const mtf_shape *shape)
{
    placement p = {.pending = 0};
    for (int d = 0; d < shape->rank; d++)
        p.split[d] = plan->split[space_find(t, shape->dim[d].name)];
    return p;
}

placement plan_operand(const node_task *t, const node_plan *plan, int k)
{
    return cuts_of(t, plan, &t->node->in[k]->shape);
}

static bool is_reduced(role r)
{
    return r == ROLE_SUM || r == ROLE_MAX || r == ROLE_MIN;
}

placement plan_result(const node_task *t, const node_plan *plan, int o)
{
    placement p = cuts_of(t, plan, &t->node->out[o].shape);
    unsigned used = 0;
    for (int d = 0; d < t->n; d++)
        used |= split_mask(plan->split[d]);
    for (int d = 0; d < t->n; d++) {
        if (is_reduced(t->role[d])) p.pending |= split_mask(plan->split[d]);
        if (FAULT(FAULT_NORM_REPLICAS) && t->role[d] == ROLE_SUM)
            p.pending |= ((1u << t->mesh->naxes) - 1) & ~used; /* replicas taken for parts */
    }
    return p;
}

/* ---- the price of one plan ---- */

static price work_price(const node_task *t, const node_plan *plan)
{
    space_dim space[KERNEL_MAX_SPACE];
    for (int d = 0; d < t->n; d++)
        space[d] = (space_dim){t->dim[d], plan->split[d]};
    return (price){.seconds =
                       link_work_time(space_flops(t->mesh, t->node->op, t->node, t->n, space))};
}

/* The least number of parts of the reduced dim that keeps a block of operand k within the limit; 0
 * where no number does. */
static int64_t chunks_for(const node_task *t, const node_plan *plan, int k)
{
    mtf_shape shape = t->node->in[k]->shape;
    const placement p = plan_operand(t, plan, k);
    const int at = shape_find(&shape, t->dim[plan->chunk_dim].name);
    if (at < 0) return 0;
    const int64_t n = shape.dim[at].size, element = mtf_dtype_size(t->node->in[k]->dtype);
    shape.dim[at].size = 1;
    const int64_t slice = placement_bytes(t->mesh, &shape, element, &p);
    const int64_t most = slice ? t->max_bytes / slice : n; /* of the dim in one part */
    return most > 0 ? (n + most - 1) / most : 0;
}

static reshard_task operand_task(const node_task *t, const node_plan *plan, int k)
{
    return (reshard_task){.mesh = t->mesh,
                          .from_shape = &t->node->in[k]->shape,
                          .to_shape = &t->node->in[k]->shape,
                          .element = mtf_dtype_size(t->node->in[k]->dtype),
                          .to = plan_operand(t, plan, k),
                          .max_bytes = t->max_bytes,
                          .known = t->known};
}

static reshard_task result_task(const node_task *t, const node_plan *plan, int o)
{
    reshard_task way = {.mesh = t->mesh,
                        .from_shape = &t->node->out[o].shape,
                        .to_shape = &t->node->out[o].shape,
                        .element = mtf_dtype_size(t->node->out[o].dtype),
                        .from = plan_result(t, plan, o),
                        .to = t->out[o],
                        .max_bytes = t->max_bytes,
                        .known = t->known};
    if (t->anywhere[o]) {
        way.to = way.from;
        way.to.pending = 0;
    }
    return way;
}

/* What all moves take, at least: spares the search for routes that are not worth it. */
static double least_seconds(const node_task *t, const node_plan *plan)
{
    double seconds = 0;
    for (int o = 0; o < t->node->nout; o++) {
        const reshard_task way = result_task(t, plan, o);
        seconds += reshard_least_seconds(&way);
    }
    for (int k = 0; k < t->node->nin; k++) {
        reshard_task way = operand_task(t, plan, k);
        double least = INFINITY;
        for (int i = 0; i < t->available[k]; i++) {
            way.from = t->in[k][i];
            least = fmin(least, reshard_least_seconds(&way));
        }
        seconds += least;
    }
    return seconds;
}

/* From the cheapest available placement. */
static bool operand_price(const node_task *t, node_plan *plan, int k, price *out)
{
    bool found = false;
    route r;
    reshard_task way = operand_task(t, plan, k);
    for (int i = 0; i < t->available[k]; i++) {
        way.from = t->in[k][i];
        if (!reshard_route(&way, &r) || (found && !price_less(r.price, *out))) continue;
        found = true;
        plan->source[k] = i;
        *out = r.price;
    }
    return found;
}

/* The same, but each part of the reduced dim is fetched on its own. */
static bool chunked_price(const node_task *t, node_plan *plan, int k, price *out)
{
    bool found = false;
    reshard_task way = operand_task(t, plan, k);
    for (int i = 0; i < t->available[k]; i++) {
        way.from = t->in[k][i];
        if (way.from.pending) continue;
        price p = reshard_exchange_price(&way);
        p.seconds += (double)(plan->chunks - 1) * link_time(1, 1, 0);
        p.calls *= (int)plan->chunks;
        if (found && !price_less(p, *out)) continue;
        found = true;
        plan->source[k] = i;
        *out = p;
    }
    return found;
}

/* A result that is moved, as all partial ones are, keeps to the limit too, unless it is no larger
 * than at home. */
static bool too_large(const node_task *t, const reshard_task *way, int o)
{
    if (!t->max_bytes || (t->anywhere[o] && !way->from.pending)) return false;
    const int64_t made = placement_bytes(t->mesh, way->from_shape, way->element, &way->from);
    const int64_t home = placement_bytes(t->mesh, way->from_shape, way->element, &t->out[o]);
    return made > t->max_bytes && made > home;
}

static bool result_price(const node_task *t, const node_plan *plan, int o, price *out)
{
    route r;
    const reshard_task way = result_task(t, plan, o);
    *out = (price){0};
    if (too_large(t, &way, o)) return false;
    if (!reshard_route(&way, &r)) return false;
    *out = r.price;
    return true;
}

static bool operands_price(const node_task *t, node_plan *plan, price *total)
{
    plan->chunks = 1;
    bool fits[KERNEL_MAX_IN];
    price p[KERNEL_MAX_IN];
    for (int k = 0; k < t->node->nin; k++) {
        fits[k] = operand_price(t, plan, k, &p[k]);
        if (fits[k]) continue;
        const int64_t n = plan->chunk_dim >= 0 ? chunks_for(t, plan, k) : 0;
        if (n == 0) return false;
        if (n > plan->chunks) plan->chunks = n;
    }
    for (int k = 0; k < t->node->nin; k++) {
        const bool parted = plan->chunks > 1 &&
                            shape_find(&t->node->in[k]->shape, t->dim[plan->chunk_dim].name) >= 0;
        if (parted && !chunked_price(t, plan, k, &p[k])) return false;
        *total = price_sum(*total, p[k]);
    }
    return true;
}

/* The reduced dim that can be worked off in parts: the largest that the work does not cut. */
static int chunk_dim_of(const node_task *t, const node_plan *plan)
{
    int best = -1;
    for (int d = 0; d < t->n && t->max_bytes && t->node->op->accumulate; d++)
        if (t->role[d] == ROLE_SUM && !plan->split[d].n &&
            (best < 0 || t->dim[d].size > t->dim[best].size))
            best = d;
    return best;
}

/* Takes the plan where it is better than the best so far. Stops as soon as it cannot be. */
static void consider(choice *c, node_plan *plan)
{
    const node_task *t = c->t;
    price rival = c->best.price;
    rival.seconds *= c->favour;
    plan->price = work_price(t, plan);
    const double least = plan->price.seconds + least_seconds(t, plan);
    if (c->found && least > rival.seconds * (1 + 1e-9)) return;
    for (int o = 0; o < t->node->nout; o++) {
        price p;
        if (c->found && plan->price.seconds > rival.seconds * (1 + 1e-9)) return;
        if (!result_price(t, plan, o, &p)) return;
        plan->price = price_sum(plan->price, p);
    }
    if (c->found && plan->price.seconds > rival.seconds * (1 + 1e-9)) return;
    plan->chunk_dim = chunk_dim_of(t, plan);
    if (!operands_price(t, plan, &plan->price)) return;
    if (plan->chunks == 1) plan->chunk_dim = -1;
    if (c->found && !price_less(plan->price, rival)) return;
    c->best = *plan;
    c->found = true;
    c->favour = 1;
}

/* ---- assignments ---- */

/* Does the split hold just these axes? */
static bool holds(split s, unsigned axes)
{
    return split_mask(s) == axes;
}

/* The axes of a dim in the order of the layout, else of an operand, else of the mesh. */
static split ordered(const node_task *t, int d, unsigned axes)
{
    split s = {0};
    for (int i = 0; i < t->home[d].n; i++)
        if (axes >> t->home[d].axis[i] & 1) s.axis[s.n++] = t->home[d].axis[i];
    if (holds(s, axes)) return s;
    for (int k = 0; k < t->node->nin; k++) {
        const int at = shape_find(&t->node->in[k]->shape, t->dim[d].name);
        for (int i = 0; at >= 0 && i < t->available[k]; i++)
            if (holds(t->in[k][i].split[at], axes)) return t->in[k][i].split[at];
    }
    axes &= ~split_mask(s);
    for (int a = 0; a < t->mesh->naxes; a++)
        if (axes >> a & 1) s.axis[s.n++] = (int8_t)a;
    return s;
}

static void consider_assignment(choice *c)
{
    node_plan plan = {.chunk_dim = -1, .chunks = 1};
    unsigned axes[KERNEL_MAX_SPACE] = {0};
    for (int i = 0; i < c->naxes; i++)
        if (c->dim[i] >= 0) axes[c->dim[i]] |= 1u << c->axis[i];
    for (int d = 0; d < c->t->n; d++)
        plan.split[d] = ordered(c->t, d, axes[d]);
    consider(c, &plan);
}

static void try_all(choice *c, int i)
{
    if (i == c->naxes) {
        consider_assignment(c);
        return;
    }
    for (c->dim[i] = c->t->n - 1; c->dim[i] >= -1; c->dim[i]--)
        if (c->dim[i] < 0 || c->t->role[c->dim[i]] != ROLE_WHOLE) try_all(c, i + 1);
}

/* Each axis in turn takes its best place, until none moves. */
static void descend(choice *c)
{
    for (int rounds = 0; rounds < c->naxes; rounds++) {
        const price before = c->best.price;
        const bool began = c->found;
        for (int i = 0; i < c->naxes; i++) {
            int best = c->dim[i];
            for (int d = -1; d < c->t->n; d++) {
                if (d >= 0 && c->t->role[d] == ROLE_WHOLE) continue;
                const price known = c->best.price;
                const bool had = c->found;
                c->dim[i] = d;
                consider_assignment(c);
                if (c->found && (!had || price_less(c->best.price, known))) best = d;
            }
            c->dim[i] = best;
        }
        if (began && !price_less(c->best.price, before)) return;
    }
}

static unsigned axes_in_question(const node_task *t)
{
    unsigned axes = 0;
    for (int k = 0; k < t->node->nin; k++)
        for (int i = 0; i < t->available[k]; i++)
            axes |= placement_axes(&t->in[k][i]);
    for (int o = 0; o < t->node->nout; o++)
        if (!t->anywhere[o]) axes |= placement_axes(&t->out[o]);
    for (int d = 0; d < t->n; d++)
        axes |= split_mask(t->home[d]);
    return axes;
}

/* As the layout says; where two dims ask for one axis, the first has it. *idle: an axis in question
 * is left over, so that work is done more than once. */
static void start_at_home(choice *c, bool *conflict, bool *idle)
{
    for (int i = 0; i < c->naxes; i++) {
        c->dim[i] = -1;
        for (int d = c->t->n - 1; d >= 0; d--) {
            if (c->t->role[d] == ROLE_WHOLE || !(split_mask(c->t->home[d]) >> c->axis[i] & 1))
                continue;
            *conflict = *conflict || c->dim[i] >= 0;
            c->dim[i] = d;
        }
        *idle = *idle || c->dim[i] < 0;
    }
}

bool plan_node(const node_task *t, node_plan *plan)
{
    choice c = {.t = t, .favour = 1};
    const unsigned axes = axes_in_question(t);
    for (int a = 0; a < t->mesh->naxes; a++)
        if (axes >> a & 1) c.axis[c.naxes++] = a;
    bool conflict = false, idle = false;
    start_at_home(&c, &conflict, &idle);
    consider_assignment(&c);
    const bool product = t->node->op->accumulate;
    if (conflict || !c.found || (product && (idle || c.best.price.calls > 0))) {
        c.favour = conflict ? 1 : MUCH_BETTER;
        double assignments = 1;
        for (int i = 0; i < c.naxes; i++)
            assignments *= t->n + 1;
        if (assignments <= MAX_ASSIGNMENTS)
            try_all(&c, 0);
        else
            descend(&c);
    }
    *plan = c.best;
    return c.found;
}
