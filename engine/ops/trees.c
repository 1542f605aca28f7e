/* trees: what the leaves that a row reaches in an ensemble of trees say together. Walks depend on
 * memory at every level, so several are under way at once: of rows through one tree, or of one row
 * through several trees. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_trees;

enum { X, NODES, ROOTS, WEIGHTS };

#define WALKS     8
#define STEPS_MAX 2e10 /* of all walks, at most: some dozens of seconds */
#define ADDS      2    /* results of a leaf that take as long as a step, at least */

/* A row of NODES. A leaf leads to itself. */
struct node {
    int32_t column; /* and IFD_TREES_MISSING */
    union {
        float most;
        int32_t leaf;
    } is;
    uint32_t next[2]; /* where the number is more than most; where not */
};
_Static_assert(sizeof(struct node) == 4 * sizeof(int32_t), "a row of NODES");

static enum ifd_code refuse(const struct ifd_infer *in, struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID, "trees: samples %s, nodes %s, roots %s, weights %s",
                    ifd_shape_text(&in->input[X].desc->shape).s,
                    ifd_shape_text(&in->input[NODES].desc->shape).s,
                    ifd_shape_text(&in->input[ROOTS].desc->shape).s,
                    ifd_shape_text(&in->input[WEIGHTS].desc->shape).s);
}

/* Whoever follows nodes[].next stays within them, and ends. */
static bool are_nodes_sound(const struct ifd_infer *in)
{
    const struct node *node = (const void *)in->input[NODES].data.data;
    const int32_t *root = (const void *)in->input[ROOTS].data.data;
    const int64_t count = in->input[NODES].desc->shape.dim[0];
    const int64_t columns = in->input[X].desc->shape.dim[1];
    const int64_t leaves = in->input[WEIGHTS].desc->shape.dim[0];
    for (int64_t i = 0; i < count; i++) {
        const struct node *n = &node[i];
        const bool is_leaf = n->next[0] == i && n->next[1] == i;
        const bool is_sound =
            is_leaf ? n->is.leaf >= 0 && n->is.leaf < leaves
                    : n->next[0] > i && n->next[0] < count && n->next[1] > i && n->next[1] < count;
        if (!is_sound || n->column < 0 || (n->column & ~IFD_TREES_MISSING) >= columns) {
            return false;
        }
    }
    for (int64_t t = 0; t < in->input[ROOTS].desc->shape.dim[0]; t++) {
        if (root[t] < 0 || root[t] >= count) {
            return false;
        }
    }
    return true;
}

static enum ifd_code trees_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    static const uint32_t rank[] = {[X] = 2, [NODES] = 2, [ROOTS] = 1, [WEIGHTS] = 2};
    static const enum ifd_dtype dtype[] = {
        [X] = IFD_F32, [NODES] = IFD_S32, [ROOTS] = IFD_S32, [WEIGHTS] = IFD_F32};
    const struct ifd_op_def *def = &ifd_op_trees;
    const struct ifd_trees_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    for (uint32_t i = X; code == IFD_OK && i <= WEIGHTS; i++) {
        code = ifd_infer_dtype(def, in, i, IFD_BIT(dtype[i]), err);
        if (code == IFD_OK) {
            code = ifd_infer_rank(def, in, i, rank[i], err);
        }
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const int64_t rows = in->input[X].desc->shape.dim[0];
    const int64_t trees = in->input[ROOTS].desc->shape.dim[0];
    if (in->input[NODES].desc->shape.dim[1] != 4 || !are_nodes_sound(in)) {
        return refuse(in, err);
    }
    const int64_t results = in->input[WEIGHTS].desc->shape.dim[1];
    const double steps = (double)attrs->depth + 1 + (double)results / ADDS;
    if ((double)rows * (double)trees * steps > STEPS_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "trees: %lld rows, %lld trees of depth %d, %lld results", (long long)rows,
                        (long long)trees, attrs->depth, (long long)results);
    }
    const struct ifd_shape shape = {.rank = 2, .dim = {rows, results}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* Moves each walk to its leaf; false: one is deeper than that. */
static bool walk(const struct node *node, int32_t depth, const float *const x[WALKS],
                 uint32_t at[WALKS])
{
    uint32_t moved = 1;
    for (int32_t level = 0; moved != 0 && level <= depth; level++) {
        moved = 0;
        for (uint32_t k = 0; k < WALKS; k++) {
            const struct node *n = &node[at[k]];
            const float v = x[k][n->column & ~IFD_TREES_MISSING];
            const uint32_t is_missing = (uint32_t)(v != v) & (uint32_t)(n->column >> 30);
            const uint32_t next = n->next[(uint32_t)(v <= n->is.most) | is_missing];
            moved |= next ^ at[k];
            at[k] = next;
        }
    }
    return moved == 0;
}

static void add(enum ifd_trees_of of, const float *weight, float *y, int64_t results)
{
    for (int64_t r = 0; r < results; r++) {
        y[r] = of == IFD_TREES_SUM     ? y[r] + weight[r]
               : of == IFD_TREES_LEAST ? (weight[r] < y[r] ? weight[r] : y[r])
                                       : (weight[r] > y[r] ? weight[r] : y[r]);
    }
}

/* Walks side by side: walk k is row first_row + k of tree, or row through first_tree + k. */
struct block {
    const struct ifd_trees_attrs *attrs;
    const struct node *node;
    const int32_t *root;
    const float *x, *weight;
    float *y;
    int64_t columns, results;
};

static bool run_block(const struct block *b, int64_t row, int64_t tree, uint32_t count,
                      bool is_of_rows)
{
    const float *x[WALKS];
    uint32_t at[WALKS];
    for (uint32_t k = 0; k < WALKS; k++) {
        const int64_t own = k < count ? k : 0;
        x[k] = b->x + (row + (is_of_rows ? own : 0)) * b->columns;
        at[k] = (uint32_t)b->root[tree + (is_of_rows ? 0 : own)];
    }
    if (!walk(b->node, b->attrs->depth, x, at)) {
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        add((enum ifd_trees_of)b->attrs->of, b->weight + b->node[at[k]].is.leaf * b->results,
            b->y + (row + (is_of_rows ? k : 0)) * b->results, b->results);
    }
    return true;
}

static enum ifd_code trees_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct block b = {.attrs = call->attrs,
                            .node = call->input[NODES],
                            .root = call->input[ROOTS],
                            .x = call->input[X],
                            .weight = call->input[WEIGHTS],
                            .y = call->output[0],
                            .columns = call->in[X]->shape.dim[1],
                            .results = call->in[WEIGHTS]->shape.dim[1]};
    const int64_t rows = call->in[X]->shape.dim[0], trees = call->in[ROOTS]->shape.dim[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    const float first = b.attrs->of == IFD_TREES_SUM     ? 0
                        : b.attrs->of == IFD_TREES_LEAST ? INFINITY
                                                         : -INFINITY;
    for (size_t i = 0; i < count; i++) {
        b.y[i] = first;
    }
    const bool is_of_rows = rows >= WALKS;
    const int64_t side = is_of_rows ? rows : trees; /* walks of a block go along it */
    bool ends = true;
    for (int64_t other = 0; count > 0 && other < (is_of_rows ? trees : rows); other++) {
        for (int64_t i = 0; ends && i < side; i += WALKS) {
            const uint32_t walks = side - i < WALKS ? (uint32_t)(side - i) : WALKS;
            ends = run_block(&b, is_of_rows ? i : other, is_of_rows ? other : i, walks, is_of_rows);
        }
    }
    return ends ? IFD_OK
                : ifd_fail(err, IFD_INVALID, "trees: one is deeper than %d", b.attrs->depth);
}

static const struct ifd_attr_def trees_attrs[] = {
    {"of", IFD_ATTR_ENUM, offsetof(struct ifd_trees_attrs, of), IFD_TREES_SUM, IFD_TREES_SUM,
     IFD_TREES_MOST},
    {"depth", IFD_ATTR_INT, offsetof(struct ifd_trees_attrs, depth), 0, 0, INT32_MAX - 1},
};

const struct ifd_op_def ifd_op_trees = {
    .name = "trees",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .attrs = trees_attrs,
    .attr_count = sizeof(trees_attrs) / sizeof(trees_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_trees_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .batch = IFD_BATCH_SAMPLE,
    .shape_inputs = 1u << NODES | 1u << ROOTS,
    .infer = trees_infer,
    .ref = trees_ref,
    .multiplies = true,
};
