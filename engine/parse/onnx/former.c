/* Operators that ai.onnx had on trial before opset 7, and that converters of Core ML and WinML
 * wrote long after. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static uint32_t parametric_softplus(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_with(b, IFD_OP_MUL, call->input[0], ifd_onnx_f32(call, "beta", 1));
    return ifd_build_with(b, IFD_OP_MUL, ifd_build_softplus(b, x), ifd_onnx_f32(call, "alpha", 1));
}

static uint32_t scale(struct ifd_onnx_call *call)
{
    return ifd_build_with(call->b, IFD_OP_MUL, call->input[0], ifd_onnx_f32(call, "scale", 1));
}

static struct ifd_shape images(const struct ifd_onnx_call *call)
{
    const struct ifd_shape shape = ifd_build_desc(call->b, call->input[0])->shape;
    if (shape.rank != 4) {
        ifd_build_fail(call->b, IFD_INVALID, "images of shape %s, expected [n,c,h,w]",
                       ifd_shape_text(&shape).s);
    }
    return shape;
}

/* x times a scale, and a number for each channel. */
static uint32_t image_scaler(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = images(call);
    const struct ifd_onnx_attr *bias = ifd_onnx_attr(call, "bias");
    const uint32_t y = scale(call);
    if (b->code != IFD_OK || !bias) {
        return y;
    }
    if ((int64_t)bias->float_count != shape.dim[1]) {
        return ifd_build_fail(b, IFD_INVALID, "%u numbers \"bias\" for images %s",
                              bias->float_count, ifd_shape_text(&shape).s);
    }
    const int64_t channels[3] = {shape.dim[1], 1, 1};
    return ifd_build_binary(b, IFD_OP_ADD, y, ifd_onnx_floats(b, bias->floats, channels, 3));
}

/* Left, top, right and bottom border go; with a scale, as many rows and columns stay. */
static uint32_t crop(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = images(call);
    struct ifd_ints border = {0}, size = {0};
    (void)ifd_onnx_ints(call, "border", &border);
    const bool has_size = ifd_onnx_ints(call, "scale", &size) && size.count > 0;
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    struct ifd_slice_attrs kept = {
        .begin = {.count = 4, .value = {0, 0, border.value[1], border.value[0]}},
        .size = {.count = 4, .value = {shape.dim[0], shape.dim[1]}}};
    bool fits = border.count == 4 && (!has_size || size.count == 2);
    for (uint32_t i = 0; i < 2 && fits; i++) {
        const int64_t begin = border.value[1 - i], behind = border.value[3 - i];
        const int64_t all = shape.dim[2 + i];
        fits = begin >= 0 && begin <= all && behind >= 0 && behind <= all - begin;
        if (fits) {
            kept.size.value[2 + i] = has_size ? size.value[i] : all - begin - behind;
            fits = kept.size.value[2 + i] >= 0 && kept.size.value[2 + i] <= all - begin;
        }
    }
    if (!fits) {
        return ifd_build_fail(b, IFD_INVALID, "borders or sizes that images %s do not have",
                              ifd_shape_text(&shape).s);
    }
    return ifd_build_node(b, IFD_OP_SLICE, call->input, 1, NULL, &kept);
}

void ifd_onnx_former(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_CROP] = crop,
        [IFD_ONNX_IMAGE_SCALER] = image_scaler,
        [IFD_ONNX_PARAMETRIC_SOFTPLUS] = parametric_softplus,
        [IFD_ONNX_SCALE] = scale,
    };
    call->output[0] = functions[which](call);
}
