/* An activation behind an operator that can apply it while it stores: conv2d → relu6 becomes conv2d
 * with relu6. An activation that the operator applies already is dropped. A quantized activation
 * must keep scale and zero point: then it only clamps. Of scales that are 0 or denormal its bounds
 * may be no numbers, which an operator with an activation refuses (ifd_infer_act_bounds). */
#include "engine/opt/pass_impl.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"

/* The activation that a node of one operand is; IFD_ACT_NONE if it is none. */
static int32_t activation_of(const struct ifd_graph *graph, const struct ifd_node *node)
{
    float min = 0, max = 0;
    if (node->input_count != 1 || !ifd_rewrite_clamps(graph, node, &min, &max)) {
        return IFD_ACT_NONE;
    }
    if (min == 0) {
        return max == 6 ? IFD_ACT_RELU6 : max >= FLT_MAX ? IFD_ACT_RELU : IFD_ACT_NONE;
    }
    return min == -1 && max == 1 ? IFD_ACT_RELU_N1_TO_1 : IFD_ACT_NONE;
}

/* first, then second, as one activation; IFD_ACT_NONE if there is none (relu6 after
 * relu_n1_to_1). */
static int32_t chain(int32_t first, int32_t second)
{
    if (first == IFD_ACT_NONE || first == second) {
        return second;
    }
    const bool both_from_0 = (first == IFD_ACT_RELU && second == IFD_ACT_RELU6) ||
                             (first == IFD_ACT_RELU6 && second == IFD_ACT_RELU);
    return both_from_0 ? IFD_ACT_RELU6 : IFD_ACT_NONE;
}

static bool keeps_numbers(const struct ifd_graph *graph, const struct ifd_node *node)
{
    const struct ifd_desc *in = &graph->value[node->input[0]].desc;
    const struct ifd_desc *out = &graph->value[node->output[0]].desc;
    return out->dtype == IFD_F32 ||
           (in->quant.count == 1 && isnormal(in->quant.scale[0]) && ifd_desc_equal(in, out));
}

/* base applies the activation and makes its output. */
static enum ifd_code fuse(struct ifd_graph *graph, struct ifd_node *base,
                          const struct ifd_node *node, int32_t activation, struct ifd_err *err)
{
    uint8_t *attrs = ifd_rewrite_own_attrs(graph, base);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, ifd_op_def(base->op)->attrs_bytes, err);
    }
    memcpy(attrs + ifd_rewrite_activation_offset(base->op), &activation, sizeof(activation));
    ifd_rewrite_store_instead(graph, base, node);
    return IFD_OK;
}

enum ifd_code ifd_pass_fuse_activation(struct ifd_graph *graph, struct ifd_arena *scratch,
                                       uint32_t *ret_changes, struct ifd_err *err)
{
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    if (!drop || !uses) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    ifd_rewrite_count_uses(graph, uses);
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct ifd_node *node = &graph->node[n];
        const int32_t activation = activation_of(graph, node);
        if (activation == IFD_ACT_NONE || uses[node->input[0]] != 1 ||
            !keeps_numbers(graph, node)) {
            continue;
        }
        struct ifd_node *base = ifd_rewrite_producer(graph, node->input[0]);
        if (!base || ifd_rewrite_activation_offset(base->op) == SIZE_MAX) {
            continue;
        }
        const int32_t both = chain(ifd_rewrite_activation(base), activation);
        if (both == IFD_ACT_NONE) {
            continue;
        }
        const enum ifd_code code = fuse(graph, base, node, both, err);
        if (code != IFD_OK) {
            return code;
        }
        drop[n] = true;
        (*ret_changes)++;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    return IFD_OK;
}
