/* log_softmax along the last dimension; floats only. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

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
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static enum ifd_code log_softmax_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const size_t depth = (size_t)shape->dim[shape->rank - 1];
    const size_t rows = ifd_ref_elements(call->out[0]) / (depth > 0 ? depth : 1);
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
    return IFD_OK;
}

const struct ifd_op_def ifd_op_log_softmax = {
    .name = "log_softmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32),
    .batch = IFD_BATCH_AXIS,
    .infer = log_softmax_infer,
    .ref = log_softmax_ref,
};
