/* A value is stored in half precision if it stays inside of the partition, and if all nodes that
 * make or read it can do that. */
#include "backends/gpuacc/halves.h"

#include <string.h>

/* Its kernels load and store what common.cl calls reals. */
static bool computes(const struct ifd_gpu_driver *driver)
{
    static const struct ifd_gpu_driver *const drivers[] = {
        &ifd_gpu_driver_conv2d,          &ifd_gpu_driver_transpose_conv2d,
        &ifd_gpu_driver_fully_connected, &ifd_gpu_driver_depthwise,
        &ifd_gpu_driver_elementwise,     &ifd_gpu_driver_pool2d,
        &ifd_gpu_driver_softmax,         &ifd_gpu_driver_reduce,
        &ifd_gpu_driver_resize_bilinear, &ifd_gpu_driver_batch_matmul,
    };
    bool is_there = false;
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        is_there |= driver == drivers[i];
    }
    return is_there;
}

/* Its kernels know the size of elements only. */
static bool moves(const struct ifd_gpu_driver *driver)
{
    return driver == &ifd_gpu_driver_moves || driver == &ifd_gpu_driver_pad ||
           driver == &ifd_gpu_driver_space_depth || driver == &ifd_gpu_driver_resize_nearest;
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

/* Are all floats that the node has stored in half precision? */
static bool has_halves_only(const struct ifd_partition_view *view,
                            const struct ifd_partition_node *node, const bool *is_half)
{
    bool only = true;
    for (uint32_t i = 0; i < operands(node); i++) {
        const uint32_t v = operand(node, i);
        only &= v == IFD_NO_VALUE || view->value[v].desc.dtype != IFD_F32 || is_half[v];
    }
    return only;
}

/* Returns whether one of them was stored in half precision. */
static bool widen(const struct ifd_partition_node *node, bool *is_half)
{
    bool changed = false;
    for (uint32_t i = 0; i < operands(node); i++) {
        const uint32_t v = operand(node, i);
        if (v != IFD_NO_VALUE && is_half[v]) {
            is_half[v] = false;
            changed = true;
        }
    }
    return changed;
}

static void choose(const struct ifd_gpu_lowering *lowering, bool *is_half)
{
    const struct ifd_partition_view *view = lowering->base.view;
    for (uint32_t v = 0; v < view->value_count; v++) {
        is_half[v] =
            view->value[v].role == IFD_VALUE_INTERNAL && view->value[v].desc.dtype == IFD_F32;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < view->node_count; n++) {
            const struct ifd_partition_node *node = &view->node[n];
            const struct ifd_gpu_driver *driver = lowering->driver[n];
            if (!computes(driver) && !(moves(driver) && has_halves_only(view, node, is_half))) {
                changed |= widen(node, is_half);
            }
        }
    }
}

/* ---- the view ---- */

/* A node that moves elements sees how they are stored. */
static enum ifd_code retype(struct ifd_gpu_lowering *lowering,
                            const struct ifd_partition_value *value,
                            struct ifd_partition_node *node, struct ifd_err *err)
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
        if (v != IFD_NO_VALUE && value[v].desc.dtype == IFD_F16) {
            input[i].desc = &value[v].desc;
        }
    }
    for (uint32_t i = 0; i < view->output_count; i++) {
        if (value[node->output_value[i]].desc.dtype == IFD_F16) {
            output[i].dtype = IFD_F16;
        }
    }
    view->input = input;
    view->output = output;
    return IFD_OK;
}

enum ifd_code ifd_gpu_choose_halves(struct ifd_gpu_lowering *lowering, struct ifd_err *err)
{
    struct ifd_lowering *base = &lowering->base;
    const struct ifd_partition_view *from = base->view;
    bool *is_half = ifd_low_params(base, from->value_count, sizeof(*is_half));
    struct ifd_partition_view *view = ifd_low_params(base, 1, sizeof(*view));
    struct ifd_partition_node *node = ifd_low_params(base, from->node_count, sizeof(*node));
    struct ifd_partition_value *value = ifd_low_params(base, from->value_count, sizeof(*value));
    if (!is_half || !view || !node || !value) {
        return ifd_arena_fail(base->arena, 0, err);
    }
    choose(lowering, is_half);
    memcpy(node, from->node, from->node_count * sizeof(*node));
    memcpy(value, from->value, from->value_count * sizeof(*value));
    for (uint32_t v = 0; v < from->value_count; v++) {
        if (is_half[v]) {
            value[v].desc.dtype = IFD_F16;
            lowering->precision = IFD_PRECISION_FP16;
        }
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t n = 0; code == IFD_OK && n < from->node_count; n++) {
        if (moves(lowering->driver[n])) {
            code = retype(lowering, value, &node[n], err);
        }
    }
    *view = *from;
    view->node = node;
    view->value = value;
    base->view = view;
    return code;
}

/* ---- calls ---- */

bool ifd_gpu_is_half(const struct ifd_gpu_lowering *lowering, uint32_t value)
{
    return lowering->base.value[value].view->desc.dtype == IFD_F16;
}

void ifd_gpu_define_reals(const struct ifd_gpu_lowering *lowering, struct ifd_gpu_call *call)
{
    static const char *const operand_name[] = {"IN", "B"};
    uint32_t in = 0, i = 0;
    for (; i < call->arg_count && call->arg[i].kind != IFD_GPU_ARG_OUT; i++) {
        if (call->arg[i].kind == IFD_GPU_ARG_IN && in < 2) {
            if (ifd_gpu_is_half(lowering, call->arg[i].value)) {
                ifd_gpu_define(call, "#define REAL_%s half\n", operand_name[in]);
            }
            in++;
        }
    }
    if (i < call->arg_count && ifd_gpu_is_half(lowering, call->arg[i].value)) {
        ifd_gpu_define(call, "#define REAL_OUT half\n");
    }
    for (uint32_t t = 0; i < call->arg_count; i++) {
        if (call->arg[i].kind == IFD_GPU_ARG_IN) {
            ifd_gpu_define(call, "#define REAL_T%u %s\n", t++,
                           ifd_gpu_is_half(lowering, call->arg[i].value) ? "half" : "float");
        }
    }
}
