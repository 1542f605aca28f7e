/* Slices of a tensor gathered by a tensor of indices. A negative index counts from the end. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_gather;

static enum ifd_code gather_shape(const struct ifd_gather_attrs *attrs,
                                  const struct ifd_shape *data, const struct ifd_shape *indices,
                                  struct ifd_shape *ret_shape, struct ifd_err *err)
{
    uint32_t axis = 0;
    const enum ifd_code code = ifd_infer_axis(&ifd_op_gather, data, attrs->axis, &axis, err);
    if (code != IFD_OK) {
        return code;
    }
    const uint32_t batch_dims = (uint32_t)attrs->batch_dims;
    if (batch_dims > axis || batch_dims > indices->rank) {
        return ifd_fail(err, IFD_INVALID,
                        "gather: %u batch dimensions, axis %u, indices of shape %s", batch_dims,
                        axis, ifd_shape_text(indices).s);
    }
    struct ifd_shape shape = {.rank = data->rank - 1 + indices->rank - batch_dims};
    if (shape.rank > IFD_MAX_RANK) {
        return ifd_fail(err, IFD_TOO_LARGE, "gather: the output has rank %u, expected at most %d",
                        shape.rank, IFD_MAX_RANK);
    }
    uint32_t d = 0;
    for (; d < axis; d++) {
        if (d < batch_dims && data->dim[d] != indices->dim[d]) {
            return ifd_fail(err, IFD_INVALID, "gather: batch dimensions of %s and %s differ",
                            ifd_shape_text(data).s, ifd_shape_text(indices).s);
        }
        shape.dim[d] = data->dim[d];
    }
    for (uint32_t i = batch_dims; i < indices->rank; i++) {
        shape.dim[d++] = indices->dim[i];
    }
    for (uint32_t i = axis + 1; i < data->rank; i++) {
        shape.dim[d++] = data->dim[i];
    }
    *ret_shape = shape;
    return IFD_OK;
}

static enum ifd_code gather_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_gather;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_DTYPES_INDEX, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    struct ifd_shape shape;
    if (code == IFD_OK) {
        code = gather_shape(in->attrs, &in->input[0].desc->shape, &in->input[1].desc->shape, &shape,
                            err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

static enum ifd_code gather_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_gather_attrs *attrs = call->attrs;
    const struct ifd_shape *data = &call->in[0]->shape;
    const struct ifd_shape *indices = &call->in[1]->shape;
    const uint32_t batch_dims = (uint32_t)attrs->batch_dims;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)data->rank : attrs->axis);
    /* nothing to do for an empty output, whose other dimensions may be huge */
    const int64_t batches =
        ifd_ref_elements(call->out[0]) > 0 ? ifd_ref_product(data, 0, batch_dims) : 0;
    const int64_t outer = ifd_ref_product(data, batch_dims, axis);
    const int64_t choices = data->dim[axis];
    const int64_t inner = ifd_ref_product(data, axis + 1, data->rank);
    const int64_t picks = ifd_ref_product(indices, batch_dims, indices->rank);
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    for (int64_t b = 0; b < batches; b++) {
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t p = 0; p < picks; p++) {
                const int64_t at = b * picks + p;
                const int64_t given = call->in[1]->dtype == IFD_S32
                                          ? ((const int32_t *)call->input[1])[at]
                                          : ((const int64_t *)call->input[1])[at];
                if (given < -choices || given >= choices) {
                    return ifd_fail(err, IFD_INVALID,
                                    "gather: index %lld at %lld, expected %lld to %lld",
                                    (long long)given, (long long)at, (long long)-choices,
                                    (long long)choices - 1);
                }
                const int64_t pick = given < 0 ? given + choices : given;
                ifd_ref_copy_run(bytes, call->output[0],
                                 (size_t)(((b * outer + o) * picks + p) * inner), call->input[0],
                                 (size_t)(((b * outer + o) * choices + pick) * inner),
                                 (size_t)inner);
            }
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def gather_attrs[] = {
    {"axis", IFD_ATTR_INT, offsetof(struct ifd_gather_attrs, axis), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
    {"batch_dims", IFD_ATTR_INT, offsetof(struct ifd_gather_attrs, batch_dims), 0, 0,
     IFD_MAX_RANK - 1},
};

const struct ifd_op_def ifd_op_gather = {
    .name = "gather",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = gather_attrs,
    .attr_count = sizeof(gather_attrs) / sizeof(gather_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_gather_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_AXIS,
    .infer = gather_infer,
    .ref = gather_ref,
    .moves = true,
};
