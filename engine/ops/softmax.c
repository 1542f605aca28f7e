/* softmax along the last dimension. Quantized types use the fixed-point arithmetic of LiteRT's
 * reference kernels: u8 and s8 that of tensor/softmax8.h, s16 two tables of 513 points. */
#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/unary.h"
#include "engine/tensor/fixed.h"
#include "engine/tensor/softmax8.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

extern const struct ifd_op_def ifd_op_softmax;

/** Of u8 LiteRT's reference kernel does not ask. */
static enum ifd_code check_output_quant(enum ifd_dtype dtype, const struct ifd_quant *quant,
                                        struct ifd_err *err)
{
    const float scale = dtype == IFD_S16 ? 1.0f / 32768 : 1.0f / 256;
    const int32_t zero_point = dtype == IFD_S8 ? -128 : 0;
    if (dtype != IFD_U8 &&
        (fabsf(quant->scale[0] - scale) > 0.001f * scale || quant->zero_point[0] != zero_point)) {
        return ifd_fail(err, IFD_INVALID,
                        "softmax: the output has scale %g and zero point %d, expected %g and %d",
                        (double)quant->scale[0], quant->zero_point[0], (double)scale, zero_point);
    }
    return IFD_OK;
}

/* The exponent's change per step of u8 or s8 inputs. Where it is smaller than the exponent's last
 * bit, LiteRT's reference kernel aborts, and its other one computes in floats (row_flat). */
static double byte_factor(float beta, float scale)
{
    return (double)beta * (double)scale;
}

/* Factor from a difference of s16 inputs to the argument of the exp table, where -65535 … 0 mean
 * -10 … 0. LiteRT multiplies scale and beta in single precision. A factor of 2^14 and more, as the
 * mask of causal attention makes it, wraps around as on x86. */
static double word_factor(float beta, float scale)
{
    return (double)(scale * beta) / (10.0 / 65535.0);
}

static enum ifd_code check_quantized(const struct ifd_infer *in, const struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_softmax_attrs *attrs = in->attrs;
    const struct ifd_desc *input = in->input[0].desc;
    enum ifd_code code = ifd_infer_any_scale(&ifd_op_softmax, "the input", input, err);
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(&ifd_op_softmax, "the output", &output[0], err);
    }
    if (code == IFD_OK) {
        code = check_output_quant(input->dtype, &output[0].quant, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const float scale = input->quant.scale[0];
    const bool is_in_range = input->dtype == IFD_S16 ? word_factor(attrs->beta, scale) >= 0 &&
                                                           isfinite(word_factor(attrs->beta, scale))
                                                     : byte_factor(attrs->beta, scale) >= 0;
    if (!is_in_range) {
        return ifd_fail(err, IFD_INVALID, "softmax: beta %g with input scale %g is out of range",
                        (double)attrs->beta, (double)scale);
    }
    return IFD_OK;
}

static enum ifd_code softmax_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_softmax;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    if (input->shape.rank == 0) {
        return ifd_fail(err, IFD_INVALID, "softmax: the input is a scalar");
    }
    code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    if (code == IFD_OK && ifd_dtype_is_quantized(input->dtype)) {
        code = check_quantized(in, output, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

static enum ifd_code softmax_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                     size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    (void)err;
    *ret_bytes = in->input[0].desc->dtype == IFD_S16 ? 2 * IFD_TABLE16_POINTS * sizeof(int16_t) : 0;
    return IFD_OK;
}

static void row_f32(const float *in, float *out, int64_t depth, float beta)
{
    float max = -FLT_MAX;
    for (int64_t i = 0; i < depth; i++) {
        max = max < in[i] ? in[i] : max;
    }
    float sum = 0;
    for (int64_t i = 0; i < depth; i++) {
        out[i] = expf((in[i] - max) * beta);
        sum += out[i];
    }
    for (int64_t i = 0; i < depth; i++) {
        out[i] /= sum;
    }
}

static int32_t saturate(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static int leading_zeros(uint32_t x)
{
    int count = 0;
    while (count < 32 && (x & (UINT32_C(1) << 31 >> count)) == 0) {
        count++;
    }
    return count;
}

static int32_t largest_of(enum ifd_dtype dtype, const void *in, size_t first, size_t depth)
{
    int32_t max = ifd_ref_load(dtype, in, first);
    for (size_t i = 1; i < depth; i++) {
        const int32_t value = ifd_ref_load(dtype, in, first + i);
        max = max < value ? value : max;
    }
    return max;
}

static void row_byte(enum ifd_dtype dtype, const void *in, void *out, size_t first, size_t depth,
                     const struct ifd_softmax8 *table)
{
    const int32_t max = largest_of(dtype, in, first, depth);
    int64_t sum = 0;
    for (size_t i = 0; i < depth; i++) {
        sum += table->rounded[max - ifd_ref_load(dtype, in, first + i)];
    }
    const struct ifd_softmax8_row row = ifd_softmax8_divide(sum);
    const int32_t lowest = dtype == IFD_S8 ? INT8_MIN : 0;
    for (size_t i = 0; i < depth; i++) {
        const int32_t distance = max - ifd_ref_load(dtype, in, first + i);
        const int32_t steps = ifd_softmax8_steps(&row, table->exponential[distance]);
        ifd_ref_store(dtype, out, first + i, steps + lowest);
    }
}

/* u8 is rounded by adding a half. */
static void row_flat(enum ifd_dtype dtype, const void *in, void *out, size_t first, size_t depth,
                     float factor)
{
    const int32_t max = largest_of(dtype, in, first, depth);
    float sum = 0;
    for (size_t i = 0; i < depth; i++) {
        sum += expf(-factor * (float)(max - ifd_ref_load(dtype, in, first + i)));
    }
    const float inverse = 1.0f / (sum * (1.0f / 256));
    for (size_t i = 0; i < depth; i++) {
        const int32_t distance = max - ifd_ref_load(dtype, in, first + i);
        const float share = expf(-factor * (float)distance) * inverse;
        const int32_t steps = (int32_t)(dtype == IFD_U8 ? share + 0.5f : roundf(share));
        const int32_t most = UINT8_MAX, lowest = dtype == IFD_S8 ? INT8_MIN : 0;
        ifd_ref_store(dtype, out, first + i, (steps < most ? steps : most) + lowest);
    }
}

static double exp_of(double x)
{
    return exp(x);
}

static double reciprocal_of(double x)
{
    return 1.0 / (1.0 + x);
}

/* Fills a table of f over min … max, scaled to 32768 for 1. Each point is moved by half the
 * error of linear interpolation in the middle of its interval. */
static void fill_table(int16_t *table, double min, double max, double (*f)(double))
{
    const int steps = IFD_TABLE16_POINTS - 1;
    const double step = (max - min) / steps;
    const double unit = 65536.0 / (2.0 / 65535.0 * 32767.0 - 2.0 / 65535.0 * -32768.0);
    for (int i = 0; i < steps; i++) {
        const double value = round(f(min + i * step) * unit);
        const double next = f(min + (i + 1) * step) * unit;
        const double middle = round(f(min + i * step + step / 2) * unit);
        const double error = round((next + value) / 2) - middle;
        const double moved = value - round(error / 2);
        table[i] = (int16_t)fmin(fmax(moved, INT16_MIN), INT16_MAX);
    }
    table[steps] = (int16_t)fmin(fmax(round(f(max) * unit), INT16_MIN), INT16_MAX);
}

/* min … max of a table over the s16 numbers with range / 65535 per step, centred on centre. */
static void fill_word_table(int16_t *table, double range, int centre, double (*f)(double))
{
    const double step = range / 65535.0;
    fill_table(table, step * (INT16_MIN - centre), step * (INT16_MAX - centre), f);
}

static void row_word(const int16_t *in, int16_t *out, int64_t depth, double factor,
                     const int16_t *exp_table, const int16_t *reciprocal_table)
{
    int32_t multiplier = 0;
    int shift = 0;
    ifd_fixed_from_any(factor, &multiplier, &shift);
    int32_t max = INT16_MIN;
    for (int64_t i = 0; i < depth; i++) {
        max = max < in[i] ? in[i] : max;
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < depth; i++) {
        const int32_t scaled = ifd_fixed_scale_double(in[i] - max, multiplier, shift);
        out[i] = (int16_t)ifd_table16_at(exp_table, saturate(ifd_fixed_add(scaled, INT16_MAX)));
        sum += out[i];
    }
    const uint32_t limited = (uint32_t)saturate(sum);
    const int headroom = leading_zeros(limited);
    const int64_t shifted = (((int64_t)limited << (headroom - 1)) + (1 << 13)) >> 14;
    const int64_t reciprocal =
        ifd_table16_at(reciprocal_table, (int32_t)(shifted - (1 << 15) - (1 << 16)));
    const int right = 31 - headroom;
    const int64_t half = right > 0 ? INT64_C(1) << (right - 1) : 0;
    for (int64_t i = 0; i < depth; i++) {
        const int64_t share = (out[i] * reciprocal + half) >> right;
        out[i] = (int16_t)(share < 0 ? 0 : share > INT16_MAX ? INT16_MAX : share);
    }
}

static enum ifd_code softmax_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_softmax_attrs *attrs = call->attrs;
    const struct ifd_desc *desc = call->in[0];
    const int64_t depth = desc->shape.dim[desc->shape.rank - 1];
    const int64_t rows = ifd_ref_product(&desc->shape, 0, desc->shape.rank - 1);
    if (depth == 0) {
        return IFD_OK;
    }
    int16_t *exp_table = call->scratch;
    int16_t *reciprocal_table = NULL;
    if (desc->dtype == IFD_S16) {
        reciprocal_table = exp_table + IFD_TABLE16_POINTS;
        fill_word_table(exp_table, 10.0, INT16_MAX, exp_of);
        fill_word_table(reciprocal_table, 1.0, INT16_MIN, reciprocal_of);
    }
    struct ifd_softmax8 byte_table;
    const float byte_scale = desc->quant.count > 0 ? ifd_ref_scale(desc) : 1;
    const bool is_flat = byte_factor(attrs->beta, byte_scale) <= IFD_SOFTMAX8_FACTOR_MIN;
    if ((desc->dtype == IFD_U8 || desc->dtype == IFD_S8) && !is_flat) {
        ifd_softmax8_init(&byte_table, byte_factor(attrs->beta, ifd_ref_scale(desc)));
    }
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = r * depth;
        if (desc->dtype == IFD_F32) {
            row_f32((const float *)call->input[0] + first, (float *)call->output[0] + first, depth,
                    attrs->beta);
        } else if (desc->dtype == IFD_S16) {
            row_word((const int16_t *)call->input[0] + first, (int16_t *)call->output[0] + first,
                     depth, word_factor(attrs->beta, ifd_ref_scale(desc)), exp_table,
                     reciprocal_table);
        } else if (is_flat) {
            row_flat(desc->dtype, call->input[0], call->output[0], (size_t)first, (size_t)depth,
                     byte_scale * attrs->beta);
        } else {
            row_byte(desc->dtype, call->input[0], call->output[0], (size_t)first, (size_t)depth,
                     &byte_table);
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def softmax_attrs[] = {
    {"beta", IFD_ATTR_F32, offsetof(struct ifd_softmax_attrs, beta), 1, -FLT_MAX, FLT_MAX},
};

/* The last dimension must stay the last. */
static bool softmax_permute(void *attrs, const struct ifd_perm *perm)
{
    (void)attrs;
    return perm->axis[perm->rank - 1] == perm->rank - 1;
}

const struct ifd_op_def ifd_op_softmax = {
    .name = "softmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = softmax_attrs,
    .attr_count = sizeof(softmax_attrs) / sizeof(softmax_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_softmax_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT,
    .batch = IFD_BATCH_AXIS,
    .can_alias = true,
    .infer = softmax_infer,
    .scratch = softmax_scratch,
    .ref = softmax_ref,
    .permute = softmax_permute,
};
