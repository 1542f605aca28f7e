/* bitcast: the bytes of a tensor as numbers of another type. Where a number becomes n shorter ones,
 * these lie along one more dimension, the last; the other way round that dimension goes. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_bitcast;

static enum ifd_code bitcast_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_bitcast;
    const enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const size_t from = ifd_dtype_bytes(in->input[0].desc->dtype);
    const size_t to = ifd_dtype_bytes(output[0].dtype);
    struct ifd_shape shape = in->input[0].desc->shape;
    bool fits = (IFD_DTYPES_MOVE & IFD_BIT(output[0].dtype)) != 0;
    if (from > to) {
        fits = fits && shape.rank < IFD_MAX_RANK;
        shape.dim[fits ? shape.rank++ : 0] = (int64_t)(from / to);
    } else if (from < to) {
        fits = fits && shape.rank > 0 && shape.dim[shape.rank - 1] == (int64_t)(to / from);
        if (fits) {
            shape.dim[--shape.rank] = 0;
        }
    }
    if (!fits || output[0].dtype == IFD_BOOL) { /* a bool is 0 or 1 */
        return ifd_fail(
            err, IFD_INVALID, "bitcast: %s %s to %s", ifd_dtype_name(in->input[0].desc->dtype),
            ifd_shape_text(&in->input[0].desc->shape).s, ifd_dtype_name(output[0].dtype));
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code bitcast_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->output[0] != call->input[0]) {
        ifd_ref_copy_run(1, call->output[0], 0, call->input[0], 0,
                         ifd_ref_elements(call->in[0]) * ifd_dtype_bytes(call->in[0]->dtype));
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_bitcast = {
    .name = "bitcast",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_DTYPES_MOVE,
    .can_alias = true,
    .infer = bitcast_infer,
    .ref = bitcast_ref,
};
