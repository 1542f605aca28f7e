/* Operators that only move elements: each says which strided copies it is. Quantized values stay as they are, so their
 * native form does not matter, except for what a pad fills in. */
#include "backends/cpuacc/ops/copy.h"

#include <math.h>
#include <string.h>

bool ifd_acc_has_one_input(const struct ifd_node_view *node, struct ifd_err *reason)
{
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (node->input[i].desc) {
            ifd_fail(reason, IFD_UNSUPPORTED, "parameters that come as inputs");
            return false;
        }
    }
    return true;
}

static bool same_quant(const struct ifd_desc *a, const struct ifd_desc *b)
{
    return a->dtype == b->dtype &&
           (!ifd_acc_is_q8(a->dtype) || a->quant.count == 0 || b->quant.count == 0 ||
            (a->quant.scale[0] == b->quant.scale[0] &&
             a->quant.zero_point[0] == b->quant.zero_point[0]));
}

/* What LiteRT brings from one quantization to another. */
static bool needs_table(const struct ifd_desc *in, const struct ifd_desc *out)
{
    return in->dtype == IFD_U8 && out->dtype == IFD_U8 && !same_quant(in, out);
}

/* The copy of all of `part` (a shape) between two tensors that lie row-major. */
static struct ifd_acc_copy whole(const struct ifd_desc *in, const struct ifd_desc *out,
                                 const struct ifd_shape *part)
{
    struct ifd_acc_copy copy = {.rank = part->rank, .element = ifd_dtype_bytes(in->dtype)};
    memcpy(copy.dim, part->dim, sizeof(copy.dim));
    ifd_acc_byte_strides(in, copy.in_stride);
    ifd_acc_byte_strides(out, copy.out_stride);
    return copy;
}

/* ---- reshape: no step where both values share their memory ---- */

static bool reshape_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    return node->input[0].desc->dtype == node->output[0].dtype;
}

static enum ifd_code reshape_lower(struct ifd_acc_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const uint32_t in = node->input_value[0], out = node->output_value[0];
    if (ifd_acc_same_storage(lowering, in, out)) {
        return IFD_OK;
    }
    const struct ifd_desc *desc = &node->view.output[0];
    const struct ifd_acc_copy copy = whole(desc, desc, &desc->shape);
    return ifd_acc_add_copy(lowering, &copy, in, out, "reshape", err);
}

const struct ifd_acc_driver ifd_acc_reshape = {.takes = reshape_takes, .lower = reshape_lower};

/* ---- concat and pack: one copy per input ---- */

static bool concat_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *out = &node->output[0];
    bool takes = attrs->activation == IFD_ACT_NONE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct ifd_desc *in = node->input[i].desc;
        takes = takes && in && (same_quant(in, out) || needs_table(in, out));
    }
    if (!takes) {
        ifd_fail(reason, IFD_UNSUPPORTED, "an activation, or inputs quantized differently");
    }
    return takes;
}

/* An input of a concatenation in the output's quantization: itself, or what a table makes of it. */
static enum ifd_code requantized(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, uint32_t i,
                                 uint32_t *ret_value, struct ifd_err *err)
{
    *ret_value = node->input_value[i];
    if (same_quant(node->view.input[i].desc, &node->view.output[0])) {
        return IFD_OK;
    }
    struct ifd_axis_attrs attrs = *(const struct ifd_axis_attrs *)node->view.attrs;
    attrs.axis = 0; /* along which fill_table() puts its elements */
    struct ifd_node_view one = node->view;
    one.attrs = &attrs;
    one.input = &node->view.input[i];
    one.input_count = 1;
    const enum ifd_code code =
        ifd_acc_add_value(lowering, ifd_acc_bytes_of(lowering, *ret_value), ret_value, err);
    return code == IFD_OK ? ifd_acc_add_table(lowering, &one, node->input_value[i], *ret_value, err)
                          : code;
}

static enum ifd_code concat_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_axis_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)out->shape.rank : attrs->axis);
    int64_t at = 0;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < node->view.input_count; i++) {
        const struct ifd_desc *in = node->view.input[i].desc;
        struct ifd_acc_copy copy = whole(in, out, &in->shape);
        copy.out_offset = at * copy.out_stride[axis];
        at += in->shape.dim[axis];
        if (ifd_acc_same_storage(lowering, node->input_value[i], node->output_value[0])) {
            continue;
        }
        uint32_t from = 0;
        code = requantized(lowering, node, i, &from, err);
        if (code == IFD_OK) {
            code = ifd_acc_add_copy(lowering, &copy, from, node->output_value[0], "concat", err);
        }
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_concat = {.takes = concat_takes, .lower = concat_lower};

struct ifd_acc_slice ifd_acc_take_slice(struct ifd_acc_lowering *lowering, uint32_t value)
{
    const struct ifd_acc_slice none = {.exists = false};
    uint32_t index = 0;
    const struct ifd_partition_node *node = ifd_acc_sole_reader(lowering, value, &index);
    if (!node || ifd_acc_driver_of(lowering, node) != &ifd_acc_concat) {
        return none;
    }
    const struct ifd_axis_attrs *attrs = node->view.attrs;
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const uint32_t last = shape->rank - 1;
    if (attrs->axis != -1 && attrs->axis != (int32_t)last) {
        return none;
    }
    size_t offset = 0;
    for (uint32_t i = 0; node->input_value[i] != value; i++) {
        offset += (size_t)node->view.input[i].desc->shape.dim[last];
    }
    struct ifd_acc_value *mine = &lowering->value[value];
    if (!same_quant(&mine->view->desc, &node->view.output[0])) {
        return none;
    }
    if (lowering->storage[ifd_acc_storage_of(lowering, value)].readers !=
        1) { /* a reshape of it is read as well */
        return none;
    }
    mine->storage = ifd_acc_storage_of(lowering, node->output_value[0]);
    lowering->storage[mine->storage].readers++;
    return (struct ifd_acc_slice){
        .exists = true, .stride = (size_t)shape->dim[last], .offset = offset};
}

static bool pack_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!node->input[i].desc || !same_quant(node->input[i].desc, &node->output[0])) {
            ifd_fail(reason, IFD_UNSUPPORTED, "inputs quantized differently");
            return false;
        }
    }
    return true;
}

static enum ifd_code pack_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_axis_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)out->shape.rank : attrs->axis);
    int64_t strides[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(out, strides);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < node->view.input_count; i++) {
        const struct ifd_desc *in = node->view.input[i].desc;
        struct ifd_acc_copy copy = whole(in, out, &in->shape);
        for (uint32_t d = 0; d < in->shape.rank; d++) {
            copy.out_stride[d] = strides[d < axis ? d : d + 1];
        }
        copy.out_offset = i * strides[axis];
        code = ifd_acc_add_copy(lowering, &copy, node->input_value[i], node->output_value[0],
                                "pack", err);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_pack = {.takes = pack_takes, .lower = pack_lower};

/* ---- split and unpack: one copy per output ---- */

static bool split_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_acc_has_one_input(node, reason) && same_quant(node->input[0].desc, &node->output[0]);
}

static enum ifd_code split_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_split_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)in->shape.rank : attrs->axis);
    int64_t at = 0;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < node->view.output_count; i++) {
        const struct ifd_desc *out = &node->view.output[i];
        struct ifd_acc_copy copy = whole(in, out, &out->shape);
        copy.in_offset = at * copy.in_stride[axis];
        at += out->shape.dim[axis];
        code = ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[i],
                                "split", err);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_split = {.takes = split_takes, .lower = split_lower};

static enum ifd_code unpack_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_axis_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)in->shape.rank : attrs->axis);
    int64_t strides[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(in, strides);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < node->view.output_count; i++) {
        const struct ifd_desc *out = &node->view.output[i];
        struct ifd_acc_copy copy = whole(out, out, &out->shape);
        for (uint32_t d = 0; d < out->shape.rank; d++) {
            copy.in_stride[d] = strides[d < axis ? d : d + 1];
        }
        copy.in_offset = i * strides[axis];
        code = ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[i],
                                "unpack", err);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_unpack = {.takes = split_takes, .lower = unpack_lower};

/* ---- slice and strided_slice ---- */

static enum ifd_code slice_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_slice_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    struct ifd_acc_copy copy = whole(in, out, &out->shape);
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        copy.in_offset += attrs->begin.value[d] * copy.in_stride[d];
    }
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "slice",
                            err);
}

const struct ifd_acc_driver ifd_acc_slice = {.takes = split_takes, .lower = slice_lower};

static bool strided_slice_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_strided_slice_attrs *attrs = node->attrs;
    bool plain = ifd_acc_has_one_input(node, reason) && attrs->ellipsis_mask == 0 &&
                 attrs->new_axis_mask == 0;
    for (uint32_t d = 0; d < attrs->strides.count; d++) {
        plain = plain && attrs->strides.value[d] > 0;
    }
    if (!plain) {
        ifd_fail(reason, IFD_UNSUPPORTED, "new axes, an ellipsis or negative strides");
    }
    return plain;
}

static enum ifd_code strided_slice_lower(struct ifd_acc_lowering *lowering,
                                         const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_strided_slice_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    struct ifd_acc_copy copy = {.rank = in->shape.rank, .element = ifd_dtype_bytes(in->dtype)};
    int64_t out_stride[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(in, copy.in_stride);
    ifd_acc_byte_strides(out, out_stride);
    uint32_t left = 0; /* dimension of the output */
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        const int64_t dim = in->shape.dim[d];
        const bool given = d < attrs->begin.count;
        const bool opens = !given || (attrs->begin_mask >> d & 1);
        int64_t start = opens ? 0 : attrs->begin.value[d];
        start = start < 0 ? start + dim : start;
        start = start < 0 ? 0 : start > dim ? dim : start;
        copy.in_offset += start * copy.in_stride[d];
        if (given && (attrs->shrink_axis_mask >> d & 1)) {
            copy.dim[d] = 1;
        } else {
            copy.dim[d] = out->shape.dim[left];
            copy.out_stride[d] = out_stride[left++];
        }
        if (d < attrs->strides.count && copy.dim[d] > 1) { /* no strides: all are 1 */
            copy.in_stride[d] *= attrs->strides.value[d];
        }
    }
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0],
                            "strided_slice", err);
}

const struct ifd_acc_driver ifd_acc_strided_slice = {.takes = strided_slice_takes,
                                                     .lower = strided_slice_lower};

/* ---- transpose ---- */

static enum ifd_code transpose_lower(struct ifd_acc_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_transpose_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    struct ifd_acc_copy copy = whole(out, out, &out->shape);
    int64_t in_stride[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(in, in_stride);
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        const int64_t from = attrs->perm.value[d];
        copy.in_stride[d] = in_stride[from < 0 ? from + (int64_t)in->shape.rank : from];
    }
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0],
                            "transpose", err);
}

const struct ifd_acc_driver ifd_acc_transpose = {.takes = split_takes, .lower = transpose_lower};

/* ---- pad ---- */

static bool pad_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if (dtype != IFD_F32 && !ifd_acc_is_q8(dtype)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return split_takes(node, reason);
}

static enum ifd_code pad_lower(struct ifd_acc_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_pad_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    struct ifd_acc_copy copy = whole(in, out, &in->shape);
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        copy.out_offset += attrs->before.value[d] * copy.out_stride[d];
    }
    const float value = attrs->has_value ? attrs->value : 0.0f;
    copy.fills = true;
    copy.out_bytes = ifd_acc_bytes_of(lowering, node->output_value[0]);
    if (in->dtype == IFD_F32) {
        memcpy(copy.fill, &value, sizeof(value));
    } else if (attrs->has_value) {
        copy.fill[0] = (uint8_t)((uint8_t)(int32_t)value ^ ifd_acc_flip(in->dtype));
    } else {
        copy.fill[0] = (uint8_t)ifd_acc_zero(out);
    }
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "pad",
                            err);
}

const struct ifd_acc_driver ifd_acc_pad = {.takes = pad_takes, .lower = pad_lower};
