/* Elements in reverse order along dimensions: of the whole tensor, or of a prefix for each
 * batch. */
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_reverse, ifd_op_reverse_sequence;

/* The output has the shape and type of input 0. */
static enum ifd_code infer_like(const struct ifd_op_def *def, const struct ifd_infer *in,
                                struct ifd_desc *output, struct ifd_err *err)
{
    const struct ifd_desc *input = in->input[0].desc;
    const enum ifd_code code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

static enum ifd_code reverse_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_reverse;
    const struct ifd_reverse_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    uint32_t seen = 0;
    for (uint32_t i = 0; code == IFD_OK && i < attrs->axes.count; i++) {
        uint32_t axis = 0;
        code = ifd_infer_axis(def, &in->input[0].desc->shape, attrs->axes.value[i], &axis, err);
        if (code == IFD_OK && (seen & IFD_BIT(axis)) != 0) {
            code = ifd_fail(err, IFD_INVALID, "reverse: axis %u is named twice", axis);
        }
        seen |= IFD_BIT(axis);
    }
    return code == IFD_OK ? infer_like(def, in, output, err) : code;
}

static enum ifd_code reverse_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_reverse_attrs *attrs = call->attrs;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(shape, stride);
    int64_t start = 0;
    for (uint32_t i = 0; i < attrs->axes.count; i++) {
        const int64_t given = attrs->axes.value[i];
        const int64_t axis = given < 0 ? given + (int64_t)shape->rank : given;
        start += (shape->dim[axis] - 1) * stride[axis];
        stride[axis] = -stride[axis];
    }
    struct ifd_walk walk;
    ifd_walk_init(&walk, shape);
    for (ifd_walk_strided(&walk, 0, start, stride); walk.left > 0; ifd_walk_next(&walk)) {
        ifd_ref_copy(bytes, call->output[0], walk.done, call->input[0], (size_t)walk.offset[0]);
    }
    return IFD_OK;
}

static enum ifd_code reverse_sequence_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                            struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_reverse_sequence;
    const struct ifd_reverse_sequence_attrs *attrs = in->attrs;
    uint32_t seq = 0;
    uint32_t batch = 0;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_DTYPES_INDEX, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 1, 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_axis(def, &in->input[0].desc->shape, attrs->seq_dim, &seq, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_axis(def, &in->input[0].desc->shape, attrs->batch_dim, &batch, err);
    }
    if (code == IFD_OK &&
        (seq == batch || in->input[1].desc->shape.dim[0] != in->input[0].desc->shape.dim[batch])) {
        code = ifd_fail(err, IFD_INVALID,
                        "reverse_sequence: %lld lengths for shape %s, sequences along %u, batch %u",
                        (long long)in->input[1].desc->shape.dim[0],
                        ifd_shape_text(&in->input[0].desc->shape).s, seq, batch);
    }
    return code == IFD_OK ? infer_like(def, in, output, err) : code;
}

static enum ifd_code reverse_sequence_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_reverse_sequence_attrs *attrs = call->attrs;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const int32_t rank = (int32_t)shape->rank;
    const int32_t seq = attrs->seq_dim < 0 ? attrs->seq_dim + rank : attrs->seq_dim;
    const int32_t batch = attrs->batch_dim < 0 ? attrs->batch_dim + rank : attrs->batch_dim;
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(shape, stride);
    struct ifd_walk walk;
    for (ifd_walk_init(&walk, shape); walk.left > 0; ifd_walk_next(&walk)) {
        const int64_t at = walk.index[batch];
        const int64_t length = call->in[1]->dtype == IFD_S32
                                   ? ((const int32_t *)call->input[1])[at]
                                   : ((const int64_t *)call->input[1])[at];
        if (length < 0 || length > shape->dim[seq]) {
            return ifd_fail(err, IFD_INVALID, "reverse_sequence: length %lld, expected 0 to %lld",
                            (long long)length, (long long)shape->dim[seq]);
        }
        const int64_t i = walk.index[seq];
        const int64_t from =
            (int64_t)walk.done + (i < length ? (length - 1 - 2 * i) * stride[seq] : 0);
        ifd_ref_copy(bytes, call->output[0], walk.done, call->input[0], (size_t)from);
    }
    return IFD_OK;
}

static const struct ifd_attr_def reverse_attrs[] = {
    {"axes", IFD_ATTR_INTS, offsetof(struct ifd_reverse_attrs, axes), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
};

static const struct ifd_attr_def reverse_sequence_attrs[] = {
    {"seq_dim", IFD_ATTR_INT, offsetof(struct ifd_reverse_sequence_attrs, seq_dim), 0,
     -IFD_MAX_RANK, IFD_MAX_RANK - 1},
    {"batch_dim", IFD_ATTR_INT, offsetof(struct ifd_reverse_sequence_attrs, batch_dim), 0,
     -IFD_MAX_RANK, IFD_MAX_RANK - 1},
};

static bool reverse_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_reverse_attrs *reverse = attrs;
    for (uint32_t i = 0; i < reverse->axes.count; i++) {
        reverse->axes.value[i] = ifd_permute_axis((int32_t)reverse->axes.value[i], perm);
    }
    return true;
}

const struct ifd_op_def ifd_op_reverse = {
    .name = "reverse",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = reverse_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_reverse_attrs),
    .dtypes = IFD_DTYPES_MOVE,
    .batch = IFD_BATCH_AXIS,
    .infer = reverse_infer,
    .ref = reverse_ref,
    .moves = true,
    .permute = reverse_permute,
};

const struct ifd_op_def ifd_op_reverse_sequence = {
    .name = "reverse_sequence",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = reverse_sequence_attrs,
    .attr_count = sizeof(reverse_sequence_attrs) / sizeof(reverse_sequence_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_reverse_sequence_attrs),
    .dtypes = IFD_DTYPES_MOVE,
    .infer = reverse_sequence_infer,
    .ref = reverse_sequence_ref,
    .moves = true,
};
