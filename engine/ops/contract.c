/* Rows of sums of products, shared by convolutions and fully connected layers. contract_rule.c has
 * the shape rule. */
#include "engine/ops/contract.h"

#include "engine/ops/contract_rule.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/fixed.h"

#include <math.h>
#include <string.h>

static void begin_quantized(struct ifd_contraction *c, const struct ifd_desc *input,
                            const struct ifd_desc *filter, const struct ifd_desc *output,
                            int32_t activation)
{
    c->input_zero = ifd_ref_zero_point(input);
    c->filter_zero = filter->quant.count > 1 ? 0 : ifd_ref_zero_point(filter);
    c->output_zero = ifd_ref_zero_point(output);
    ifd_ref_act_range_quant(activation, output, &c->min, &c->max);
    for (int64_t i = 0; i < c->channels; i++) {
        const double real = ifd_contract_real_scale(input, filter, output, c->rounding, i);
        struct ifd_contract_scale *scale = &c->scale[i];
        scale->real = real;
        ifd_fixed_from_any(real, &scale->multiplier, &scale->shift);
    }
}

static void begin_dynamic(struct ifd_contraction *c, const struct ifd_desc *filter)
{
    for (int64_t i = 0; i < c->channels; i++) {
        c->scale[i].real = (double)filter->quant.scale[filter->quant.count > 1 ? i : 0];
    }
    c->filter_zero = filter->quant.count > 1 ? 0 : ifd_ref_zero_point(filter);
    c->scales_differ = false;
    for (int64_t i = 1; i < c->channels; i++) {
        c->scales_differ = c->scales_differ || c->scale[i].real != c->scale[0].real;
    }
}

void ifd_contract_begin(struct ifd_contraction *contraction, const struct ifd_ref_call *call,
                        const struct ifd_contract_roles *roles,
                        const struct ifd_contract_sizes *sizes, int32_t activation)
{
    const struct ifd_desc *input = call->in[roles->input];
    const struct ifd_desc *filter = call->in[roles->weights.input];
    const bool has_bias =
        roles->weights.bias < call->input_count && call->input[roles->weights.bias];
    const struct ifd_desc *bias = has_bias ? call->in[roles->weights.bias] : NULL;

    struct ifd_contract_scale *scale = call->scratch;
    int64_t *sum = (int64_t *)(scale + sizes->channels);
    int32_t *window = (int32_t *)(sum + sizes->channels);
    *contraction = (struct ifd_contraction){
        .dtype = input->dtype,
        .is_float = input->dtype == IFD_F32 && !ifd_contract_is_dynamic(input, filter),
        .is_dynamic = ifd_contract_is_dynamic(input, filter),
        .filter_dtype = filter->dtype,
        .rounding = roles->rounding,
        .is_wide = ifd_contract_has_wide_sums(input, filter, bias),
        .channels = sizes->channels,
        .input = call->input[roles->input],
        .filter = call->input[roles->weights.input],
        .bias = bias ? call->input[roles->weights.bias] : NULL,
        .bias_dtype = bias ? bias->dtype : IFD_S32,
        .output = call->output[0],
        .elements = (int64_t)ifd_ref_elements(input),
        .scale = scale,
        .quantized = (int8_t *)(window + sizes->window),
    };
    if (contraction->is_float) {
        contraction->sum.f32 = (float *)sum;
        contraction->window.f32 = (float *)window;
    } else {
        contraction->sum.s64 = sum;
        contraction->window.s32 = window;
    }
    if (input->dtype == IFD_F32) {
        ifd_ref_act_range_f32(activation, &contraction->min_f32, &contraction->max_f32);
    } else {
        begin_quantized(contraction, input, filter, call->out[0], activation);
    }
    if (contraction->is_dynamic) {
        begin_dynamic(contraction, filter);
        contraction->scales_first = !contraction->scales_differ || roles->weights.axis != 0 ||
                                    roles->rounding == IFD_CONTRACT_EVEN;
    }
}

/* The stored number nearest to x steps from zero, -limit … 127; zero for NaN. */
static int8_t nearest_s8(float x, int32_t zero, int32_t limit)
{
    const float steps = roundf(x) + (float)zero;
    return (int8_t)(isnan(steps) ? (float)zero : ifd_ref_clamp_f32(steps, (float)-limit, 127));
}

/* Maps -max … max of the numbers to -127 … 127. */
static void quantize_symmetric(struct ifd_contraction *c, const float *x, int64_t count, float max)
{
    c->input_zero = 0;
    c->sample_scale = max / 127;
    const float inverse = 127 / max;
    for (int64_t i = 0; i < count; i++) {
        c->quantized[i] = nearest_s8(x[i] * inverse, 0, 127);
    }
}

/* Maps min … max of the numbers and 0 to -128 … 127. The zero point is computed from the end
 * with the smaller error. */
static void quantize_asymmetric(struct ifd_contraction *c, const float *x, int64_t count, float min,
                                float max)
{
    c->sample_scale = (max - min) / 255;
    const float low = min / c->sample_scale;
    const float high = max / c->sample_scale;
    const float zero = 128 + fabsf(low) < 127 + fabsf(high) ? -128 - low : 127 - high;
    c->input_zero = zero >= 127 ? 127 : zero > -128 ? (int32_t)roundf(zero) : -128;
    const float inverse = 1.0f / c->sample_scale;
    for (int64_t i = 0; i < count; i++) {
        c->quantized[i] = nearest_s8(x[i] * inverse, c->input_zero, 128);
    }
}

/* Maps min … max of the numbers and 0 to 0 … 255, less 128: ONNX's DynamicQuantizeLinear. A scale
 * may be 0 or infinite: of such, zero may be NaN. */
static void quantize_even(struct ifd_contraction *c, const float *x, int64_t count, float min,
                          float max)
{
    c->sample_scale = (max - min) / 255;
    const float zero = 0 - min / c->sample_scale;
    c->input_zero = (int32_t)rintf(isnan(zero) ? 0 : ifd_ref_clamp_f32(zero, 0, 255)) - 128;
    for (int64_t i = 0; i < count; i++) {
        const float steps = rintf(x[i] / c->sample_scale) + (float)c->input_zero;
        c->quantized[i] =
            (int8_t)(isnan(steps) ? (float)c->input_zero : ifd_ref_clamp_f32(steps, -128, 127));
    }
}

void ifd_contract_sample(struct ifd_contraction *contraction, int64_t first, int64_t count,
                         bool is_asymmetric)
{
    const bool is_even = contraction->rounding == IFD_CONTRACT_EVEN;
    if (!contraction->is_dynamic || (is_even && contraction->has_whole)) {
        return;
    }
    contraction->has_whole = is_even;
    first = is_even ? 0 : first;
    count = is_even ? contraction->elements : count;
    const float *x = (const float *)contraction->input + first;
    float min = 0;
    float max = 0;
    for (int64_t i = 0; i < count; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    contraction->sample_first = first;
    if (min == max) {
        contraction->input_zero = 0;
        contraction->sample_scale = 1;
        memset(contraction->quantized, 0, (size_t)count);
    } else if (is_even) {
        quantize_even(contraction, x, count, min, max);
    } else if (is_asymmetric) {
        quantize_asymmetric(contraction, x, count, min, max);
    } else {
        quantize_symmetric(contraction, x, count, max > -min ? max : -min);
    }
}

void ifd_contract_load(struct ifd_contraction *contraction, int64_t at, int64_t first,
                       int64_t count)
{
    if (contraction->is_float) {
        memcpy(contraction->window.f32 + at, (const float *)contraction->input + first,
               (size_t)count * sizeof(float));
        return;
    }
    int32_t *to = contraction->window.s32 + at;
    const int32_t zero = contraction->input_zero;
    if (contraction->is_dynamic) {
        const int8_t *from = contraction->quantized + (first - contraction->sample_first);
        for (int64_t i = 0; i < count; i++) {
            to[i] = from[i] - zero;
        }
    } else if (contraction->dtype == IFD_U8) {
        const uint8_t *from = (const uint8_t *)contraction->input + first;
        for (int64_t i = 0; i < count; i++) {
            to[i] = from[i] - zero;
        }
    } else if (contraction->dtype == IFD_S8) {
        const int8_t *from = (const int8_t *)contraction->input + first;
        for (int64_t i = 0; i < count; i++) {
            to[i] = from[i] - zero;
        }
    } else {
        const int16_t *from = (const int16_t *)contraction->input + first;
        for (int64_t i = 0; i < count; i++) {
            to[i] = from[i] - zero;
        }
    }
}

void ifd_contract_pad(struct ifd_contraction *contraction, int64_t at, int64_t count)
{
    /* f32 and s32 zeros have the same bytes */
    memset(contraction->window.s32 + at, 0, (size_t)count * sizeof(int32_t));
}

void ifd_contract_clear(struct ifd_contraction *contraction)
{
    const size_t size = contraction->is_float ? sizeof(float) : sizeof(int64_t);
    memset(contraction->sum.s64, 0, (size_t)contraction->channels * size);
}

/* Four channels at a time: four independent sums hide latency, and each is still added up in
 * order. */
static void dot_f32(float *sum, int64_t count, const float *x, int64_t n, const float *w,
                    int64_t stride)
{
    int64_t c = 0;
    for (; c + 4 <= count; c += 4) {
        const float *w0 = w + c * stride;
        const float *w1 = w0 + stride;
        const float *w2 = w1 + stride;
        const float *w3 = w2 + stride;
        float s0 = sum[c];
        float s1 = sum[c + 1];
        float s2 = sum[c + 2];
        float s3 = sum[c + 3];
        for (int64_t i = 0; i < n; i++) {
            s0 += x[i] * w0[i];
            s1 += x[i] * w1[i];
            s2 += x[i] * w2[i];
            s3 += x[i] * w3[i];
        }
        sum[c] = s0;
        sum[c + 1] = s1;
        sum[c + 2] = s2;
        sum[c + 3] = s3;
    }
    for (; c < count; c++) {
        const float *w0 = w + c * stride;
        float s0 = sum[c];
        for (int64_t i = 0; i < n; i++) {
            s0 += x[i] * w0[i];
        }
        sum[c] = s0;
    }
}

/* Products fit 32 bits: |x| ≤ 2^15 and |w| ≤ 2^8. The filter's zero point is subtracted from the
 * whole sum: Σ x (w - zero) = Σ x w - zero Σ x. */
static void dot_s8(int64_t *sum, int64_t count, const int32_t *x, int64_t n, const int8_t *w,
                   int64_t stride)
{
    for (int64_t c = 0; c < count; c++) {
        const int8_t *row = w + c * stride;
        int64_t s = 0;
        for (int64_t i = 0; i < n; i++) {
            s += x[i] * row[i];
        }
        sum[c] += s;
    }
}

static void dot_u8(int64_t *sum, int64_t count, const int32_t *x, int64_t n, const uint8_t *w,
                   int64_t stride)
{
    for (int64_t c = 0; c < count; c++) {
        const uint8_t *row = w + c * stride;
        int64_t s = 0;
        for (int64_t i = 0; i < n; i++) {
            s += x[i] * row[i];
        }
        sum[c] += s;
    }
}

/* a + b modulo 2^64: crafted numbers cannot overflow it. */
static int64_t add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void dot_s16(int64_t *sum, int64_t count, const int32_t *x, int64_t n, const int16_t *w,
                    int64_t stride)
{
    for (int64_t c = 0; c < count; c++) {
        const int16_t *row = w + c * stride;
        int64_t s = sum[c];
        for (int64_t i = 0; i < n; i++) {
            s = add_wrapping(s, (int64_t)x[i] * row[i]);
        }
        sum[c] = s;
    }
}

void ifd_contract_dot(struct ifd_contraction *contraction, int64_t first, int64_t count, int64_t n,
                      int64_t filter_first, int64_t stride)
{
    if (contraction->is_float) {
        dot_f32(contraction->sum.f32 + first, count, contraction->window.f32, n,
                (const float *)contraction->filter + filter_first, stride);
        return;
    }
    const int32_t *x = contraction->window.s32;
    int64_t *sum = contraction->sum.s64 + first;
    if (contraction->filter_dtype == IFD_U8) {
        dot_u8(sum, count, x, n, (const uint8_t *)contraction->filter + filter_first, stride);
    } else if (contraction->filter_dtype == IFD_S16) {
        dot_s16(sum, count, x, n, (const int16_t *)contraction->filter + filter_first, stride);
    } else {
        dot_s8(sum, count, x, n, (const int8_t *)contraction->filter + filter_first, stride);
    }
    if (contraction->filter_zero != 0) {
        int64_t total = 0;
        for (int64_t i = 0; i < n; i++) {
            total += x[i];
        }
        for (int64_t c = 0; c < count; c++) {
            sum[c] = add_wrapping(sum[c], -total * contraction->filter_zero);
        }
    }
}

static void multiply_f32(float *sum, const float *x, const float *w, int64_t n, int64_t multiplier)
{
    if (multiplier == 1) {
        for (int64_t i = 0; i < n; i++) {
            sum[i] += x[i] * w[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t m = i * multiplier; m < (i + 1) * multiplier; m++) {
            sum[m] += x[i] * w[m];
        }
    }
}

void ifd_contract_multiply(struct ifd_contraction *contraction, int64_t n, int64_t multiplier,
                           int64_t filter_first)
{
    if (contraction->is_float) {
        multiply_f32(contraction->sum.f32, contraction->window.f32,
                     (const float *)contraction->filter + filter_first, n, multiplier);
        return;
    }
    const int32_t *x = contraction->window.s32;
    int64_t *sum = contraction->sum.s64;
    const int32_t zero = contraction->filter_zero;
    if (contraction->filter_dtype == IFD_U8) {
        const uint8_t *w = (const uint8_t *)contraction->filter + filter_first;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t m = i * multiplier; m < (i + 1) * multiplier; m++) {
                sum[m] += x[i] * (w[m] - zero);
            }
        }
    } else {
        const int8_t *w = (const int8_t *)contraction->filter + filter_first;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t m = i * multiplier; m < (i + 1) * multiplier; m++) {
                sum[m] += x[i] * (w[m] - zero);
            }
        }
    }
}

/* The sum of a dynamic layer as a real number; the order of the two products is LiteRT's. */
static float dynamic_sum(const struct ifd_contraction *contraction, int64_t channel)
{
    const float sum = (float)contraction->sum.s64[channel];
    const float scale = (float)contraction->scale[channel].real;
    return contraction->scales_first ? sum * (scale * contraction->sample_scale)
                                     : sum * scale * contraction->sample_scale;
}

static void store_f32(const struct ifd_contraction *contraction, int64_t first)
{
    const float *bias = contraction->bias;
    float *out = (float *)contraction->output + first;
    for (int64_t c = 0; c < contraction->channels; c++) {
        const float sum =
            contraction->is_float ? contraction->sum.f32[c] : dynamic_sum(contraction, c);
        out[c] = ifd_ref_clamp_f32(sum + (bias ? bias[c] : 0.0f), contraction->min_f32,
                                   contraction->max_f32);
    }
}

/* Beyond 2^30 the number is far outside of 8 bits. */
static int64_t scale_even(int64_t sum, double scale)
{
    const float limit = 1 << 30;
    const float real = rintf((float)sum * (float)scale);
    return (int64_t)ifd_ref_clamp_f32(real, -limit, limit);
}

static int64_t scaled(const struct ifd_contraction *contraction, int64_t channel)
{
    int64_t sum = contraction->sum.s64[channel];
    if (contraction->bias) {
        sum = add_wrapping(sum, contraction->bias_dtype == IFD_S64
                                    ? ((const int64_t *)contraction->bias)[channel]
                                    : ((const int32_t *)contraction->bias)[channel]);
    }
    if (!contraction->is_wide) {
        sum = (int32_t)(uint32_t)(uint64_t)sum;
    }
    const struct ifd_contract_scale *scale = &contraction->scale[channel];
    if (contraction->rounding == IFD_CONTRACT_REAL && contraction->filter_dtype != IFD_S16) {
        return ifd_fixed_scale_real(sum, scale->real);
    }
    if (contraction->rounding == IFD_CONTRACT_EVEN) {
        return scale_even(sum, scale->real);
    }
    return contraction->is_wide
               ? ifd_fixed_scale_wide(sum, scale->multiplier, scale->shift)
               : ifd_fixed_scale_double((int32_t)sum, scale->multiplier, scale->shift);
}

void ifd_contract_store(struct ifd_contraction *contraction, int64_t first)
{
    if (contraction->dtype == IFD_F32) {
        store_f32(contraction, first);
        return;
    }
    for (int64_t c = 0; c < contraction->channels; c++) {
        int64_t value = scaled(contraction, c) + contraction->output_zero;
        value = contraction->is_wide ? value : (int32_t)(uint32_t)(uint64_t)value;
        const int64_t clamped = value < contraction->min   ? contraction->min
                                : value > contraction->max ? contraction->max
                                                           : value;
        ifd_ref_store(contraction->dtype, contraction->output, (size_t)(first + c),
                      (int32_t)clamped);
    }
}
