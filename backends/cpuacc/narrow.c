/* A value may be narrow if it leads to a layer, which rounds what it reads. Layers and element-wise
 * operators convert; operators that move elements know only their size. */
#include "backends/cpuacc/narrow.h"

#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/driver.h"
#include "backends/lowering/narrow.h"

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

static bool converts(const void *context, uint32_t n)
{
    const struct ifd_acc_lowering *lowering = context;
    const struct ifd_acc_driver *driver = lowering->driver[n];
    const struct ifd_node_view *node = &lowering->base.view->node[n].view;
    return multiplies(lowering, driver, node) || goes_by_element(driver, node) ||
           driver == &ifd_acc_max_pool2d || driver == &ifd_acc_average_pool2d;
}

static bool moves(const void *context, uint32_t n)
{
    const struct ifd_acc_lowering *lowering = context;
    const struct ifd_acc_driver *driver = lowering->driver[n];
    return (driver == &ifd_acc_moves && lowering->base.view->node[n].view.op != IFD_OP_TRANSPOSE) ||
           driver == &ifd_acc_pad || driver == &ifd_acc_resize_nearest;
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
    find_leading(lowering, is_narrow);
    const struct ifd_low_narrow narrow = {
        .dtype = IFD_BF16, .context = lowering, .converts = converts, .moves = moves};
    uint32_t count = 0;
    return ifd_low_narrow_values(&lowering->base, &narrow, is_narrow, &count, err);
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
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        const uint32_t v = node->input_value[i];
        has = has || (v != IFD_NO_VALUE && ifd_acc_is_narrow(lowering, v));
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        has = has || ifd_acc_is_narrow(lowering, node->output_value[i]);
    }
    return has;
}
