/* Piecewise linear activations, and hard swish. Quantized types are requantized with double
 * rounding, as in LiteRT's reference kernels. */
#include "engine/ops/unary.h"

#include <math.h>

/* ---- relu and its variants ---- */

static void clamp_f32(const struct ifd_ref_call *call, float min, float max)
{
    const float *x = call->input[0];
    float *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        y[i] = ifd_ref_clamp_f32(x[i], min, max);
    }
}

/* Negative numbers and the others have different multipliers. */
static void requantize(const struct ifd_ref_call *call, double positive, double negative,
                       int32_t min, int32_t max)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const struct ifd_multiplier up = ifd_multiplier(positive), down = ifd_multiplier(negative);
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const int32_t x = ifd_ref_load(in->dtype, call->input[0], i) - ifd_ref_zero_point(in);
        const int64_t y =
            (int64_t)ifd_requantize_double(x, x >= 0 ? up : down) + ifd_ref_zero_point(out);
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(y, min, max));
    }
}

/** An activation that is a separate operator: requantizes, then clamps. */
static void activate(const struct ifd_ref_call *call, enum ifd_activation activation)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    if (in->dtype == IFD_F32) {
        float min = 0;
        float max = 0;
        ifd_ref_act_range_f32((int32_t)activation, &min, &max);
        clamp_f32(call, min, max);
        return;
    }
    int32_t min = 0;
    int32_t max = 0;
    ifd_ref_act_range_quant((int32_t)activation, out, &min, &max);
    const double ratio = (double)ifd_unary_scale_ratio(in, out);
    requantize(call, ratio, ratio, min, max);
}

static enum ifd_code relu_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    activate(call, IFD_ACT_RELU);
    return IFD_OK;
}

static enum ifd_code relu6_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    activate(call, IFD_ACT_RELU6);
    return IFD_OK;
}

static enum ifd_code relu_n1_to_1_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    activate(call, IFD_ACT_RELU_N1_TO_1);
    return IFD_OK;
}

static enum ifd_code clamp_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_clamp_attrs *attrs = call->attrs;
    clamp_f32(call, attrs->min, attrs->max);
    return IFD_OK;
}

/* ---- leaky relu ---- */

static float leaky_ratio(float alpha, const struct ifd_desc *input, const struct ifd_desc *output)
{
    return ifd_ref_scale(input) * alpha / ifd_ref_scale(output);
}

static enum ifd_code leaky_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_unary_rescaling_infer(in, output, err);
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype)) {
        const struct ifd_leaky_relu_attrs *attrs = in->attrs;
        code = ifd_unary_check_multiplier(
            def, (double)leaky_ratio(attrs->alpha, in->input[0].desc, &output[0]), err);
    }
    return code;
}

static void leaky_quant(const struct ifd_ref_call *call, float alpha)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    requantize(call, (double)ifd_unary_scale_ratio(in, out), (double)leaky_ratio(alpha, in, out),
               min, max);
}

static enum ifd_code leaky_relu_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_leaky_relu_attrs *attrs = call->attrs;
    if (call->in[0]->dtype != IFD_F32) {
        leaky_quant(call, attrs->alpha);
        return IFD_OK;
    }
    const float *x = call->input[0];
    float *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        y[i] = x[i] > 0 ? x[i] : x[i] * attrs->alpha;
    }
    return IFD_OK;
}

/* ---- hard swish ---- */

/** A multiplier with 15 bits of fraction. */
struct multiplier16 {
    int32_t fraction, exponent;
};

static bool multiplier16_from_real(float real, struct multiplier16 *ret)
{
    struct ifd_multiplier wide;
    if (!ifd_multiplier_from_real((double)real, &wide) || ifd_fixed_wraps((double)real)) {
        return false;
    }
    const int32_t half = 1 << 15;
    const int32_t fraction =
        wide.fraction >= INT32_MAX - half ? INT16_MAX : (wide.fraction + half) >> 16;
    *ret = (struct multiplier16){fraction, wide.shift};
    return true;
}

/** Multipliers of hard swish: from the input with 7 more bits to the output, and to 3/32768.
 *  False if they do not fit 16 bits. */
static bool hard_swish_multipliers(const struct ifd_desc *input, const struct ifd_desc *output,
                                   struct multiplier16 *ret_output, struct multiplier16 *ret_gate)
{
    const float fine_scale = (1.0f / 128.0f) * ifd_ref_scale(input);
    return multiplier16_from_real(fine_scale / ifd_ref_scale(output), ret_output) &&
           multiplier16_from_real(fine_scale / (3.0f / 32768.0f), ret_gate) &&
           ret_output->exponent <= 0 && ret_output->exponent >= -15 && ret_gate->exponent >= -15 &&
           ret_gate->exponent <= 16;
}

static enum ifd_code hard_swish_rule(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const enum ifd_code code = ifd_unary_infer(in, output, err);
    struct multiplier16 to_output;
    struct multiplier16 to_gate;
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype) &&
        !hard_swish_multipliers(in->input[0].desc, &output[0], &to_output, &to_gate)) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "%s: scales %g of the input and %g of the output are too far apart",
                        def->name, (double)in->input[0].desc->quant.scale[0],
                        (double)output[0].quant.scale[0]);
    }
    return code;
}

static int32_t saturate_s16(int64_t x)
{
    return (int32_t)(x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x);
}

/** round(2ab) in Q15, ties towards +. The one overflow, (-1)², saturates. */
static int32_t mul_high_rounding_s16(int32_t a, int32_t b)
{
    const int32_t product = a * b;
    const int32_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
    return saturate_s16((product + nudge) / (1 << 15));
}

/** relu6(x + 3) / 6 in Q15 of a number with scale 3/32768 * 2^-exponent: only the last step
 *  saturates. */
static int32_t hard_sigmoid_s16(int32_t x, struct multiplier16 gate)
{
    const int32_t left = gate.exponent > 0 ? gate.exponent : 0;
    int32_t y = left > 0 ? saturate_s16(x * ((int64_t)1 << (left - 1))) : x;
    y = mul_high_rounding_s16(y, gate.fraction);
    y = left > 0 ? saturate_s16((int64_t)y * 2) : y;
    y = gate.exponent < 0 ? ifd_fixed_shift_right(y, -gate.exponent) : y;
    return (y + (1 << 15)) >> 1;
}

static void hard_swish_quant(const struct ifd_ref_call *call)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    struct multiplier16 to_output = {0, 0};
    struct multiplier16 to_gate = {0, 0};
    (void)hard_swish_multipliers(in, out, &to_output, &to_gate); /* checked by the shape rule */
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const int32_t x =
            (ifd_ref_load(in->dtype, call->input[0], i) - ifd_ref_zero_point(in)) * 128;
        const int32_t gate = hard_sigmoid_s16(x, to_gate);
        const int32_t scaled = mul_high_rounding_s16(x, to_output.fraction);
        const int32_t product =
            gate * scaled / (1 << 15); /* towards zero: cancels the bias of the two roundings */
        const int32_t y =
            ifd_fixed_shift_right(product, -to_output.exponent) + ifd_ref_zero_point(out);
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(y, min, max));
    }
}

static float hard_swish_f32(float x)
{
    return x * ifd_ref_clamp_f32(x + 3.0f, 0.0f, 6.0f) / 6.0f;
}

static enum ifd_code hard_swish_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->in[0]->dtype == IFD_F32) {
        ifd_unary_map(call, hard_swish_f32);
    } else {
        hard_swish_quant(call);
    }
    return IFD_OK;
}

/* ---- definitions ---- */

static const struct ifd_attr_def clamp_attrs[] = {
    {"min", IFD_ATTR_F32, offsetof(struct ifd_clamp_attrs, min), -HUGE_VAL, -HUGE_VAL, HUGE_VAL},
    {"max", IFD_ATTR_F32, offsetof(struct ifd_clamp_attrs, max), HUGE_VAL, -HUGE_VAL, HUGE_VAL},
};

static const struct ifd_attr_def leaky_relu_attrs[] = {
    {"alpha", IFD_ATTR_F32, offsetof(struct ifd_leaky_relu_attrs, alpha), 0.01, -HUGE_VAL,
     HUGE_VAL},
};

/* The interval of an operator without attributes. */
#define BOUNDS(op, least, most)                                                                    \
    static bool op##_bounds(const void *attrs, const float *number, float *ret_min,                \
                            float *ret_max)                                                        \
    {                                                                                              \
        (void)attrs;                                                                               \
        (void)number;                                                                              \
        *ret_min = (least);                                                                        \
        *ret_max = (most);                                                                         \
        return true;                                                                               \
    }

BOUNDS(relu, 0.0f, INFINITY)
BOUNDS(relu6, 0.0f, 6.0f)
BOUNDS(relu_n1_to_1, -1.0f, 1.0f)

static bool clamp_bounds(const void *attrs, const float *number, float *ret_min, float *ret_max)
{
    (void)number;
    const struct ifd_clamp_attrs *clamp = attrs;
    *ret_min = clamp->min;
    *ret_max = clamp->max;
    return clamp->min <= clamp->max;
}

DEFINE_UNARY_BOUNDED(relu, ifd_unary_rescaling_infer, TYPES_F32 | TYPES_QUANT)
DEFINE_UNARY_BOUNDED(relu6, ifd_unary_rescaling_infer, TYPES_F32 | TYPES_QUANT)
DEFINE_UNARY_BOUNDED(relu_n1_to_1, ifd_unary_rescaling_infer, TYPES_F32 | TYPES_8BIT)
DEFINE_UNARY(hard_swish, hard_swish_rule, TYPES_F32 | TYPES_8BIT)
DEFINE_UNARY_WITH_ATTRS(clamp, ifd_unary_infer, TYPES_F32, clamp_bounds)
DEFINE_UNARY_WITH_ATTRS(leaky_relu, leaky_infer, TYPES_F32 | TYPES_QUANT, NULL)
