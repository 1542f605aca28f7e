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

/* ---- how all of them are lowered ---- */

/* An input of a concatenation in the output's quantization: what a table makes of it. */
static enum ifd_code requantize(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, uint32_t i, uint32_t *value,
                                struct ifd_err *err)
{
    const uint32_t from = *value;
    struct ifd_axis_attrs attrs = *(const struct ifd_axis_attrs *)node->view.attrs;
    attrs.axis = 0; /* along which fill_table() puts its elements */
    struct ifd_node_view one = node->view;
    one.attrs = &attrs;
    one.input = &node->view.input[i];
    one.input_count = 1;
    const enum ifd_code code = ifd_acc_add_value(lowering, lowering->value[from].bytes, value, err);
    return code == IFD_OK ? ifd_acc_add_table(lowering, &one, from, *value, err) : code;
}

static enum ifd_code moves_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_acc_driver *driver = ifd_acc_driver_of(lowering, node);
    enum ifd_code code = IFD_OK;
    struct ifd_acc_move move = {.converts = false};
    for (uint32_t i = 0; code == IFD_OK && driver->move(&node->view, i, &move); i++) {
        uint32_t from = node->input_value[move.in];
        const uint32_t to = node->output_value[move.out];
        if (ifd_acc_is_there(lowering, &move.copy, from, to)) {
            continue;
        }
        if (move.converts) {
            code = requantize(lowering, node, move.in, &from, err);
        }
        if (code == IFD_OK) {
            code = ifd_acc_add_copy(lowering, &move.copy, from, to, ifd_op_def(node->view.op)->name,
                                    err);
        }
    }
    return code;
}

/* Whole rows are copied from anywhere; single elements (strided_slice, transpose) are read from a copy in the cache, which takes
 * no longer than to read them where they are. */
static bool moves_read_apart(const struct ifd_node_view *node, uint32_t i)
{
    return same_quant(node->input[i].desc, &node->output[0]); /* else a table reads it */
}

/* ---- reshape ---- */

static bool reshape_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    return node->input[0].desc->dtype == node->output[0].dtype;
}

static bool reshape_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    const struct ifd_desc *in = node->input[0].desc;
    *ret = (struct ifd_acc_move){.copy = whole(in, in, &in->shape)};
    return i == 0;
}

const struct ifd_acc_driver ifd_acc_reshape = {.takes = reshape_takes,
                                               .lower = moves_lower,
                                               .move = reshape_move,
                                               .reads_apart = moves_read_apart};

/* ---- concat and pack: one copy per input ---- */

static uint32_t axis_of(int32_t axis, const struct ifd_desc *desc)
{
    return (uint32_t)(axis < 0 ? axis + (int32_t)desc->shape.rank : axis);
}

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

static bool concat_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    if (i == node->input_count) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[i].desc, *out = &node->output[0];
    const uint32_t axis = axis_of(attrs->axis, out);
    /* what the input before has left in ret: inputs are asked for in turn */
    const int64_t at = i == 0 ? 0 : ret->at + node->input[i - 1].desc->shape.dim[axis];
    *ret = (struct ifd_acc_move){
        .in = i, .at = at, .converts = !same_quant(in, out), .copy = whole(in, out, &in->shape)};
    ret->copy.out_offset = at * ret->copy.out_stride[axis];
    return true;
}

const struct ifd_acc_driver ifd_acc_concat = {.takes = concat_takes,
                                              .lower = moves_lower,
                                              .move = concat_move,
                                              .reads_apart = moves_read_apart};

bool ifd_acc_take_slice(struct ifd_acc_lowering *lowering, uint32_t value, size_t *stride)
{
    uint32_t index = 0;
    const struct ifd_partition_node *node = ifd_acc_sole_reader(lowering, value, &index);
    if (!node || ifd_acc_driver_of(lowering, node) != &ifd_acc_concat) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    const uint32_t last = out->shape.rank - 1;
    struct ifd_acc_value *mine = &lowering->value[value];
    /* not one that is in its place already, or of which a reshape is read as well */
    if (axis_of(attrs->axis, out) != last || !same_quant(&mine->view->desc, out) ||
        !ifd_acc_is_whole(lowering, value) || lowering->storage[mine->storage].readers != 1) {
        return false;
    }
    size_t before = 0;
    for (uint32_t i = 0; node->input_value[i] != value; i++) {
        before += (size_t)node->view.input[i].desc->shape.dim[last];
    }
    *stride = (size_t)out->shape.dim[last];
    mine->storage = ifd_acc_storage_of(lowering, node->output_value[0]);
    mine->offset =
        lowering->value[node->output_value[0]].offset + before * ifd_dtype_bytes(out->dtype);
    mine->pitch = *stride * ifd_dtype_bytes(out->dtype);
    lowering->storage[mine->storage].readers++;
    return true;
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

static bool pack_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    if (i == node->input_count) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[i].desc, *out = &node->output[0];
    const uint32_t axis = axis_of(attrs->axis, out);
    int64_t strides[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(out, strides);
    *ret = (struct ifd_acc_move){.in = i, .copy = whole(in, out, &in->shape)};
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        ret->copy.out_stride[d] = strides[d < axis ? d : d + 1];
    }
    ret->copy.out_offset = i * strides[axis];
    return true;
}

const struct ifd_acc_driver ifd_acc_pack = {
    .takes = pack_takes, .lower = moves_lower, .move = pack_move, .reads_apart = moves_read_apart};

/* ---- split and unpack: one copy per output ---- */

static bool split_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_acc_has_one_input(node, reason) && same_quant(node->input[0].desc, &node->output[0]);
}

static bool split_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    if (i == node->output_count) {
        return false;
    }
    const struct ifd_split_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[i];
    const uint32_t axis = axis_of(attrs->axis, in);
    const int64_t at = i == 0 ? 0 : ret->at + node->output[i - 1].shape.dim[axis];
    *ret = (struct ifd_acc_move){.out = i, .at = at, .copy = whole(in, out, &out->shape)};
    ret->copy.in_offset = at * ret->copy.in_stride[axis];
    return true;
}

const struct ifd_acc_driver ifd_acc_split = {.takes = split_takes,
                                             .lower = moves_lower,
                                             .move = split_move,
                                             .reads_apart = moves_read_apart};

static bool unpack_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    if (i == node->output_count) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[i];
    const uint32_t axis = axis_of(attrs->axis, in);
    int64_t strides[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(in, strides);
    *ret = (struct ifd_acc_move){.out = i, .copy = whole(out, out, &out->shape)};
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        ret->copy.in_stride[d] = strides[d < axis ? d : d + 1];
    }
    ret->copy.in_offset = i * strides[axis];
    return true;
}

const struct ifd_acc_driver ifd_acc_unpack = {.takes = split_takes,
                                              .lower = moves_lower,
                                              .move = unpack_move,
                                              .reads_apart = moves_read_apart};

/* ---- slice and strided_slice ---- */

static bool slice_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    const struct ifd_slice_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    *ret = (struct ifd_acc_move){.copy = whole(in, out, &out->shape)};
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        ret->copy.in_offset += attrs->begin.value[d] * ret->copy.in_stride[d];
    }
    return i == 0;
}

const struct ifd_acc_driver ifd_acc_slice = {.takes = split_takes,
                                             .lower = moves_lower,
                                             .move = slice_move,
                                             .reads_apart = moves_read_apart};

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

static bool strided_slice_move(const struct ifd_node_view *node, uint32_t i,
                               struct ifd_acc_move *ret)
{
    const struct ifd_strided_slice_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
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
    *ret = (struct ifd_acc_move){.copy = copy};
    return i == 0;
}

const struct ifd_acc_driver ifd_acc_strided_slice = {
    .takes = strided_slice_takes, .lower = moves_lower, .move = strided_slice_move};

/* ---- transpose ---- */

static bool transpose_move(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret)
{
    const struct ifd_transpose_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    int64_t in_stride[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(in, in_stride);
    *ret = (struct ifd_acc_move){.copy = whole(out, out, &out->shape)};
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        const int64_t from = attrs->perm.value[d];
        ret->copy.in_stride[d] = in_stride[from < 0 ? from + (int64_t)in->shape.rank : from];
    }
    return i == 0;
}

const struct ifd_acc_driver ifd_acc_transpose = {
    .takes = split_takes, .lower = moves_lower, .move = transpose_move};

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
    copy.out_bytes = lowering->value[node->output_value[0]].bytes;
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

const struct ifd_acc_driver ifd_acc_pad = {
    .takes = pad_takes, .lower = pad_lower, .reads_apart = moves_read_apart};
