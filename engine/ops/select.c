/* Elements of one tensor or another, by a tensor of conditions; all three broadcast. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_select;

/* The condition's shape for broadcasting. leading: its only dimension is the first of the
 * others. */
static struct ifd_shape condition_shape(const struct ifd_select_attrs *attrs,
                                        const struct ifd_shape *condition,
                                        const struct ifd_shape *data)
{
    struct ifd_shape shape = *condition;
    if (attrs->leading && condition->rank == 1 && data->rank > 1) {
        shape.rank = data->rank;
        for (uint32_t d = 1; d < data->rank; d++) {
            shape.dim[d] = 1;
        }
    }
    return shape;
}

static enum ifd_code select_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_select;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_DTYPES_PASS, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 2, IFD_BIT(in->input[1].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[1].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *a = &in->input[1].desc->shape;
    const struct ifd_shape *b = &in->input[2].desc->shape;
    const struct ifd_shape condition = condition_shape(in->attrs, &in->input[0].desc->shape, a);
    struct ifd_shape data;
    struct ifd_shape shape;
    if (!ifd_shape_broadcast(a, b, &data) || !ifd_shape_broadcast(&condition, &data, &shape)) {
        return ifd_fail(err, IFD_INVALID, "select: shapes %s, %s and %s do not broadcast",
                        ifd_shape_text(&in->input[0].desc->shape).s, ifd_shape_text(a).s,
                        ifd_shape_text(b).s);
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code select_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const uint8_t *condition = call->input[0];
    const size_t bytes = ifd_dtype_bytes(call->out[0]->dtype);
    const struct ifd_shape shape =
        condition_shape(call->attrs, &call->in[0]->shape, &call->in[1]->shape);
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    ifd_walk_broadcast(&walk, 2, &call->in[2]->shape);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const uint32_t i = condition[walk.offset[0]] != 0 ? 1 : 2;
        ifd_ref_copy(bytes, call->output[0], walk.done, call->input[i], (size_t)walk.offset[i]);
    }
    return IFD_OK;
}

static const struct ifd_attr_def select_attrs[] = {
    {"leading", IFD_ATTR_BOOL, offsetof(struct ifd_select_attrs, leading), 0, 0, 1},
};

const struct ifd_op_def ifd_op_select = {
    .name = "select",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = select_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_select_attrs),
    .dtypes = IFD_BIT(IFD_BOOL),
    .infer = select_infer,
    .ref = select_ref,
};
