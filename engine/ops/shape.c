/* The shape of a tensor, as a tensor. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_shape;

static enum ifd_code shape_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_shape;
    const enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    if (output[0].dtype != IFD_S32 && output[0].dtype != IFD_S64) {
        return ifd_fail(err, IFD_INVALID, "shape: output 0 has type %s, expected s32 or s64",
                        ifd_dtype_name(output[0].dtype));
    }
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (output[0].dtype == IFD_S32 && shape->dim[d] > INT32_MAX) {
            return ifd_fail(err, IFD_TOO_LARGE, "shape: %s does not fit s32",
                            ifd_shape_text(shape).s);
        }
    }
    const struct ifd_shape list = {.rank = 1, .dim = {shape->rank}};
    return ifd_infer_output(def, output, 0, &list, err);
}

static enum ifd_code shape_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (call->out[0]->dtype == IFD_S32) {
            ((int32_t *)call->output[0])[d] = (int32_t)shape->dim[d];
        } else {
            ((int64_t *)call->output[0])[d] = shape->dim[d];
        }
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_shape = {
    .name = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_NEVER,
    .infer = shape_infer,
    .ref = shape_ref,
    .reads_shape_only = true,
};
