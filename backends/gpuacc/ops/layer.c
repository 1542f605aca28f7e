/* Conditions, bias, factors and bounds of layers. */
#include "backends/gpuacc/ops/layer.h"

#include "backends/lowering/requantize.h"
#include "engine/tensor/fixed.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool ifd_gpu_is_q8(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 || dtype == IFD_U8;
}

const char *ifd_gpu_q8_type(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 ? "char" : "uchar";
}

static bool is_constant(const struct ifd_operand *operand, enum ifd_dtype dtype)
{
    return operand->desc && operand->desc->dtype == dtype && operand->data.data;
}

bool ifd_gpu_layer_takes(const struct ifd_node_view *node, int32_t activation,
                         struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    const bool is_q8 = ifd_gpu_is_q8(dtype);
    const bool has_bias = node->input_count > 2 && node->input[2].desc;
    float min = 0, max = 0;
    if ((dtype != IFD_F32 && !is_q8) || node->output[0].dtype != dtype ||
        !is_constant(&node->input[1], dtype) ||
        (has_bias && !is_constant(&node->input[2], is_q8 ? IFD_S32 : IFD_F32))) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "type %s, weights of another type, or weights that are computed",
                 ifd_dtype_name(dtype));
        return false;
    }
    if (!ifd_low_clamp_f32(activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "activation %d is no clamp", activation);
        return false;
    }
    if (is_q8 && ifd_low_rounds_even(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "8-bit results that are rounded to even");
        return false;
    }
    return true;
}

static bool may_round(const struct ifd_gpu_lowering *lowering, const struct ifd_node_view *node)
{
    return lowering->base.view->precision == IFD_PRECISION_FP16 && node->output[0].dtype == IFD_F32;
}

bool ifd_gpu_has_f16_weights(const struct ifd_gpu_lowering *lowering,
                             const struct ifd_node_view *node)
{
    return may_round(lowering, node) &&
           ifd_gpu_elements(&node->input[1].desc->shape) > IFD_GPU_F32_WEIGHTS;
}

void ifd_gpu_define_sums(struct ifd_gpu_lowering *lowering, const struct ifd_node_view *node,
                         struct ifd_gpu_call *call)
{
    if (lowering->device->sums_fp16 && may_round(lowering, node)) {
        ifd_gpu_define(call, "#define SUMS16\n");
        lowering->precision = IFD_PRECISION_FP16;
    }
}

/* ---- constants ---- */

/* The node's attributes, views of operands and scales stay as long as the partition. */
struct params {
    struct ifd_low_scales scales;
    size_t channels, padded;
};

/* Bias of 32-bit numbers. */
static void pack_bias(const void *context, const void *source, void *packed)
{
    const struct params *params = context;
    memset(packed, 0, params->padded * sizeof(int32_t));
    if (source) {
        memcpy(packed, source, params->channels * sizeof(int32_t));
    }
}

static void pack_multipliers(const void *context, const void *source, void *packed)
{
    const struct params *params = context;
    int32_t *multiplier = packed;
    int shift = 0;
    (void)source;
    memset(packed, 0, params->padded * sizeof(*multiplier));
    for (size_t c = 0; c < params->channels; c++) {
        ifd_fixed_from_real(ifd_low_factor(&params->scales, c), &multiplier[c], &shift);
    }
}

static void pack_shifts(const void *context, const void *source, void *packed)
{
    const struct params *params = context;
    int32_t *to = packed;
    (void)source;
    memset(packed, 0, params->padded * sizeof(*to));
    for (size_t c = 0; c < params->channels; c++) {
        int32_t multiplier = 0;
        int shift = 0;
        ifd_fixed_from_real(ifd_low_factor(&params->scales, c), &multiplier, &shift);
        to[c] = shift;
    }
}

/* Factors as doubles: mantissa / 2^shift (kernels/conv_q8.cl). */
static void pack_mantissas(const void *context, const void *source, void *packed)
{
    const struct params *params = context;
    uint64_t *mantissa = packed;
    int exponent = 0;
    (void)source;
    memset(packed, 0, params->padded * sizeof(*mantissa));
    for (size_t c = 0; c < params->channels; c++) {
        mantissa[c] =
            (uint64_t)ldexp(frexp(ifd_low_factor(&params->scales, c), &exponent), DBL_MANT_DIG);
    }
}

static void pack_real_shifts(const void *context, const void *source, void *packed)
{
    const struct params *params = context;
    int32_t *to = packed;
    (void)source;
    memset(packed, 0, params->padded * sizeof(*to));
    for (size_t c = 0; c < params->channels; c++) {
        int exponent = 0;
        (void)frexp(ifd_low_factor(&params->scales, c), &exponent);
        to[c] = DBL_MANT_DIG - exponent;
    }
}

static struct params *make_params(struct ifd_gpu_lowering *lowering, size_t channels, size_t padded,
                                  struct ifd_err *err)
{
    struct params *params = ifd_low_params(&lowering->base, 1, sizeof(*params));
    if (!params) {
        (void)ifd_arena_fail(lowering->base.arena, sizeof(*params), err);
        return NULL;
    }
    *params = (struct params){.channels = channels, .padded = padded};
    return params;
}

enum ifd_code ifd_gpu_layer_factors(struct ifd_gpu_lowering *lowering,
                                    const struct ifd_node_view *node, size_t channels,
                                    size_t padded, struct ifd_gpu_call *call, struct ifd_err *err)
{
    struct params *params = make_params(lowering, channels, padded, err);
    if (!params) {
        return IFD_NOMEM;
    }
    params->scales = ifd_low_read_scales(node);
    if (node->op == IFD_OP_FULLY_CONNECTED) {
        ifd_gpu_define(call, "#define REAL\n");
        ifd_gpu_constant(call, pack_mantissas, params, NULL, padded * sizeof(uint64_t));
        ifd_gpu_constant(call, pack_real_shifts, params, NULL, padded * sizeof(int32_t));
    } else {
        ifd_gpu_constant(call, pack_multipliers, params, NULL, padded * sizeof(int32_t));
        ifd_gpu_constant(call, pack_shifts, params, NULL, padded * sizeof(int32_t));
    }
    return IFD_OK;
}

enum ifd_code ifd_gpu_layer_constants(struct ifd_gpu_lowering *lowering,
                                      const struct ifd_node_view *node, size_t channels,
                                      size_t padded, struct ifd_gpu_call *call, struct ifd_err *err)
{
    struct params *params = make_params(lowering, channels, padded, err);
    if (!params) {
        return IFD_NOMEM;
    }
    ifd_gpu_constant(call, pack_bias, params,
                     node->input_count > 2 ? node->input[2].data.data : NULL,
                     padded * sizeof(int32_t));
    return ifd_gpu_is_q8(node->output[0].dtype)
               ? ifd_gpu_layer_factors(lowering, node, channels, padded, call, err)
               : IFD_OK;
}

/* ---- bounds ---- */

void ifd_gpu_stored_range(enum ifd_dtype dtype, int32_t *ret_min, int32_t *ret_max)
{
    *ret_min = dtype == IFD_S8 ? INT8_MIN : dtype == IFD_S16 ? INT16_MIN : 0;
    *ret_max = dtype == IFD_S8 ? INT8_MAX : dtype == IFD_S16 ? INT16_MAX : UINT8_MAX;
}

void ifd_gpu_stored_bounds(int32_t activation, const struct ifd_desc *out, int32_t *ret_min,
                           int32_t *ret_max)
{
    int32_t lowest = 0, highest = 0;
    float min = 0, max = 0;
    ifd_gpu_stored_range(out->dtype, &lowest, &highest);
    (void)ifd_low_clamp_f32(activation, &min, &max);
    *ret_min = lowest;
    *ret_max = highest;
    if (out->quant.count > 0) {
        const float scale = out->quant.scale[0];
        const int32_t zero = out->quant.zero_point[0];
        *ret_min = isinf(min) ? lowest : ifd_low_bound(min, scale, zero, lowest, highest);
        *ret_max = isinf(max) ? highest : ifd_low_bound(max, scale, zero, lowest, highest);
    }
}

void ifd_gpu_layer_bounds(const struct ifd_node_view *node, int32_t activation,
                          struct ifd_gpu_call *call)
{
    const struct ifd_desc *out = &node->output[0];
    if (ifd_gpu_is_q8(out->dtype)) {
        const struct ifd_quant *weights = &node->input[1].desc->quant;
        int32_t min = 0, max = 0;
        ifd_gpu_stored_bounds(activation, out, &min, &max);
        ifd_gpu_int(call, node->input[0].desc->quant.zero_point[0]);
        ifd_gpu_int(call, weights->count > 1 ? 0 : weights->zero_point[0]);
        ifd_gpu_int(call, out->quant.zero_point[0]);
        ifd_gpu_int(call, min);
        ifd_gpu_int(call, max);
        return;
    }
    float min = 0, max = 0;
    (void)ifd_low_clamp_f32(activation, &min, &max);
    ifd_gpu_float(call, min);
    ifd_gpu_float(call, max);
}
