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

enum ifd_code ifd_low_volume_init(const struct ifd_node_view *node, struct ifd_low_volume *ret,
                                  struct ifd_err *err)
{
    const struct ifd_conv3d_attrs *attrs = node->attrs;
    const struct ifd_window *plane = &attrs->window;
    const int64_t *in = node->input[0].desc->shape.dim, *out = node->output[0].shape.dim;
    const int64_t *filter = node->input[1].desc->shape.dim;
    struct ifd_window along = *plane; /* depth as the height of a window that is one wide */
    struct ifd_window_size z, yx;
    along.stride_h = attrs->stride_d;
    along.dilation_h = attrs->dilation_d;
    along.stride_w = along.dilation_w = 1;
    if (!ifd_window_resolve(&along, filter[0], 1, in[1], 1, &z) ||
        !ifd_window_resolve(plane, filter[1], filter[2], in[2], in[3], &yx)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    *ret = (struct ifd_low_volume){
        .batch = (size_t)in[0],
        .stride = {(size_t)attrs->stride_d, (size_t)plane->stride_h, (size_t)plane->stride_w},
        .dilation = {(size_t)attrs->dilation_d, (size_t)plane->dilation_h,
                     (size_t)plane->dilation_w},
        .pad = {(size_t)z.pad_top, (size_t)yx.pad_top, (size_t)yx.pad_left},
        .is_padded =
            z.pad_top || z.pad_bottom || yx.pad_top || yx.pad_bottom || yx.pad_left || yx.pad_right,
    };
    for (int i = 0; i < 3; i++) {
        ret->in[i] = (size_t)in[i + 1];
        ret->out[i] = (size_t)out[i + 1];
        ret->window[i] = (size_t)filter[i];
    }
    return IFD_OK;
}
