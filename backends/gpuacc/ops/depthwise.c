/* depthwise_conv2d of f32 and 8 bits. */
#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/tail.h"
#include "inferd/op_attrs.h"

#include <stdio.h>

static bool depthwise_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    return ifd_gpu_layer_takes(node, attrs->activation, reason);
}

static enum ifd_code add_constants(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_node_view *node, size_t channels,
                                   struct ifd_gpu_call *call, struct ifd_err *err)
{
    size_t *bytes = ifd_low_params(&lowering->base, 1, sizeof(*bytes));
    if (!bytes) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*bytes), err);
    }
    *bytes = node->input[1].data.size;
    ifd_gpu_constant(call, ifd_gpu_pack_copy, bytes, node->input[1].data.data, *bytes);
    return ifd_gpu_layer_constants(lowering, node, channels, (channels + 3) / 4 * 4, call, err);
}

/* The kernel of f32 knows the rest of the window when it is compiled. */
static void add_numbers(const struct ifd_low_window *w, size_t channels, bool is_q8,
                        struct ifd_gpu_call *call)
{
    const size_t sizes[] = {w->batch, w->in_h, w->in_w, w->in_c, w->out_h, w->out_w, channels};
    const size_t window[] = {w->kh,         w->kw,         w->stride_y, w->stride_x,
                             w->dilation_y, w->dilation_x, w->pad_top,  w->pad_left};
    const size_t rest[] = {w->stride_y, w->dilation_y, w->pad_top, w->pad_left};
    const size_t *numbers = is_q8 ? window : rest;
    const size_t count = (is_q8 ? sizeof(window) : sizeof(rest)) / sizeof(rest[0]);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ifd_gpu_int(call, (int64_t)sizes[i]);
    }
    for (size_t i = 0; i < count; i++) {
        ifd_gpu_int(call, (int64_t)numbers[i]);
    }
}

/* Output pixels of a work item: more read less, fewer make enough items to fill a GPU. */
static size_t choose_pixels(const struct ifd_gpu_info *info, const struct ifd_low_window *w,
                            size_t channels)
{
    const size_t wanted = info->is_gpu ? info->compute_units * 512 : 1;
    size_t pixels = w->out_w >= 4 ? 4 : 1;
    while (pixels > 1 &&
           w->batch * w->out_h * (w->out_w / pixels) * ((channels + 3) / 4) < wanted) {
        pixels /= 2;
    }
    return pixels;
}

static void define(const struct ifd_low_window *w, size_t pixels, size_t channels,
                   enum ifd_dtype dtype, struct ifd_gpu_call *call)
{
    ifd_gpu_define(call, "#define PIXELS %zu\n#define MULTIPLIER %zu\n", pixels,
                   channels / w->in_c);
    if (ifd_gpu_is_q8(dtype)) {
        ifd_gpu_define(call, "#define Q %s\n", ifd_gpu_q8_type(dtype));
        return;
    }
    ifd_gpu_define(call,
                   "#define KH %zu\n#define KW %zu\n#define STRIDE_X %zu\n"
                   "#define DILATION_X %zu\n",
                   w->kh, w->kw, w->stride_x, w->dilation_x);
}

static enum ifd_code depthwise_lower(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    const size_t channels = (size_t)node->view.output[0].shape.dim[3];
    struct ifd_low_window w;
    struct ifd_gpu_tail tail = {.count = 0};
    const enum ifd_dtype dtype = node->view.output[0].dtype;
    const bool is_q8 = ifd_gpu_is_q8(dtype);
    struct ifd_gpu_call call = ifd_gpu_call(is_q8 ? IFD_GPU_depthwise_q8 : IFD_GPU_depthwise);
    char name[128];
    enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &w, err);
    if (code != IFD_OK) {
        return code;
    }
    const uint32_t out = ifd_gpu_take_tail(lowering, node->output_value[0], &tail);
    const size_t pixels = choose_pixels(&lowering->device->info, &w, channels);
    define(&w, pixels, channels, dtype, &call);
    ifd_gpu_define_sums(lowering, &node->view, &call);
    ifd_gpu_in(&call, node->input_value[0]);
    code = add_constants(lowering, &node->view, channels, &call, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_gpu_out(&call, out);
    add_numbers(&w, channels, is_q8, &call);
    ifd_gpu_layer_bounds(&node->view, attrs->activation, &call);
    ifd_gpu_tail_finish(&tail, &call);
    if (channels % 4 == 0 && channels == w.in_c) {
        ifd_gpu_define_aligned(lowering, &call);
    }
    ifd_gpu_items(&call, (channels + 3) / 4, (w.out_w + pixels - 1) / pixels, w.batch * w.out_h);
    (void)snprintf(name, sizeof(name), "depthwise_conv2d%s", tail.name);
    return ifd_gpu_add_step(lowering, &call, name,
                            w.batch * w.out_h * w.out_w * channels * w.kh * w.kw, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_depthwise = {depthwise_takes, depthwise_lower};
