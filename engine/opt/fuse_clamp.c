/* maximum and minimum with a number each are a clamp, and clamps in a row are one. Floats only. A
 * clamp returns NaN for NaN, a maximum need not. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

static bool clamps(const struct ifd_graph *graph, const struct ifd_node *node, float *ret_min,
                   float *ret_max)
{
    return graph->value[node->output[0]].desc.dtype == IFD_F32 &&
           ifd_rewrite_clamps(graph, node, ret_min, ret_max);
}

/* The operand that is clamped; IFD_NONE if the other one decides the shape. */
static uint32_t bounded(const struct ifd_graph *graph, const struct ifd_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct ifd_value *value = &graph->value[node->input[i]];
        if (!value->is_constant &&
            ifd_shape_equal(&value->desc.shape, &graph->value[node->output[0]].desc.shape)) {
            return node->input[i];
        }
    }
    return IFD_NONE;
}

static float within(float x, float min, float max)
{
    return x < min ? min : x > max ? max : x;
}

/* node becomes clamp(input, min, max). */
static enum ifd_code make_clamp(struct ifd_graph *graph, struct ifd_node *node, uint32_t input,
                                float min, float max, struct ifd_err *err)
{
    struct ifd_clamp_attrs *attrs = ifd_arena_take(graph->arena, sizeof(*attrs));
    if (!attrs) {
        return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
    }
    *attrs = (struct ifd_clamp_attrs){.min = min, .max = max};
    node->op = IFD_OP_CLAMP;
    node->attrs = attrs;
    node->input[0] = input;
    node->input_count = 1;
    return IFD_OK;
}

enum ifd_code ifd_pass_fuse_clamp(struct ifd_graph *graph, struct ifd_arena *scratch,
                                  uint32_t *ret_changes, struct ifd_err *err)
{
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    if (!uses) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    ifd_rewrite_count_uses(graph, uses);
    enum ifd_code code = IFD_OK;
    *ret_changes = 0;
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        float min = 0, max = 0, inner_min = 0, inner_max = 0;
        if (!clamps(graph, node, &min, &max)) {
            continue;
        }
        uint32_t input = bounded(graph, node);
        const struct ifd_node *inner = ifd_rewrite_producer(graph, input);
        const bool joins = inner && uses[input] == 1 &&
                           clamps(graph, inner, &inner_min, &inner_max) &&
                           bounded(graph, inner) != IFD_NONE;
        if (joins) {
            input = bounded(graph, inner);
            const float outer_min = min, outer_max = max;
            min = within(inner_min, outer_min, outer_max);
            max = within(inner_max, outer_min, outer_max);
        }
        if (joins || (input != IFD_NONE && node->input_count == 2)) {
            code = make_clamp(graph, node, input, min, max, err);
            (*ret_changes)++;
        }
    }
    return code;
}
