/* Operators of the graph's own tests. */
#include "tests/support/fake_ops.h"

#include <stddef.h>

#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"

struct ifd_desc fake_f32(uint32_t rank, int64_t d0, int64_t d1)
{
    return (struct ifd_desc){.dtype = IFD_F32, .shape = {.rank = rank, .dim = {d0, d1}}};
}

struct ifd_desc fake_s32(int64_t d0)
{
    return (struct ifd_desc){.dtype = IFD_S32, .shape = {.rank = 1, .dim = {d0}}};
}

static enum ifd_code add_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    if (!ifd_shape_equal(&in->input[0].desc->shape, &in->input[1].desc->shape)) {
        return ifd_fail(err, IFD_INVALID, "operands differ");
    }
    output[0].shape = in->input[0].desc->shape;
    return IFD_OK;
}

static enum ifd_code concat_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_axis_attrs *attrs = in->attrs;
    struct ifd_shape shape = in->input[0].desc->shape;
    uint32_t axis = 0;
    if (!ifd_shape_axis(&shape, attrs->axis, &axis)) {
        return ifd_fail(err, IFD_INVALID, "axis %d", attrs->axis);
    }
    for (uint32_t i = 1; i < in->input_count; i++) {
        shape.dim[axis] += in->input[i].desc->shape.dim[axis];
    }
    output[0].shape = shape;
    return IFD_OK;
}

static enum ifd_code split_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    struct ifd_shape shape = in->input[0].desc->shape;
    if (shape.dim[0] % in->output_count != 0) {
        return ifd_fail(err, IFD_INVALID, "%u parts", in->output_count);
    }
    shape.dim[0] /= in->output_count;
    for (uint32_t i = 0; i < in->output_count; i++) {
        output[i].shape = shape;
    }
    return IFD_OK;
}

static enum ifd_code reshape_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const int32_t *target = (const int32_t *)(const void *)in->input[1].data.data;
    if (!target) {
        return ifd_fail(err, IFD_INVALID, "no target");
    }
    struct ifd_shape shape = {.rank = (uint32_t)(in->input[1].data.size / sizeof(*target))};
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dim[i] = target[i];
    }
    output[0].shape = shape;
    return IFD_OK;
}

static const struct ifd_attr_def axis_attr[] = {
    {"axis", IFD_ATTR_INT, offsetof(struct ifd_axis_attrs, axis), 1, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
};

static const struct ifd_op_def defs[] = {
    {.name = "add",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .dtypes = IFD_BIT(IFD_F32),
     .infer = add_infer},
    {.name = "concat",
     .min_inputs = 1,
     .max_inputs = IFD_OP_VARIADIC,
     .outputs = 1,
     .attrs = axis_attr,
     .attr_count = 1,
     .attrs_bytes = sizeof(struct ifd_axis_attrs),
     .dtypes = IFD_BIT(IFD_F32),
     .infer = concat_infer},
    {.name = "split",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = IFD_OP_VARIADIC,
     .dtypes = IFD_BIT(IFD_F32),
     .infer = split_infer},
    {.name = "reshape",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32),
     .shape_inputs = 1u << 1,
     .infer = reshape_infer},
};

const struct ifd_op_def *ifd_op_def(enum ifd_op op)
{
    switch ((int)op) {
    case IFD_OP_ADD:
        return &defs[0];
    case IFD_OP_CONCAT:
        return &defs[1];
    case IFD_OP_SPLIT:
        return &defs[2];
    case IFD_OP_RESHAPE:
        return &defs[3];
    }
    return NULL;
}
