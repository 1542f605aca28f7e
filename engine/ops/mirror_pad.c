/* A tensor with a border that mirrors it. */
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_mirror_pad;

static enum ifd_code mirror_pad_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_mirror_pad;
    const struct ifd_mirror_pad_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    if (attrs->before.count != shape.rank || attrs->after.count != shape.rank) {
        return ifd_fail(err, IFD_INVALID, "mirror_pad: %u and %u amounts for shape %s",
                        attrs->before.count, attrs->after.count, ifd_shape_text(&shape).s);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        const int64_t before = attrs->before.value[d];
        const int64_t after = attrs->after.value[d];
        const int64_t limit = shape.dim[d] - (attrs->symmetric ? 0 : 1);
        if ((before > 0 || after > 0) && (before > limit || after > limit)) {
            return ifd_fail(err, IFD_INVALID,
                            "mirror_pad: %lld before and %lld after dimension %u of %s, limit %lld",
                            (long long)before, (long long)after, d, ifd_shape_text(&shape).s,
                            (long long)limit);
        }
        if (!ifd_dim_add(shape.dim[d], before, &shape.dim[d]) ||
            !ifd_dim_add(shape.dim[d], after, &shape.dim[d])) {
            return ifd_fail(err, IFD_TOO_LARGE, "mirror_pad: dimension %u is too large", d);
        }
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code mirror_pad_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_mirror_pad_attrs *attrs = call->attrs;
    const struct ifd_shape *from = &call->in[0]->shape;
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    const int64_t edge = attrs->symmetric ? 1 : 0; /* the outermost element is repeated */
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(from, stride);
    struct ifd_walk walk;
    for (ifd_walk_init(&walk, &call->out[0]->shape); walk.left > 0; ifd_walk_next(&walk)) {
        int64_t source = 0;
        for (uint32_t d = 0; d < from->rank; d++) {
            int64_t i = walk.index[d] - attrs->before.value[d];
            if (i < 0) {
                i = -i - edge;
            } else if (i >= from->dim[d]) {
                i = 2 * (from->dim[d] - 1) - i + edge;
            }
            source += i * stride[d];
        }
        ifd_ref_copy(bytes, call->output[0], walk.done, call->input[0], (size_t)source);
    }
    return IFD_OK;
}

static const struct ifd_attr_def mirror_pad_attrs[] = {
    {"before", IFD_ATTR_INTS, offsetof(struct ifd_mirror_pad_attrs, before), 0, 0,
     (double)INT32_MAX},
    {"after", IFD_ATTR_INTS, offsetof(struct ifd_mirror_pad_attrs, after), 0, 0, (double)INT32_MAX},
    {"symmetric", IFD_ATTR_BOOL, offsetof(struct ifd_mirror_pad_attrs, symmetric), 0, 0, 1},
};

static bool mirror_pad_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_mirror_pad_attrs *pad = attrs;
    return ifd_permute_ints(&pad->before, perm) && ifd_permute_ints(&pad->after, perm);
}

const struct ifd_op_def ifd_op_mirror_pad = {
    .name = "mirror_pad",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = mirror_pad_attrs,
    .attr_count = sizeof(mirror_pad_attrs) / sizeof(mirror_pad_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_mirror_pad_attrs),
    .dtypes = IFD_DTYPES_MOVE,
    .batch = IFD_BATCH_SLICE,
    .infer = mirror_pad_infer,
    .ref = mirror_pad_ref,
    .moves = true,
    .permute = mirror_pad_permute,
};
