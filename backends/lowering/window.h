/** The window that conv2d and depthwise_conv2d move over an image, conv3d over a volume. */
#ifndef INFERD_BACKENDS_LOWERING_WINDOW_H
#define INFERD_BACKENDS_LOWERING_WINDOW_H

#include "inferd/backend.h"

struct ifd_low_window {
    size_t batch, in_h, in_w, in_c, out_h, out_w;
    size_t kh, kw, stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    bool is_padded; /* it reaches over an edge somewhere */
};

/** Of a node whose input 1 are the weights: dimensions 1 and 2 are the window's. */
IFD_NODISCARD enum ifd_code ifd_low_window_init(const struct ifd_node_view *node,
                                                const struct ifd_window *attrs,
                                                struct ifd_low_window *ret, struct ifd_err *err);

/** The pixel of an image that window position (ky, kx) of output pixel number `from` sees. False:
 *  it lies outside. */
static inline bool ifd_low_window_sees(const struct ifd_low_window *w, size_t from, size_t ky,
                                       size_t kx, size_t *ret_pixel)
{
    const size_t y = from / w->out_w * w->stride_y + ky * w->dilation_y;
    const size_t x = from % w->out_w * w->stride_x + kx * w->dilation_x;
    *ret_pixel = (y - w->pad_top) * w->in_w + x - w->pad_left;
    return y >= w->pad_top && y - w->pad_top < w->in_h && x >= w->pad_left &&
           x - w->pad_left < w->in_w;
}

/** The same of a volume: depth, height, width. */
struct ifd_low_volume {
    size_t batch;
    size_t in[3], out[3], window[3], stride[3], dilation[3], pad[3]; /* pad: in front */
    bool is_padded;
};

/** Of a conv3d. */
IFD_NODISCARD enum ifd_code ifd_low_volume_init(const struct ifd_node_view *node,
                                                struct ifd_low_volume *ret, struct ifd_err *err);

#endif
