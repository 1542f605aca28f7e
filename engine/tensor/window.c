/* Output size and padding of SAME, VALID and EXPLICIT windows. */
#include "inferd/op_attrs.h"

/* One direction. TFLite: SAME gives ceil(in / stride), VALID and EXPLICIT (in + pads - reach) /
 * stride + 1 with reach = (filter - 1) * dilation + 1. */
static bool resolve(const int32_t padding, int64_t filter, int64_t stride, int64_t dilation,
                    int64_t pad_first, int64_t pad_last, int64_t in, int64_t ret[3])
{
    const int64_t limit = INT32_MAX;
    if (filter < 1 || filter > limit || stride < 1 || dilation < 1 || in < 1 || in > limit ||
        pad_first < 0 || pad_last < 0) {
        return false;
    }
    int64_t reach = (filter - 1) * dilation + 1;
    int64_t out = 0, before = 0;
    if (padding == IFD_PAD_SAME) {
        out = (in + stride - 1) / stride;
        int64_t need = (out - 1) * stride + reach - in;
        before = need > 0 ? need / 2 : 0;
    } else {
        before = padding == IFD_PAD_EXPLICIT ? pad_first : 0;
        int64_t total = in + before + (padding == IFD_PAD_EXPLICIT ? pad_last : 0) - reach;
        if (total < 0) {
            return false;
        }
        out = total / stride + 1;
    }
    int64_t after = (out - 1) * stride + reach - in - before;
    ret[0] = out;
    ret[1] = before;
    ret[2] = after > 0 ? after : 0;
    return out >= 1 && out <= limit && before <= limit && ret[2] <= limit;
}

bool ifd_window_resolve(const struct ifd_window *window, int64_t filter_h, int64_t filter_w,
                        int64_t in_h, int64_t in_w, struct ifd_window_size *ret)
{
    int64_t h[3], w[3];
    if (!resolve(window->padding, filter_h, window->stride_h, window->dilation_h, window->pad_top,
                 window->pad_bottom, in_h, h) ||
        !resolve(window->padding, filter_w, window->stride_w, window->dilation_w, window->pad_left,
                 window->pad_right, in_w, w)) {
        return false;
    }
    *ret = (struct ifd_window_size){.out_h = h[0],
                                    .out_w = w[0],
                                    .pad_top = h[1],
                                    .pad_bottom = h[2],
                                    .pad_left = w[1],
                                    .pad_right = w[2]};
    return true;
}
