/* Which backend computes which node: the first in the caller's order that takes it. */
#include "engine/plan/plan_impl.h"

#include <string.h>

enum ifd_code ifd_plan_node_view(const struct ifd_graph *graph, const struct ifd_node *node,
                                 struct ifd_arena *scratch, struct ifd_node_view *ret_view,
                                 struct ifd_err *err)
{
    struct ifd_operand *input = ifd_arena_take_array(scratch, node->input_count, sizeof(*input));
    struct ifd_desc *output = ifd_arena_take_array(scratch, node->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(scratch, node->input_count * sizeof(*input), err);
    }
    ifd_graph_operands(graph, node, input);
    for (uint32_t i = 0; i < node->output_count; i++) {
        output[i] = graph->value[node->output[i]].desc;
    }
    *ret_view = (struct ifd_node_view){
        .name = node->output_count > 0 ? graph->value[node->output[0]].name : "",
        .op = node->op,
        .attrs = node->attrs,
        .input = input,
        .input_count = node->input_count,
        .output = output,
        .output_count = node->output_count};
    return IFD_OK;
}

/* "operator conv2d (CONV_2D), node 3, output "x": CpuAcc: dilation 7; CpuRef: …" */
static enum ifd_code nobody_takes(const struct ifd_node *node, const struct ifd_node_view *view,
                                  const struct ifd_err *reasons, struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    return ifd_fail(
        err, IFD_UNSUPPORTED, "no backend takes operator %s (%s), node %d, output \"%s\"%s",
        def ? def->name : "?", node->source_name ? node->source_name : "?",
        node->source_index == IFD_NONE ? -1 : (int)node->source_index, view->name, reasons->text);
}

static enum ifd_code assign_node(const struct ifd_node *node, const struct ifd_node_view *view,
                                 const struct ifd_plan_options *options, uint32_t *ret_backend,
                                 struct ifd_err *err)
{
    struct ifd_err reasons = {0};
    for (uint32_t i = 0; i < options->preference_count; i++) {
        struct ifd_backend_slot *slot = &options->registry->slot[options->preference[i]];
        struct ifd_err reason = {0};
        if (!slot->available) {
            reason = slot->reason;
        } else if (ifd_backend_slot_cost(slot, view, &reason) > 0) {
            *ret_backend = options->preference[i];
            return IFD_OK;
        }
        struct ifd_err before = reasons;
        ifd_fail(&reasons, IFD_UNSUPPORTED, "%s; %s: %s", before.text, slot->backend->name,
                 reason.text[0] != '\0' ? reason.text : "does not support it");
    }
    return nobody_takes(node, view, &reasons, err);
}

enum ifd_code ifd_plan_assign(const struct ifd_graph *graph, const struct ifd_plan_options *options,
                              struct ifd_arena *scratch, uint32_t *ret_backend, struct ifd_err *err)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node_view view;
        if (!ifd_op_def(graph->node[n].op)->ref) {
            ret_backend[n] = IFD_PLAN_CONTROL;
            continue;
        }
        enum ifd_code code = ifd_plan_node_view(graph, &graph->node[n], scratch, &view, err);
        if (code == IFD_OK) {
            code = assign_node(&graph->node[n], &view, options, &ret_backend[n], err);
        }
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}
