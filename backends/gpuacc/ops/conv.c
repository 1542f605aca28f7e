/* conv2d; transpose_conv2d, whose operands are put in the order of conv2d; fully_connected as a
 * convolution of one pixel. */
#include "backends/gpuacc/ops/conv_layer.h"
#include "backends/gpuacc/ops/dynamic.h"
#include "inferd/op_attrs.h"

/* ---- conv2d ---- */

static bool conv2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    if (!ifd_gpu_layer_takes(node, attrs->activation, reason)) {
        return false;
    }
    const int64_t in_c = node->input[0].desc->shape.dim[3];
    const int64_t group_c = node->input[1].desc->shape.dim[3];
    const int64_t groups = in_c / group_c;
    if (groups > 1 && node->output[0].shape.dim[3] / groups % 4 != 0) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "groups of %lld output channels, expected a multiple of 4",
                 (long long)(node->output[0].shape.dim[3] / groups));
        return false;
    }
    return true;
}

static enum ifd_code conv2d_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    struct ifd_gpu_conv_layer layer = {.name = "conv2d", .activation = attrs->activation};
    const enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &layer.window, err);
    if (code != IFD_OK) {
        return code;
    }
    layer.out_c = (size_t)node->view.output[0].shape.dim[3];
    layer.pixels = layer.window.batch * layer.window.out_h * layer.window.out_w;
    layer.groups = layer.window.in_c / (size_t)node->view.input[1].desc->shape.dim[3];
    return ifd_gpu_lower_conv_layer(lowering, &layer, &node->view, node->input_value[0],
                                    node->output_value[0], err);
}

const struct ifd_gpu_driver ifd_gpu_driver_conv2d = {conv2d_takes, conv2d_lower};

/* ---- transpose_conv2d ---- */

/* The node with its operands in the order of conv2d. operand: memory for them. */
static struct ifd_node_view as_conv2d(const struct ifd_node_view *node,
                                      struct ifd_operand operand[3])
{
    struct ifd_node_view view = *node;
    operand[0] = node->input[2];
    operand[1] = node->input[1];
    operand[2] = node->input_count > 3 ? node->input[3] : (struct ifd_operand){NULL, {NULL, 0}};
    view.input = operand;
    view.input_count = 3;
    return view;
}

/* The window lies over the output. */
static bool transposed_window(const struct ifd_node_view *node, struct ifd_window_size *ret)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->attrs;
    const int64_t *filter = node->input[1].desc->shape.dim, *out = node->output[0].shape.dim;
    return ifd_window_resolve(&attrs->window, filter[1], filter[2], out[1], out[2], ret);
}

static bool transpose_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->attrs;
    struct ifd_operand operand[3];
    struct ifd_window_size size;
    const struct ifd_node_view view = as_conv2d(node, operand);
    if (!node->input[0].data.data || attrs->window.dilation_h != 1 ||
        attrs->window.dilation_w != 1 || !transposed_window(node, &size)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "an output shape that is computed, or a dilation");
        return false;
    }
    return ifd_gpu_layer_takes(&view, attrs->activation, reason);
}

static enum ifd_code transpose_lower(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->view.attrs;
    struct ifd_operand operand[3];
    struct ifd_window_size size;
    const struct ifd_node_view view = as_conv2d(&node->view, operand);
    const int64_t *in = view.input[0].desc->shape.dim, *out = view.output[0].shape.dim;
    const int64_t *filter = view.input[1].desc->shape.dim;
    if (!transposed_window(&node->view, &size)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    struct ifd_gpu_conv_layer layer = {.name = "transpose_conv2d",
                                       .activation = attrs->activation,
                                       .is_transposed = true,
                                       .out_c = (size_t)out[3],
                                       .pixels = (size_t)(out[0] * out[1] * out[2]),
                                       .groups = 1,
                                       .window = {.batch = (size_t)in[0],
                                                  .in_h = (size_t)in[1],
                                                  .in_w = (size_t)in[2],
                                                  .in_c = (size_t)in[3],
                                                  .out_h = (size_t)out[1],
                                                  .out_w = (size_t)out[2],
                                                  .kh = (size_t)filter[1],
                                                  .kw = (size_t)filter[2],
                                                  .stride_y = (size_t)attrs->window.stride_h,
                                                  .stride_x = (size_t)attrs->window.stride_w,
                                                  .dilation_y = 1,
                                                  .dilation_x = 1,
                                                  .pad_top = (size_t)size.pad_top,
                                                  .pad_left = (size_t)size.pad_left}};
    return ifd_gpu_lower_conv_layer(lowering, &layer, &view, node->input_value[2],
                                    node->output_value[0], err);
}

const struct ifd_gpu_driver ifd_gpu_driver_transpose_conv2d = {transpose_takes, transpose_lower};

/* ---- fully_connected ---- */

static bool fully_connected_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    return ifd_gpu_dynamic_takes(node) || ifd_gpu_layer_takes(node, attrs->activation, reason);
}

static enum ifd_code fully_connected_lower(struct ifd_gpu_lowering *lowering,
                                           const struct ifd_partition_node *node,
                                           struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const struct ifd_shape *weights = &node->view.input[1].desc->shape;
    const size_t rows =
        ifd_gpu_elements(&node->view.input[0].desc->shape) / (size_t)weights->dim[1];
    if (ifd_gpu_dynamic_takes(&node->view)) {
        return ifd_gpu_dynamic_lower(lowering, node, err);
    }
    struct ifd_gpu_conv_layer layer = {.name = "fully_connected",
                                       .activation = attrs->activation,
                                       .out_c = (size_t)weights->dim[0],
                                       .pixels = rows,
                                       .groups = 1,
                                       .window = {.batch = rows,
                                                  .in_h = 1,
                                                  .in_w = 1,
                                                  .in_c = (size_t)weights->dim[1],
                                                  .out_h = 1,
                                                  .out_w = 1,
                                                  .kh = 1,
                                                  .kw = 1,
                                                  .stride_y = 1,
                                                  .stride_x = 1,
                                                  .dilation_y = 1,
                                                  .dilation_x = 1}};
    return ifd_gpu_lower_conv_layer(lowering, &layer, &node->view, node->input_value[0],
                                    node->output_value[0], err);
}

const struct ifd_gpu_driver ifd_gpu_driver_fully_connected = {fully_connected_takes,
                                                              fully_connected_lower};
