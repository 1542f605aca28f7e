/* Constants in a row: x * a * b is x * (a * b), x + a - b is x + (a - b). Floats only; constants
 * are one number, or one per channel. */
#include "engine/opt/pass_impl.h"

#include <math.h>

#include "engine/ir/shape.h"

/* A node that computes tensor * factor(c) or tensor + factor(c), for channel c. */
struct link {
    uint32_t tensor, constant;
    const float *data;
    size_t count;
    bool multiplies, inverts; /* x / c, x - c */
};

static bool is_linear(const struct ifd_node *node)
{
    return node->op == IFD_OP_MUL || node->op == IFD_OP_DIV || node->op == IFD_OP_ADD ||
           node->op == IFD_OP_SUB;
}

static bool find(const struct ifd_graph *graph, const struct ifd_node *node, struct link *ret)
{
    const bool commutes = node->op == IFD_OP_MUL || node->op == IFD_OP_ADD;
    for (uint32_t i = 0; is_linear(node) && i < (commutes ? 2 : 1); i++) {
        const uint32_t tensor = node->input[i], constant = node->input[1 - i];
        size_t count = 0;
        const float *data = ifd_rewrite_floats(graph, constant, &count);
        const struct ifd_value *value = &graph->value[tensor];
        if (data && !value->is_constant &&
            ifd_shape_equal(&value->desc.shape, &graph->value[node->output[0]].desc.shape) &&
            ifd_rewrite_is_per_channel(graph, constant, &value->desc.shape)) {
            *ret = (struct link){.tensor = tensor,
                                 .constant = constant,
                                 .data = data,
                                 .count = count,
                                 .multiplies = node->op == IFD_OP_MUL || node->op == IFD_OP_DIV,
                                 .inverts = !commutes};
            return true;
        }
    }
    return false;
}

static float factor(const struct link *link, size_t c)
{
    const float x = link->data[c % link->count];
    return !link->inverts ? x : link->multiplies ? 1.0f / x : -x;
}

static float both(const struct link *a, const struct link *b, size_t c)
{
    return a->multiplies ? factor(a, c) * factor(b, c) : factor(a, c) + factor(b, c);
}

/* False if a merged constant overflows or, as a factor, is not normal: the two steps stay. */
static bool can_merge(const struct link *a, const struct link *b, size_t count)
{
    bool ok = true;
    for (size_t c = 0; c < count; c++) {
        ok &= a->multiplies ? isnormal(both(a, b, c)) != 0 : isfinite(both(a, b, c)) != 0;
    }
    return ok;
}

static enum ifd_code merge(struct ifd_graph *graph, uint32_t n, const struct link *first,
                           const struct link *second, uint32_t *ret_changes, struct ifd_err *err)
{
    const struct link *wide = first->count > second->count ? first : second;
    const struct ifd_shape shape = graph->value[wide->constant].desc.shape;
    float *data = NULL;
    uint32_t constant = IFD_NONE;
    if (!can_merge(first, second, wide->count)) {
        return IFD_OK;
    }
    const enum ifd_code code =
        ifd_rewrite_add_floats(graph, wide->constant, &shape, &data, &constant, err);
    if (code != IFD_OK) {
        return code;
    }
    for (size_t c = 0; c < wide->count; c++) {
        data[c] = both(first, second, c);
    }
    struct ifd_node *node = &graph->node[n];
    node->op = first->multiplies ? IFD_OP_MUL : IFD_OP_ADD; /* all four share their attributes */
    node->input[0] = first->tensor;
    node->input[1] = constant;
    (*ret_changes)++;
    return IFD_OK;
}

enum ifd_code ifd_pass_merge_scale(struct ifd_graph *graph, struct ifd_arena *scratch,
                                   uint32_t *ret_changes, struct ifd_err *err)
{
    const uint32_t values = graph->value_count;
    uint32_t *uses = ifd_arena_take_array(scratch, values, sizeof(*uses));
    if (!uses) {
        return ifd_arena_fail(scratch, values * sizeof(*uses), err);
    }
    ifd_rewrite_count_uses(graph, uses);
    enum ifd_code code = IFD_OK;
    *ret_changes = 0;
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        struct link first, second;
        if (!find(graph, &graph->node[n], &second)) {
            continue;
        }
        const struct ifd_node *before = ifd_rewrite_producer(graph, second.tensor);
        if (before && uses[second.tensor] == 1 && ifd_rewrite_activation(before) == IFD_ACT_NONE &&
            find(graph, before, &first) && first.multiplies == second.multiplies) {
            code = merge(graph, n, &first, &second, ret_changes, err);
        }
    }
    return code;
}
