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

static bool is_empty(const struct ifd_desc *desc)
{
    bool is_so = false;
    for (uint32_t d = 0; desc && d < desc->shape.rank; d++) {
        is_so = is_so || desc->shape.dim[d] == 0;
    }
    return is_so;
}

/* Data that has found nothing makes such nodes: backends with kernels of their own need not think
 * of them. */
static bool touches_empty(const struct ifd_node_view *view)
{
    bool touches = false;
    for (uint32_t i = 0; i < view->input_count; i++) {
        touches = touches || is_empty(view->input[i].desc);
    }
    for (uint32_t i = 0; i < view->output_count; i++) {
        touches = touches || is_empty(&view->output[i]);
    }
    return touches;
}

/* Asks the backends from number first of the list on. Returns the number of the one that takes the
 * node, or that of all; reasons: why the others do not. */
static uint32_t find(const struct ifd_node_view *view, const struct ifd_plan_options *options,
                     uint32_t first, uint32_t *ret_ns, struct ifd_err *reasons)
{
    const bool is_hard = touches_empty(view);
    for (uint32_t i = first; i < options->preference_count; i++) {
        struct ifd_backend_slot *slot = &options->registry->slot[options->preference[i]];
        struct ifd_err reason = {0};
        if (is_hard && !slot->backend->per_node) {
            ifd_fail(reasons, IFD_UNSUPPORTED, "; %s: an empty tensor", slot->backend->name);
            continue;
        }
        const bool is_open = ifd_registry_open(options->registry, options->preference[i], &reason);
        *ret_ns = is_open ? ifd_backend_slot_cost(slot, view, &reason) : 0;
        if (*ret_ns > 0) {
            return i;
        }
        const struct ifd_err before = *reasons;
        ifd_fail(reasons, IFD_UNSUPPORTED, "%s; %s: %s", before.text, slot->name,
                 reason.text[0] != '\0' ? reason.text : "does not support it");
    }
    return options->preference_count;
}

static enum ifd_code assign_node(const struct ifd_node *node, const struct ifd_node_view *view,
                                 const struct ifd_plan_options *options, struct ifd_choice *ret,
                                 struct ifd_err *err)
{
    struct ifd_err reasons = {0};
    struct ifd_choice choice = {.other = IFD_NONE};
    const uint32_t chosen = find(view, options, 0, &choice.cost_ns, &reasons);
    if (chosen == options->preference_count) {
        return nobody_takes(node, view, &reasons, err);
    }
    choice.backend = options->preference[chosen];
    if (options->registry->slot[choice.backend].backend->memory) {
        const uint32_t next = find(view, options, chosen + 1, &choice.other_ns, &reasons);
        choice.other =
            next < options->preference_count ? options->preference[next] : (uint32_t)IFD_NONE;
    }
    *ret = choice;
    return IFD_OK;
}

enum ifd_code ifd_plan_assign(const struct ifd_graph *graph, const struct ifd_plan_options *options,
                              struct ifd_arena *scratch, struct ifd_choice *ret_choice,
                              struct ifd_err *err)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node_view view;
        if (!ifd_op_def(graph->node[n].op)->ref) {
            ret_choice[n] = (struct ifd_choice){.backend = IFD_PLAN_CONTROL, .other = IFD_NONE};
            continue;
        }
        enum ifd_code code = ifd_plan_node_view(graph, &graph->node[n], scratch, &view, err);
        if (code == IFD_OK) {
            code = assign_node(&graph->node[n], &view, options, &ret_choice[n], err);
        }
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}
