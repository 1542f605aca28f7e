/* A window and its image, in the sizes that drivers count with. */
#include "backends/lowering/window.h"

enum ifd_code ifd_low_window_init(const struct ifd_node_view *node, const struct ifd_window *attrs,
                                  struct ifd_low_window *ret, struct ifd_err *err)
{
    const struct ifd_shape *in = &node->input[0].desc->shape;
    const struct ifd_shape *filter = &node->input[1].desc->shape;
    const struct ifd_shape *out = &node->output[0].shape;
    struct ifd_window_size size;
    if (!ifd_window_resolve(attrs, filter->dim[1], filter->dim[2], in->dim[1], in->dim[2], &size)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    *ret = (struct ifd_low_window){
        .batch = (size_t)in->dim[0],
        .in_h = (size_t)in->dim[1],
        .in_w = (size_t)in->dim[2],
        .in_c = (size_t)in->dim[3],
        .out_h = (size_t)out->dim[1],
        .out_w = (size_t)out->dim[2],
        .kh = (size_t)filter->dim[1],
        .kw = (size_t)filter->dim[2],
        .stride_y = (size_t)attrs->stride_h,
        .stride_x = (size_t)attrs->stride_w,
        .dilation_y = (size_t)attrs->dilation_h,
        .dilation_x = (size_t)attrs->dilation_w,
        .pad_top = (size_t)size.pad_top,
        .pad_left = (size_t)size.pad_left,
        .is_padded = size.pad_top || size.pad_left || size.pad_bottom || size.pad_right,
    };
    return IFD_OK;
}
