/* Conditions and bias of layers. */
#include "backends/gpuacc/ops/layer.h"

#include "backends/lowering/requantize.h"

#include <string.h>

static bool is_constant_f32(const struct ifd_operand *operand)
{
    return operand->desc && operand->desc->dtype == IFD_F32 && operand->data.data;
}

bool ifd_gpu_layer_takes(const struct ifd_node_view *node, int32_t activation,
                         struct ifd_err *reason)
{
    float min = 0, max = 0;
    const bool has_bias = node->input_count > 2 && node->input[2].desc;
    if (node->input[0].desc->dtype != IFD_F32 || !is_constant_f32(&node->input[1]) ||
        (has_bias && !is_constant_f32(&node->input[2]))) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or weights that are computed",
                 ifd_dtype_name(node->input[0].desc->dtype));
        return false;
    }
    if (!ifd_low_clamp_f32(activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "activation %d is no clamp", activation);
        return false;
    }
    return true;
}

struct bias {
    size_t channels, padded;
};

static void pack_bias(const void *params, const void *source, void *packed)
{
    const struct bias *bias = params;
    memset(packed, 0, bias->padded * sizeof(float));
    if (source) {
        memcpy(packed, source, bias->channels * sizeof(float));
    }
}

enum ifd_code ifd_gpu_layer_bias(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_node_view *node, size_t channels, size_t padded,
                                 struct ifd_gpu_call *call, struct ifd_err *err)
{
    struct bias *bias = ifd_low_params(&lowering->base, 1, sizeof(*bias));
    if (!bias) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*bias), err);
    }
    *bias = (struct bias){.channels = channels, .padded = padded};
    ifd_gpu_constant(call, pack_bias, bias, node->input_count > 2 ? node->input[2].data.data : NULL,
                     padded * sizeof(float));
    return IFD_OK;
}
