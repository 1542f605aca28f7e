/* Ensembles of trees of ai.onnx.ml. All trees are walked at once, a level a step: tables that the
 * node of each tree indexes say which column it looks at, what it compares with, and which node is
 * next. Leaves lead to themselves. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"
#include "engine/parse/onnx/trees.h"

#define DEPTH_MAX    1024
#define ELEMENTS_MAX ((uint64_t)1 << 24) /* weights of leaves */
#define NONE         IFD_ONNX_NO_NODE

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

void *ifd_onnx_tree_take(struct ifd_onnx_call *call, uint64_t count, size_t size)
{
    void *data =
        count <= SIZE_MAX ? ifd_arena_take_array(call->b->graph->arena, (size_t)count, size) : NULL;
    if (!data && call->b->code == IFD_OK) {
        const size_t bytes = count <= SIZE_MAX / size ? (size_t)count * size : SIZE_MAX;
        call->b->code = ifd_arena_fail(call->b->graph->arena, bytes, call->b->err);
    }
    return data;
}

/* ---- how deep they are ---- */

/* From the roots down, level by level. Each node with children is reached once: the nodes of a set
 * of members lead to the same one, which counts behind the last of them. */
static bool measure(struct ifd_onnx_call *call, struct ifd_onnx_forest *f)
{
    uint32_t *level = ifd_onnx_tree_take(call, (uint64_t)f->count + f->trees, sizeof(*level));
    uint32_t count = 0;
    for (uint32_t i = 0; level && i < f->count; i++) {
        if (f->node[i].is_root) {
            level[count++] = i;
        }
    }
    uint32_t begin = 0;
    for (f->depth = 0; level && begin < count; f->depth++) {
        const uint32_t end = count;
        for (; begin < end; begin++) {
            struct ifd_onnx_tree_node *n = &f->node[level[begin]];
            n->is_reached = true;
            for (uint32_t k = 0; k < 2 && n->child[0] != NONE; k++) {
                if (k == 0 && f->node[n->child[1]].child[0] == n->child[0]) {
                    continue;
                }
                if (f->node[n->child[k]].child[0] != NONE) {
                    level[count++] = n->child[k];
                } else {
                    f->node[n->child[k]].is_reached = true;
                }
            }
        }
    }
    if (level && f->depth > DEPTH_MAX) {
        ifd_build_fail(call->b, IFD_TOO_LARGE, "a tree is %u deep, limit %d", f->depth, DEPTH_MAX);
    }
    return call->b->code == IFD_OK;
}

/* ---- the walk ---- */

static uint32_t constant(struct ifd_builder *b, enum ifd_dtype dtype, const void *data,
                         const int64_t *dim, uint32_t rank)
{
    struct ifd_desc desc = {.dtype = dtype, .shape = {.rank = rank}};
    size_t bytes = ifd_dtype_bytes(dtype);
    for (uint32_t d = 0; d < rank; d++) {
        desc.shape.dim[d] = dim[d];
        bytes *= (size_t)dim[d];
    }
    return ifd_build_constant(b, &desc, (struct ifd_bytes){.data = data, .size = bytes}, 0);
}

static uint32_t looked_up(struct ifd_builder *b, uint32_t table, uint32_t at)
{
    return ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){table, at}, 2, NULL, NULL);
}

/* Node i has rows 2 i and 2 i + 1; a walk is at row 2 i, and row 2 i + 1 of next is where the
 * condition leads if it holds. */
struct tables {
    uint32_t feature, value, mode, missing, next;
    uint32_t modes; /* set of enum ifd_onnx_branch that are there */
    bool has_missing;
};

static bool make_tables(struct ifd_onnx_call *call, const struct ifd_onnx_forest *f,
                        struct tables *ret)
{
    struct ifd_builder *b = call->b;
    const int64_t rows = 2 * (int64_t)f->count;
    int64_t *feature = ifd_onnx_tree_take(call, (uint64_t)rows, sizeof(*feature));
    int64_t *next = ifd_onnx_tree_take(call, (uint64_t)rows, sizeof(*next));
    float *value = ifd_onnx_tree_take(call, (uint64_t)rows, sizeof(*value));
    int32_t *mode = ifd_onnx_tree_take(call, (uint64_t)rows, sizeof(*mode));
    int32_t *missing = ifd_onnx_tree_take(call, (uint64_t)rows, sizeof(*missing));
    struct tables t = {0};
    for (uint32_t r = 0; b->code == IFD_OK && r < (uint32_t)rows; r++) {
        const struct ifd_onnx_tree_node *n = &f->node[r / 2];
        const uint32_t child = n->child[0] == NONE ? r / 2 : n->child[1 - r % 2];
        feature[r] = n->feature;
        value[r] = n->value;
        mode[r] = (int32_t)n->mode;
        missing[r] = n->tracks_missing;
        next[r] = 2 * (int64_t)child;
        t.modes |= n->child[0] == NONE ? 0 : IFD_BIT(n->mode);
        t.has_missing = t.has_missing || n->tracks_missing;
    }
    if (b->code == IFD_OK) {
        t.feature = constant(b, IFD_S64, feature, &rows, 1);
        t.value = constant(b, IFD_F32, value, &rows, 1);
        t.mode = constant(b, IFD_S32, mode, &rows, 1);
        t.missing = constant(b, IFD_S32, missing, &rows, 1);
        t.next = constant(b, IFD_S64, next, &rows, 1);
    }
    *ret = t;
    return b->code == IFD_OK;
}

static uint32_t logic(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y)
{
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    return ifd_build_node(b, op, (const uint32_t[]){x, y}, 2, &flag, NULL);
}

/* Does the condition of the node at each row hold? */
static uint32_t holds(struct ifd_builder *b, const struct tables *t, uint32_t x, uint32_t at)
{
    static const enum ifd_op ops[] = {
        [IFD_ONNX_LEQ] = IFD_OP_LESS_EQUAL,    [IFD_ONNX_LT] = IFD_OP_LESS,
        [IFD_ONNX_GTE] = IFD_OP_GREATER_EQUAL, [IFD_ONNX_GT] = IFD_OP_GREATER,
        [IFD_ONNX_EQ] = IFD_OP_EQUAL,          [IFD_ONNX_NEQ] = IFD_OP_NOT_EQUAL};
    const struct ifd_gather_attrs own = {.axis = 1, .batch_dims = 1};
    const uint32_t columns[2] = {x, looked_up(b, t->feature, at)};
    const uint32_t number = ifd_build_node(b, IFD_OP_GATHER, columns, 2, NULL, &own);
    const uint32_t limit = looked_up(b, t->value, at);
    const bool has_one = (t->modes & (t->modes - 1)) == 0;
    const uint32_t mode = has_one ? IFD_NONE : looked_up(b, t->mode, at);
    uint32_t all = IFD_NONE;
    for (uint32_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        if ((t->modes & IFD_BIT(k)) != 0) {
            uint32_t one = ifd_onnx_compared(b, ops[k], number, limit);
            if (!has_one) {
                const uint32_t is_mode =
                    ifd_onnx_compared(b, IFD_OP_EQUAL, mode, ifd_build_number(b, IFD_S32, k));
                one = logic(b, IFD_OP_LOGICAL_AND, one, is_mode);
            }
            all = all == IFD_NONE ? one : logic(b, IFD_OP_LOGICAL_OR, all, one);
        }
    }
    if (t->has_missing) {
        const uint32_t is_nan = ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, number, number);
        const uint32_t tracks = ifd_onnx_compared(b, IFD_OP_GREATER, looked_up(b, t->missing, at),
                                                  ifd_build_number(b, IFD_S32, 0));
        all = logic(b, IFD_OP_LOGICAL_OR, all, logic(b, IFD_OP_LOGICAL_AND, is_nan, tracks));
    }
    return all;
}

/* The row of the leaf that each sample reaches in each tree: [n, trees]. */
static uint32_t walked(struct ifd_onnx_call *call, const struct ifd_onnx_forest *f, uint32_t x)
{
    struct ifd_builder *b = call->b;
    struct tables t;
    int64_t *root = ifd_onnx_tree_take(call, f->trees, sizeof(*root));
    if (!make_tables(call, f, &t) || !root) {
        return IFD_NONE;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->node[i].is_root) {
            root[count++] = 2 * (int64_t)i;
        }
    }
    const int64_t samples = shape_of(b, x).dim[0];
    const struct ifd_broadcast_to_attrs all = {.shape = {.count = 2, .value = {samples, f->trees}}};
    uint32_t at = ifd_build_list(b, root, count);
    at = ifd_build_node(b, IFD_OP_BROADCAST_TO, &at, 1, NULL, &all);
    for (uint32_t step = 0; b->code == IFD_OK && t.modes != 0 && step < f->depth; step++) {
        const uint32_t side = ifd_build_cast(b, holds(b, &t, x, at), IFD_S64);
        at = looked_up(b, t.next, ifd_build_binary(b, IFD_OP_ADD, at, side));
    }
    return at;
}

uint32_t ifd_onnx_forest_sums(struct ifd_onnx_call *call, struct ifd_onnx_forest *f,
                              int64_t results, enum ifd_onnx_aggregate aggregate)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[0], IFD_F32);
    const struct ifd_shape shape = shape_of(b, x);
    for (uint32_t i = 0; b->code == IFD_OK && i < f->count; i++) {
        const struct ifd_onnx_tree_node *n = &f->node[i];
        if (shape.rank != 2 ||
            (n->child[0] != NONE && (n->feature < 0 || n->feature >= shape.dim[1]))) {
            return ifd_build_fail(b, IFD_INVALID, "column %lld of samples of shape %s",
                                  (long long)n->feature, ifd_shape_text(&shape).s);
        }
    }
    if (b->code != IFD_OK || !measure(call, f)) {
        return IFD_NONE;
    }
    const int64_t rows = 2 * (int64_t)f->count;
    int64_t *leaf = ifd_onnx_tree_take(call, (uint64_t)rows, sizeof(*leaf));
    for (int64_t r = 0; leaf && r < rows; r++) {
        leaf[r] = f->node[r / 2].leaf;
    }
    const uint32_t reached = walked(call, f, x);
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const int64_t dim[2] = {f->leaves, results};
    const uint32_t row = looked_up(b, constant(b, IFD_S64, leaf, &rows, 1), reached);
    const uint32_t all = looked_up(b, constant(b, IFD_F32, f->weight, dim, 2), row);
    const struct ifd_ints trees = {.count = 1, .value = {1}};
    const bool is_sum = aggregate == IFD_ONNX_SUM || aggregate == IFD_ONNX_AVERAGE;
    const uint32_t y = ifd_build_reduce(b,
                                        is_sum                        ? IFD_OP_REDUCE_SUM
                                        : aggregate == IFD_ONNX_LEAST ? IFD_OP_REDUCE_MIN
                                                                      : IFD_OP_REDUCE_MAX,
                                        all, &trees, false);
    if (is_sum) {
        return aggregate == IFD_ONNX_AVERAGE ? ifd_build_with(b, IFD_OP_DIV, y, f->trees) : y;
    }
    const uint32_t is_number = ifd_onnx_compared(b, IFD_OP_LESS, ifd_build_unary(b, IFD_OP_ABS, y),
                                                 ifd_build_number(b, IFD_F32, HUGE_VAL));
    return ifd_onnx_selected(b, is_number, y, ifd_build_number(b, IFD_F32, 0)); /* else no leaf */
}

bool ifd_onnx_forest_weights(struct ifd_onnx_call *call, struct ifd_onnx_forest *f, int64_t results,
                             enum ifd_onnx_aggregate aggregate)
{
    f->leaves = f->leaves > 0 ? f->leaves : 1;
    if (results < 1 || (uint64_t)results > ELEMENTS_MAX / f->leaves) {
        ifd_build_fail(call->b, IFD_TOO_LARGE, "%lld results of %u leaves", (long long)results,
                       f->leaves);
        return false;
    }
    const uint64_t count = (uint64_t)results * f->leaves;
    f->weight = ifd_onnx_tree_take(call, count, sizeof(*f->weight));
    for (uint64_t i = 0; f->weight && i < count; i++) {
        f->weight[i] = aggregate == IFD_ONNX_LEAST  ? (float)HUGE_VAL
                       : aggregate == IFD_ONNX_MOST ? (float)-HUGE_VAL
                                                    : 0;
    }
    return f->weight != NULL;
}

void ifd_onnx_forest_add(struct ifd_onnx_forest *f, uint32_t leaf, int64_t results, int64_t result,
                         float weight, enum ifd_onnx_aggregate aggregate)
{
    float *at = &f->weight[(uint64_t)leaf * (uint64_t)results + (uint64_t)result];
    *at = aggregate == IFD_ONNX_LEAST || aggregate == IFD_ONNX_MOST ? weight : *at + weight;
}
