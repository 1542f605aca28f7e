/* Elementary functions of one tensor, and helpers of all element-wise functions of one tensor.
 *
 * Quantized types follow LiteRT's reference kernels: exp and log of 8-bit numbers go through
 * floats (a table of 256 entries there), piecewise linear functions are requantized with double
 * rounding. */
#include "engine/ops/unary.h"

#include <math.h>

/* ---- shape rules ---- */

enum ifd_code ifd_unary_infer(const struct ifd_infer *in, struct ifd_desc *output,
                              struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    if (code == IFD_OK && ifd_dtype_is_quantized(input->dtype)) {
        code = ifd_infer_any_scale(def, "input 0", input, err);
        if (code == IFD_OK) {
            code = ifd_infer_any_scale(def, "output 0", &output[0], err);
        }
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

float ifd_unary_scale_ratio(const struct ifd_desc *input, const struct ifd_desc *output)
{
    return ifd_ref_scale(input) / ifd_ref_scale(output);
}

/* ---- functions computed in floats ---- */

/* What 32 bits do not hold saturates, but becomes the lowest number of u8, and NaN becomes 0 of the
 * others, as in LiteRT on x86. */
static int32_t quantize_f32(float real, const struct ifd_desc *desc)
{
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(desc->dtype, &min, &max);
    const float steps =
        roundf(real * (1.0f / ifd_ref_scale(desc))) + (float)ifd_ref_zero_point(desc);
    return desc->dtype == IFD_U8 ? ifd_ref_clamp(ifd_fixed_from_float(steps), min, max)
           : isnan(steps)        ? 0
           : steps >= (float)max ? max
           : steps > (float)min  ? (int32_t)steps
                                 : min;
}

/* 0 of NaN: between points of which one is not finite. */
static int16_t stored_s16(float steps)
{
    if (isnan(steps)) {
        return 0;
    }
    return (int16_t)(steps >= INT16_MAX ? INT16_MAX : steps > INT16_MIN ? steps : INT16_MIN);
}

/* Each point is moved by half the error of linear interpolation in the middle of its interval. not:
 * what fn is of numbers that are not positive; NaN: what it says. */
static void fill_table16(int16_t *table, const struct ifd_desc *in, const struct ifd_desc *out,
                         float (*fn)(float), float not_positive)
{
    const float in_scale = ifd_ref_scale(in), out_scale = ifd_ref_scale(out);
    const float min = in_scale * (float)(INT16_MIN - ifd_ref_zero_point(in));
    const float max = in_scale * (float)(INT16_MAX - ifd_ref_zero_point(in));
    const float least = out_scale * (float)(INT16_MIN - ifd_ref_zero_point(out));
    const float most = out_scale * (float)(INT16_MAX - ifd_ref_zero_point(out));
    const float unit = 65536.0f / (most - least);
    const int steps = IFD_TABLE16_POINTS - 1;
    const float step = (max - min) / (float)steps;
    float real[3]; /* at a point, in the middle behind it, at the next one */
    for (int i = 0; i <= steps; i++) {
        const float x[] = {i < steps ? min + (float)i * step : max,
                           min + (float)i * step + step / 2, min + (float)(i + 1) * step};
        for (int k = 0; k < 3; k++) {
            real[k] = unit * (x[k] <= 0 && !isnan(not_positive) ? not_positive : fn(x[k]));
        }
        const float value = roundf(real[0]);
        const float error = roundf((real[2] + value) / 2) - roundf(real[1]);
        table[i] = stored_s16(i < steps ? value - roundf(error / 2) : value);
    }
}

static void map_s16(const struct ifd_ref_call *call, float (*fn)(float), float not_positive)
{
    int16_t table[IFD_TABLE16_POINTS];
    const int16_t *x = call->input[0];
    int16_t *y = call->output[0];
    fill_table16(table, call->in[0], call->out[0], fn, not_positive);
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        y[i] = (int16_t)ifd_table16_at(table, x[i]);
    }
}

/* not_positive: as of fill_table16, for quantized types. */
static void map_any(const struct ifd_ref_call *call, float (*fn)(float), float not_positive)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const size_t count = ifd_ref_elements(out);
    if (in->dtype == IFD_S16) {
        map_s16(call, fn, not_positive);
        return;
    }
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
        const float x = scale * (float)(ifd_ref_load(in->dtype, call->input[0], i) - zero_point);
        const float real = x <= 0 && !isnan(not_positive) ? not_positive : fn(x);
        ifd_ref_store(out->dtype, call->output[0], i, quantize_f32(real, out));
    }
}

void ifd_unary_map(const struct ifd_ref_call *call, float (*fn)(float))
{
    map_any(call, fn, NAN);
}

static float rsqrt_f32(float x)
{
    return 1.0f / sqrtf(x);
}

/* ---- exp, log, sqrt, rsqrt ---- */

static enum ifd_code exp_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, expf);
    return IFD_OK;
}

static enum ifd_code log_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_desc *out = call->out[0];
    float lowest = NAN;
    if (out->dtype != IFD_F32) {
        int32_t min = 0;
        int32_t max = 0;
        ifd_dtype_range(out->dtype, &min, &max);
        lowest = (float)(min - ifd_ref_zero_point(out)) * ifd_ref_scale(out);
    }
    map_any(call, logf, lowest);
    return IFD_OK;
}

/* LiteRT cuts the fraction off instead of rounding, in both types. */
static enum ifd_code sqrt_quant(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    for (size_t i = 0; i < ifd_ref_elements(out); i++) {
        const int32_t x = ifd_ref_load(in->dtype, call->input[0], i) - ifd_ref_zero_point(in);
        const float real = ifd_ref_scale(in) * (float)x; /* -0 where the scale is 0 */
        if (real < 0) {
            return ifd_fail(err, IFD_INVALID, "sqrt: element %zu is negative", i);
        }
        const int32_t steps = ifd_fixed_from_float(sqrtf(real) / ifd_ref_scale(out));
        ifd_ref_store(out->dtype, call->output[0], i,
                      ifd_ref_clamp(ifd_fixed_add(steps, ifd_ref_zero_point(out)), min, max));
    }
    return IFD_OK;
}

static enum ifd_code sqrt_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    if (call->in[0]->dtype != IFD_F32) {
        return sqrt_quant(call, err);
    }
    ifd_unary_map(call, sqrtf);
    return IFD_OK;
}

/* LiteRT's fixed-point arithmetic: the root of the stored number, times that of its scale. */
#define RSQRT_BITS 20

static double rsqrt_factor(const struct ifd_desc *in, const struct ifd_desc *out)
{
    return 1.0 / (double)(sqrtf(ifd_ref_scale(in)) * ifd_ref_scale(out)); /* a float, as there */
}

static enum ifd_code rsqrt_s8(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const int8_t *x = call->input[0];
    int8_t *y = call->output[0];
    const int32_t zero_in = ifd_ref_zero_point(call->in[0]);
    const int32_t zero_out = ifd_ref_zero_point(call->out[0]);
    struct ifd_multiplier factor = ifd_multiplier(rsqrt_factor(call->in[0], call->out[0]));
    factor.shift -= RSQRT_BITS;
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        const int32_t value = x[i] - zero_in;
        if (value < 0) {
            return ifd_fail(err, IFD_INVALID, "rsqrt: element %zu is negative", i);
        }
        struct ifd_multiplier root = ifd_ref_inverse_root(value);
        root.shift += RSQRT_BITS;
        const int32_t single = ifd_requantize_double(1, root);
        const int32_t scaled =
            factor.shift > 0
                ? ifd_requantize_double(single, factor)
                : ifd_fixed_shift_any(ifd_fixed_mul_high(single, factor.fraction), -factor.shift);
        y[i] = (int8_t)(value == 0 ? INT8_MAX
                                   : ifd_ref_clamp((int64_t)scaled + zero_out, INT8_MIN, INT8_MAX));
    }
    return IFD_OK;
}

static enum ifd_code rsqrt_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    if (call->in[0]->dtype == IFD_S8) {
        return rsqrt_s8(call, err);
    }
    if (call->in[0]->dtype == IFD_S16) {
        map_s16(call, rsqrt_f32, INT16_MAX * ifd_ref_scale(call->out[0]));
        return IFD_OK;
    }
    ifd_unary_map(call, rsqrt_f32);
    return IFD_OK;
}

/* ---- abs, neg ---- */

static void abs_quant(const struct ifd_ref_call *call)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const bool rescales = ifd_ref_scale(in) != ifd_ref_scale(out);
    const struct ifd_multiplier multiplier = ifd_multiplier((double)ifd_unary_scale_ratio(in, out));
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
        ifd_unary_map(call, fabsf);
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

/* Of stored numbers: LiteRT takes no scale or zero point. */
static enum ifd_code neg_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(in->def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(in->def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(in->def, output, 0, &in->input[0].desc->shape, err)
                          : code;
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
        const uint32_t *x = call->input[0]; /* unsigned: INT32_MIN negates to itself */
        uint32_t *y = call->output[0];
        for (size_t i = 0; i < count; i++) {
            y[i] = 0u - x[i];
        }
    } else if (ifd_dtype_is_quantized(call->in[0]->dtype)) {
        for (size_t i = 0; i < count; i++) {
            ifd_ref_store(call->in[0]->dtype, call->output[0], i,
                          -ifd_ref_load(call->in[0]->dtype, call->input[0], i));
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

/* ---- definitions ---- */

DEFINE_UNARY(abs, ifd_unary_infer,
             TYPES_F32 | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16))
DEFINE_UNARY(neg, neg_infer, TYPES_F32 | TYPES_SIGNED | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))
DEFINE_UNARY(exp, ifd_unary_infer, TYPES_F32 | TYPES_SIGNED)
DEFINE_UNARY(log, ifd_unary_infer, TYPES_F32 | TYPES_SIGNED)
DEFINE_UNARY(sqrt, ifd_unary_infer, TYPES_F32 | TYPES_SIGNED)
DEFINE_UNARY(rsqrt, ifd_unary_infer, TYPES_F32 | TYPES_SIGNED)
