/* Blocks of the spatial dimensions moved into the batch and back. Files express dilated
 * convolutions with them.
 *
 * "wide" is the tensor with large spatial dimensions, "deep" the one with the large batch. Deep
 * element (s * batch + b, y…, c…) is wide element (b, y * block + shift(s) - before…, c…); s
 * counts the shifts in row-major order. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_space_to_batch, ifd_op_batch_to_space;

/** The attributes, or inputs 1 and 2 in their place. */
static enum ifd_code resolve(const struct ifd_op_def *def,
                             const struct ifd_space_batch_attrs *attrs,
                             const struct ifd_desc *const desc[3], const void *const data[3],
                             struct ifd_space_batch_attrs *ret, struct ifd_err *err)
{
    *ret = *attrs;
    enum ifd_code code = IFD_OK;
    if (desc[1]) {
        code = ifd_infer_ints(def, "input 1", desc[1], data[1], &ret->block, err);
    }
    if (code == IFD_OK && desc[2]) {
        code = ifd_infer_pairs(def, "input 2", desc[2], data[2], &ret->before, &ret->after, err);
    }
    return code;
}

static enum ifd_code resolve_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                   struct ifd_space_batch_attrs *ret, struct ifd_err *err)
{
    const struct ifd_desc *desc[3] = {NULL};
    const void *data[3] = {NULL};
    for (uint32_t i = 1; i < 3 && i < in->input_count; i++) {
        desc[i] = in->input[i].desc;
        data[i] = in->input[i].data.data;
    }
    const enum ifd_code code = resolve(def, in->attrs, desc, data, ret, err);
    if (code != IFD_OK) {
        return code;
    }
    const uint32_t spatial = ret->block.count;
    if (spatial + 1 > in->input[0].desc->shape.rank || ret->before.count != spatial ||
        ret->after.count != spatial) {
        return ifd_fail(err, IFD_INVALID, "%s: %u block sizes, %u and %u amounts for shape %s",
                        def->name, spatial, ret->before.count, ret->after.count,
                        ifd_shape_text(&in->input[0].desc->shape).s);
    }
    for (uint32_t i = 0; i < spatial; i++) {
        if (ret->block.value[i] < 1 || ret->before.value[i] < 0 || ret->after.value[i] < 0) {
            return ifd_fail(err, IFD_INVALID,
                            "%s: block %lld, %lld before and %lld after dimension %u", def->name,
                            (long long)ret->block.value[i], (long long)ret->before.value[i],
                            (long long)ret->after.value[i], i + 1);
        }
    }
    return IFD_OK;
}

static enum ifd_code fail_shape(const struct ifd_op_def *def, const struct ifd_shape *shape,
                                uint32_t d, const struct ifd_space_batch_attrs *attrs,
                                struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID,
                    "%s: shape %s with block %lld, %lld before and %lld after dimension %u",
                    def->name, ifd_shape_text(shape).s, (long long)attrs->block.value[d - 1],
                    (long long)attrs->before.value[d - 1], (long long)attrs->after.value[d - 1], d);
}

/* The common part of both shape rules. */
static enum ifd_code begin(const struct ifd_op_def *def, const struct ifd_infer *in,
                           struct ifd_desc *output, struct ifd_space_batch_attrs *ret_attrs,
                           struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = resolve_infer(def, in, ret_attrs, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code;
}

static enum ifd_code space_to_batch_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                          struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_space_to_batch;
    struct ifd_space_batch_attrs attrs;
    const enum ifd_code code = begin(def, in, output, &attrs, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    for (uint32_t d = 1; d <= attrs.block.count; d++) {
        const int64_t block = attrs.block.value[d - 1];
        if (!ifd_dim_add(shape.dim[d], attrs.before.value[d - 1], &shape.dim[d]) ||
            !ifd_dim_add(shape.dim[d], attrs.after.value[d - 1], &shape.dim[d]) ||
            shape.dim[d] % block != 0 || !ifd_dim_mul(shape.dim[0], block, &shape.dim[0])) {
            return fail_shape(def, &in->input[0].desc->shape, d, &attrs, err);
        }
        shape.dim[d] /= block;
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code batch_to_space_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                          struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_batch_to_space;
    struct ifd_space_batch_attrs attrs;
    const enum ifd_code code = begin(def, in, output, &attrs, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    for (uint32_t d = 1; d <= attrs.block.count; d++) {
        const int64_t block = attrs.block.value[d - 1];
        int64_t cropped = 0;
        if (shape.dim[0] % block != 0 || !ifd_dim_mul(shape.dim[d], block, &shape.dim[d]) ||
            !ifd_dim_add(attrs.before.value[d - 1], attrs.after.value[d - 1], &cropped) ||
            cropped > shape.dim[d]) {
            return fail_shape(def, &in->input[0].desc->shape, d, &attrs, err);
        }
        shape.dim[0] /= block;
        shape.dim[d] -= cropped;
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/** The offset of the wide element for the deep element at index; false if it lies in the padding
 *  or is cropped. */
static bool wide_offset(const struct ifd_space_batch_attrs *attrs, const struct ifd_shape *wide,
                        const int64_t *wide_stride, const int64_t *deep_index, int64_t *ret_offset)
{
    const int64_t batch = wide->dim[0];
    int64_t offset = deep_index[0] % batch * wide_stride[0];
    int64_t shift = deep_index[0] / batch;
    bool inside = true;
    for (uint32_t d = attrs->block.count; d >= 1; d--) {
        const int64_t block = attrs->block.value[d - 1];
        const int64_t position = deep_index[d] * block + shift % block - attrs->before.value[d - 1];
        shift /= block;
        inside = inside && position >= 0 && position < wide->dim[d];
        offset += inside ? position * wide_stride[d] : 0;
    }
    for (uint32_t d = attrs->block.count + 1; d < wide->rank; d++) {
        offset += deep_index[d] * wide_stride[d];
    }
    *ret_offset = offset;
    return inside;
}

/** Copies between the two; writes the padding of the deep tensor. */
static enum ifd_code move(const struct ifd_op_def *def, const struct ifd_ref_call *call,
                          bool to_deep, struct ifd_err *err)
{
    const struct ifd_desc *desc[3] = {NULL};
    const void *data[3] = {NULL};
    for (uint32_t i = 1; i < 3 && i < call->input_count; i++) {
        desc[i] = call->in[i];
        data[i] = call->input[i];
    }
    struct ifd_space_batch_attrs attrs;
    const enum ifd_code code = resolve(def, call->attrs, desc, data, &attrs, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *wide = to_deep ? &call->in[0]->shape : &call->out[0]->shape;
    const struct ifd_shape *deep = to_deep ? &call->out[0]->shape : &call->in[0]->shape;
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(wide, stride);
    uint8_t nothing[16];
    ifd_ref_pad_element(call->out[0], nothing);
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    struct ifd_walk walk;
    for (ifd_walk_init(&walk, deep); walk.left > 0; ifd_walk_next(&walk)) {
        int64_t offset = 0;
        const bool inside = wide_offset(&attrs, wide, stride, walk.index, &offset);
        if (inside && to_deep) {
            ifd_ref_copy(bytes, call->output[0], walk.done, call->input[0], (size_t)offset);
        } else if (inside) {
            ifd_ref_copy(bytes, call->output[0], (size_t)offset, call->input[0], walk.done);
        } else if (to_deep) {
            ifd_ref_copy(bytes, call->output[0], walk.done, nothing, 0);
        }
    }
    return IFD_OK;
}

static enum ifd_code space_to_batch_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return move(&ifd_op_space_to_batch, call, true, err);
}

static enum ifd_code batch_to_space_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return move(&ifd_op_batch_to_space, call, false, err);
}

#define LIST(name, least)                                                                          \
    {                                                                                              \
#name, IFD_ATTR_INTS, offsetof(struct ifd_space_batch_attrs, name), 0, least,              \
            (double)INT32_MAX                                                                      \
    }

static const struct ifd_attr_def space_batch_attrs[] = {LIST(block, 1), LIST(before, 0),
                                                        LIST(after, 0)};

#define DEFINE(op)                                                                                 \
    const struct ifd_op_def ifd_op_##op = {.name = #op,                                            \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = 3,                                        \
                                           .outputs = 1,                                           \
                                           .attrs = space_batch_attrs,                             \
                                           .attr_count = 3,                                        \
                                           .attrs_bytes = sizeof(struct ifd_space_batch_attrs),    \
                                           .dtypes = IFD_DTYPES_MOVE,                              \
                                           .batch = IFD_BATCH_NEVER,                               \
                                           .shape_inputs = 1u << 1 | 1u << 2,                      \
                                           .infer = op##_infer,                                    \
                                           .ref = op##_ref,                                        \
                                           .moves = true}

DEFINE(space_to_batch);
DEFINE(batch_to_space);
