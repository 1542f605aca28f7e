/* Functions of one tensor, element by element: activations and elementary functions.
 *
 * Quantized types follow LiteRT's reference kernels: logistic, tanh, exp and log of 8-bit numbers go through floats
 * (a table of 256 entries there), logistic and tanh of s16 interpolate a table of the sigmoid, everything piecewise
 * linear is requantized with double rounding. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

#define TYPES_F32   IFD_BIT(IFD_F32)
#define TYPES_8BIT  (IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8))
#define TYPES_QUANT IFD_DTYPES_QUANT

/* --- shape rules ------------------------------------------------------------------------------------------------- */

static enum ifd_code unary_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 struct ifd_desc *output, struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    if (code == IFD_OK && ifd_dtype_is_quantized(input->dtype)) {
        code = ifd_infer_per_tensor(def, "input 0", input, err);
        if (code == IFD_OK) {
            code = ifd_infer_per_tensor(def, "output 0", &output[0], err);
        }
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

/** Real multipliers of quantized operators are kept in float where TFLite keeps them in float. */
static float scale_ratio(const struct ifd_desc *input, const struct ifd_desc *output)
{
    return ifd_ref_scale(input) / ifd_ref_scale(output);
}

static enum ifd_code check_multiplier(const struct ifd_op_def *def, double real,
                                      struct ifd_err *err)
{
    struct ifd_multiplier multiplier;
    if (!ifd_multiplier_from_real(real, &multiplier)) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "%s: multiplier %g between input and output is out of range", def->name,
                        real);
    }
    return IFD_OK;
}

/** unary_infer for operators that requantize by the ratio of the scales. */
static enum ifd_code rescaling_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                     struct ifd_desc *output, struct ifd_err *err)
{
    const enum ifd_code code = unary_infer(def, in, output, err);
    if (code != IFD_OK || output[0].quant.count == 0 || !ifd_dtype_is_quantized(output[0].dtype)) {
        return code;
    }
    return check_multiplier(def, (double)scale_ratio(in->input[0].desc, &output[0]), err);
}

/* --- functions computed in floats -------------------------------------------------------------------------------- */

static int32_t quantize_f32(float real, const struct ifd_desc *desc)
{
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(desc->dtype, &min, &max);
    const float steps =
        roundf(real * (1.0f / ifd_ref_scale(desc))) + (float)ifd_ref_zero_point(desc);
    return steps >= (float)max ? max : steps > (float)min ? (int32_t)steps : min;
}

/** output = fn(input), for f32 and for 8-bit types through floats. */
static void map(const struct ifd_ref_call *call, float (*fn)(float))
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const size_t count = ifd_ref_elements(out);
    if (in->dtype == IFD_F32) {
        const float *x = call->input[0];
        float *y = call->output[0];
        for (size_t i = 0; i < count; i++) {
            y[i] = fn(x[i]);
        }
        return;
    }
    const float scale = ifd_ref_scale(in);
    const int32_t zero_point = ifd_ref_zero_point(in);
    for (size_t i = 0; i < count; i++) {
        const float real = scale * (float)(ifd_ref_load(in->dtype, call->input[0], i) - zero_point);
        ifd_ref_store(out->dtype, call->output[0], i, quantize_f32(fn(real), out));
    }
}

static float logistic_f32(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float rsqrt_f32(float x)
{
    return 1.0f / sqrtf(x);
}

/* --- logistic and tanh of s16 ------------------------------------------------------------------------------------ */

/** How s16 input becomes an index into the sigmoid's table: (x * factor + half) >> shift is 3/4 of the real input in
 *  Q12. */
struct sigmoid_scale {
    int64_t factor;
    int32_t shift;
};

static struct sigmoid_scale sigmoid_scale(const struct ifd_desc *input)
{
    const double scale = (double)ifd_ref_scale(input);
    if (scale == ldexp(1.0, -12) || scale == ldexp(1.0, -11)) {
        return (struct sigmoid_scale){scale == ldexp(1.0, -11) ? 6 : 3, 0};
    }
    double factor = scale * 4096.0 * 3.0;
    int32_t shift = 0;
    while (factor <= 32767.0 / 2.0 && shift <= 30) {
        shift++;
        factor *= 2.0;
    }
    return (struct sigmoid_scale){(int64_t)factor, shift};
}

/** Entry i of the table: sigmoid(i / 24) in Q16, raised by half of the error that a chord between entries makes, so that
 *  interpolation errs to either side alike. The last entry is the value at infinity. */
static int64_t sigmoid_entry(int64_t i)
{
    const double step = 1.0 / 24.0;
    const double s = 1.0 / (1.0 + exp((double)-i * step));
    const double curvature = s * (1.0 - s) * (2.0 * s - 1.0);
    return i >= 255 ? 65535 : lround(65536.0 * (s + step * step / 16.0 * curvature));
}

/** sigmoid(|x|) in Q(16 + fraction_bits), x in 1/24 with fraction_bits; saturates beyond the table. */
static int64_t sigmoid_interpolated(int64_t x, int32_t fraction_bits, int64_t saturated)
{
    const int64_t magnitude = x < 0 ? -x : x;
    const int64_t i = magnitude >> fraction_bits;
    if (i >= 255) {
        return saturated;
    }
    const int64_t left = sigmoid_entry(i);
    const int64_t fraction = magnitude & ((1 << fraction_bits) - 1);
    return (left << fraction_bits) + fraction * (sigmoid_entry(i + 1) - left);
}

static int64_t sigmoid_input(int16_t x, struct sigmoid_scale scale)
{
    const int64_t half = scale.shift > 0 ? (int64_t)1 << (scale.shift - 1) : 0;
    return (x * scale.factor + half) >> scale.shift;
}

static int16_t logistic_s16(int16_t x, struct sigmoid_scale scale)
{
    const int64_t input = sigmoid_input(x, scale);
    int64_t result = sigmoid_interpolated(input, 9, (int64_t)0x7FFF << 10);
    result = input >= 0 ? result + (1 << 9) : (1 << 25) - result + (1 << 9) - 1;
    return (int16_t)(result >> 10);
}

static int16_t tanh_s16(int16_t x, struct sigmoid_scale scale)
{
    const int64_t input = sigmoid_input(x, scale); /* tanh(x) = 2 sigmoid(2x) - 1 */
    int64_t result = sigmoid_interpolated(input, 8, (int64_t)0xFFFF << 8);
    result = input >= 0 ? result - (1 << 23) + (1 << 7) : -result + (1 << 23) + (1 << 7) - 1;
    return (int16_t)(result >> 8);
}

static void map_s16(const struct ifd_ref_call *call, int16_t (*fn)(int16_t, struct sigmoid_scale))
{
    const struct sigmoid_scale scale = sigmoid_scale(call->in[0]);
    const int16_t *x = call->input[0];
    int16_t *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        y[i] = fn(x[i], scale);
    }
}

static enum ifd_code sigmoid_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                   struct ifd_desc *output, struct ifd_err *err)
{
    const enum ifd_code code = unary_infer(def, in, output, err);
    if (code != IFD_OK || output[0].dtype != IFD_S16) {
        return code;
    }
    if (output[0].quant.scale[0] != ldexpf(1.0f, -15)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: output 0 (s16) has scale %g, expected 1/32768",
                        def->name, (double)output[0].quant.scale[0]);
    }
    if (in->input[0].desc->quant.scale[0] > 1.0f) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: input 0 (s16) has scale %g, expected at most 1",
                        def->name, (double)in->input[0].desc->quant.scale[0]);
    }
    return IFD_OK;
}

static enum ifd_code logistic_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->in[0]->dtype == IFD_S16) {
        map_s16(call, logistic_s16);
    } else {
        map(call, logistic_f32);
    }
    return IFD_OK;
}

static enum ifd_code tanh_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->in[0]->dtype == IFD_S16) {
        map_s16(call, tanh_s16);
    } else {
        map(call, tanhf);
    }
    return IFD_OK;
}

/* --- exp, log, sqrt, rsqrt --------------------------------------------------------------------------------------- */

static enum ifd_code exp_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    map(call, expf);
    return IFD_OK;
}

static enum ifd_code log_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    map(call, logf);
    return IFD_OK;
}

static enum ifd_code sqrt_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    map(call, sqrtf);
    return IFD_OK;
}

static enum ifd_code rsqrt_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    map(call, rsqrt_f32);
    return IFD_OK;
}

/* --- abs, neg ---------------------------------------------------------------------------------------------------- */

static void abs_quant(const struct ifd_ref_call *call)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const bool rescales = ifd_ref_scale(in) != ifd_ref_scale(out);
    const struct ifd_multiplier multiplier = ifd_multiplier((double)scale_ratio(in, out));
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const int32_t x = ifd_ref_load(in->dtype, call->input[0], i) - ifd_ref_zero_point(in);
        const int32_t magnitude = x < 0 ? -x : x;
        const int64_t scaled = rescales ? ifd_requantize_double(magnitude, multiplier) : magnitude;
        const int64_t y = scaled + ifd_ref_zero_point(out);
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(y, min, max));
    }
}

static enum ifd_code abs_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const size_t count = ifd_ref_elements(call->out[0]);
    if (call->in[0]->dtype == IFD_F32) {
        map(call, fabsf);
    } else if (call->in[0]->dtype == IFD_S32) {
        const int32_t *x = call->input[0];
        int32_t *y = call->output[0];
        for (size_t i = 0; i < count; i++) {
            y[i] = x[i] < 0 ? (int32_t)(0u - (uint32_t)x[i]) : x[i];
        }
    } else {
        abs_quant(call);
    }
    return IFD_OK;
}

static enum ifd_code neg_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const size_t count = ifd_ref_elements(call->out[0]);
    if (call->in[0]->dtype == IFD_F32) {
        const float *x = call->input[0];
        float *y = call->output[0];
        for (size_t i = 0; i < count; i++) {
            y[i] = -x[i];
        }
    } else if (call->in[0]->dtype == IFD_S32) {
        const uint32_t *x = call->input[0]; /* unsigned: the least number negates to itself */
        uint32_t *y = call->output[0];
        for (size_t i = 0; i < count; i++) {
            y[i] = 0u - x[i];
        }
    } else {
        const uint64_t *x = call->input[0];
        uint64_t *y = call->output[0];
        for (size_t i = 0; i < count; i++) {
            y[i] = 0u - x[i];
        }
    }
    return IFD_OK;
}

/* --- relu and its kin -------------------------------------------------------------------------------------------- */

static void clamp_f32(const struct ifd_ref_call *call, float min, float max)
{
    const float *x = call->input[0];
    float *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        y[i] = ifd_ref_clamp_f32(x[i], min, max);
    }
}

/** The activation as an operator of its own: requantizes, then clamps. */
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
    const struct ifd_multiplier multiplier = ifd_multiplier((double)scale_ratio(in, out));
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const int32_t x = ifd_ref_load(in->dtype, call->input[0], i) - ifd_ref_zero_point(in);
        const int64_t y = (int64_t)ifd_requantize_double(x, multiplier) + ifd_ref_zero_point(out);
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(y, min, max));
    }
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

/* --- leaky relu -------------------------------------------------------------------------------------------------- */

static float leaky_ratio(float alpha, const struct ifd_desc *input, const struct ifd_desc *output)
{
    return ifd_ref_scale(input) * alpha / ifd_ref_scale(output);
}

static enum ifd_code leaky_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 struct ifd_desc *output, struct ifd_err *err)
{
    enum ifd_code code = rescaling_infer(def, in, output, err);
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype)) {
        const struct ifd_leaky_relu_attrs *attrs = in->attrs;
        code = check_multiplier(
            def, (double)leaky_ratio(attrs->alpha, in->input[0].desc, &output[0]), err);
    }
    return code;
}

static void leaky_quant(const struct ifd_ref_call *call, float alpha)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const struct ifd_multiplier identity = ifd_multiplier((double)scale_ratio(in, out));
    const struct ifd_multiplier slope = ifd_multiplier((double)leaky_ratio(alpha, in, out));
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const int32_t x = ifd_ref_load(in->dtype, call->input[0], i) - ifd_ref_zero_point(in);
        const int64_t y =
            (int64_t)ifd_requantize_double(x, x >= 0 ? identity : slope) + ifd_ref_zero_point(out);
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(y, min, max));
    }
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

/* --- hard swish -------------------------------------------------------------------------------------------------- */

/** A multiplier with 15 bits of fraction. */
struct multiplier16 {
    int32_t fraction, exponent;
};

static bool multiplier16_from_real(float real, struct multiplier16 *ret)
{
    struct ifd_multiplier wide;
    if (!ifd_multiplier_from_real((double)real, &wide)) {
        return false;
    }
    const int32_t half = 1 << 15;
    const int32_t fraction =
        wide.fraction >= INT32_MAX - half ? INT16_MAX : (wide.fraction + half) >> 16;
    *ret = (struct multiplier16){fraction, wide.shift};
    return true;
}

/** Multipliers of hard swish: from the input with 7 more bits to the output, and to 3/32768. False if they cannot be
 *  held in 16 bits. */
static bool hard_swish_multipliers(const struct ifd_desc *input, const struct ifd_desc *output,
                                   struct multiplier16 *ret_output, struct multiplier16 *ret_gate)
{
    const float fine_scale = (1.0f / 128.0f) * ifd_ref_scale(input);
    return multiplier16_from_real(fine_scale / ifd_ref_scale(output), ret_output) &&
           multiplier16_from_real(fine_scale / (3.0f / 32768.0f), ret_gate) &&
           ret_output->exponent <= 0 && ret_output->exponent >= -15 && ret_gate->exponent >= -15 &&
           ret_gate->exponent <= 16;
}

static enum ifd_code hard_swish_rule(const struct ifd_op_def *def, const struct ifd_infer *in,
                                     struct ifd_desc *output, struct ifd_err *err)
{
    const enum ifd_code code = unary_infer(def, in, output, err);
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

/** relu6(x + 3) / 6 in Q15 of a number with scale 3/32768 * 2^-exponent: saturation may only strike in the last step. */
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
            gate * scaled / (1 << 15); /* towards zero: undoes the bias of the two roundings */
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
        map(call, hard_swish_f32);
    } else {
        hard_swish_quant(call);
    }
    return IFD_OK;
}

/* --- definitions ------------------------------------------------------------------------------------------------- */

static const struct ifd_attr_def clamp_attrs[] = {
    {"min", IFD_ATTR_F32, offsetof(struct ifd_clamp_attrs, min), -HUGE_VAL, -HUGE_VAL, HUGE_VAL},
    {"max", IFD_ATTR_F32, offsetof(struct ifd_clamp_attrs, max), HUGE_VAL, -HUGE_VAL, HUGE_VAL},
};

static const struct ifd_attr_def leaky_relu_attrs[] = {
    {"alpha", IFD_ATTR_F32, offsetof(struct ifd_leaky_relu_attrs, alpha), 0.01, -HUGE_VAL,
     HUGE_VAL},
};

/* X(name, shape rule, types of the input) */
#define PLAIN(X)                                                                                   \
    X(abs, rescaling_infer, TYPES_F32 | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16))     \
    X(neg, unary_infer, TYPES_F32 | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))                           \
    X(exp, unary_infer, TYPES_F32 | IFD_BIT(IFD_S8))                                               \
    X(log, unary_infer, TYPES_F32 | IFD_BIT(IFD_S8))                                               \
    X(sqrt, unary_infer, TYPES_F32)                                                                \
    X(rsqrt, unary_infer, TYPES_F32)                                                               \
    X(relu, rescaling_infer, TYPES_F32 | TYPES_QUANT)                                              \
    X(relu6, rescaling_infer, TYPES_F32 | TYPES_QUANT)                                             \
    X(relu_n1_to_1, rescaling_infer, TYPES_F32 | TYPES_8BIT)                                       \
    X(hard_swish, hard_swish_rule, TYPES_F32 | TYPES_8BIT)                                         \
    X(logistic, sigmoid_infer, TYPES_F32 | TYPES_QUANT)                                            \
    X(tanh, sigmoid_infer, TYPES_F32 | TYPES_QUANT)

/* X(name, shape rule, types of the input): with attributes <name>_attrs in struct ifd_<name>_attrs */
#define WITH_ATTRS(X)                                                                              \
    X(clamp, unary_infer, TYPES_F32)                                                               \
    X(leaky_relu, leaky_infer, TYPES_F32 | TYPES_QUANT)

#define INFER(op, rule)                                                                            \
    static enum ifd_code op##_infer(const struct ifd_infer *in, struct ifd_desc *output,           \
                                    struct ifd_err *err)                                           \
    {                                                                                              \
        return rule(&ifd_op_##op, in, output, err);                                                \
    }

#define COMMON(op, types)                                                                          \
    .name = #op, .min_inputs = 1, .max_inputs = 1, .outputs = 1, .dtypes = (types),                \
    .batch = IFD_BATCH_SAMPLE, .can_alias = true, .is_elementwise = true, .infer = op##_infer,     \
    .ref = op##_ref

#define DEFINE_PLAIN(op, rule, types)                                                              \
    extern const struct ifd_op_def ifd_op_##op;                                                    \
    INFER(op, rule)                                                                                \
    const struct ifd_op_def ifd_op_##op = {COMMON(op, types)};

#define DEFINE_WITH_ATTRS(op, rule, types)                                                         \
    extern const struct ifd_op_def ifd_op_##op;                                                    \
    INFER(op, rule)                                                                                \
    const struct ifd_op_def ifd_op_##op = {COMMON(op, types), .attrs = op##_attrs,                 \
                                           .attr_count =                                           \
                                               sizeof(op##_attrs) / sizeof(op##_attrs[0]),         \
                                           .attrs_bytes = sizeof(struct ifd_##op##_attrs)};

PLAIN(DEFINE_PLAIN)
WITH_ATTRS(DEFINE_WITH_ATTRS)
