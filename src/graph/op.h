/* SPDX-License-Identifier: Apache-2.0
 * An operation is one row: everything that any stage must know about it. A NULL field means the
 * documented default, which is right for most operations. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "base/kernel.h"
#include "graph/graph.h"

/* What a dim of the iteration space means for a result that is cut along it. */
typedef enum role {
    ROLE_MAP,
    ROLE_SUM,
    ROLE_MAX,
    ROLE_MIN,
    ROLE_WHOLE,
    ROLE_MOVE, /* elements change places along it, between processors too: rows with `lower` only */
} role;

enum {
    TRAIT_TILE = 1 << 0,    /* one function over a tile; every dim is MAP */
    TRAIT_INPLACE = 1 << 1, /* an output may take the memory of an operand of the same block */
    TRAIT_VIEW = 1 << 2,    /* the output is the operand's memory under other names */
    TRAIT_RANDOM = 1 << 3,  /* depends on seed and step: no constant */
    TRAIT_STATE = 1 << 4,   /* reads a variable */
    TRAIT_FEED = 1 << 5,    /* is given by the caller for every run */
    TRAIT_ASSIGN = 1 << 6,  /* writes its input 0 to its variable */
    TRAIT_NO_GRAD = 1 << 7, /* stops gradients */
    TRAIT_INDEX = 1 << 8, /* a tile that asks for the global index; attr begins with tile_origin */
    TRAIT_COMPOSED = 1 << 9, /* no node has this row: it holds the samples of a composition */
    TRAIT_RESIZES = 1 << 10, /* a dim may have several sizes in one node */
};

/* How an attribute is printed, compared and hashed. */
typedef enum field_kind {
    FIELD_INT,   /* int */
    FIELD_I64,   /* int64_t */
    FIELD_U64,   /* uint64_t */
    FIELD_F64,   /* double */
    FIELD_NAME,  /* const char *, interned or NULL */
    FIELD_DTYPE, /* mtf_dtype */
    FIELD_SHAPE, /* mtf_shape with interned names */
    FIELD_LIST,  /* op_list */
} field_kind;

/* A few numbers; those behind the n-th are 0. */
typedef struct op_list {
    int64_t n;
    int64_t at[KERNEL_MAX_IN];
} op_list;

typedef struct op_field {
    const char *name;
    field_kind kind;
    size_t offset;
} op_field;

#define OP_FIELD(type, member, field_kind_)                                                        \
    {                                                                                              \
#member, field_kind_, offsetof(type, member)                                               \
    }

/* Lowering by hand: opaque here, implemented by the partitioner. */
typedef struct lowering lowering;

struct op {
    const char *name;    /* as printed */
    const char *doc;     /* one line: the index formula */
    const char *example; /* a call, over the tensors that docs/ops.md begins with; "": only
                            gradients make it. NULL: of x, or of x and y */
    int nin;             /* operands; -1: any number, at least one */
    int nout;            /* results; 0 means 1, -1 as many as the int that attr begins with */
    unsigned traits;
    size_t attr_size;
    const op_field *fields; /* ends with a NULL name; NULL: no attributes */

    /* Fills the shapes and types of n->out. On a mistake calls graph_fail and returns false. */
    bool (*infer)(mtf_graph *g, mtf_node *n);
    /* Role of a dim. NULL: MAP where an output has it, else SUM. */
    role (*role)(const mtf_node *n, const char *dim);
    /* Does the operation commute with SUM when exactly the operands in `mask` are partial sums over
     * the same axes? NULL: never. */
    bool (*linear)(const mtf_node *n, unsigned mask);
    /* Given dy[i] per output (NULL: zero), sets dx[k] per input (NULL: none). NULL: no gradient. */
    void (*grad)(mtf_node *n, mtf_tensor *const *dy, mtf_tensor **dx);

    tile_fn *tile;            /* for TRAIT_TILE */
    kernel_fn *kernel;        /* reference; NULL with TRAIT_TILE: loops over tiles */
    kernel_grains_fn *grains; /* NULL: one grain, or by elements with TRAIT_TILE */
    /* The row that adds results of parts of a reduced dim; NULL: they cannot be added. */
    const op *accumulate;
    /* Floating-point operations for local extents per dim of the iteration space; NULL: one per
     * point of it. */
    double (*cost)(const mtf_node *n, const kernel_args *k);
    /* Own partitioning. NULL: generic. Returns false after storing an error. */
    bool (*lower)(lowering *l, mtf_node *n);
    /* Instance k of the tests, or NULL when there are no more. */
    mtf_tensor *(*sample)(mtf_graph *g, int k);
};

/* All rows, for tests, printers and documentation. */
extern const op *const op_rows[];
extern const int op_count;

/* Dims of the node's iteration space in order: outputs' dims first, then further inputs' dims.
 * Returns their number. */
int op_space(const mtf_node *n, mtf_dim *dims);
role op_role(const mtf_node *n, const char *dim);
bool op_linear(const mtf_node *n, unsigned mask);

/* The node that gives a variable its initial value; the variable that an assignment writes. Both
 * are implemented beside their rows. */
mtf_tensor *graph_initial_assign(mtf_graph *g, mtf_tensor *variable);
const mtf_node *graph_assigned_variable(const mtf_node *assign);

/* The type in which a checkpoint holds a variable; beside the row too. */
mtf_dtype graph_master_type(const mtf_tensor *variable);

/* The sum of two gradients of one tensor; implemented beside `add`. */
mtf_tensor *graph_add_gradients(mtf_tensor *a, mtf_tensor *b);

/* What a recomputation reads in the place of `t`: the same value, under a name of its own. NULL
 * gives NULL. */
mtf_tensor *graph_recompute_input(const char *name, mtf_tensor *t);

/* Attributes as " key=value ..." into f; equality; hash. */
void op_print_attr(const op *row, const void *attr, FILE *f);
bool op_equal_attr(const op *row, const void *a, const void *b);
uint64_t op_hash_attr(const op *row, const void *attr);

/* What a `lower` function may do. */
/* The partitioning that rows without `lower` get. Returns false after storing an error. */
bool lower_generic(lowering *l, mtf_node *n);
/* The elements of input 0 in row-major order under the shape of output 0. */
bool lower_reshape(lowering *l, mtf_node *n);
/* Output o of the node: of its operands, one behind the other along the dim called `dim`, the
 * elements from `start` on, as many as the output has. Where there is none zero comes in, or with
 * `wrap` the other end. Blocks of the dim are exchanged; every element moves once at most. */
bool lower_window(lowering *l, mtf_node *n, int o, const char *dim, int64_t start, bool wrap);
/* Partitions a detached node whose inputs are tensors of `n` or of earlier detached nodes. Its
 * result may have two dims that the layout cuts over one axis: it then lies where that is cheapest.
 * NULL after storing an error. */
mtf_tensor *lower_node(lowering *l, const mtf_node *n, const op *row, int nin,
                       mtf_tensor *const *in, const void *attr);
/* For rows that do with a summary of every block of a cut dim. The parts that the layout cuts `d`
 * into; a name for the dim of the summaries, which the node does not use and the layout does not
 * cut.
 */
int64_t lower_parts(lowering *l, const mtf_dim *d);
const char *lower_blocks_name(lowering *l, const mtf_node *n);
/* A detached node of `row` on each block of x as it is cut at home. Its results lack `dim` and have
 * the dim `blocks` instead, with equally many elements from each block, cut as `dim` was. NULL
 * after storing an error. */
mtf_tensor *lower_blocks(lowering *l, const mtf_node *n, const op *row, mtf_tensor *x,
                         const void *attr, const char *dim, const char *blocks);
/* Output i of the node is the detached tensor t. */
void lower_same(lowering *l, const mtf_node *n, int i, const mtf_tensor *t);
/* Local elements of a dim on the largest processor. */
int64_t lower_local(lowering *l, const mtf_dim *d);
/* Stores an error; `lower` then returns false. */
__attribute__((format(printf, 2, 3))) void lower_fail(lowering *l, const char *fmt, ...);

#endif
