/* Ensembles of trees of ai.onnx.ml: every condition becomes "no more than a number", and the nodes
 * the table that our operator reads. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"
#include "engine/parse/onnx/trees.h"

#define DEPTH_MAX    1024
#define ELEMENTS_MAX ((uint64_t)1 << 24) /* weights of leaves */
#define COLUMNS_MAX  ((int64_t)IFD_TREES_MISSING)
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

/* Nodes with children, each behind those that lead to it. */
struct order {
    uint32_t *node;
    uint32_t count, depth;
};

/* Marks what the roots lead to, and counts the ways into each of these nodes. Returns how many of
 * them have children; room has place for each. */
static uint32_t reach(struct ifd_onnx_forest *f, uint32_t *room, uint32_t *ways)
{
    uint32_t count = 0, with_children = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        ways[i] = 0;
        f->node[i].is_reached = f->node[i].is_root;
        if (f->node[i].is_root && f->node[i].child[0] != NONE) {
            room[count++] = i;
        }
    }
    for (; count > 0; with_children++) {
        const struct ifd_onnx_tree_node *n = &f->node[room[--count]];
        for (uint32_t k = 0; k < 2; k++) {
            struct ifd_onnx_tree_node *child = &f->node[n->child[k]];
            ways[n->child[k]]++;
            if (!child->is_reached && child->child[0] != NONE) {
                room[count++] = n->child[k];
            }
            child->is_reached = true;
        }
    }
    return with_children;
}

/* From the roots down, level by level: a node follows when every way into it is walked. */
static bool measure(struct ifd_onnx_call *call, struct ifd_onnx_forest *f, struct order *ret)
{
    uint32_t *level = ifd_onnx_tree_take(call, f->count, sizeof(*level));
    uint32_t *ways = ifd_onnx_tree_take(call, f->count, sizeof(*ways));
    uint32_t count = 0, begin = 0, depth = 0;
    if (!level || !ways) {
        return false;
    }
    const uint32_t with_children = reach(f, level, ways);
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->node[i].is_root && f->node[i].child[0] != NONE && ways[i] == 0) {
            level[count++] = i;
        }
    }
    for (; begin < count; depth++) {
        const uint32_t end = count;
        for (; begin < end; begin++) {
            const struct ifd_onnx_tree_node *n = &f->node[level[begin]];
            for (uint32_t k = 0; k < 2; k++) {
                if (--ways[n->child[k]] == 0 && f->node[n->child[k]].child[0] != NONE) {
                    level[count++] = n->child[k];
                }
            }
        }
    }
    if (count < with_children) {
        ifd_build_fail(call->b, IFD_INVALID, "a node of a tree leads back to itself");
    } else if (depth > DEPTH_MAX) {
        ifd_build_fail(call->b, IFD_TOO_LARGE, "a tree is %u deep, limit %d", depth, DEPTH_MAX);
    }
    *ret = (struct order){.node = level, .count = count, .depth = depth};
    return call->b->code == IFD_OK;
}

/* ---- every condition as "no more than" ---- */

/* A row of the nodes of trees. */
struct row {
    int32_t column;
    uint32_t bits;
    uint32_t next[2]; /* where a number is more, where it is not */
};
_Static_assert(sizeof(struct row) == 4 * sizeof(int32_t), "a row of nodes");

static struct row row_of(int64_t column, float most, bool takes_missing, uint32_t more,
                         uint32_t no_more)
{
    struct row row = {.column = (int32_t)column | (takes_missing ? IFD_TREES_MISSING : 0),
                      .next = {more, no_more}};
    memcpy(&row.bits, &most, sizeof(row.bits));
    return row;
}

static bool is_two(const struct ifd_onnx_tree_node *n)
{
    return n->mode == IFD_ONNX_EQ || n->mode == IFD_ONNX_NEQ;
}

/* Writes the rows of a node, the first of which has number at, with where it leads if its condition
 * holds and if not. Less than a float is no more than the next lower one; nothing is no more than
 * NaN. */
static void write_rows(const struct ifd_onnx_tree_node *n, uint32_t at, uint32_t yes, uint32_t no,
                       struct row *row)
{
    const float below =
        n->value > -INFINITY ? nextafterf(n->value, -INFINITY) : (float)NAN; /* NaN stays */
    const bool is_less = n->mode == IFD_ONNX_LT || n->mode == IFD_ONNX_GTE;
    const bool is_turned = n->mode == IFD_ONNX_GT || n->mode == IFD_ONNX_GTE;
    if (is_two(n)) {
        const bool is_equal = n->mode == IFD_ONNX_EQ;
        const bool tracks = is_equal && n->tracks_missing; /* NaN differs from everything */
        const uint32_t same = is_equal ? yes : no, other = is_equal ? no : yes;
        row[at] = row_of(n->feature, below, !tracks, at + 1, other);
        row[at + 1] = row_of(n->feature, n->value, tracks, other, same);
    } else if (is_turned && n->value == n->value) {
        row[at] = row_of(n->feature, is_less ? below : n->value, !n->tracks_missing, yes, no);
    } else {
        row[at] = row_of(n->feature, is_less ? below : n->value, n->tracks_missing, no, yes);
    }
}

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

/* Numbers the rows: nodes with children in order, then leaves. Returns how many there are. */
static int64_t number_rows(const struct ifd_onnx_forest *f, const struct order *order, uint32_t *at)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        at[order->node[i]] = rows;
        rows += is_two(&f->node[order->node[i]]) ? 2 : 1;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->node[i].child[0] == NONE) {
            at[i] = rows++;
        }
    }
    return rows;
}

/* Sums over the leaves that are reached, or the least or most of them: [n, results]. */
static uint32_t walked(struct ifd_onnx_call *call, const struct ifd_onnx_forest *f,
                       const struct order *order, uint32_t x, const int64_t weights[2],
                       enum ifd_trees_of of)
{
    struct ifd_builder *b = call->b;
    uint32_t *at = ifd_onnx_tree_take(call, f->count, sizeof(*at));
    int32_t *root = ifd_onnx_tree_take(call, f->trees, sizeof(*root));
    if (!at || !root) {
        return IFD_NONE;
    }
    const int64_t rows[2] = {number_rows(f, order, at), 4}, trees = f->trees;
    struct row *row = ifd_onnx_tree_take(call, (uint64_t)rows[0], sizeof(*row));
    bool has_two = false;
    uint32_t roots = 0;
    for (uint32_t i = 0; row && i < f->count; i++) {
        const struct ifd_onnx_tree_node *n = &f->node[i];
        if (n->child[0] == NONE) {
            row[at[i]] = (struct row){.bits = n->leaf, .next = {at[i], at[i]}};
        } else if (n->is_reached) {
            write_rows(n, at[i], at[n->child[0]], at[n->child[1]], row);
            has_two = has_two || is_two(n);
        }
        if (n->is_root) {
            root[roots++] = (int32_t)at[i];
        }
    }
    if (!row) {
        return IFD_NONE;
    }
    const struct ifd_trees_attrs attrs = {
        .of = (int32_t)of, .depth = (int32_t)(has_two ? 2 * order->depth : order->depth)};
    const uint32_t input[] = {x, constant(b, IFD_S32, row, rows, 2),
                              constant(b, IFD_S32, root, &trees, 1),
                              constant(b, IFD_F32, f->weight, weights, 2)};
    return ifd_build_node(b, IFD_OP_TREES, input, 4, NULL, &attrs);
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
            (n->child[0] != NONE &&
             (n->feature < 0 || n->feature >= COLUMNS_MAX || n->feature >= shape.dim[1]))) {
            return ifd_build_fail(b, IFD_INVALID, "column %lld of samples of shape %s",
                                  (long long)n->feature, ifd_shape_text(&shape).s);
        }
    }
    struct order order;
    if (b->code != IFD_OK || !measure(call, f, &order)) {
        return IFD_NONE;
    }
    const int64_t dim[2] = {f->leaves, results};
    const bool is_sum = aggregate == IFD_ONNX_SUM || aggregate == IFD_ONNX_AVERAGE;
    const uint32_t y = walked(call, f, &order, x, dim,
                              is_sum                        ? IFD_TREES_SUM
                              : aggregate == IFD_ONNX_LEAST ? IFD_TREES_LEAST
                                                            : IFD_TREES_MOST);
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
    *at = aggregate == IFD_ONNX_LEAST  ? fminf(*at, weight)
          : aggregate == IFD_ONNX_MOST ? fmaxf(*at, weight)
                                       : *at + weight;
}
