/* conv2d; transpose_conv2d, whose operands are put in the order of conv2d; fully_connected as a
 * convolution of one pixel. */
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/tail.h"
#include "engine/tensor/half.h"
#include "inferd/op_attrs.h"

#include <stdio.h>
#include <string.h>

/* A layer, and how its work is divided. */
struct layer {
    const char *name;
    struct ifd_low_window window;
    size_t pixels, out_c, groups;
    int32_t activation;
    bool is_transposed;
    size_t block_pixels, block_slices; /* of a work item; a slice is 4 channels */
};

static size_t round_up(size_t x, size_t unit)
{
    return (x + unit - 1) / unit * unit;
}

static size_t group_in(const struct layer *layer)
{
    return layer->window.in_c / layer->groups;
}

static size_t weights_row(const struct layer *layer)
{
    return round_up(layer->out_c, 4 * layer->block_slices);
}

static size_t taps(const struct layer *layer)
{
    return layer->window.kh * layer->window.kw;
}

static bool is_pointwise(const struct layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return taps(layer) == 1 && !layer->is_transposed && w->stride_y == 1 && w->stride_x == 1 &&
           !w->is_padded && w->in_h == w->out_h && w->in_w == w->out_w;
}

/* ---- weights ---- */

struct pack {
    size_t out_c, row, inner; /* inner: taps × input channels of a group */
};

/* [oc][tap][ic] becomes [tap][ic][oc]. */
static void pack_f32(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const float *in = source;
    float *out = packed;
    memset(out, 0, p->inner * p->row * sizeof(*out));
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = in[c * p->inner + i];
        }
    }
}

static void pack_f16(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const float *in = source;
    uint16_t *out = packed;
    memset(out, 0, p->inner * p->row * sizeof(*out));
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = ifd_f16_from_f32(in[c * p->inner + i]);
        }
    }
}

static void pack_q8(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const uint8_t *in = source;
    uint8_t *out = packed;
    memset(out, 0, p->inner * p->row);
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = in[c * p->inner + i];
        }
    }
}

static enum ifd_code add_constants(struct ifd_gpu_lowering *lowering, const struct layer *layer,
                                   const struct ifd_node_view *node, struct ifd_gpu_call *call,
                                   struct ifd_err *err)
{
    const bool is_q8 = ifd_gpu_is_q8(node->output[0].dtype);
    const bool is_f16 = ifd_gpu_has_f16_weights(lowering, node);
    struct pack *pack = ifd_low_params(&lowering->base, 1, sizeof(*pack));
    if (!pack) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*pack), err);
    }
    *pack = (struct pack){
        .out_c = layer->out_c, .row = weights_row(layer), .inner = taps(layer) * group_in(layer)};
    const ifd_gpu_pack_fn fn = is_q8 ? pack_q8 : is_f16 ? pack_f16 : pack_f32;
    const size_t bytes = is_q8 ? 1 : is_f16 ? sizeof(uint16_t) : sizeof(float); /* of a weight */
    ifd_gpu_constant(call, fn, pack, node->input[1].data.data, pack->inner * pack->row * bytes);
    return ifd_gpu_layer_constants(lowering, node, layer->out_c, weights_row(layer), call, err);
}

/* ---- the step ---- */

/* Larger blocks read less; smaller ones make enough work items to fill the device. */
static void choose_block(const struct ifd_device *device, struct layer *layer)
{
    const size_t wanted = device->info.compute_units * (device->info.is_gpu ? 512 : 1);
    const size_t slices = (layer->out_c + 3) / 4;
    layer->block_slices = 1;
    layer->block_pixels = 8;
    while (layer->block_pixels > 1 && (layer->block_pixels > layer->pixels ||
                                       layer->pixels / layer->block_pixels * slices < wanted)) {
        layer->block_pixels /= 2;
    }
}

static void add_numbers(const struct layer *layer, struct ifd_gpu_call *call)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t numbers[] = {layer->pixels,   w->in_h,
                              w->in_w,         w->in_c,
                              w->out_h,        w->out_w,
                              layer->out_c,    weights_row(layer),
                              group_in(layer), layer->out_c / layer->groups,
                              w->kh,           w->kw,
                              w->stride_y,     w->stride_x,
                              w->dilation_y,   w->dilation_x,
                              w->pad_top,      w->pad_left};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(call, (int64_t)numbers[i]);
    }
}

/* node: input 0, weights 1, bias 2. in, result: values. */
static enum ifd_code lower_layer(struct ifd_gpu_lowering *lowering, struct layer *layer,
                                 const struct ifd_node_view *node, uint32_t in, uint32_t result,
                                 struct ifd_err *err)
{
    const bool is_q8 = ifd_gpu_is_q8(node->output[0].dtype);
    struct ifd_gpu_tail tail = {.count = 0};
    struct ifd_gpu_call call = ifd_gpu_call(is_q8 ? IFD_GPU_conv2d_q8 : IFD_GPU_conv2d);
    char name[128];
    choose_block(lowering->device, layer);
    const uint32_t out = ifd_gpu_take_tail(lowering, result, &tail);
    ifd_gpu_define(&call, "#define PIXELS %zu\n#define SLICES %zu\n%s", layer->block_pixels,
                   layer->block_slices,
                   is_pointwise(layer)    ? "#define POINTWISE\n"
                   : layer->is_transposed ? "#define TRANSPOSED\n"
                                          : "");
    if (is_q8) {
        ifd_gpu_define(&call, "#define Q %s\n", ifd_gpu_q8_type(node->output[0].dtype));
    }
    if (ifd_gpu_has_f16_weights(lowering, node)) {
        ifd_gpu_define(&call, "#define W16\n");
        lowering->precision = IFD_PRECISION_FP16;
    }
    ifd_gpu_in(&call, in);
    const enum ifd_code code = add_constants(lowering, layer, node, &call, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_gpu_out(&call, out);
    add_numbers(layer, &call);
    ifd_gpu_layer_bounds(node, layer->activation, &call);
    ifd_gpu_tail_finish(&tail, &call);
    ifd_gpu_items(&call, weights_row(layer) / (4 * layer->block_slices),
                  (layer->pixels + layer->block_pixels - 1) / layer->block_pixels, 1);
    (void)snprintf(name, sizeof(name), "%s%s", layer->name, tail.name);
    return ifd_gpu_add_step(lowering, &call, name,
                            layer->pixels * layer->out_c * taps(layer) * group_in(layer), err);
}

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
    struct layer layer = {.name = "conv2d", .activation = attrs->activation};
    const enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &layer.window, err);
    if (code != IFD_OK) {
        return code;
    }
    layer.out_c = (size_t)node->view.output[0].shape.dim[3];
    layer.pixels = layer.window.batch * layer.window.out_h * layer.window.out_w;
    layer.groups = layer.window.in_c / (size_t)node->view.input[1].desc->shape.dim[3];
    return lower_layer(lowering, &layer, &node->view, node->input_value[0], node->output_value[0],
                       err);
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
    struct layer layer = {.name = "transpose_conv2d",
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
    return lower_layer(lowering, &layer, &view, node->input_value[2], node->output_value[0], err);
}

const struct ifd_gpu_driver ifd_gpu_driver_transpose_conv2d = {transpose_takes, transpose_lower};

/* ---- fully_connected ---- */

static bool fully_connected_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    return ifd_gpu_layer_takes(node, attrs->activation, reason);
}

static enum ifd_code fully_connected_lower(struct ifd_gpu_lowering *lowering,
                                           const struct ifd_partition_node *node,
                                           struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const struct ifd_shape *weights = &node->view.input[1].desc->shape;
    const size_t rows =
        ifd_gpu_elements(&node->view.input[0].desc->shape) / (size_t)weights->dim[1];
    struct layer layer = {.name = "fully_connected",
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
    return lower_layer(lowering, &layer, &node->view, node->input_value[0], node->output_value[0],
                       err);
}

const struct ifd_gpu_driver ifd_gpu_driver_fully_connected = {fully_connected_takes,
                                                              fully_connected_lower};
