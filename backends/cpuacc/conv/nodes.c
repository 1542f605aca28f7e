/* conv2d and fully_connected: nodes become layers, together with the nodes that are fused. */
#include "backends/cpuacc/conv/choose.h"
#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/narrow.h"

/* A residual that can be added while the sums are stored, under an activation that is a clamp.
 * narrows: the layer can add and write what is narrow. */
static bool find_residual(const struct ifd_acc_lowering *lowering, uint32_t made, bool narrows,
                          uint32_t *ret_add, uint32_t *ret_other, float *ret_min, float *ret_max)
{
    if (!ifd_low_find_residual(&lowering->base, made, ret_add, ret_other) ||
        (!narrows && ifd_acc_has_narrow(lowering, &lowering->base.view->node[*ret_add]))) {
        return false;
    }
    const struct ifd_binary_attrs *attrs = lowering->base.view->node[*ret_add].view.attrs;
    return ifd_low_clamp_f32(attrs->activation, ret_min, ret_max);
}

/* Fuses the nodes that the layer's step can do as well. Returns the value that the step makes; the
 * values that it adds go to operands. */
static uint32_t fuse_followers(struct ifd_acc_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_acc_layer *layer,
                               int32_t activation, uint32_t operands[IFD_ACC_STEP_INPUTS])
{
    const bool stores = layer->groups == 1 && ifd_acc_narrow_stores(lowering, layer);
    uint32_t out = node->output_value[0], add = 0, other = 0;
    const bool fuses = !layer->product.is_q8 && activation == IFD_ACT_NONE &&
                       find_residual(lowering, out, stores, &add, &other, &layer->product.min,
                                     &layer->product.max);
    if (fuses) {
        operands[1] = other;
        out = lowering->base.view->node[add].output_value[0];
        ifd_low_fuse_node(&lowering->base, add);
        layer->narrow_add = ifd_acc_is_narrow(lowering, other);
    }
    out = ifd_acc_take_tail(lowering, out, 2, operands, stores, &layer->tail);
    layer->narrow_out = ifd_acc_is_narrow(lowering, out);
    layer->out_element = layer->narrow_out ? sizeof(uint16_t) : layer->out_element;
    if (fuses && layer->out_c >= lowering->kernels->gemm_f32.lanes()) {
        /* otherwise pixels may be grouped, and the residual is read twice */
        (void)ifd_low_in_place(&lowering->base, other, out);
    }
    layer->adds = fuses;
    layer->out_stride = layer->groups * layer->out_c;
    const struct ifd_low_accepts accepts = ifd_acc_accepts(lowering);
    layer->is_slice = ifd_low_take_slice(&lowering->base, out, &accepts, &layer->out_stride);
    return out;
}

static enum ifd_acc_quantize_form input_form(const struct ifd_partition_node *node,
                                             const struct ifd_acc_product *product)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    return node->view.op != IFD_OP_FULLY_CONNECTED || product->is_whole ? ifd_acc_conv_form(product)
           : attrs->asymmetric_inputs ? IFD_ACC_QUANTIZE_ASYMMETRIC
                                      : IFD_ACC_QUANTIZE_SYMMETRIC;
}

/* layer: as its node describes it. Fusing changes it before an algorithm sees it. */
static enum ifd_code finish(struct ifd_acc_lowering *lowering,
                            const struct ifd_partition_node *node, struct ifd_acc_layer *layer,
                            int32_t activation, const char *name, struct ifd_err *err)
{
    const struct ifd_low_window *w = &layer->window;
    struct ifd_acc_conv *conv = ifd_low_params(&lowering->base, 1, sizeof(*conv));
    if (!conv) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    uint32_t operands[IFD_ACC_STEP_INPUTS] = {node->input_value[0], IFD_NO_VALUE, IFD_NO_VALUE,
                                              IFD_NO_VALUE};
    const size_t pitch = lowering->base.value[operands[0]].pitch;
    const struct ifd_acc_product *product = &layer->product;
    layer->narrow_in = ifd_acc_is_narrow(lowering, operands[0]);
    layer->element = product->is_q8 ? 1 : layer->narrow_in ? sizeof(uint16_t) : sizeof(float);
    layer->out_element = product->is_q8 && !product->is_dynamic ? 1 : sizeof(float);
    layer->has_row_add = product->is_q8 && product->requant.weight_zero != 0;
    layer->is_subtensor = pitch > 0;
    layer->in_stride = pitch > 0 ? pitch / layer->element : layer->groups * w->in_c;
    const uint32_t out = fuse_followers(lowering, node, layer, activation, operands);
    conv->layer = *layer;
    const enum ifd_code code =
        product->is_dynamic
            ? ifd_acc_quantize_input(lowering, operands[0], w->batch, w->in_h * w->in_w * w->in_c,
                                     input_form(node, product), &operands[0], err)
            : IFD_OK;
    return code == IFD_OK ? ifd_acc_conv_add(lowering, conv, operands, out, name,
                                             activation != IFD_ACT_NONE, err)
                          : code;
}

/* ---- conv2d ---- */

static size_t groups_of(const struct ifd_node_view *node)
{
    return (size_t)(node->input[0].desc->shape.dim[3] / node->input[1].desc->shape.dim[3]);
}

static bool has_dilation(const struct ifd_window *window)
{
    return window->dilation_h > 1 || window->dilation_w > 1;
}

static bool conv2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    if (groups_of(node) > 1 &&
        (node->input[1].desc->dtype != IFD_F32 || has_dilation(&attrs->window))) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "%zu groups of channels with 8-bit weights or a dilated window", groups_of(node));
        return false;
    }
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

static bool is_dilated(const struct ifd_low_window *w)
{
    return (w->dilation_y > 1 && w->kh > 1) || (w->dilation_x > 1 && w->kw > 1);
}

static bool is_plain(const struct ifd_low_window *w)
{
    return w->kh * w->kw == 1 && w->stride_y * w->stride_x == 1 && !w->is_padded;
}

static enum ifd_code conv2d_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    const size_t out_c = (size_t)node->view.output[0].shape.dim[3];
    struct ifd_acc_layer layer = {.groups = groups_of(&node->view)};
    layer.out_c = out_c / layer.groups;
    enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &layer.window, err);
    if (code == IFD_OK) {
        code = ifd_acc_product_init(lowering, &node->view, attrs->activation, out_c,
                                    IFD_ROUND_DOUBLE, &layer.product, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    layer.window.in_c /= layer.groups;
    layer.is_dilated = is_dilated(&layer.window);
    layer.is_plain = is_plain(&layer.window) && layer.groups == 1;
    return finish(lowering, node, &layer, attrs->activation, "conv2d", err);
}

/* Floats with weights of 8 bits. */
static bool is_quantized_first(const struct ifd_node_view *node)
{
    return node->input[0].desc->dtype == IFD_F32 && node->input[1].desc->dtype != IFD_F32;
}

/* Rows of a sub-tensor of the channels. */
static bool product_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    return i == 0 && !is_quantized_first(node);
}

static bool conv2d_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    struct ifd_low_window w;
    return product_reads_apart(node, i) &&
           ifd_low_window_init(node, &attrs->window, &w, NULL) == IFD_OK && is_plain(&w);
}

const struct ifd_acc_driver ifd_acc_conv2d = {
    .takes = conv2d_takes, .lower = conv2d_lower, .reads_apart = conv2d_reads_apart};

/* ---- fully_connected ---- */

static bool fully_connected_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

static enum ifd_code fully_connected_lower(struct ifd_acc_lowering *lowering,
                                           const struct ifd_partition_node *node,
                                           struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const struct ifd_shape *weights = &node->view.input[1].desc->shape;
    const struct ifd_shape *out = &node->view.output[0].shape;
    const bool is_dynamic = is_quantized_first(&node->view); /* then each row is an image, */
    const bool is_whole = is_dynamic && attrs->rounds_even;  /* or all are one */
    size_t batch = out->rank > 1 ? (size_t)out->dim[0] : 1;
    size_t rows = 1; /* of one sample */
    for (uint32_t i = 1; i + 1 < out->rank; i++) {
        *(is_dynamic ? &batch : &rows) *= (size_t)out->dim[i];
    }
    rows = is_whole ? batch : rows;
    batch = is_whole ? 1 : batch;
    struct ifd_acc_layer layer = {.groups = 1,
                                  .is_dense = true,
                                  .is_plain = true,
                                  .window = {.batch = batch,
                                             .in_h = rows,
                                             .in_w = 1,
                                             .in_c = (size_t)weights->dim[1],
                                             .out_h = rows,
                                             .out_w = 1,
                                             .kh = 1,
                                             .kw = 1,
                                             .stride_y = 1,
                                             .stride_x = 1},
                                  .out_c = (size_t)weights->dim[0]};
    const enum ifd_code code =
        ifd_acc_product_init(lowering, &node->view, attrs->activation, layer.out_c,
                             IFD_ROUND_SINGLE, &layer.product, err);
    return code == IFD_OK
               ? finish(lowering, node, &layer, attrs->activation, "fully_connected", err)
               : code;
}

static bool fully_connected_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    const struct ifd_shape *in = &node->input[0].desc->shape;
    return product_reads_apart(node, i) && in->rank > 0 &&
           in->dim[in->rank - 1] == node->input[1].desc->shape.dim[1];
}

const struct ifd_acc_driver ifd_acc_fully_connected = {.takes = fully_connected_takes,
                                                       .lower = fully_connected_lower,
                                                       .reads_apart = fully_connected_reads_apart};
