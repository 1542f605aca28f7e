/* The two forms in which ai.onnx.ml has ensembles of trees. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/trees.h"

#define NONE      IFD_ONNX_NO_NODE
#define NODES_MAX ((uint64_t)1 << 24)

static bool fail(struct ifd_onnx_call *call, const char *what)
{
    ifd_build_fail(call->b, IFD_INVALID, "%s", what);
    return false;
}

/* ---- nodes with ids: TreeEnsembleClassifier, TreeEnsembleRegressor ---- */

struct id {
    int64_t tree, id;
    uint32_t at; /* the node */
};

static int compare_ids(const void *a, const void *b)
{
    const struct id *x = a, *y = b;
    return x->tree != y->tree ? (x->tree > y->tree) - (x->tree < y->tree)
                              : (x->id > y->id) - (x->id < y->id);
}

struct named {
    struct ifd_onnx_forest forest;
    struct id *id; /* sorted */
};

static uint32_t find(const struct named *e, int64_t tree, int64_t id)
{
    const struct id key = {.tree = tree, .id = id};
    const struct id *found = bsearch(&key, e->id, e->forest.count, sizeof(key), compare_ids);
    return found ? found->at : NONE;
}

static bool take_mode(struct ifd_onnx_call *call, struct ifd_str text, enum ifd_onnx_branch *ret)
{
    static const struct {
        const char *name;
        enum ifd_onnx_branch mode;
    } known[] = {{"BRANCH_LEQ", IFD_ONNX_LEQ}, {"BRANCH_LT", IFD_ONNX_LT},
                 {"BRANCH_GTE", IFD_ONNX_GTE}, {"BRANCH_GT", IFD_ONNX_GT},
                 {"BRANCH_EQ", IFD_ONNX_EQ},   {"BRANCH_NEQ", IFD_ONNX_NEQ},
                 {"LEAF", IFD_ONNX_LEAF}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (ifd_str_is(text, known[i].name)) {
            *ret = known[i].mode;
            return true;
        }
    }
    ifd_build_fail(call->b, IFD_UNSUPPORTED, "condition \"%s\"", ifd_onnx_text(text).s);
    return false;
}

/* Nodes share a child where an exporter tells a set of categories as a node for each. */
static bool link_node(struct ifd_onnx_call *call, struct named *e, uint32_t i, int64_t tree,
                      const int64_t id[2])
{
    struct ifd_onnx_forest *f = &e->forest;
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t child = find(e, tree, id[k]);
        if (child == NONE) {
            return fail(call, "nodes that make no tree");
        }
        f->node[child].is_child = true;
        f->node[i].child[k] = child;
    }
    return true;
}

static bool take_named(struct ifd_onnx_call *call, struct named *e)
{
    const struct ifd_onnx_attr *tree = ifd_onnx_attr(call, "nodes_treeids"),
                               *id = ifd_onnx_attr(call, "nodes_nodeids"),
                               *feature = ifd_onnx_attr(call, "nodes_featureids"),
                               *value = ifd_onnx_attr(call, "nodes_values"),
                               *mode = ifd_onnx_attr(call, "nodes_modes"),
                               *yes = ifd_onnx_attr(call, "nodes_truenodeids"),
                               *no = ifd_onnx_attr(call, "nodes_falsenodeids"),
                               *missing = ifd_onnx_attr(call, "nodes_missing_value_tracks_true");
    struct ifd_onnx_forest *f = &e->forest;
    const uint32_t count = id ? id->int_count : 0;
    if (count == 0 || count > NODES_MAX || !tree || !feature || !value || !mode || !yes || !no ||
        tree->int_count != count || feature->int_count != count || value->float_count != count ||
        mode->string_count != count || yes->int_count != count || no->int_count != count ||
        (missing && missing->int_count != 0 && missing->int_count != count)) {
        return fail(call, "attributes \"nodes_…\" of different lengths");
    }
    f->count = count;
    f->node = ifd_onnx_tree_take(call, count, sizeof(*f->node));
    e->id = ifd_onnx_tree_take(call, count, sizeof(*e->id));
    for (uint32_t i = 0; call->b->code == IFD_OK && i < count; i++) {
        struct ifd_onnx_tree_node *n = &f->node[i];
        *n = (struct ifd_onnx_tree_node){.feature = feature->ints[i],
                                         .value = value->floats[i],
                                         .child = {NONE, NONE},
                                         .tracks_missing = missing && missing->int_count != 0 &&
                                                           missing->ints[i] != 0};
        e->id[i] = (struct id){.tree = tree->ints[i], .id = id->ints[i], .at = i};
        (void)take_mode(call, mode->strings[i], &n->mode);
        n->leaf = n->mode == IFD_ONNX_LEAF ? f->leaves++ : 0;
    }
    if (call->b->code != IFD_OK) {
        return false;
    }
    qsort(e->id, count, sizeof(*e->id), compare_ids);
    for (uint32_t i = 1; i < count; i++) {
        if (compare_ids(&e->id[i - 1], &e->id[i]) == 0) {
            return fail(call, "two nodes of one tree have one id");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const int64_t next[2] = {yes->ints[i], no->ints[i]};
        if (f->node[i].mode != IFD_ONNX_LEAF && !link_node(call, e, i, tree->ints[i], next)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        f->node[i].is_root = !f->node[i].is_child;
        f->trees += f->node[i].is_root;
    }
    return true;
}

/* Lists of a leaf's tree and number, a result's number, and what the leaf adds to it. */
struct votes {
    const struct ifd_onnx_attr *tree, *node, *result, *weight;
};

/* Sums over the leaves that are reached: [n, results]. */
static uint32_t sums_of(struct ifd_onnx_call *call, const struct votes *votes, int64_t results,
                        enum ifd_onnx_aggregate aggregate)
{
    struct ifd_builder *b = call->b;
    struct named e = {0};
    const uint32_t count = votes->weight ? votes->weight->float_count : 0;
    if (!take_named(call, &e) || !ifd_onnx_forest_weights(call, &e.forest, results, aggregate)) {
        return IFD_NONE;
    }
    if (!votes->tree || !votes->node || !votes->result || votes->tree->int_count != count ||
        votes->node->int_count != count || votes->result->int_count != count) {
        return ifd_build_fail(b, IFD_INVALID, "%u weights of leaves", count);
    }
    bool *has_weight = ifd_onnx_tree_take(call, e.forest.leaves, sizeof(*has_weight));
    if (!has_weight) {
        return IFD_NONE;
    }
    memset(has_weight, 0, e.forest.leaves * sizeof(*has_weight));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = find(&e, votes->tree->ints[i], votes->node->ints[i]);
        const int64_t result = votes->result->ints[i];
        if (at == NONE || e.forest.node[at].child[0] != NONE || result < 0 || result >= results) {
            return ifd_build_fail(b, IFD_INVALID, "weight %u is of no leaf or no result", i);
        }
        const uint32_t leaf = e.forest.node[at].leaf;
        if (results > 1 ||
            !has_weight[leaf]) { /* as ONNX Runtime has it: the first of one result */
            ifd_onnx_forest_add(&e.forest, leaf, results, result, votes->weight->floats[i],
                                aggregate);
        }
        has_weight[leaf] = true;
    }
    const uint32_t y = ifd_onnx_forest_sums(call, &e.forest, results, aggregate);
    for (uint32_t i = 0; b->code == IFD_OK && i < e.forest.count; i++) {
        if (!e.forest.node[i].is_reached) {
            return ifd_build_fail(b, IFD_INVALID, "nodes that make no tree");
        }
    }
    return y;
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
                            ifd_onnx_floats(call->b, base->floats, &results, 1));
}

/* As ONNX Runtime has it: a result that no leaf names stays 0, whatever its base value. */
static uint32_t of_named(struct ifd_onnx_call *call, uint32_t y, const struct ifd_onnx_attr *result,
                         int64_t results)
{
    struct ifd_builder *b = call->b;
    float *factor =
        b->code == IFD_OK ? ifd_onnx_tree_take(call, (uint64_t)results, sizeof(*factor)) : NULL;
    int64_t named = 0;
    if (!factor) {
        return IFD_NONE;
    }
    memset(factor, 0, (size_t)results * sizeof(*factor));
    for (uint32_t i = 0; i < result->int_count; i++) {
        named += factor[result->ints[i]] == 0;
        factor[result->ints[i]] = 1;
    }
    return named == results
               ? y
               : ifd_build_binary(b, IFD_OP_MUL, y, ifd_onnx_floats(b, factor, &results, 1));
}

void ifd_onnx_tree_regressor(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct votes votes = {
        ifd_onnx_attr(call, "target_treeids"), ifd_onnx_attr(call, "target_nodeids"),
        ifd_onnx_attr(call, "target_ids"), ifd_onnx_attr(call, "target_weights")};
    const int64_t results = ifd_onnx_int(call, "n_targets", 1);
    const enum ifd_onnx_aggregate aggregate =
        ifd_onnx_text_is(call, "aggregate_function", "AVERAGE", false) ? IFD_ONNX_AVERAGE
        : ifd_onnx_text_is(call, "aggregate_function", "MIN", false)   ? IFD_ONNX_LEAST
        : ifd_onnx_text_is(call, "aggregate_function", "MAX", false)   ? IFD_ONNX_MOST
                                                                       : IFD_ONNX_SUM;
    const uint32_t y = with_base(call, sums_of(call, &votes, results, aggregate), results);
    call->output[0] = ifd_onnx_transformed(call, of_named(call, y, votes.result, results));
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
    const uint32_t labels = ifd_onnx_class_labels(call, "classlabels_int64s");
    const int64_t results = labels == IFD_NONE ? 0 : ifd_build_desc(b, labels)->shape.dim[0];
    bool names_one = votes.result != NULL, is_share = true;
    for (uint32_t i = 1; names_one && i < votes.result->int_count; i++) {
        names_one = votes.result->ints[i] == votes.result->ints[0];
    }
    for (uint32_t i = 0; votes.weight && i < votes.weight->float_count; i++) {
        is_share = is_share && votes.weight->floats[i] >= 0;
    }
    if (results < 2) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld labels", (long long)results);
        return;
    }
    uint32_t scores = sums_of(call, &votes, results, IFD_ONNX_SUM), ranks = IFD_NONE;
    if (results == 2 && names_one && votes.result->int_count > 0) {
        const int64_t named = votes.result->ints[0] == 0 ? 0 : 1;
        const uint32_t score = with_base(call, ifd_build_cut(b, scores, 1, named, 1), 1);
        ranks = both_classes(call, score, is_share);
        /* as ONNX Runtime has it: the first class's number stays 0 where the second is named */
        scores = named == 0 ? ranks : with_base(call, scores, results);
    } else {
        ranks = scores = with_base(call, scores, results);
        if (results == 2) { /* as ONNX Runtime has it: whether the second's score is above 0 */
            ranks = both_classes(call, ifd_build_cut(b, scores, 1, 1, 1), false);
        }
    }
    call->output[0] = ifd_onnx_label_of(b, labels, ranks);
    if (call->output_count > 1) {
        call->output[1] = ifd_onnx_transformed(call, scores);
    }
}

/* ---- nodes by their places: TreeEnsemble ---- */

struct placed {
    const struct ifd_onnx_attr *feature, *yes, *no, *yes_is_leaf, *no_is_leaf, *root, *target,
        *missing;
    struct ifd_bytes mode, value, weight, member; /* constants of u8 and f32 */
    uint32_t count, leaves;                       /* of the file */
};

/* A tensor as a list of floats or of bytes; empty if it is absent. */
static struct ifd_bytes tensor_of(struct ifd_onnx_call *call, const char *name,
                                  enum ifd_dtype dtype)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    if (!attr || !attr->tensor) {
        return (struct ifd_bytes){0};
    }
    const uint32_t value = ifd_onnx_constant(call->b, attr->tensor);
    if (call->b->code == IFD_OK && ifd_build_desc(call->b, value)->dtype != dtype) {
        ifd_build_fail(call->b, IFD_INVALID, "attribute \"%s\" is of another type", name);
    }
    return ifd_build_content(call->b, value);
}

static bool take_placed(struct ifd_onnx_call *call, struct placed *p)
{
    *p = (struct placed){.feature = ifd_onnx_attr(call, "nodes_featureids"),
                         .yes = ifd_onnx_attr(call, "nodes_truenodeids"),
                         .no = ifd_onnx_attr(call, "nodes_falsenodeids"),
                         .yes_is_leaf = ifd_onnx_attr(call, "nodes_trueleafs"),
                         .no_is_leaf = ifd_onnx_attr(call, "nodes_falseleafs"),
                         .root = ifd_onnx_attr(call, "tree_roots"),
                         .target = ifd_onnx_attr(call, "leaf_targetids"),
                         .missing = ifd_onnx_attr(call, "nodes_missing_value_tracks_true")};
    p->mode = tensor_of(call, "nodes_modes", IFD_U8);
    p->value = tensor_of(call, "nodes_splits", IFD_F32);
    p->weight = tensor_of(call, "leaf_weights", IFD_F32);
    p->member = tensor_of(call, "membership_values", IFD_F32);
    p->count = p->feature ? p->feature->int_count : 0;
    p->leaves = p->target ? p->target->int_count : 0;
    const uint32_t n = p->count;
    if (call->b->code != IFD_OK) {
        return false;
    }
    if (n == 0 || p->leaves == 0 || (uint64_t)n + p->leaves > NODES_MAX || !p->yes || !p->no ||
        !p->yes_is_leaf || !p->no_is_leaf || !p->root || p->root->int_count == 0 ||
        p->yes->int_count != n || p->no->int_count != n || p->yes_is_leaf->int_count != n ||
        p->no_is_leaf->int_count != n || p->mode.size != n || p->value.size != n * sizeof(float) ||
        p->weight.size != p->leaves * sizeof(float) ||
        (p->missing && p->missing->int_count != 0 && p->missing->int_count != n)) {
        return fail(call, "attributes of nodes and leaves of different lengths");
    }
    return true;
}

/* The node that child k of node i is: leaves follow the nodes. */
static uint32_t child_of(const struct placed *p, uint32_t i, uint32_t k)
{
    const struct ifd_onnx_attr *id = k == 0 ? p->yes : p->no;
    const bool is_leaf = (k == 0 ? p->yes_is_leaf : p->no_is_leaf)->ints[i] != 0;
    const int64_t most = is_leaf ? p->leaves : p->count;
    return id->ints[i] < 0 || id->ints[i] >= most ? NONE
           : is_leaf                              ? p->count + (uint32_t)id->ints[i]
                                                  : (uint32_t)id->ints[i];
}

/* A node that asks for a member of a set becomes one for each member, one behind the other; NaN
 * ends a set. */
static bool spread_members(struct ifd_onnx_call *call, const struct placed *p,
                           struct ifd_onnx_forest *f)
{
    const float *member = (const float *)(const void *)p->member.data;
    const size_t most = p->member.size / sizeof(*member);
    size_t at = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (f->node[i].mode != IFD_ONNX_MEMBER) {
            continue;
        }
        uint32_t last = i;
        f->node[i].mode = IFD_ONNX_EQ;
        f->node[i].value = at < most ? member[at] : NAN;
        while (at < most && !isnan(member[at]) && ++at < most && !isnan(member[at])) {
            f->node[f->count] = f->node[last];
            f->node[f->count].value = member[at];
            f->node[f->count].is_root = false;
            f->node[last].child[1] = f->count;
            last = f->count++;
        }
        at++; /* the NaN */
    }
    return at <= most + 1 || fail(call, "sets of members that are not there");
}

static bool place_nodes(struct ifd_onnx_call *call, const struct placed *p,
                        struct ifd_onnx_forest *f)
{
    const uint64_t room = (uint64_t)p->count + p->leaves + p->member.size / sizeof(float);
    f->count = p->count + p->leaves;
    f->leaves = p->leaves;
    f->node = ifd_onnx_tree_take(call, room, sizeof(*f->node));
    if (!f->node) {
        return false;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        f->node[i] = (struct ifd_onnx_tree_node){
            .mode = IFD_ONNX_LEAF, .child = {NONE, NONE}, .leaf = i < p->count ? 0 : i - p->count};
    }
    for (uint32_t i = 0; i < p->count; i++) {
        struct ifd_onnx_tree_node *n = &f->node[i];
        n->mode = (enum ifd_onnx_branch)p->mode.data[i];
        n->feature = p->feature->ints[i];
        n->value = ((const float *)(const void *)p->value.data)[i];
        n->tracks_missing = p->missing && p->missing->int_count != 0 && p->missing->ints[i] != 0;
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t child = child_of(p, i, k);
            if (child == NONE || n->mode > IFD_ONNX_MEMBER) {
                return fail(call, "nodes that make no tree");
            }
            n->child[k] = child;
            f->node[child].is_child = true;
        }
    }
    for (uint32_t i = 0; i < p->root->int_count; i++) {
        const int64_t root = p->root->ints[i];
        if (root < 0 || root >= p->count || f->node[root].is_child || f->node[root].is_root) {
            return fail(call, "a root that is none");
        }
        f->node[root].is_root = true;
    }
    f->trees = p->root->int_count;
    return spread_members(call, p, f);
}

void ifd_onnx_tree_ensemble(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                             "PROBIT"};
    struct ifd_builder *b = call->b;
    const int64_t results = ifd_onnx_int(call, "n_targets", 1);
    const int64_t function = ifd_onnx_int(call, "aggregate_function", 1);
    const int64_t transform = ifd_onnx_int(call, "post_transform", 0);
    struct placed p;
    struct ifd_onnx_forest f = {0};
    if (function < 0 || function > IFD_ONNX_MOST || transform < 0 || transform > 4) {
        ifd_build_fail(b, IFD_INVALID, "aggregate_function %lld, post_transform %lld",
                       (long long)function, (long long)transform);
        return;
    }
    const enum ifd_onnx_aggregate aggregate = (enum ifd_onnx_aggregate)function;
    if (!take_placed(call, &p) || !place_nodes(call, &p, &f) ||
        !ifd_onnx_forest_weights(call, &f, results, aggregate)) {
        return;
    }
    for (uint32_t i = 0; i < p.leaves; i++) {
        if (p.target->ints[i] < 0 || p.target->ints[i] >= results) {
            ifd_build_fail(b, IFD_INVALID, "leaf %u is of no result", i);
            return;
        }
        ifd_onnx_forest_add(&f, i, results, p.target->ints[i],
                            ((const float *)(const void *)p.weight.data)[i], aggregate);
    }
    const uint32_t y = ifd_onnx_forest_sums(call, &f, results, aggregate);
    call->output[0] = ifd_onnx_transformed_as(
        b, y, (struct ifd_str){transforms[transform], strlen(transforms[transform])});
}
