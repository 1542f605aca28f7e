/* resize_bilinear of f32 and 8 bits, resize_nearest of any type. */
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/tail.h"
#include "inferd/op_attrs.h"

#include <stdio.h>

/* Input pixels per output pixel, as the reference has it. */
static float scale_of(const struct ifd_resize_attrs *attrs, int64_t in, int64_t out)
{
    return attrs->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                           : (float)in / (float)out;
}

static void add_numbers(const struct ifd_node_view *node, struct ifd_gpu_call *call)
{
    const struct ifd_resize_attrs *attrs = node->attrs;
    const int64_t *in = node->input[0].desc->shape.dim, *out = node->output[0].shape.dim;
    const int64_t numbers[] = {in[0], in[1], in[2], in[3], out[1], out[2]};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(call, numbers[i]);
    }
    ifd_gpu_float(call, scale_of(attrs, in[1], out[1]));
    ifd_gpu_float(call, scale_of(attrs, in[2], out[2]));
    ifd_gpu_int(call, attrs->half_pixel_centers);
}

/* ---- bilinear ---- */

#define STEPS     1024 /* of a pixel, in kernels/resize_steps.cl */
#define STEPS_MAX ((int64_t)1 << 20)

static bool bilinear_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    const int64_t *in = node->input[0].desc->shape.dim, *out = node->output[0].shape.dim;
    if (dtype != IFD_F32 && !ifd_gpu_is_q8(dtype)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    for (int d = 1; d < 3; d++) {
        if (in[d] > STEPS_MAX || out[d] > STEPS_MAX) {
            ifd_fail(reason, IFD_UNSUPPORTED, "more than %lld pixels in a line",
                     (long long)STEPS_MAX);
            return false;
        }
    }
    return true;
}

/* Steps of the input per output pixel, as the reference has it. */
static int64_t steps_of(const struct ifd_resize_attrs *attrs, int64_t in, int64_t out)
{
    return attrs->align_corners && out > 1 ? (STEPS * (in - 1) + (out - 1) / 2) / (out - 1)
                                           : (STEPS * in + out / 2) / out;
}

static enum ifd_code lower_steps(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_resize_attrs *attrs = node->view.attrs;
    const int64_t *in = node->view.input[0].desc->shape.dim, *out = node->view.output[0].shape.dim;
    const int64_t numbers[] = {in[0],
                               in[1],
                               in[2],
                               in[3],
                               out[1],
                               out[2],
                               steps_of(attrs, in[1], out[1]),
                               steps_of(attrs, in[2], out[2]),
                               attrs->half_pixel_centers,
                               INT8_MIN,
                               INT8_MAX};
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_resize_steps);
    ifd_gpu_define(&call, "#define Q char\n");
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    ifd_gpu_items(&call, (size_t)(out[3] + 3) / 4, (size_t)out[2], (size_t)(out[0] * out[1]));
    return ifd_gpu_add_step(lowering, &call, "resize_bilinear", 0, err);
}

static enum ifd_code bilinear_lower(struct ifd_gpu_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    const int64_t *out = node->view.output[0].shape.dim;
    const bool is_real = node->view.output[0].dtype == IFD_F32;
    struct ifd_gpu_tail tail = {.count = 0};
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_resize_bilinear);
    char name[128];
    if (node->view.output[0].dtype == IFD_S8) {
        return lower_steps(lowering, node, err);
    }
    const uint32_t to =
        is_real ? ifd_gpu_take_tail(lowering, node->output_value[0], &tail) : node->output_value[0];
    if (!is_real) {
        ifd_gpu_define(&call, "#define Q uchar\n");
    }
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, to);
    add_numbers(&node->view, &call);
    if (is_real) {
        ifd_gpu_tail_finish(&tail, &call);
    }
    if (is_real && out[3] % 4 == 0) {
        ifd_gpu_define_aligned(lowering, &call);
    }
    ifd_gpu_items(&call, (size_t)(out[3] + 3) / 4, (size_t)out[2], (size_t)(out[0] * out[1]));
    (void)snprintf(name, sizeof(name), "resize_bilinear%s", tail.name);
    return ifd_gpu_add_step(lowering, &call, name, 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_resize_bilinear = {bilinear_takes, bilinear_lower};

/* ---- nearest ---- */

static bool nearest_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    return ifd_gpu_element_type(ifd_dtype_bytes(node->input[0].desc->dtype)) != NULL;
}

static enum ifd_code nearest_lower(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_resize_attrs *attrs = node->view.attrs;
    const int64_t *out = node->view.output[0].shape.dim;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_resize_nearest);
    ifd_gpu_define(&call, "#define ELEMENT %s\n",
                   ifd_gpu_element_type(ifd_dtype_bytes(node->view.output[0].dtype)));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    add_numbers(&node->view, &call);
    ifd_gpu_int(&call, attrs->align_corners);
    ifd_gpu_items(&call, (size_t)out[3], (size_t)out[2], (size_t)(out[0] * out[1]));
    return ifd_gpu_add_step(lowering, &call, "resize_nearest", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_resize_nearest = {nearest_takes, nearest_lower};
