/* The shape rule of rows of sums of products, and the scratch that they need. */
#include "engine/ops/contract_rule.h"

#include <math.h>

#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

double ifd_contract_real_scale(const struct ifd_desc *input, const struct ifd_desc *filter,
                               const struct ifd_desc *output, enum ifd_contract_rounding rounding,
                               int64_t c)
{
    const float in = input->quant.scale[0];
    const float weight = filter->quant.scale[filter->quant.count > 1 ? c : 0];
    const double out = (double)output->quant.scale[0];
    if (rounding == IFD_CONTRACT_EVEN) {
        return (double)(in * weight / output->quant.scale[0]);
    }
    if (input->dtype == IFD_U8 && rounding == IFD_CONTRACT_FIXED) {
        return (double)(in * weight) / out;
    }
    return (double)in * (double)weight / out;
}

bool ifd_contract_has_wide_sums(const struct ifd_desc *input, const struct ifd_desc *filter,
                                const struct ifd_desc *bias)
{
    return input->dtype == IFD_S16 &&
           (filter->dtype == IFD_S16 || !(bias && bias->dtype == IFD_S32));
}

bool ifd_contract_is_dynamic(const struct ifd_desc *input, const struct ifd_desc *filter)
{
    return input->dtype == IFD_F32 && (filter->dtype == IFD_S8 || filter->dtype == IFD_U8);
}

static enum ifd_code check_symmetric_filter(const struct ifd_op_def *def,
                                            const struct ifd_desc *filter, uint32_t axis,
                                            struct ifd_err *err)
{
    const enum ifd_code code = ifd_infer_per_channel(def, "the filter", filter, axis, err);
    if (code == IFD_OK && filter->quant.zero_point[0] != 0) {
        return ifd_fail(err, IFD_INVALID, "%s: the filter (s8) has zero point %d, expected 0",
                        def->name, filter->quant.zero_point[0]);
    }
    return code;
}

static enum ifd_code check_float(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 const struct ifd_contract_roles *roles, struct ifd_err *err)
{
    const struct ifd_desc *filter = in->input[roles->weights.input].desc;
    const bool is_even = roles->rounding == IFD_CONTRACT_EVEN;
    const uint32_t dtypes = IFD_BIT(IFD_F32) | (roles->may_be_dynamic ? IFD_BIT(IFD_S8) : 0) |
                            (roles->may_be_dynamic && is_even ? IFD_BIT(IFD_U8) : 0);
    enum ifd_code code = ifd_infer_dtype(def, in, roles->weights.input, dtypes, err);
    if (code == IFD_OK && filter->dtype != IFD_F32) {
        code = is_even ? ifd_infer_per_channel(def, "the filter", filter, roles->weights.axis, err)
                       : check_symmetric_filter(def, filter, roles->weights.axis, err);
    }
    if (code == IFD_OK && ifd_infer_input(in, roles->weights.bias)) {
        code = ifd_infer_dtype(def, in, roles->weights.bias, IFD_BIT(IFD_F32), err);
    }
    return code;
}

static enum ifd_code check_scales(const struct ifd_op_def *def, const struct ifd_desc *input,
                                  const struct ifd_desc *filter, const struct ifd_desc *output,
                                  enum ifd_contract_rounding rounding, struct ifd_err *err)
{
    for (uint32_t c = 0; rounding == IFD_CONTRACT_EVEN && c < filter->quant.count; c++) {
        const double real = ifd_contract_real_scale(input, filter, output, rounding, c);
        if (!isfinite(real)) {
            return ifd_fail(err, IFD_INVALID,
                            "%s: channel %u has input scale * filter scale / output scale = %g, "
                            "which is out of range",
                            def->name, c, real);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_quantized(const struct ifd_op_def *def, const struct ifd_infer *in,
                                     const struct ifd_contract_roles *roles,
                                     const struct ifd_desc *output, struct ifd_err *err)
{
    const struct ifd_desc *input = in->input[roles->input].desc;
    const struct ifd_desc *filter = in->input[roles->weights.input].desc;
    const struct ifd_desc *bias = ifd_infer_input(in, roles->weights.bias);
    const bool is_even = roles->rounding == IFD_CONTRACT_EVEN;
    const uint32_t filter_dtype = is_even                  ? IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8)
                                  : input->dtype == IFD_U8 ? IFD_BIT(IFD_U8)
                                  : input->dtype == IFD_S16 && roles->rounding == IFD_CONTRACT_REAL
                                      ? IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16)
                                      : IFD_BIT(IFD_S8);
    const uint32_t bias_dtypes =
        input->dtype == IFD_S16 ? IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64) : IFD_BIT(IFD_S32);

    enum ifd_code code = ifd_infer_dtype(def, in, roles->weights.input, filter_dtype, err);
    if (code == IFD_OK && bias) {
        code = ifd_infer_dtype(def, in, roles->weights.bias, bias_dtypes, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "the input", input, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "the output", output, err);
    }
    /* where LiteRT compares the scale of the bias with the others, in steps of the output */
    const bool is_measured = input->dtype == IFD_U8 || roles->rounding == IFD_CONTRACT_REAL;
    if (code == IFD_OK && bias && is_measured && output->quant.scale[0] == 0) {
        return ifd_fail(err, IFD_INVALID,
                        "%s: the output has scale 0, expected a positive one: there is a bias",
                        def->name);
    }
    if (code == IFD_OK && is_even && input->dtype == IFD_S16) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: rounds_even with input of type s16", def->name);
    }
    if (code == IFD_OK && input->dtype == IFD_U8 && !is_even) {
        code = ifd_infer_any_scale(def, "the filter", filter, err);
    } else if (code == IFD_OK && filter->dtype == IFD_S16 && filter->quant.count == 1) {
        code = ifd_infer_each_channel(def, "the filter", filter, err);
    } else if (code == IFD_OK && roles->rounding != IFD_CONTRACT_FIXED) {
        code = ifd_infer_per_channel(def, "the filter", filter, roles->weights.axis, err);
    } else if (code == IFD_OK) {
        code = check_symmetric_filter(def, filter, roles->weights.axis, err);
    }
    if (code == IFD_OK) {
        code = check_scales(def, input, filter, output, roles->rounding, err);
    }
    return code;
}

enum ifd_code ifd_contract_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 const struct ifd_contract_roles *roles, int32_t activation,
                                 const struct ifd_desc *output, struct ifd_err *err)
{
    const struct ifd_desc *input = in->input[roles->input].desc;
    const struct ifd_desc *filter = in->input[roles->weights.input].desc;
    const struct ifd_desc *bias = ifd_infer_input(in, roles->weights.bias);

    const uint32_t dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT;
    enum ifd_code code = ifd_infer_dtype(def, in, roles->input, dtypes, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    if (activation > IFD_ACT_RELU6) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: fused activation %d is not supported", def->name,
                        activation);
    }
    const int64_t channels = filter->shape.dim[roles->weights.axis];
    size_t bias_count = 0;
    if (bias &&
        (!ifd_shape_elements(&bias->shape, &bias_count) || bias_count != (size_t)channels)) {
        return ifd_fail(err, IFD_INVALID, "%s: the bias has shape %s, expected [%lld]", def->name,
                        ifd_shape_text(&bias->shape).s, (long long)channels);
    }
    if (input->dtype == IFD_F32) {
        return check_float(def, in, roles, err);
    }
    code = check_quantized(def, in, roles, output, err);
    return code == IFD_OK ? ifd_infer_act_bounds(def, activation, output, err) : code;
}

enum ifd_code ifd_contract_scratch(const struct ifd_op_def *def, const struct ifd_infer *in,
                                   const struct ifd_contract_roles *roles,
                                   const struct ifd_contract_sizes *sizes, size_t *ret_bytes,
                                   struct ifd_err *err)
{
    const size_t per_channel = sizeof(struct ifd_contract_scale) + sizeof(int64_t);
    const struct ifd_desc *input = in->input[roles->input].desc;
    const bool has_sample = ifd_contract_is_dynamic(input, in->input[roles->weights.input].desc);
    const size_t sample = !has_sample                            ? 0
                          : roles->rounding == IFD_CONTRACT_EVEN ? ifd_ref_elements(input)
                                                                 : (size_t)sizes->sample;
    size_t row = 0;
    size_t window = 0;
    size_t total = 0;
    if (!ifd_size_mul((size_t)sizes->channels, per_channel, &row) ||
        !ifd_size_mul((size_t)sizes->window, sizeof(int32_t), &window) ||
        !ifd_size_add(row, window, &total) || !ifd_size_add(total, sample, &total)) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "%s: %lld channels of %lld products need too much memory", def->name,
                        (long long)sizes->channels, (long long)sizes->window);
    }
    *ret_bytes = total;
    return IFD_OK;
}
