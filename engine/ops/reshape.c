/* The same elements in another shape. squeeze, expand_dims and flatten are reshapes, too. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_reshape;

/** The target shape, with -1 replaced by the remaining elements. */
static enum ifd_code resolve(const struct ifd_desc *input, const struct ifd_ints *target,
                             struct ifd_shape *ret_shape, struct ifd_err *err)
{
    const size_t count = ifd_ref_elements(input);
    struct ifd_shape shape = {.rank = target->count};
    uint32_t open = IFD_MAX_RANK; /* the dimension that is -1 */
    int64_t known = 1;
    for (uint32_t d = 0; d < target->count; d++) {
        const int64_t dim = target->value[d];
        if (dim < -1 || (dim == -1 && open != IFD_MAX_RANK)) {
            return ifd_fail(err, IFD_INVALID, "reshape: dimension %u of the target is %lld", d,
                            (long long)dim);
        }
        open = dim == -1 ? d : open;
        shape.dim[d] = dim;
        if (dim != -1 && !ifd_dim_mul(known, dim, &known)) {
            return ifd_fail(err, IFD_TOO_LARGE, "reshape: the target's size overflows");
        }
    }
    if (open != IFD_MAX_RANK) {
        shape.dim[open] = known > 0 ? (int64_t)count / known : 0;
        known *= shape.dim[open];
    }
    if ((uint64_t)known != count) {
        return ifd_fail(err, IFD_INVALID, "reshape: %s has %zu elements, target %s does not fit",
                        ifd_shape_text(&input->shape).s, count, ifd_shape_text(&shape).s);
    }
    *ret_shape = shape;
    return IFD_OK;
}

static enum ifd_code reshape_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_reshape;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    struct ifd_ints target = ((const struct ifd_reshape_attrs *)in->attrs)->shape;
    if (ifd_infer_input(in, 1)) {
        code =
            ifd_infer_ints(def, "input 1", in->input[1].desc, in->input[1].data.data, &target, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    }
    struct ifd_shape shape;
    if (code == IFD_OK) {
        code = resolve(input, &target, &shape, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

static enum ifd_code reshape_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->output[0] != call->input[0]) {
        ifd_ref_copy_run(ifd_dtype_bytes(call->in[0]->dtype), call->output[0], 0, call->input[0], 0,
                         ifd_ref_elements(call->in[0]));
    }
    return IFD_OK;
}

static const struct ifd_attr_def reshape_attrs[] = {
    {"shape", IFD_ATTR_INTS, offsetof(struct ifd_reshape_attrs, shape), 0, -1, (double)INT32_MAX},
};

const struct ifd_op_def ifd_op_reshape = {
    .name = "reshape",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = reshape_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_reshape_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_RESHAPE,
    .can_alias = true,
    .shape_inputs = 1u << 1,
    .infer = reshape_infer,
    .ref = reshape_ref,
    .moves = true,
    .is_identity = true,
};
