/* Ensembles of trees of ai.onnx.ml as products of matrices: all conditions of all trees at once (s:
 * 1 where one holds), then s c = d exactly for the leaf that is reached, where c has 1 for each
 * condition of the leaf's path that must hold and -1 for each that must not, and d counts the
 * former. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

/* Elements of the matrices of all trees. */
#define ELEMENTS_MAX ((uint64_t)1 << 24)
#define NONE         UINT32_MAX

struct node {
    int64_t tree, id;  /* as in the file */
    uint32_t child[2]; /* where the condition holds, where not; NONE: a leaf */
    uint32_t at;       /* of its tree: number of the condition, or of the leaf */
    uint32_t number;   /* of the tree */
    bool is_child;
};

struct ensemble {
    const struct ifd_onnx_attr *tree, *id, *feature, *value, *mode, *yes, *no;
    uint32_t count; /* nodes */
    struct node *node;
    uint32_t *order;                    /* by tree and id */
    uint32_t trees, conditions, leaves; /* the latter two: of the largest tree */
    enum ifd_op op;
};

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static bool fail(struct ifd_onnx_call *call, const char *what)
{
    ifd_build_fail(call->b, IFD_INVALID, "%s", what);
    return false;
}

static void *take(struct ifd_onnx_call *call, uint64_t count, size_t size)
{
    void *data = ifd_arena_take_array(call->b->graph->arena, (size_t)count, size);
    if (!data) {
        call->b->code = ifd_arena_fail(call->b->graph->arena, (size_t)count * size, call->b->err);
    }
    return data;
}

/* ---- reading ---- */

static bool is_leaf(const struct ensemble *e, uint32_t i)
{
    return ifd_str_is(e->mode->strings[i], "LEAF");
}

static bool take_mode(struct ifd_onnx_call *call, struct ensemble *e)
{
    static const struct {
        const char *name;
        enum ifd_op op;
    } known[] = {{"BRANCH_LEQ", IFD_OP_LESS_EQUAL},    {"BRANCH_LT", IFD_OP_LESS},
                 {"BRANCH_GTE", IFD_OP_GREATER_EQUAL}, {"BRANCH_GT", IFD_OP_GREATER},
                 {"BRANCH_EQ", IFD_OP_EQUAL},          {"BRANCH_NEQ", IFD_OP_NOT_EQUAL}};
    e->op = IFD_OP_COUNT;
    for (uint32_t i = 0; i < e->count; i++) {
        enum ifd_op op = IFD_OP_COUNT;
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
            op = ifd_str_is(e->mode->strings[i], known[k].name) ? known[k].op : op;
        }
        if (!is_leaf(e, i) && (op == IFD_OP_COUNT || (e->op != IFD_OP_COUNT && e->op != op))) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "conditions \"%s\" beside others",
                           ifd_onnx_text(e->mode->strings[i]).s);
            return false;
        }
        e->op = is_leaf(e, i) ? e->op : op;
    }
    return true;
}

static int compare(const struct ensemble *e, uint32_t i, int64_t tree, int64_t id)
{
    const struct node *n = &e->node[i];
    return n->tree != tree ? (n->tree > tree) - (n->tree < tree) : (n->id > id) - (n->id < id);
}

/* Sorted by merging: files may hold any order. */
static bool sort_nodes(struct ifd_onnx_call *call, struct ensemble *e)
{
    uint32_t *other = take(call, e->count, sizeof(*other));
    if (!other) {
        return false;
    }
    for (uint64_t width = 1; width < e->count; width *= 2) {
        for (uint64_t begin = 0; begin < e->count; begin += 2 * width) {
            const uint64_t middle = begin + width < e->count ? begin + width : e->count;
            const uint64_t end = middle + width < e->count ? middle + width : e->count;
            uint64_t a = begin, c = middle;
            for (uint64_t to = begin; to < end; to++) {
                const bool takes_a =
                    a < middle && (c == end || compare(e, e->order[a], e->node[e->order[c]].tree,
                                                       e->node[e->order[c]].id) <= 0);
                other[to] = takes_a ? e->order[a++] : e->order[c++];
            }
        }
        memcpy(e->order, other, e->count * sizeof(*other));
    }
    for (uint32_t i = 1; i < e->count; i++) {
        const struct node *n = &e->node[e->order[i]];
        if (compare(e, e->order[i - 1], n->tree, n->id) == 0) {
            return fail(call, "two nodes of a tree have one number");
        }
    }
    return true;
}

static uint32_t find(const struct ensemble *e, int64_t tree, int64_t id)
{
    uint32_t low = 0, high = e->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare(e, e->order[middle], tree, id);
        if (order == 0) {
            return e->order[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NONE;
}

static bool take_nodes(struct ifd_onnx_call *call, struct ensemble *e)
{
    *e = (struct ensemble){.tree = ifd_onnx_attr(call, "nodes_treeids"),
                           .id = ifd_onnx_attr(call, "nodes_nodeids"),
                           .feature = ifd_onnx_attr(call, "nodes_featureids"),
                           .value = ifd_onnx_attr(call, "nodes_values"),
                           .mode = ifd_onnx_attr(call, "nodes_modes"),
                           .yes = ifd_onnx_attr(call, "nodes_truenodeids"),
                           .no = ifd_onnx_attr(call, "nodes_falsenodeids")};
    const struct ifd_onnx_attr *missing = ifd_onnx_attr(call, "nodes_missing_value_tracks_true");
    e->count = e->id ? e->id->int_count : 0;
    if (e->count == 0 || !e->tree || !e->feature || !e->value || !e->mode || !e->yes || !e->no ||
        e->tree->int_count != e->count || e->feature->int_count != e->count ||
        e->value->float_count != e->count || e->mode->string_count != e->count ||
        e->yes->int_count != e->count || e->no->int_count != e->count) {
        return fail(call, "attributes \"nodes_…\" of different lengths");
    }
    for (uint32_t i = 0; missing && i < missing->int_count; i++) {
        if (missing->ints[i] != 0) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED,
                           "attribute \"nodes_missing_value_tracks_true\" has a 1");
            return false;
        }
    }
    e->node = take(call, e->count, sizeof(*e->node));
    e->order = take(call, e->count, sizeof(*e->order));
    for (uint32_t i = 0; call->b->code == IFD_OK && i < e->count; i++) {
        e->node[i] =
            (struct node){.tree = e->tree->ints[i], .id = e->id->ints[i], .child = {NONE, NONE}};
        e->order[i] = i;
    }
    return call->b->code == IFD_OK && take_mode(call, e) && sort_nodes(call, e);
}

static bool link_nodes(struct ifd_onnx_call *call, struct ensemble *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const int64_t id[2] = {e->yes->ints[i], e->no->ints[i]};
        for (uint32_t k = 0; !is_leaf(e, i) && k < 2; k++) {
            const uint32_t child = find(e, e->node[i].tree, id[k]);
            if (child == NONE || e->node[child].is_child || child == i) {
                return fail(call, "nodes that make no tree");
            }
            e->node[child].is_child = true;
            e->node[i].child[k] = child;
        }
    }
    return true;
}

/* ---- numbering, and the matrices ---- */

/* A walk over the trees, leaves from left to right: from a root down, without recursion. */
struct walk {
    uint32_t *path; /* nodes from the root on */
    uint8_t *side;  /* which child of each is next: 2 for none */
    uint32_t depth;
};

static bool begin_walk(struct ifd_onnx_call *call, const struct ensemble *e, struct walk *walk)
{
    *walk = (struct walk){.path = take(call, (uint64_t)e->count + 1, sizeof(*walk->path)),
                          .side = take(call, (uint64_t)e->count + 1, sizeof(*walk->side))};
    return call->b->code == IFD_OK;
}

/* The next node in the order of the walk, NONE at its end. */
static uint32_t next_node(const struct ensemble *e, struct walk *walk)
{
    while (walk->depth > 0) {
        const struct node *n = &e->node[walk->path[walk->depth - 1]];
        uint8_t *side = &walk->side[walk->depth - 1];
        if (n->child[0] != NONE && *side < 2) {
            const uint32_t child = n->child[(*side)++];
            walk->path[walk->depth] = child;
            walk->side[walk->depth++] = 0;
            return child;
        }
        walk->depth--;
    }
    return NONE;
}

static uint32_t start_at(struct walk *walk, uint32_t root)
{
    walk->path[0] = root;
    walk->side[0] = 0;
    walk->depth = 1;
    return root;
}

static bool number_nodes(struct ifd_onnx_call *call, struct ensemble *e, struct walk *walk)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t conditions = 0, leaves = 0;
        if (e->node[i].is_child) {
            continue;
        }
        for (uint32_t n = start_at(walk, i); n != NONE; n = next_node(e, walk), seen++) {
            e->node[n].number = e->trees;
            e->node[n].at = e->node[n].child[0] == NONE ? leaves++ : conditions++;
        }
        e->trees++;
        e->conditions = conditions > e->conditions ? conditions : e->conditions;
        e->leaves = leaves > e->leaves ? leaves : e->leaves;
    }
    e->conditions = e->conditions > 0 ? e->conditions : 1;
    const uint64_t all = (uint64_t)e->trees * e->conditions;
    if (seen != e->count) {
        return fail(call, "nodes that make no tree");
    }
    if (all > ELEMENTS_MAX || all * e->leaves > ELEMENTS_MAX) {
        ifd_build_fail(call->b, IFD_TOO_LARGE,
                       "%u trees of up to %u conditions and %u leaves: more than %llu products",
                       e->trees, e->conditions, e->leaves, (unsigned long long)ELEMENTS_MAX);
        return false;
    }
    return true;
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

/* Which conditions hold: x [n, columns] to [trees, n, conditions]. */
static uint32_t conditions_of(struct ifd_onnx_call *call, const struct ensemble *e, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, x);
    const uint64_t all = (uint64_t)e->trees * e->conditions;
    int64_t *feature = take(call, all, sizeof(*feature));
    float *value = take(call, all, sizeof(*value));
    for (uint32_t i = 0; b->code == IFD_OK && i < e->count; i++) {
        const struct node *n = &e->node[i];
        if (n->child[0] == NONE) {
            continue;
        }
        if (e->feature->ints[i] < 0 || e->feature->ints[i] >= shape.dim[1]) {
            return ifd_build_fail(b, IFD_INVALID, "column %lld of %lld",
                                  (long long)e->feature->ints[i], (long long)shape.dim[1]);
        }
        feature[(uint64_t)n->number * e->conditions + n->at] = e->feature->ints[i];
        value[(uint64_t)n->number * e->conditions + n->at] = e->value->floats[i];
    }
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const int64_t list[1] = {(int64_t)all};
    const struct ifd_gather_attrs columns = {.axis = 1};
    const uint32_t input[2] = {x, constant(b, IFD_S64, feature, list, 1)};
    const uint32_t picked = ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, &columns);
    const enum ifd_op op = e->op == IFD_OP_COUNT ? IFD_OP_LESS : e->op;
    const uint32_t holds = ifd_onnx_compared(b, op, picked, constant(b, IFD_F32, value, list, 1));
    const int64_t dim[3] = {shape.dim[0], e->trees, e->conditions};
    return ifd_build_swap(b, ifd_build_reshape(b, ifd_build_cast(b, holds, IFD_F32), dim, 3), 0, 1);
}

/* 1 for the leaf of each tree that is reached: [n, trees * leaves]. */
static uint32_t leaves_of(struct ifd_onnx_call *call, const struct ensemble *e, struct walk *walk,
                          uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t holds = conditions_of(call, e, x);
    const uint64_t leaves = (uint64_t)e->trees * e->leaves;
    float *c = take(call, leaves * e->conditions, sizeof(*c));
    float *d = take(call, leaves, sizeof(*d));
    for (uint64_t i = 0; b->code == IFD_OK && i < leaves; i++) {
        d[i] = -1e9f; /* a leaf that is not there */
    }
    for (uint32_t i = 0; b->code == IFD_OK && i < e->count; i++) {
        for (uint32_t n = e->node[i].is_child ? NONE : start_at(walk, i); n != NONE;
             n = next_node(e, walk)) {
            const struct node *leaf = &e->node[n];
            if (leaf->child[0] != NONE) {
                continue;
            }
            float *count = &d[(uint64_t)leaf->number * e->leaves + leaf->at];
            *count = 0;
            for (uint32_t k = 0; k + 1 < walk->depth; k++) {
                const struct node *above = &e->node[walk->path[k]];
                const bool must_hold = above->child[0] == walk->path[k + 1];
                c[((uint64_t)leaf->number * e->conditions + above->at) * e->leaves + leaf->at] =
                    must_hold ? 1 : -1;
                *count += must_hold ? 1 : 0;
            }
        }
    }
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const int64_t of_c[3] = {e->trees, e->conditions, e->leaves},
                  of_d[3] = {e->trees, 1, e->leaves};
    const uint32_t sums = ifd_build_matmul(b, holds, constant(b, IFD_F32, c, of_c, 3));
    const uint32_t is_it =
        ifd_onnx_compared(b, IFD_OP_EQUAL, sums, constant(b, IFD_F32, d, of_d, 3));
    const int64_t flat[2] = {shape_of(b, x).dim[0], (int64_t)leaves};
    return ifd_build_reshape(b, ifd_build_swap(b, ifd_build_cast(b, is_it, IFD_F32), 0, 1), flat,
                             2);
}

/* ---- what leaves are worth ---- */

/* Lists of a leaf's tree and number, a result's number, and what the leaf adds to it. */
struct votes {
    const struct ifd_onnx_attr *tree, *node, *result, *weight;
};

/* Sums over the leaves that are reached: [n, results]. */
static uint32_t sums_of(struct ifd_onnx_call *call, const struct votes *votes, int64_t results)
{
    struct ifd_builder *b = call->b;
    struct ensemble e;
    struct walk walk;
    const uint32_t given = ifd_build_cast(b, call->input[0], IFD_F32);
    const struct ifd_shape shape = shape_of(b, given);
    if (shape.rank != 2 || results < 1 || results > INT32_MAX) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "samples of shape %s for %lld results",
                              ifd_shape_text(&shape).s, (long long)results);
    }
    if (!take_nodes(call, &e) || !link_nodes(call, &e) || !begin_walk(call, &e, &walk) ||
        !number_nodes(call, &e, &walk)) {
        return IFD_NONE;
    }
    const uint32_t reached = leaves_of(call, &e, &walk, given);
    const uint64_t leaves = (uint64_t)e.trees * e.leaves;
    const uint32_t count = votes->weight ? votes->weight->float_count : 0;
    if (!votes->tree || !votes->node || !votes->result || votes->tree->int_count != count ||
        votes->node->int_count != count || votes->result->int_count != count ||
        leaves * (uint64_t)results > ELEMENTS_MAX) {
        return ifd_build_fail(b, IFD_INVALID, "%u weights of leaves, or too many results", count);
    }
    float *weight = take(call, leaves * (uint64_t)results, sizeof(*weight));
    for (uint32_t i = 0; weight && i < count; i++) {
        const uint32_t at = find(&e, votes->tree->ints[i], votes->node->ints[i]);
        const int64_t result = votes->result->ints[i];
        if (at == NONE || e.node[at].child[0] != NONE || result < 0 || result >= results) {
            return ifd_build_fail(b, IFD_INVALID, "weight %u is of no leaf or no result", i);
        }
        weight[(uint64_t)result * leaves + (uint64_t)e.node[at].number * e.leaves +
               e.node[at].at] += votes->weight->floats[i];
    }
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const int64_t dim[2] = {results, (int64_t)leaves};
    const uint32_t y = ifd_build_layer(b, reached, constant(b, IFD_F32, weight, dim, 2), IFD_NONE);
    return ifd_onnx_text_is(call, "aggregate_function", "AVERAGE", false)
               ? ifd_build_with(b, IFD_OP_DIV, y, e.trees)
               : y;
}

static uint32_t with_base(struct ifd_onnx_call *call, uint32_t y, int64_t results)
{
    const struct ifd_onnx_attr *base = ifd_onnx_attr(call, "base_values");
    if (!base || base->float_count == 0) {
        return y;
    }
    if (base->float_count != (uint64_t)results) {
        return ifd_build_fail(call->b, IFD_UNSUPPORTED, "%u base values for %lld results",
                              base->float_count, (long long)results);
    }
    return ifd_build_binary(call->b, IFD_OP_ADD, y,
                            constant(call->b, IFD_F32, base->floats, &results, 1));
}

void ifd_onnx_tree_regressor(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct votes votes = {
        ifd_onnx_attr(call, "target_treeids"), ifd_onnx_attr(call, "target_nodeids"),
        ifd_onnx_attr(call, "target_ids"), ifd_onnx_attr(call, "target_weights")};
    const int64_t results = ifd_onnx_int(call, "n_targets", 1);
    if (!ifd_onnx_text_is(call, "aggregate_function", "SUM", true) &&
        !ifd_onnx_text_is(call, "aggregate_function", "AVERAGE", false)) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"aggregate_function\"");
        return;
    }
    const uint32_t y = with_base(call, sums_of(call, &votes, results), results);
    call->output[0] = ifd_onnx_transformed(call, y);
}

/* Two classes of which the leaves name one: the other's score is 1 - s where no weight is below 0,
 * else -s. */
static uint32_t both_classes(struct ifd_onnx_call *call, uint32_t score, bool is_share)
{
    struct ifd_builder *b = call->b;
    const struct ifd_axis_attrs attrs = {.axis = 1};
    const uint32_t one = ifd_build_number(b, IFD_F32, 1);
    const uint32_t other = is_share ? ifd_build_binary(b, IFD_OP_SUB, one, score)
                                    : ifd_build_unary(b, IFD_OP_NEG, score);
    return ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){other, score}, 2, NULL, &attrs);
}

void ifd_onnx_tree_classifier(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct votes votes = {
        ifd_onnx_attr(call, "class_treeids"), ifd_onnx_attr(call, "class_nodeids"),
        ifd_onnx_attr(call, "class_ids"), ifd_onnx_attr(call, "class_weights")};
    const struct ifd_onnx_attr *labels = ifd_onnx_attr(call, "classlabels_int64s");
    const int64_t results = labels ? labels->int_count : 0;
    bool names_one = votes.result != NULL, is_share = true;
    for (uint32_t i = 1; names_one && i < votes.result->int_count; i++) {
        names_one = votes.result->ints[i] == votes.result->ints[0];
    }
    for (uint32_t i = 0; votes.weight && i < votes.weight->float_count; i++) {
        is_share = is_share && votes.weight->floats[i] >= 0;
    }
    if (results < 2) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld labels of whole numbers", (long long)results);
        return;
    }
    uint32_t scores = sums_of(call, &votes, results), ranks = IFD_NONE;
    if (results == 2 && names_one && votes.result->int_count > 0) {
        const int64_t named = votes.result->ints[0] == 0 ? 0 : 1;
        const uint32_t score = with_base(call, ifd_build_cut(b, scores, 1, named, 1), 1);
        ranks = both_classes(call, score, is_share);
        /* as ONNX Runtime has it: the first class's number stays 0 where the second is named */
        scores = named == 0 ? ranks : with_base(call, scores, results);
    } else {
        ranks = scores = with_base(call, scores, results);
    }
    call->output[0] = ifd_onnx_label_of(call, "classlabels_int64s", ranks);
    if (call->output_count > 1) {
        call->output[1] = ifd_onnx_transformed(call, scores);
    }
}
