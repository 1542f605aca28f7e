/* Windows of convolutions and pools, as the format's attributes have them. */
#include "engine/parse/onnx/window.h"

#include <string.h>

#include "engine/ir/shape.h"

void ifd_onnx_numbers(struct ifd_onnx_call *call, const char *name, int64_t *to, uint32_t count,
                      int64_t otherwise)
{
    struct ifd_ints ints;
    const bool has = ifd_onnx_ints(call, name, &ints);
    if (has && ints.count != count) {
        ifd_build_fail(call->b, IFD_INVALID, "attribute \"%s\" has %u numbers, expected %u", name,
                       ints.count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        to[i] = has ? ints.value[i] : otherwise;
        if (to[i] < 0 || to[i] > INT32_MAX) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"%s\" has the number %lld", name,
                           (long long)to[i]);
            to[i] = otherwise; /* nobody computes with the other */
        }
    }
}

struct ifd_onnx_window ifd_onnx_window(struct ifd_onnx_call *call, uint32_t dims,
                                       const int64_t *input, const int64_t *kernel)
{
    struct ifd_onnx_window w = {.dims = dims};
    int64_t pads[6] = {0};
    memcpy(w.kernel, kernel, dims * sizeof(*kernel));
    ifd_onnx_numbers(call, "strides", w.stride, dims, 1);
    ifd_onnx_numbers(call, "dilations", w.dilation, dims, 1);
    ifd_onnx_numbers(call, "pads", pads, 2 * dims, 0);
    const bool same_upper = ifd_onnx_text_is(call, "auto_pad", "SAME_UPPER", false);
    const bool same_lower = ifd_onnx_text_is(call, "auto_pad", "SAME_LOWER", false);
    const bool valid = ifd_onnx_text_is(call, "auto_pad", "VALID", false);
    for (uint32_t i = 0; i < dims && call->b->code == IFD_OK; i++) {
        w.before[i] = valid ? 0 : pads[i];
        w.after[i] = valid ? 0 : pads[dims + i];
        if ((same_upper || same_lower) && w.stride[i] > 0) {
            const int64_t out = (input[i] + w.stride[i] - 1) / w.stride[i];
            const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
            int64_t need = (out - 1) * w.stride[i] + reach - input[i];
            need = need > 0 ? need : 0;
            w.before[i] = same_upper ? need / 2 : need - need / 2;
            w.after[i] = need - w.before[i];
        }
    }
    return w;
}

struct ifd_window ifd_onnx_plane(const struct ifd_onnx_window *w)
{
    const uint32_t x = w->dims - 1;
    struct ifd_window plane = {.padding = IFD_PAD_EXPLICIT,
                               .stride_h = 1,
                               .stride_w = (int32_t)w->stride[x],
                               .dilation_h = 1,
                               .dilation_w = (int32_t)w->dilation[x],
                               .pad_left = (int32_t)w->before[x],
                               .pad_right = (int32_t)w->after[x]};
    if (w->dims > 1) {
        plane.stride_h = (int32_t)w->stride[x - 1];
        plane.dilation_h = (int32_t)w->dilation[x - 1];
        plane.pad_top = (int32_t)w->before[x - 1];
        plane.pad_bottom = (int32_t)w->after[x - 1];
    }
    return plane;
}

uint32_t ifd_onnx_with_height(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    return shape.rank == 3
               ? ifd_build_reshape(
                     b, x, (const int64_t[]){shape.dim[0], shape.dim[1], 1, shape.dim[2]}, 4)
               : x;
}

uint32_t ifd_onnx_without_height(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    return ifd_build_reshape(b, x, (const int64_t[]){shape.dim[0], shape.dim[1], shape.dim[3]}, 3);
}

bool ifd_onnx_kernel(struct ifd_onnx_call *call, struct ifd_ints *ret)
{
    const bool has = ifd_onnx_ints(call, "kernel_shape", ret);
    for (uint32_t i = 0; has && i < ret->count; i++) {
        if (ret->value[i] < 1 || ret->value[i] > INT32_MAX) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "a window of %lld elements",
                           (long long)ret->value[i]);
            return false;
        }
    }
    return has;
}
