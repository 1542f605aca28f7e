/* x * g + (shift - mean * g), as TensorFlow writes layer normalization, is (x - mean) * g + shift;
 * of g = root * scale, (x - mean) * root * scale + shift: the form that others write, that backends
 * compute in one step, and whose differences keep more digits. Floats only; the mean is that of
 * rows, so that no product was smaller than x. */
#include "engine/ir/shape.h"
#include "engine/opt/pass_impl.h"

struct search {
    const struct ifd_graph *graph;
    const uint32_t *uses;
};

/* Nodes, and the values that they join; IFD_NONE for those that are not there. */
struct pattern {
    struct ifd_node *gain; /* root * scale; NULL: the root alone */
    struct ifd_node *minus, *product, *other, *last;
    struct ifd_node *rest; /* shift - product; NULL without a shift, where minus negates the mean */
    uint32_t x, mean, root, scale, shift;
};

static const struct ifd_desc *desc_of(const struct search *s, uint32_t value)
{
    return &s->graph->value[value].desc;
}

static bool is_plain(const struct ifd_node *node, enum ifd_op op)
{
    return node && node->op == op &&
           (op == IFD_OP_NEG || ifd_rewrite_activation(node) == IFD_ACT_NONE);
}

/* The node with this operator that makes a value which nobody else reads; NULL: another one. */
static struct ifd_node *maker(const struct search *s, uint32_t value, enum ifd_op op)
{
    struct ifd_node *node = s->uses[value] == 1 ? ifd_rewrite_producer(s->graph, value) : NULL;
    return is_plain(node, op) ? node : NULL;
}

static bool is_mean_of(const struct search *s, uint32_t value, uint32_t x)
{
    const struct ifd_node *node = ifd_rewrite_producer(s->graph, value);
    const struct ifd_shape *shape = &desc_of(s, x)->shape;
    const struct ifd_reduce_attrs *attrs = node ? node->attrs : NULL;
    return node && node->op == IFD_OP_REDUCE_MEAN && node->input[0] == x && attrs->keep_dims &&
           desc_of(s, x)->dtype == IFD_F32 && attrs->axes.count == 1 && shape->rank > 0 &&
           (attrs->axes.value[0] == -1 || attrs->axes.value[0] == (int64_t)shape->rank - 1);
}

/* root * scale, a row of constants. A node before the mean cannot read it and stays as it is. */
static void split_gain(const struct search *s, uint32_t gain, struct pattern *p)
{
    struct ifd_node *node =
        s->uses[gain] == 2 ? ifd_rewrite_producer(s->graph, gain) : NULL; /* x, the mean */
    const bool is_behind = node && node > ifd_rewrite_producer(s->graph, p->mean);
    p->root = gain;
    for (uint32_t i = 0; is_behind && is_plain(node, IFD_OP_MUL) && i < 2; i++) {
        size_t count = 0;
        if (ifd_rewrite_floats(s->graph, node->input[i], &count) && count > 1) {
            p->gain = node;
            p->scale = node->input[i];
            p->root = node->input[1 - i];
        }
    }
}

/* product = mean * g, or -mean * g without a shift; other = x * g. */
static bool match_products(const struct search *s, struct pattern *p)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t gain = p->other->input[i & 1], mean = p->product->input[i >> 1];
        if (gain != p->product->input[1 - (i >> 1)]) {
            continue;
        }
        p->x = p->other->input[1 - (i & 1)];
        p->mean = mean;
        p->minus = p->rest ? NULL : maker(s, mean, IFD_OP_NEG);
        if (p->minus) {
            p->mean = p->minus->input[0];
        }
        if ((p->rest || p->minus) && is_mean_of(s, p->mean, p->x)) {
            split_gain(s, gain, p);
            return true;
        }
    }
    return false;
}

static bool find(const struct search *s, struct ifd_node *last, struct pattern *p)
{
    for (uint32_t i = 0; is_plain(last, IFD_OP_ADD) && i < 2; i++) {
        *p = (struct pattern){.last = last, .scale = IFD_NONE, .shift = IFD_NONE};
        p->other = maker(s, last->input[i], IFD_OP_MUL);
        p->rest = maker(s, last->input[1 - i], IFD_OP_SUB);
        p->shift = p->rest ? p->rest->input[0] : IFD_NONE;
        p->product = maker(s, p->rest ? p->rest->input[1] : last->input[1 - i], IFD_OP_MUL);
        if (p->other && p->product && match_products(s, p) &&
            ifd_shape_equal(&desc_of(s, p->x)->shape, &desc_of(s, last->output[0])->shape)) {
            return true;
        }
    }
    return false;
}

/* Makes a node another function of two tensors, with an output like x. False: no memory. */
static bool become(struct ifd_graph *graph, const struct pattern *p, struct ifd_node *node,
                   enum ifd_op op, uint32_t a, uint32_t b)
{
    uint32_t *input = ifd_arena_take_array(graph->arena, 2, sizeof(*input));
    if (input) {
        input[0] = a;
        input[1] = b;
        node->op = op;
        node->attrs = p->last->attrs;
        node->input = input;
        node->input_count = 2;
        graph->value[node->output[0]].desc.shape = graph->value[p->x].desc.shape;
    }
    return input != NULL;
}

/* Each node is behind those whose results it reads: a mean that is negated may come before or after
 * the gain. */
static bool rewrite(struct ifd_graph *graph, const struct pattern *p, bool *drop)
{
    struct ifd_node *centred = p->gain, *scaled = p->product, *weighted = p->rest;
    if (p->rest && !p->gain) {
        centred = p->product;
        scaled = p->rest;
    } else if (!p->rest && p->gain) {
        centred = p->minus < p->gain ? p->minus : p->gain;
        scaled = p->minus < p->gain ? p->gain : p->minus;
        weighted = p->last;
    } else if (!p->rest) {
        centred = p->minus;
        scaled = p->last;
    }
    drop[p->other - graph->node] = true;
    if (!p->rest) {
        drop[p->product - graph->node] = true;
    }
    bool done = become(graph, p, centred, IFD_OP_SUB, p->x, p->mean) &&
                become(graph, p, scaled, IFD_OP_MUL, centred->output[0], p->root);
    uint32_t out = scaled->output[0];
    if (done && p->gain) {
        done = become(graph, p, weighted, IFD_OP_MUL, out, p->scale);
        out = weighted->output[0];
    }
    return done && (!p->rest || become(graph, p, p->last, IFD_OP_ADD, out, p->shift));
}

enum ifd_code ifd_pass_fuse_norm(struct ifd_graph *graph, struct ifd_arena *scratch,
                                 uint32_t *ret_changes, struct ifd_err *err)
{
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    if (!uses || !drop) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    ifd_rewrite_count_uses(graph, uses);
    const struct search search = {graph, uses};
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct pattern pattern;
        if (drop[n] || !find(&search, &graph->node[n], &pattern)) {
            continue;
        }
        if (!rewrite(graph, &pattern, drop)) {
            return ifd_arena_fail(graph->arena, 2 * sizeof(uint32_t), err);
        }
        (*ret_changes)++;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    return IFD_OK;
}
