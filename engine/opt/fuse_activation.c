/* An activation behind an operator that can apply it while it stores: conv2d → relu6 becomes conv2d with relu6. Floats
 * only: a quantized activation may bring its own scale. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Where the activation lies in an operator's attributes; SIZE_MAX if it has none. */
static size_t activation_offset(enum ifd_op op)
{
    switch (op) {
    case IFD_OP_CONV2D:
    case IFD_OP_DEPTHWISE_CONV2D:
        return offsetof(struct ifd_conv2d_attrs, activation);
    case IFD_OP_TRANSPOSE_CONV2D:
        return offsetof(struct ifd_transpose_conv2d_attrs, activation);
    case IFD_OP_FULLY_CONNECTED:
        return offsetof(struct ifd_fully_connected_attrs, activation);
    case IFD_OP_AVERAGE_POOL2D:
    case IFD_OP_MAX_POOL2D:
        return offsetof(struct ifd_pool2d_attrs, activation);
    case IFD_OP_ADD:
    case IFD_OP_SUB:
    case IFD_OP_MUL:
    case IFD_OP_DIV:
        return offsetof(struct ifd_binary_attrs, activation);
    default:
        return SIZE_MAX;
    }
}

static int32_t activation_of(const struct ifd_node *node)
{
    const struct ifd_clamp_attrs *clamp = node->attrs;
    switch (node->op) {
    case IFD_OP_RELU:
        return IFD_ACT_RELU;
    case IFD_OP_RELU6:
        return IFD_ACT_RELU6;
    case IFD_OP_RELU_N1_TO_1:
        return IFD_ACT_RELU_N1_TO_1;
    case IFD_OP_CLAMP:
        return clamp->min == 0 && clamp->max == 6               ? IFD_ACT_RELU6
               : clamp->min == 0 && clamp->max >= 3.4028234e38f ? IFD_ACT_RELU
               : clamp->min == -1 && clamp->max == 1            ? IFD_ACT_RELU_N1_TO_1
                                                                : IFD_ACT_NONE;
    default:
        return IFD_ACT_NONE;
    }
}

/* Replaces producer's output by the activation's. */
static enum ifd_code fuse(struct ifd_graph *graph, uint32_t producer, uint32_t n,
                          int32_t activation, struct ifd_err *err)
{
    struct ifd_node *base = &graph->node[producer];
    const size_t bytes = ifd_op_def(base->op)->attrs_bytes;
    uint8_t *attrs = ifd_arena_take(graph->arena, bytes);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, bytes, err);
    }
    memcpy(attrs, base->attrs, bytes);
    memcpy(attrs + activation_offset(base->op), &activation, sizeof(activation));
    base->attrs = attrs;
    graph->value[base->output[0]].producer = IFD_NONE;
    base->output[0] = graph->node[n].output[0];
    graph->value[base->output[0]].producer = producer;
    return IFD_OK;
}

static void count_uses(const struct ifd_graph *graph, uint32_t *uses)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            if (graph->node[n].input[i] != IFD_NONE) {
                uses[graph->node[n].input[i]]++;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uses[graph->output[i]]++;
    }
}

enum ifd_code ifd_pass_fuse_activation(struct ifd_graph *graph, struct ifd_arena *scratch,
                                       uint32_t *ret_changes, struct ifd_err *err)
{
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    if (!drop || !uses) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    count_uses(graph, uses);
    uint32_t changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct ifd_node *node = &graph->node[n];
        const int32_t activation = activation_of(node);
        if (activation == IFD_ACT_NONE || graph->value[node->output[0]].desc.dtype != IFD_F32) {
            continue;
        }
        const uint32_t producer = graph->value[node->input[0]].producer;
        const size_t at =
            producer == IFD_NONE ? SIZE_MAX : activation_offset(graph->node[producer].op);
        int32_t present = IFD_ACT_RELU;
        if (at != SIZE_MAX) {
            memcpy(&present, (const uint8_t *)graph->node[producer].attrs + at, sizeof(present));
        }
        if (present != IFD_ACT_NONE || uses[node->input[0]] != 1) {
            continue;
        }
        const enum ifd_code code = fuse(graph, producer, n, activation, err);
        if (code != IFD_OK) {
            return code;
        }
        drop[n] = true;
        changes++;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    *ret_changes = changes;
    return IFD_OK;
}
