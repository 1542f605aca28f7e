/* A value is narrow if it stays inside of the partition, if it leads to a layer, which rounds what it
 * reads, and if all nodes that make or read it can do that: layers and element-wise operators widen
 * what they read and narrow what they write, each operand for itself; operators that move elements
 * know only their size. */
#include "backends/cpuacc/narrow.h"

#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/driver.h"

#include <string.h>

/* A layer without groups and dilation. */
static bool multiplies(const struct ifd_acc_lowering *lowering, const struct ifd_acc_driver *driver,
                       const struct ifd_node_view *node)
{
    if ((driver != &ifd_acc_conv2d && driver != &ifd_acc_fully_connected) ||
        node->input[1].desc->dtype != IFD_F32) {
        return false;
    }
    const struct ifd_shape *in = &node->input[0].desc->shape;
    const struct ifd_shape *weights = &node->input[1].desc->shape;
    const bool is_conv = driver == &ifd_acc_conv2d;
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    const struct ifd_acc_layer layer = {
        .window = {.in_c = (size_t)weights->dim[weights->rank - 1],
                   .kh = is_conv ? (size_t)weights->dim[1] : 1,
                   .kw = is_conv ? (size_t)weights->dim[2] : 1},
        .groups = 1,
        .out_c = (size_t)weights->dim[0],
        .is_dilated = is_conv && (attrs->window.dilation_h > 1 || attrs->window.dilation_w > 1)};
    return (!is_conv || in->dim[3] == weights->dim[3]) && ifd_acc_narrow_stores(lowering, &layer);
}

/* Is the operand a constant number, or a constant row? */
static bool repeats(const struct ifd_operand *operand, const struct ifd_shape *out)
{
    const struct ifd_shape *shape = &operand->desc->shape;
    int64_t count = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        count *= shape->dim[d];
    }
    const int64_t row = out->rank ? out->dim[out->rank - 1] : 1;
    return operand->data.data &&
           (count == 1 || (count == row && shape->dim[shape->rank - 1] == row));
}

/* An element-wise operator that ops/tail.c makes a step of, or fuses. */
static bool goes_by_element(const struct ifd_acc_driver *driver, const struct ifd_node_view *node)
{
    const struct ifd_shape *out = &node->output[0].shape;
    if (driver != &ifd_acc_binary) {
        return driver == &ifd_acc_unary;
    }
    uint32_t same = 0;
    bool all = true;
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_same = ifd_shape_equal(&node->input[i].desc->shape, out);
        same += is_same;
        all = all && (is_same || repeats(&node->input[i], out));
    }
    return all && same > 0;
}

/* Its steps know the size of elements only. */
static bool moves(const struct ifd_acc_driver *driver, const struct ifd_node_view *node)
{
    return (driver == &ifd_acc_moves && node->op != IFD_OP_TRANSPOSE) || driver == &ifd_acc_pad ||
           driver == &ifd_acc_resize_nearest;
}

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

static bool takes(const struct ifd_acc_lowering *lowering, uint32_t n, const bool *is_narrow)
{
    const struct ifd_partition_view *view = lowering->base.view;
    const struct ifd_acc_driver *driver = lowering->driver[n];
    const struct ifd_node_view *node = &view->node[n].view;
    return multiplies(lowering, driver, node) || goes_by_element(driver, node) ||
           driver == &ifd_acc_max_pool2d || driver == &ifd_acc_average_pool2d ||
           (moves(driver, node) && has_only(view, &view->node[n], is_narrow));
}

/* Marks what layers read, themselves or through other nodes: what only leads to a result of the
 * partition keeps its digits. */
static void find_leading(const struct ifd_acc_lowering *lowering, bool *leads)
{
    const struct ifd_partition_view *view = lowering->base.view;
    for (uint32_t n = view->node_count; n-- > 0;) {
        const struct ifd_partition_node *node = &view->node[n];
        bool is_read = multiplies(lowering, lowering->driver[n], &node->view);
        for (uint32_t i = 0; i < node->view.output_count; i++) {
            is_read = is_read || leads[node->output_value[i]];
        }
        for (uint32_t i = 0; is_read && i < node->view.input_count; i++) {
            if (node->input_value[i] != IFD_NO_VALUE) {
                leads[node->input_value[i]] = true;
            }
        }
    }
}

/* Returns how many there are. */
static uint32_t choose(const struct ifd_acc_lowering *lowering, bool *is_narrow)
{
    const struct ifd_partition_view *view = lowering->base.view;
    uint32_t count = 0;
    find_leading(lowering, is_narrow);
    for (uint32_t v = 0; v < view->value_count; v++) {
        is_narrow[v] = is_narrow[v] && view->value[v].role == IFD_VALUE_INTERNAL &&
                       view->value[v].desc.dtype == IFD_F32;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < view->node_count; n++) {
            if (!takes(lowering, n, is_narrow)) {
                changed |= widen(&view->node[n], is_narrow);
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
static enum ifd_code retype(struct ifd_acc_lowering *lowering, struct ifd_partition_node *node,
                            const struct ifd_partition_value *value, struct ifd_err *err)
{
    struct ifd_node_view *view = &node->view;
    struct ifd_operand *input = ifd_low_params(&lowering->base, view->input_count, sizeof(*input));
    struct ifd_desc *output = ifd_low_params(&lowering->base, view->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(lowering->base.arena, 0, err);
    }
    memcpy(input, view->input, view->input_count * sizeof(*input));
    memcpy(output, view->output, view->output_count * sizeof(*output));
    for (uint32_t i = 0; i < view->input_count; i++) {
        const uint32_t v = node->input_value[i];
        if (v != IFD_NO_VALUE && value[v].desc.dtype == IFD_BF16) {
            input[i].desc = &value[v].desc;
        }
    }
    for (uint32_t i = 0; i < view->output_count; i++) {
        output[i].dtype = value[node->output_value[i]].desc.dtype;
    }
    view->input = input;
    view->output = output;
    return IFD_OK;
}

static enum ifd_code change_view(struct ifd_acc_lowering *lowering, const bool *is_narrow,
                                 struct ifd_err *err)
{
    struct ifd_lowering *base = &lowering->base;
    const struct ifd_partition_view *from = base->view;
    struct ifd_partition_view *view = ifd_low_params(base, 1, sizeof(*view));
    struct ifd_partition_node *node = ifd_low_params(base, from->node_count, sizeof(*node));
    struct ifd_partition_value *value = ifd_low_params(base, from->value_count, sizeof(*value));
    if (!view || !node || !value) {
        return ifd_arena_fail(base->arena, 0, err);
    }
    memcpy(node, from->node, from->node_count * sizeof(*node));
    memcpy(value, from->value, from->value_count * sizeof(*value));
    for (uint32_t v = 0; v < from->value_count; v++) {
        value[v].desc.dtype = is_narrow[v] ? IFD_BF16 : value[v].desc.dtype;
    }
    *view = *from;
    view->node = node;
    view->value = value;
    enum ifd_code code = IFD_OK;
    for (uint32_t n = 0; code == IFD_OK && n < from->node_count; n++) {
        if (moves(lowering->driver[n], &node[n].view)) {
            code = retype(lowering, &node[n], value, err);
        }
    }
    base->view = view;
    return code;
}

enum ifd_code ifd_acc_choose_narrow(struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    const struct ifd_partition_view *view = lowering->base.view;
    if (view->precision != IFD_PRECISION_BF16 || !lowering->kernels->gemm_bf16.widen) {
        return IFD_OK;
    }
    bool *is_narrow = ifd_low_params(&lowering->base, view->value_count, sizeof(*is_narrow));
    if (!is_narrow) {
        return ifd_arena_fail(lowering->base.arena, 0, err);
    }
    return choose(lowering, is_narrow) > 0 ? change_view(lowering, is_narrow, err) : IFD_OK;
}

/* ---- asking ---- */

bool ifd_acc_is_narrow(const struct ifd_acc_lowering *lowering, uint32_t value)
{
    return lowering->base.value[value].view->desc.dtype == IFD_BF16 &&
           lowering->base.value[value].view->role == IFD_VALUE_INTERNAL;
}

bool ifd_acc_has_narrow(const struct ifd_acc_lowering *lowering,
                        const struct ifd_partition_node *node)
{
    bool has = false;
    for (uint32_t i = 0; i < operands(node); i++) {
        const uint32_t v = operand(node, i);
        has = has || (v != IFD_NO_VALUE && ifd_acc_is_narrow(lowering, v));
    }
    return has;
}
