/* Images read at places between their pixels. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

/* Images [n,c,h,w]; after a failure there are none. */
static uint32_t images(struct ifd_onnx_call *call)
{
    const struct ifd_shape shape = ifd_build_desc(call->b, call->input[0])->shape;
    if (shape.rank != 4) {
        return ifd_build_fail(call->b, IFD_UNSUPPORTED, "images of shape %s, expected [n,c,h,w]",
                              ifd_shape_text(&shape).s);
    }
    return ifd_build_to_nhwc(call->b, call->input[0]);
}

void ifd_onnx_grid_sample(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const bool is_nearest = ifd_onnx_text_is(call, "mode", "nearest", false);
    const bool is_cubic = ifd_onnx_text_is(call, "mode", "bicubic", false) ||
                          ifd_onnx_text_is(call, "mode", "cubic", false);
    const bool is_border = ifd_onnx_text_is(call, "padding_mode", "border", false);
    const bool is_mirror = ifd_onnx_text_is(call, "padding_mode", "reflection", false);
    const struct ifd_grid_sample_attrs attrs = {.mode = is_nearest ? IFD_SAMPLE_NEAREST
                                                        : is_cubic ? IFD_SAMPLE_CUBIC
                                                                   : IFD_SAMPLE_LINEAR,
                                                .padding = is_border   ? IFD_SAMPLE_BORDER
                                                           : is_mirror ? IFD_SAMPLE_REFLECTION
                                                                       : IFD_SAMPLE_ZEROS,
                                                .align_corners =
                                                    ifd_onnx_int(call, "align_corners", 0) != 0};
    const uint32_t input[2] = {images(call), call->input[1]};
    const uint32_t y = ifd_build_node(b, IFD_OP_GRID_SAMPLE, input, 2, NULL, &attrs);
    call->output[0] = ifd_build_to_nchw(b, y);
}

/* Before opset 16 pixels were not centered at 0.5. */
void ifd_onnx_roi_align(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_roi_align_attrs attrs = {
        .height = ifd_onnx_int32(call, "output_height", 1),
        .width = ifd_onnx_int32(call, "output_width", 1),
        .sampling = ifd_onnx_int32(call, "sampling_ratio", 0),
        .spatial_scale = (float)ifd_onnx_f32(call, "spatial_scale", 1),
        .is_max = ifd_onnx_text_is(call, "mode", "max", false),
        .half_pixel = ifd_onnx_text_is(call, "coordinate_transformation_mode", "half_pixel",
                                       call->opset >= 16)};
    const uint32_t input[3] = {images(call), call->input[1],
                               ifd_build_cast(b, call->input[2], IFD_S64)};
    const uint32_t y = ifd_build_node(b, IFD_OP_ROI_ALIGN, input, 3, NULL, &attrs);
    call->output[0] = ifd_build_to_nchw(b, y);
}
