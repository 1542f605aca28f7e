/* x * 0.5 * (1 + erf(x / sqrt(2))) is one operator: exporters write it out. Floats only. */
#include "engine/opt/pass_impl.h"

#include <math.h>

#include "engine/ir/shape.h"

/* Constants of files that went through half precision are off by less. */
#define NEAR 2e-4f

static bool is_number(const struct ifd_graph *graph, uint32_t value, float number)
{
    size_t count = 0;
    const float *data = ifd_rewrite_floats(graph, value, &count);
    return data && count == 1 && fabsf(*data / number - 1) < NEAR;
}

/* The other operand of a sum or product with this number; IFD_NONE if node is none. */
static uint32_t beside(const struct ifd_graph *graph, const struct ifd_node *node, enum ifd_op op,
                       float number)
{
    if (!node || node->op != op || ifd_rewrite_activation(node) != IFD_ACT_NONE) {
        return IFD_NONE;
    }
    return is_number(graph, node->input[1], number)   ? node->input[0]
           : is_number(graph, node->input[0], number) ? node->input[1]
                                                      : IFD_NONE;
}

struct search {
    const struct ifd_graph *graph;
    const uint32_t *uses;
};

/* The node that makes a value which nobody else reads. */
static const struct ifd_node *maker(const struct search *s, uint32_t value)
{
    return value != IFD_NONE && s->uses[value] == 1 ? ifd_rewrite_producer(s->graph, value) : NULL;
}

/* x, if value is 1 + erf(x / sqrt(2)). */
static uint32_t twice_the_share(const struct search *s, uint32_t value)
{
    const struct ifd_node *erf = maker(s, beside(s->graph, maker(s, value), IFD_OP_ADD, 1));
    if (!erf || erf->op != IFD_OP_ERF) {
        return IFD_NONE;
    }
    const struct ifd_node *scaled = maker(s, erf->input[0]);
    if (scaled && scaled->op == IFD_OP_DIV && ifd_rewrite_activation(scaled) == IFD_ACT_NONE &&
        is_number(s->graph, scaled->input[1], 1.41421356f)) {
        return scaled->input[0];
    }
    return beside(s->graph, scaled, IFD_OP_MUL, 0.70710678f);
}

static bool is_product(const struct ifd_node *node)
{
    return node && node->op == IFD_OP_MUL && ifd_rewrite_activation(node) == IFD_ACT_NONE;
}

/* x, if node is its last product: 0.5 * (x * share), or (0.5 * x) * share. */
static uint32_t find(const struct search *s, const struct ifd_node *node)
{
    const struct ifd_node *inner = maker(s, beside(s->graph, node, IFD_OP_MUL, 0.5f));
    for (uint32_t i = 0; is_product(node) && i < 2; i++) {
        const uint32_t half = beside(s->graph, maker(s, node->input[i]), IFD_OP_MUL, 0.5f);
        if (half != IFD_NONE && twice_the_share(s, node->input[1 - i]) == half) {
            return half;
        }
        if (is_product(inner) && twice_the_share(s, inner->input[1 - i]) == inner->input[i]) {
            return inner->input[i];
        }
    }
    return IFD_NONE;
}

enum ifd_code ifd_pass_fuse_gelu(struct ifd_graph *graph, struct ifd_arena *scratch,
                                 uint32_t *ret_changes, struct ifd_err *err)
{
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    if (!uses) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    ifd_rewrite_count_uses(graph, uses);
    const struct search search = {graph, uses};
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        const uint32_t x = find(&search, node);
        if (x == IFD_NONE || !ifd_shape_equal(&graph->value[x].desc.shape,
                                              &graph->value[node->output[0]].desc.shape)) {
            continue;
        }
        struct ifd_gelu_attrs *attrs = ifd_arena_take(graph->arena, sizeof(*attrs));
        if (!attrs) {
            return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
        }
        node->op = IFD_OP_GELU;
        node->attrs = attrs;
        node->input[0] = x;
        node->input_count = 1;
        (*ret_changes)++;
    }
    return IFD_OK;
}
