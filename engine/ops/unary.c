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
        code = ifd_infer_per_tensor(def, "input 0", input, err);
        if (code == IFD_OK) {
            code = ifd_infer_per_tensor(def, "output 0", &output[0], err);
        }
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

float ifd_unary_scale_ratio(const struct ifd_desc *input, const struct ifd_desc *output)
{
    return ifd_ref_scale(input) / ifd_ref_scale(output);
}

enum ifd_code ifd_unary_check_multiplier(const struct ifd_op_def *def, double real,
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

enum ifd_code ifd_unary_rescaling_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                        struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const enum ifd_code code = ifd_unary_infer(in, output, err);
    if (code != IFD_OK || output[0].quant.count == 0 || !ifd_dtype_is_quantized(output[0].dtype)) {
        return code;
    }
    return ifd_unary_check_multiplier(
        def, (double)ifd_unary_scale_ratio(in->input[0].desc, &output[0]), err);
}

/* ---- functions computed in floats ---- */

static int32_t quantize_f32(float real, const struct ifd_desc *desc)
{
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(desc->dtype, &min, &max);
    const float steps =
        roundf(real * (1.0f / ifd_ref_scale(desc))) + (float)ifd_ref_zero_point(desc);
    return steps >= (float)max ? max : steps > (float)min ? (int32_t)steps : min;
}

void ifd_unary_map(const struct ifd_ref_call *call, float (*fn)(float))
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
    ifd_unary_map(call, logf);
    return IFD_OK;
}

static enum ifd_code sqrt_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, sqrtf);
    return IFD_OK;
}

static enum ifd_code rsqrt_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
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

DEFINE_UNARY(abs, ifd_unary_rescaling_infer,
             TYPES_F32 | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16))
DEFINE_UNARY(neg, ifd_unary_infer, TYPES_F32 | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))
DEFINE_UNARY(exp, ifd_unary_infer, TYPES_F32 | IFD_BIT(IFD_S8))
DEFINE_UNARY(log, ifd_unary_infer, TYPES_F32 | IFD_BIT(IFD_S8))
DEFINE_UNARY(sqrt, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(rsqrt, ifd_unary_infer, TYPES_F32)
