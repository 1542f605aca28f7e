/* Windows reach over the edge, so a pad in front is not needed: pad → conv2d or depthwise_conv2d
 * becomes a convolution with explicit padding, and so does pad → max_pool2d if no padded number can
 * be the maximum. Averages do not count padding: their pad stays. */
#include "engine/opt/pass_impl.h"

#include <float.h>

/* Is the padding zero, or the zero point of a quantized tensor? */
static bool pads_with_zero(const struct ifd_pad_attrs *attrs, const struct ifd_desc *desc)
{
    if (!attrs->has_value) {
        return true;
    }
    const float zero = desc->quant.count == 1 ? (float)desc->quant.zero_point[0] : 0.0f;
    return attrs->value == zero;
}

/* Only height and width of [n,h,w,c] are padded, and nothing is cut. */
static bool pads_image(const struct ifd_pad_attrs *attrs)
{
    if (attrs->before.count != 4 || attrs->after.count != 4) {
        return false;
    }
    for (uint32_t d = 0; d < 4; d++) {
        const int64_t before = attrs->before.value[d], after = attrs->after.value[d];
        if (before < 0 || after < 0 || before > INT16_MAX || after > INT16_MAX ||
            ((d == 0 || d == 3) && before + after > 0)) {
            return false;
        }
    }
    return true;
}

/* Makes the window, over in, one over the tensor before the pad. */
static bool widen(struct ifd_window *window, int64_t filter_h, int64_t filter_w,
                  const struct ifd_shape *in, const struct ifd_pad_attrs *pad)
{
    struct ifd_window_size size;
    if (!ifd_window_resolve(window, filter_h, filter_w, in->dim[1], in->dim[2], &size)) {
        return false;
    }
    window->padding = IFD_PAD_EXPLICIT;
    window->pad_top = (int32_t)(size.pad_top + pad->before.value[1]);
    window->pad_bottom = (int32_t)(size.pad_bottom + pad->after.value[1]);
    window->pad_left = (int32_t)(size.pad_left + pad->before.value[2]);
    window->pad_right = (int32_t)(size.pad_right + pad->after.value[2]);
    return true;
}

/* Is no element of the tensor less than the padding? */
static bool pads_with_least(const struct ifd_graph *graph, const struct ifd_pad_attrs *attrs,
                            uint32_t value)
{
    const struct ifd_desc *desc = &graph->value[value].desc;
    const struct ifd_node *producer = ifd_rewrite_producer(graph, value);
    const float zero = desc->quant.count == 1 ? (float)desc->quant.zero_point[0] : 0.0f;
    const float padded = attrs->has_value ? attrs->value : zero;
    float min = -FLT_MAX, max = 0;
    switch ((unsigned)desc->dtype) {
    case IFD_U8:
        return padded <= 0;
    case IFD_S8:
        return padded <= INT8_MIN;
    case IFD_S16:
        return padded <= INT16_MIN;
    case IFD_F32:
        return (producer && ifd_rewrite_bounds(graph, producer, &min, &max) && padded <= min) ||
               padded <= -FLT_MAX;
    default:
        return false;
    }
}

static enum ifd_code fold_pool(struct ifd_graph *graph, struct ifd_node *pool,
                               uint32_t *ret_changes, struct ifd_err *err)
{
    const struct ifd_node *pad = ifd_rewrite_producer(graph, pool->input[0]);
    if (!pad || pad->op != IFD_OP_PAD || pad->input_count != 1) {
        return IFD_OK;
    }
    const struct ifd_pad_attrs *pads = pad->attrs;
    const struct ifd_pool2d_attrs *before = pool->attrs;
    struct ifd_window window = before->window;
    const struct ifd_shape *in = &graph->value[pool->input[0]].desc.shape;
    if (!ifd_rewrite_keeps_quant(graph, pad) || !pads_image(pads) ||
        !pads_with_least(graph, pads, pad->input[0]) ||
        !widen(&window, before->filter_h, before->filter_w, in, pads) ||
        window.pad_top >= before->filter_h || window.pad_bottom >= before->filter_h ||
        window.pad_left >= before->filter_w || window.pad_right >= before->filter_w) {
        return IFD_OK;
    }
    struct ifd_pool2d_attrs *attrs = ifd_rewrite_own_attrs(graph, pool);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
    }
    attrs->window = window;
    pool->input[0] = pad->input[0];
    (*ret_changes)++;
    return IFD_OK;
}

static enum ifd_code fold_conv(struct ifd_graph *graph, struct ifd_node *conv,
                               uint32_t *ret_changes, struct ifd_err *err)
{
    const struct ifd_node *pad = ifd_rewrite_producer(graph, conv->input[0]);
    if (!pad || pad->op != IFD_OP_PAD || pad->input_count != 1) {
        return IFD_OK;
    }
    const struct ifd_pad_attrs *pads = pad->attrs;
    struct ifd_window window = ((const struct ifd_conv2d_attrs *)conv->attrs)->window;
    const struct ifd_shape *in = &graph->value[conv->input[0]].desc.shape;
    const struct ifd_shape *filter = &graph->value[conv->input[1]].desc.shape;
    if (!ifd_rewrite_keeps_quant(graph, pad) || !pads_image(pads) ||
        !pads_with_zero(pads, &graph->value[pad->input[0]].desc) ||
        !widen(&window, filter->dim[1], filter->dim[2], in, pads)) {
        return IFD_OK;
    }
    struct ifd_conv2d_attrs *attrs = ifd_rewrite_own_attrs(graph, conv);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
    }
    attrs->window = window;
    conv->input[0] = pad->input[0];
    (*ret_changes)++;
    return IFD_OK;
}

enum ifd_code ifd_pass_fold_pad(struct ifd_graph *graph, struct ifd_arena *scratch,
                                uint32_t *ret_changes, struct ifd_err *err)
{
    (void)scratch;
    *ret_changes = 0;
    enum ifd_code code = IFD_OK;
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        if (node->op == IFD_OP_CONV2D || node->op == IFD_OP_DEPTHWISE_CONV2D) {
            code = fold_conv(graph, node, ret_changes, err);
        } else if (node->op == IFD_OP_MAX_POOL2D) {
            code = fold_pool(graph, node, ret_changes, err);
        }
    }
    return code;
}
