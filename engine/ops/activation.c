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
        const int64_t raised = y > min ? y : min;
        ifd_ref_store(out->dtype, call->output[0], i, (int32_t)(raised < max ? raised : max));
    }
}

/** Stored bounds of an activation that is a separate operator. Unlike a fused one LiteRT does not
 *  refuse it for bounds beyond 32 bits; the upper bound may then be below the type's range. */
static void operator_range(float real_min, float real_max, const struct ifd_desc *out,
                           int32_t *ret_min, int32_t *ret_max)
{
    const float scale = ifd_ref_scale(out);
    const int32_t zero = ifd_ref_zero_point(out);
    const int32_t lowest = ifd_fixed_add(zero, ifd_fixed_from_float(roundf(real_min / scale)));
    const int32_t highest = ifd_fixed_add(zero, ifd_fixed_from_float(roundf(real_max / scale)));
    ifd_dtype_range(out->dtype, ret_min, ret_max);
    *ret_min = lowest > *ret_min && !isinf(real_min) ? lowest : *ret_min;
    *ret_max = highest < *ret_max && !isinf(real_max) ? highest : *ret_max;
}

/** Requantizes, then clamps. */
static void clamp(const struct ifd_ref_call *call, float real_min, float real_max)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    if (in->dtype == IFD_F32) {
        clamp_f32(call, real_min, real_max);
        return;
    }
    int32_t min = 0;
    int32_t max = 0;
    operator_range(real_min, real_max, out, &min, &max);
    const double ratio = (double)ifd_unary_scale_ratio(in, out);
    requantize(call, ratio, ratio, min, max);
}

/** An activation that is a separate operator. */
static void activate(const struct ifd_ref_call *call, enum ifd_activation activation)
{
    float min = 0;
    float max = 0;
    ifd_ref_act_range_f32((int32_t)activation, &min, &max);
    clamp(call, min, max);
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
    clamp(call, attrs->min, attrs->max);
    return IFD_OK;
}

/* ---- leaky relu ---- */

static float leaky_ratio(float alpha, const struct ifd_desc *input, const struct ifd_desc *output)
{
    return ifd_ref_scale(input) * alpha / ifd_ref_scale(output);
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

static struct multiplier16 multiplier16(float real)
{
    const struct ifd_multiplier wide = ifd_multiplier((double)real);
    const int32_t half = 1 << 15;
    const int32_t fraction =
        wide.fraction >= INT32_MAX - half ? INT16_MAX : (wide.fraction + half) >> 16;
    return (struct multiplier16){fraction, wide.shift};
}

/** From the input with 7 more bits to the output. */
static struct multiplier16 swish_to_output(const struct ifd_desc *input,
                                           const struct ifd_desc *output)
{
    return multiplier16((1.0f / 128.0f) * ifd_ref_scale(input) / ifd_ref_scale(output));
}

/** From the input with 7 more bits to 3/32768. */
static struct multiplier16 swish_to_gate(const struct ifd_desc *input)
{
    return multiplier16((1.0f / 128.0f) * ifd_ref_scale(input) / (3.0f / 32768.0f));
}

/* LiteRT refuses such scales, too. */
static enum ifd_code hard_swish_rule(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const enum ifd_code code = ifd_unary_infer(in, output, err);
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype) &&
        swish_to_output(in->input[0].desc, &output[0]).exponent > 0) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "%s: scale %g of the input is more than 128 times the output's %g",
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

/** x / 2^exponent of 16 bits, halves away from zero; from 16 on ±1, as in LiteRT. */
static int32_t shift_right_s16(int32_t x, int32_t exponent)
{
    return exponent < 16 ? ifd_fixed_shift_right(x, exponent) : x < 0 ? -1 : 1;
}

/** relu6(x + 3) / 6 in Q15 of a number with scale 3/32768 * 2^-exponent: only the last step
 *  saturates. The shift to the left counts modulo 32, and of 31 it is by a negative number. */
static int32_t hard_sigmoid_s16(int32_t x, struct multiplier16 gate)
{
    const int32_t left = gate.exponent > 0 ? gate.exponent : 0;
    const int32_t power = (int32_t)(UINT32_C(1) << ((left - 1) & 31));
    int32_t y = left > 0 ? saturate_s16((int64_t)x * power) : x;
    y = mul_high_rounding_s16(y, gate.fraction);
    y = left > 0 ? saturate_s16((int64_t)y * 2) : y;
    y = gate.exponent < 0 ? shift_right_s16(y, -gate.exponent) : y;
    return (y + (1 << 15)) >> 1;
}

static void hard_swish_quant(const struct ifd_ref_call *call)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const struct multiplier16 to_output = swish_to_output(in, out), to_gate = swish_to_gate(in);
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
        const int32_t y = shift_right_s16(product, -to_output.exponent) + ifd_ref_zero_point(out);
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

DEFINE_UNARY_BOUNDED(relu, ifd_unary_infer, TYPES_F32 | TYPES_QUANT)
DEFINE_UNARY_BOUNDED(relu6, ifd_unary_infer, TYPES_F32 | TYPES_QUANT)
DEFINE_UNARY_BOUNDED(relu_n1_to_1, ifd_unary_infer, TYPES_F32 | TYPES_8BIT)
DEFINE_UNARY(hard_swish, hard_swish_rule, TYPES_F32 | TYPES_8BIT)
DEFINE_UNARY_WITH_ATTRS(clamp, ifd_unary_infer, TYPES_F32 | TYPES_8BIT, clamp_bounds)
DEFINE_UNARY_WITH_ATTRS(leaky_relu, ifd_unary_infer, TYPES_F32 | TYPES_QUANT, NULL)
