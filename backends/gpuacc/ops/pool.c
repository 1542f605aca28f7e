/* average_pool2d and max_pool2d of f32 and 8 bits. */
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/tail.h"
#include "backends/lowering/requantize.h"
#include "inferd/op_attrs.h"

#include <stdio.h>

static bool pool2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_pool2d_attrs *attrs = node->attrs;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    float min = 0, max = 0;
    if ((dtype != IFD_F32 && !ifd_gpu_is_q8(dtype)) ||
        !ifd_low_clamp_f32(attrs->activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or an activation that is no clamp",
                 ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

static void add_bounds(const struct ifd_node_view *node, int32_t activation,
                       struct ifd_gpu_call *call)
{
    if (ifd_gpu_is_q8(node->output[0].dtype)) {
        int32_t min = 0, max = 0;
        ifd_gpu_stored_bounds(activation, &node->output[0], &min, &max);
        ifd_gpu_int(call, min);
        ifd_gpu_int(call, max);
        return;
    }
    float min = 0, max = 0;
    (void)ifd_low_clamp_f32(activation, &min, &max);
    ifd_gpu_float(call, min);
    ifd_gpu_float(call, max);
}

static enum ifd_code pool2d_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_pool2d_attrs *attrs = node->view.attrs;
    const int64_t *in = node->view.input[0].desc->shape.dim;
    const int64_t *out = node->view.output[0].shape.dim;
    struct ifd_gpu_tail tail = {.count = 0};
    const bool is_q8 = ifd_gpu_is_q8(node->view.output[0].dtype);
    struct ifd_gpu_call call = ifd_gpu_call(is_q8 ? IFD_GPU_pool2d_q8 : IFD_GPU_pool2d);
    struct ifd_window_size size;
    char name[128];
    if (!ifd_window_resolve(&attrs->window, attrs->filter_h, attrs->filter_w, in[1], in[2],
                            &size)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    const uint32_t to = ifd_gpu_take_tail(lowering, node->output_value[0], &tail);
    ifd_gpu_define(&call, "#define AVERAGE %d\n", node->view.op == IFD_OP_AVERAGE_POOL2D);
    if (is_q8) {
        ifd_gpu_define(&call, "#define Q %s\n", ifd_gpu_q8_type(node->view.output[0].dtype));
    }
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, to);
    const int64_t numbers[] = {in[0],
                               in[1],
                               in[2],
                               in[3],
                               out[1],
                               out[2],
                               attrs->filter_h,
                               attrs->filter_w,
                               attrs->window.stride_h,
                               attrs->window.stride_w,
                               size.pad_top,
                               size.pad_left};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    add_bounds(&node->view, attrs->activation, &call);
    ifd_gpu_tail_finish(&tail, &call);
    if (!is_q8 && in[3] % 4 == 0) {
        ifd_gpu_define_aligned(lowering, &call);
    }
    ifd_gpu_items(&call, (size_t)(in[3] + 3) / 4, (size_t)out[2], (size_t)(out[0] * out[1]));
    (void)snprintf(name, sizeof(name), "%s%s", ifd_gpu_op_name(node->view.op), tail.name);
    return ifd_gpu_add_step(lowering, &call, name, 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_pool2d = {pool2d_takes, pool2d_lower};
