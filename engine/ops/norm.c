/* Normalization by neighbouring elements: l2_normalization and local_response_normalization
 * along the last dimension. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_l2_normalization, ifd_op_local_response_normalization;

/* Scale and zero point of quantized results: -1 to 1 in 256 steps. */
#define L2_BITS  7
#define L2_SCALE (1.0f / (1 << L2_BITS))

/* The output has the shape and type of input 0, which is not a scalar. */
static enum ifd_code infer_like(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK && in->input[0].desc->shape.rank == 0) {
        code = ifd_fail(err, IFD_INVALID, "%s: input 0 is a scalar", def->name);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static enum ifd_code l2_normalization_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                            struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_l2_normalization;
    enum ifd_code code = infer_like(in, output, err);
    if (code != IFD_OK || !ifd_dtype_is_quantized(output[0].dtype)) {
        return code;
    }
    code = ifd_infer_any_scale(def, "input 0", in->input[0].desc, err);
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "output 0", &output[0], err);
    }
    const int32_t zero_point = output[0].dtype == IFD_S8 ? 0 : 128;
    if (code == IFD_OK &&
        (output[0].quant.scale[0] != L2_SCALE || output[0].quant.zero_point[0] != zero_point)) {
        code =
            ifd_fail(err, IFD_UNSUPPORTED,
                     "l2_normalization: output scale %g, zero point %d, expected 1/128, %d",
                     (double)output[0].quant.scale[0], output[0].quant.zero_point[0], zero_point);
    }
    return code;
}

static void l2_quant(const struct ifd_ref_call *call, size_t rows, size_t depth)
{
    const enum ifd_dtype dtype = call->in[0]->dtype;
    const int32_t zero_in = ifd_ref_zero_point(call->in[0]);
    const int32_t zero_out = ifd_ref_zero_point(call->out[0]);
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(dtype, &min, &max);
    for (size_t r = 0; r < rows; r++) {
        uint32_t sum = 0;
        for (size_t i = 0; i < depth; i++) {
            const int32_t x = ifd_ref_load(dtype, call->input[0], r * depth + i) - zero_in;
            sum += (uint32_t)(x * x);
        }
        const struct ifd_multiplier root = ifd_ref_inverse_root((int32_t)sum);
        for (size_t i = 0; i < depth; i++) {
            const int32_t x = ifd_ref_load(dtype, call->input[0], r * depth + i) - zero_in;
            /* LiteRT scales the product by 128 for s8, the number for u8: they round differently */
            const int32_t steps =
                dtype == IFD_S8 ? ifd_fixed_scale_double(x, root.fraction, root.shift + L2_BITS)
                                : ifd_requantize_double(x * (1 << L2_BITS), root);
            const int64_t y = (int64_t)steps + zero_out;
            ifd_ref_store(dtype, call->output[0], r * depth + i, ifd_ref_clamp(y, min, max));
        }
    }
}

static enum ifd_code l2_normalization_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const float epsilon = 1e-6f;
    const size_t depth = (size_t)shape->dim[shape->rank - 1];
    const size_t rows = ifd_ref_elements(call->out[0]) / (depth > 0 ? depth : 1);
    if (call->in[0]->dtype != IFD_F32) {
        l2_quant(call, rows, depth);
        return IFD_OK;
    }
    for (size_t r = 0; r < rows; r++) {
        const float *x = (const float *)call->input[0] + r * depth;
        float *y = (float *)call->output[0] + r * depth;
        float sum = 0;
        for (size_t i = 0; i < depth; i++) {
            sum += x[i] * x[i];
        }
        const float root = sqrtf(sum);
        const float norm = root > epsilon ? root : epsilon;
        for (size_t i = 0; i < depth; i++) {
            y[i] = x[i] / norm;
        }
    }
    return IFD_OK;
}

static enum ifd_code local_response_normalization_ref(const struct ifd_ref_call *call,
                                                      struct ifd_err *err)
{
    (void)err;
    const struct ifd_local_response_attrs *attrs = call->attrs;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const int64_t depth = shape->dim[shape->rank - 1];
    const size_t rows = ifd_ref_elements(call->out[0]) / (size_t)(depth > 0 ? depth : 1);
    for (size_t r = 0; r < rows; r++) {
        const float *x = (const float *)call->input[0] + r * (size_t)depth;
        float *y = (float *)call->output[0] + r * (size_t)depth;
        for (int64_t c = 0; c < depth; c++) {
            const int64_t first = c > attrs->radius ? c - attrs->radius : 0;
            const int64_t end = depth - c > attrs->radius ? c + attrs->radius : depth;
            float sum = 0;
            for (int64_t k = first; k < end; k++) { /* the last one is left out, as in LiteRT */
                sum += x[k] * x[k];
            }
            y[c] = x[c] * powf(attrs->bias + attrs->alpha * sum, -attrs->beta);
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def local_response_attrs[] = {
    {"radius", IFD_ATTR_INT, offsetof(struct ifd_local_response_attrs, radius), 0, 0,
     (double)INT32_MAX},
    {"bias", IFD_ATTR_F32, offsetof(struct ifd_local_response_attrs, bias), 0, -HUGE_VAL, HUGE_VAL},
    {"alpha", IFD_ATTR_F32, offsetof(struct ifd_local_response_attrs, alpha), 0, -HUGE_VAL,
     HUGE_VAL},
    {"beta", IFD_ATTR_F32, offsetof(struct ifd_local_response_attrs, beta), 0, -HUGE_VAL, HUGE_VAL},
};

const struct ifd_op_def ifd_op_l2_normalization = {
    .name = "l2_normalization",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8),
    .batch = IFD_BATCH_AXIS,
    .infer = l2_normalization_infer,
    .ref = l2_normalization_ref,
};

const struct ifd_op_def ifd_op_local_response_normalization = {
    .name = "local_response_normalization",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = local_response_attrs,
    .attr_count = sizeof(local_response_attrs) / sizeof(local_response_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_local_response_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .batch = IFD_BATCH_AXIS,
    .infer = infer_like,
    .ref = local_response_normalization_ref,
    .multiplies = true,
};
