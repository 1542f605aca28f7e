/* log_softmax along the last dimension. 8-bit types have an arithmetic of integers, which is not
 * that of LiteRT's reference kernel: a step off at most. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/log_softmax8.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_log_softmax;

static enum ifd_code log_softmax_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                       struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_log_softmax;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK && in->input[0].desc->shape.rank == 0) {
        code = ifd_fail(err, IFD_INVALID, "log_softmax: input 0 is a scalar");
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code == IFD_OK && in->input[0].desc->dtype != IFD_F32) {
        code = ifd_infer_any_scale(def, "the input", in->input[0].desc, err);
        code = code == IFD_OK ? ifd_infer_per_tensor(def, "the output", &output[0], err) : code;
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static void rows_f32(const struct ifd_ref_call *call, size_t rows, size_t depth)
{
    for (size_t r = 0; r < rows; r++) {
        const float *x = (const float *)call->input[0] + r * depth;
        float *y = (float *)call->output[0] + r * depth;
        float max = x[0];
        for (size_t i = 1; i < depth; i++) {
            max = x[i] > max ? x[i] : max;
        }
        float sum = 0;
        for (size_t i = 0; i < depth; i++) {
            sum += expf(x[i] - max);
        }
        const float log_sum = logf(sum);
        for (size_t i = 0; i < depth; i++) {
            y[i] = x[i] - max - log_sum;
        }
    }
}

/* The zero point of the input cancels out. */
static void rows_q8(const struct ifd_ref_call *call, size_t rows, size_t depth)
{
    const bool is_signed = call->in[0]->dtype == IFD_S8;
    const int32_t zero_point = call->out[0]->quant.zero_point[0];
    const int32_t min = is_signed ? INT8_MIN : 0, most = is_signed ? INT8_MAX : UINT8_MAX;
    struct ifd_log_softmax8 table;
    ifd_log_softmax8_init(&table, (double)ifd_ref_scale(call->in[0]),
                          (double)ifd_ref_scale(call->out[0]));
    for (size_t at = 0; at < rows * depth; at += depth) {
        const uint8_t *u8 = (const uint8_t *)call->input[0] + at;
        const int8_t *s8 = (const int8_t *)call->input[0] + at;
        int32_t max = min;
        uint64_t sum = 0;
        for (size_t i = 0; i < depth; i++) {
            const int32_t x = is_signed ? s8[i] : u8[i];
            max = x > max ? x : max;
        }
        for (size_t i = 0; i < depth; i++) {
            sum += table.exponential[max - (is_signed ? s8[i] : u8[i])];
        }
        const int32_t log = ifd_log_softmax8_log(&table, sum);
        for (size_t i = 0; i < depth; i++) {
            const int32_t distance = max - (is_signed ? s8[i] : u8[i]);
            const int32_t below = ifd_log_softmax8_steps(&table, log, distance);
            const int32_t q = ifd_ref_clamp((int64_t)zero_point - below, min, most);
            ((uint8_t *)call->output[0])[at + i] = (uint8_t)q;
        }
    }
}

static enum ifd_code log_softmax_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const size_t depth = (size_t)shape->dim[shape->rank - 1];
    const size_t rows = ifd_ref_elements(call->out[0]) / (depth > 0 ? depth : 1);
    (call->in[0]->dtype == IFD_F32 ? rows_f32 : rows_q8)(call, rows, depth);
    return IFD_OK;
}

const struct ifd_op_def ifd_op_log_softmax = {
    .name = "log_softmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8),
    .batch = IFD_BATCH_AXIS,
    .infer = log_softmax_infer,
    .ref = log_softmax_ref,
};
