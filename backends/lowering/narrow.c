/* Values that all their nodes can store in a narrower type, and a view that says so. */
#include "backends/lowering/narrow.h"

#include <string.h>

/* ---- choosing ---- */

/* Operand i of a node: its inputs, then its outputs. */
static uint32_t operand(const struct ifd_partition_node *node, uint32_t i)
{
    const uint32_t inputs = node->view.input_count;
    return i < inputs ? node->input_value[i] : node->output_value[i - inputs];
}

static uint32_t operands(const struct ifd_partition_node *node)
{
    return node->view.input_count + node->view.output_count;
}

/* Are all floats of the node narrow? */
static bool has_only(const struct ifd_partition_view *view, const struct ifd_partition_node *node,
                     const bool *is_narrow)
{
    bool only = true;
    for (uint32_t i = 0; i < operands(node); i++) {
        const uint32_t v = operand(node, i);
        only = only && (v == IFD_NO_VALUE || view->value[v].desc.dtype != IFD_F32 || is_narrow[v]);
    }
    return only;
}

/* Returns whether one of them was narrow. */
static bool widen(const struct ifd_partition_node *node, bool *is_narrow)
{
    bool changed = false;
    for (uint32_t i = 0; i < operands(node); i++) {
        const uint32_t v = operand(node, i);
        if (v != IFD_NO_VALUE && is_narrow[v]) {
            is_narrow[v] = false;
            changed = true;
        }
    }
    return changed;
}

/* Returns how many there are. */
static uint32_t choose(const struct ifd_partition_view *view, const struct ifd_low_narrow *narrow,
                       bool *is_narrow)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < view->value_count; v++) {
        is_narrow[v] = is_narrow[v] && view->value[v].role == IFD_VALUE_INTERNAL &&
                       view->value[v].desc.dtype == IFD_F32;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < view->node_count; n++) {
            const struct ifd_partition_node *node = &view->node[n];
            if (!narrow->converts(narrow->context, n) &&
                !(narrow->moves(narrow->context, n) && has_only(view, node, is_narrow))) {
                changed |= widen(node, is_narrow);
            }
        }
    }
    for (uint32_t v = 0; v < view->value_count; v++) {
        count += is_narrow[v];
    }
    return count;
}

/* ---- the view ---- */

/* A node that moves elements sees how they are stored. */
static enum ifd_code retype(struct ifd_lowering *lowering, enum ifd_dtype dtype,
                            const struct ifd_partition_value *value,
                            struct ifd_partition_node *node, struct ifd_err *err)
{
    struct ifd_node_view *view = &node->view;
    struct ifd_operand *input = ifd_low_params(lowering, view->input_count, sizeof(*input));
    struct ifd_desc *output = ifd_low_params(lowering, view->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(lowering->arena, 0, err);
    }
    memcpy(input, view->input, view->input_count * sizeof(*input));
    memcpy(output, view->output, view->output_count * sizeof(*output));
    for (uint32_t i = 0; i < view->input_count; i++) {
        const uint32_t v = node->input_value[i];
        if (v != IFD_NO_VALUE && value[v].desc.dtype == dtype) {
            input[i].desc = &value[v].desc;
        }
    }
    for (uint32_t i = 0; i < view->output_count; i++) {
        if (value[node->output_value[i]].desc.dtype == dtype) {
            output[i].dtype = dtype;
        }
    }
    view->input = input;
    view->output = output;
    return IFD_OK;
}

static enum ifd_code change_view(struct ifd_lowering *lowering, const struct ifd_low_narrow *narrow,
                                 const bool *is_narrow, struct ifd_err *err)
{
    const struct ifd_partition_view *from = lowering->view;
    struct ifd_partition_view *view = ifd_low_params(lowering, 1, sizeof(*view));
    struct ifd_partition_node *node = ifd_low_params(lowering, from->node_count, sizeof(*node));
    struct ifd_partition_value *value = ifd_low_params(lowering, from->value_count, sizeof(*value));
    if (!view || !node || !value) {
        return ifd_arena_fail(lowering->arena, 0, err);
    }
    memcpy(node, from->node, from->node_count * sizeof(*node));
    memcpy(value, from->value, from->value_count * sizeof(*value));
    for (uint32_t v = 0; v < from->value_count; v++) {
        value[v].desc.dtype = is_narrow[v] ? narrow->dtype : value[v].desc.dtype;
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t n = 0; code == IFD_OK && n < from->node_count; n++) {
        if (narrow->moves(narrow->context, n)) {
            code = retype(lowering, narrow->dtype, value, &node[n], err);
        }
    }
    *view = *from;
    view->node = node;
    view->value = value;
    lowering->view = view;
    return code;
}

enum ifd_code ifd_low_narrow_values(struct ifd_lowering *lowering,
                                    const struct ifd_low_narrow *narrow, bool *is_narrow,
                                    uint32_t *ret_count, struct ifd_err *err)
{
    *ret_count = choose(lowering->view, narrow, is_narrow);
    return *ret_count > 0 ? change_view(lowering, narrow, is_narrow, err) : IFD_OK;
}
