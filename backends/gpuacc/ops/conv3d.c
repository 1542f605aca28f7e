/* conv3d of f32 with a constant bias. */
#include "backends/gpuacc/lower.h"
#include "backends/lowering/requantize.h"
#include "backends/lowering/window.h"
#include "inferd/op_attrs.h"

#include <string.h>

/* Dimensions of input and output [n,d,h,w,c]; of the weights [kd,kh,kw,in,out]. */
enum { N, D, H, W, C };

static bool conv3d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv3d_attrs *attrs = node->attrs;
    const bool has_bias = node->input_count > 2 && node->input[2].desc;
    float min = 0, max = 0;
    if (has_bias && !node->input[2].data.data) {
        ifd_fail(reason, IFD_UNSUPPORTED, "a bias that is computed");
        return false;
    }
    if (!ifd_low_clamp_f32(attrs->activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "activation %d is no clamp", attrs->activation);
        return false;
    }
    return true;
}

/* params: bytes. Without a source: zeros. */
static void pack_bias(const void *params, const void *source, void *packed)
{
    const size_t bytes = *(const size_t *)params;
    memset(packed, 0, bytes);
    if (source) {
        memcpy(packed, source, bytes);
    }
}

static enum ifd_code conv3d_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv3d_attrs *attrs = node->view.attrs;
    const int64_t *in = node->view.input[0].desc->shape.dim;
    const int64_t *w = node->view.input[1].desc->shape.dim;
    const int64_t *out = node->view.output[0].shape.dim;
    const uint64_t points = (uint64_t)(out[N] * out[D] * out[H] * out[W]);
    size_t *bias_bytes = ifd_low_params(&lowering->base, 1, sizeof(*bias_bytes));
    struct ifd_low_volume volume;
    float min = 0, max = 0;
    if (!bias_bytes) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*bias_bytes), err);
    }
    *bias_bytes = (size_t)out[C] * sizeof(float);
    const enum ifd_code code = ifd_low_volume_init(&node->view, &volume, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_conv3d);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_in(&call, node->input_value[1]);
    ifd_gpu_constant(&call, pack_bias, bias_bytes,
                     node->view.input_count > 2 ? node->view.input[2].data.data : NULL,
                     *bias_bytes);
    ifd_gpu_out(&call, node->output_value[0]);
    const int64_t numbers[] = {in[N],
                               in[D],
                               in[H],
                               in[W],
                               in[C],
                               out[D],
                               out[H],
                               out[W],
                               out[C],
                               w[0],
                               w[1],
                               w[2],
                               attrs->stride_d,
                               attrs->window.stride_h,
                               attrs->window.stride_w,
                               attrs->dilation_d,
                               attrs->window.dilation_h,
                               attrs->window.dilation_w,
                               (int64_t)volume.pad[0],
                               (int64_t)volume.pad[1],
                               (int64_t)volume.pad[2]};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    (void)ifd_low_clamp_f32(attrs->activation, &min, &max);
    ifd_gpu_float(&call, min);
    ifd_gpu_float(&call, max);
    ifd_gpu_items(&call, (size_t)(out[C] + 3) / 4, (size_t)points, 1);
    return ifd_gpu_add_step(lowering, &call, "conv3d",
                            points * (uint64_t)(out[C] * w[0] * w[1] * w[2] * in[C]), err);
}

const struct ifd_gpu_driver ifd_gpu_driver_conv3d = {conv3d_takes, conv3d_lower};
