/* Operators as strided copies. Quantized elements stay as they are, except inputs of a
 * concatenation in another quantization. */
#include "backends/lowering/moves.h"

#include "inferd/op_attrs.h"

#include <string.h>

/* ---- copies ---- */

void ifd_low_byte_strides(const struct ifd_desc *desc, int64_t ret_strides[IFD_MAX_RANK])
{
    int64_t stride = (int64_t)ifd_dtype_bytes(desc->dtype);
    for (uint32_t d = desc->shape.rank; d-- > 0;) {
        ret_strides[d] = stride;
        stride *= desc->shape.dim[d];
    }
}

size_t ifd_low_desc_bytes(const struct ifd_desc *desc)
{
    size_t bytes = ifd_dtype_bytes(desc->dtype);
    for (uint32_t d = 0; d < desc->shape.rank; d++) {
        bytes *= (size_t)desc->shape.dim[d]; /* fits: the engine has sized every value */
    }
    return bytes;
}

void ifd_low_merge(struct ifd_low_copy *copy)
{
    uint32_t rank = 0;
    for (uint32_t d = 0; d < copy->rank; d++) {
        if (copy->dim[d] == 1) {
            continue;
        }
        const uint32_t last = rank - 1;
        if (rank > 0 && copy->in_stride[last] == copy->in_stride[d] * copy->dim[d] &&
            copy->out_stride[last] == copy->out_stride[d] * copy->dim[d]) {
            copy->dim[last] *= copy->dim[d];
            copy->in_stride[last] = copy->in_stride[d];
            copy->out_stride[last] = copy->out_stride[d];
            continue;
        }
        copy->dim[rank] = copy->dim[d];
        copy->in_stride[rank] = copy->in_stride[d];
        copy->out_stride[rank] = copy->out_stride[d];
        rank++;
    }
    copy->rank = rank;
}

bool ifd_low_is_there(const struct ifd_lowering *lowering, const struct ifd_low_copy *copy,
                      uint32_t in, uint32_t out)
{
    const bool is_one = ifd_low_storage_of(lowering, in) == ifd_low_storage_of(lowering, out);
    return is_one && lowering->value[in].offset + (size_t)copy->in_offset ==
                         lowering->value[out].offset + (size_t)copy->out_offset;
}

void ifd_low_spread_rows(const struct ifd_low_value *in, struct ifd_low_copy *copy)
{
    if (in->pitch == 0) {
        return;
    }
    const struct ifd_shape *shape = &in->view->desc.shape;
    const int64_t pitch = (int64_t)in->pitch;
    const int64_t row = shape->dim[shape->rank - 1] * (int64_t)copy->element;
    copy->in_offset = copy->in_offset / row * pitch + copy->in_offset % row;
    for (uint32_t d = 0; d < copy->rank; d++) {
        if (copy->in_stride[d] % row == 0) {
            copy->in_stride[d] = copy->in_stride[d] / row * pitch;
        }
    }
}

/* The copy of a whole shape `part` between two row-major tensors. */
static struct ifd_low_copy whole(const struct ifd_desc *in, const struct ifd_desc *out,
                                 const struct ifd_shape *part)
{
    struct ifd_low_copy copy = {.rank = part->rank, .element = ifd_dtype_bytes(in->dtype)};
    memcpy(copy.dim, part->dim, sizeof(copy.dim));
    ifd_low_byte_strides(in, copy.in_stride);
    ifd_low_byte_strides(out, copy.out_stride);
    return copy;
}

/* ---- what they take ---- */

bool ifd_low_has_one_input(const struct ifd_node_view *node, struct ifd_err *reason)
{
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (node->input[i].desc) {
            ifd_fail(reason, IFD_UNSUPPORTED, "parameter %u is an input, expected a constant", i);
            return false;
        }
    }
    return true;
}

static bool is_8bit(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 || dtype == IFD_U8;
}

bool ifd_low_same_quant(const struct ifd_desc *a, const struct ifd_desc *b)
{
    return a->dtype == b->dtype &&
           (!is_8bit(a->dtype) || a->quant.count == 0 || b->quant.count == 0 ||
            (a->quant.scale[0] == b->quant.scale[0] &&
             a->quant.zero_point[0] == b->quant.zero_point[0]));
}

/* LiteRT converts only u8 from one quantization to another. */
static bool needs_table(const struct ifd_desc *in, const struct ifd_desc *out)
{
    return in->dtype == IFD_U8 && out->dtype == IFD_U8 && !ifd_low_same_quant(in, out);
}

static bool reshape_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    return node->input[0].desc->dtype == node->output[0].dtype;
}

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
        takes = takes && in && (ifd_low_same_quant(in, out) || needs_table(in, out));
    }
    if (!takes) {
        ifd_fail(reason, IFD_UNSUPPORTED, "an activation, or inputs of different quantization");
    }
    return takes;
}

static bool pack_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!node->input[i].desc || !ifd_low_same_quant(node->input[i].desc, &node->output[0])) {
            ifd_fail(reason, IFD_UNSUPPORTED, "inputs of different quantization");
            return false;
        }
    }
    return true;
}

static bool split_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_low_has_one_input(node, reason) &&
           ifd_low_same_quant(node->input[0].desc, &node->output[0]);
}

static bool strided_slice_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_strided_slice_attrs *attrs = node->attrs;
    bool plain = ifd_low_has_one_input(node, reason) && attrs->ellipsis_mask == 0 &&
                 attrs->new_axis_mask == 0;
    for (uint32_t d = 0; d < attrs->strides.count; d++) {
        plain = plain && attrs->strides.value[d] > 0;
    }
    if (!plain) {
        ifd_fail(reason, IFD_UNSUPPORTED, "new axes, an ellipsis or negative strides");
    }
    return plain;
}

/* ---- which copies they are ---- */

static bool reshape_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    const struct ifd_desc *in = node->input[0].desc;
    *ret = (struct ifd_low_move){.copy = whole(in, in, &in->shape)};
    return i == 0;
}

static bool concat_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    if (i == node->input_count) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[i].desc, *out = &node->output[0];
    const uint32_t axis = axis_of(attrs->axis, out);
    /* ret: from the call for the input before */
    const int64_t at = i == 0 ? 0 : ret->at + node->input[i - 1].desc->shape.dim[axis];
    *ret = (struct ifd_low_move){.in = i,
                                 .at = at,
                                 .converts = !ifd_low_same_quant(in, out),
                                 .copy = whole(in, out, &in->shape)};
    ret->copy.out_offset = at * ret->copy.out_stride[axis];
    return true;
}

static bool pack_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    if (i == node->input_count) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[i].desc, *out = &node->output[0];
    const uint32_t axis = axis_of(attrs->axis, out);
    int64_t strides[IFD_MAX_RANK] = {0};
    ifd_low_byte_strides(out, strides);
    *ret = (struct ifd_low_move){.in = i, .copy = whole(in, out, &in->shape)};
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        ret->copy.out_stride[d] = strides[d < axis ? d : d + 1];
    }
    ret->copy.out_offset = i * strides[axis];
    return true;
}

static bool split_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    if (i == node->output_count) {
        return false;
    }
    const struct ifd_split_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[i];
    const uint32_t axis = axis_of(attrs->axis, in);
    const int64_t at = i == 0 ? 0 : ret->at + node->output[i - 1].shape.dim[axis];
    *ret = (struct ifd_low_move){.out = i, .at = at, .copy = whole(in, out, &out->shape)};
    ret->copy.in_offset = at * ret->copy.in_stride[axis];
    return true;
}

static bool unpack_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    if (i == node->output_count) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[i];
    const uint32_t axis = axis_of(attrs->axis, in);
    int64_t strides[IFD_MAX_RANK] = {0};
    ifd_low_byte_strides(in, strides);
    *ret = (struct ifd_low_move){.out = i, .copy = whole(out, out, &out->shape)};
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        ret->copy.in_stride[d] = strides[d < axis ? d : d + 1];
    }
    ret->copy.in_offset = i * strides[axis];
    return true;
}

static bool slice_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    const struct ifd_slice_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    *ret = (struct ifd_low_move){.copy = whole(in, out, &out->shape)};
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        ret->copy.in_offset += attrs->begin.value[d] * ret->copy.in_stride[d];
    }
    return i == 0;
}

static bool strided_slice_move(const struct ifd_node_view *node, uint32_t i,
                               struct ifd_low_move *ret)
{
    const struct ifd_strided_slice_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    struct ifd_low_copy copy = {.rank = in->shape.rank, .element = ifd_dtype_bytes(in->dtype)};
    int64_t out_stride[IFD_MAX_RANK] = {0};
    ifd_low_byte_strides(in, copy.in_stride);
    ifd_low_byte_strides(out, out_stride);
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
    *ret = (struct ifd_low_move){.copy = copy};
    return i == 0;
}

static bool transpose_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    const struct ifd_transpose_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    int64_t in_stride[IFD_MAX_RANK] = {0};
    ifd_low_byte_strides(in, in_stride);
    *ret = (struct ifd_low_move){.copy = whole(out, out, &out->shape)};
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        const int64_t from = attrs->perm.value[d];
        ret->copy.in_stride[d] = in_stride[from < 0 ? from + (int64_t)in->shape.rank : from];
    }
    return i == 0;
}

/* ---- the table ---- */

struct row {
    bool (*takes)(const struct ifd_node_view *node, struct ifd_err *reason);
    bool (*move)(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret);
    bool has_rows; /* copies whole rows */
};

static const struct row *find_row(enum ifd_op op)
{
    static const struct row rows[IFD_OP_COUNT] = {
        [IFD_OP_RESHAPE] = {reshape_takes, reshape_move, true},
        [IFD_OP_CONCAT] = {concat_takes, concat_move, true},
        [IFD_OP_PACK] = {pack_takes, pack_move, true},
        [IFD_OP_SPLIT] = {split_takes, split_move, true},
        [IFD_OP_UNPACK] = {split_takes, unpack_move, true},
        [IFD_OP_SLICE] = {split_takes, slice_move, true},
        /* single elements are read from a copy in the cache, which takes no longer than reading
         * them in place */
        [IFD_OP_STRIDED_SLICE] = {strided_slice_takes, strided_slice_move, false},
        [IFD_OP_TRANSPOSE] = {split_takes, transpose_move, false},
    };
    return (unsigned)op < IFD_OP_COUNT && rows[op].move ? &rows[op] : NULL;
}

bool ifd_low_moves(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct row *row = find_row(node->op);
    return row && row->takes(node, reason);
}

bool ifd_low_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret)
{
    const struct row *row = find_row(node->op);
    return row && row->move(node, i, ret);
}

bool ifd_low_moves_rows(const struct ifd_node_view *node, uint32_t input)
{
    const struct row *row = find_row(node->op);
    return row && row->has_rows &&
           ifd_low_same_quant(node->input[input].desc,
                              &node->output[0]); /* else a table reads it */
}

/* ---- tile ---- */

bool ifd_low_tiles(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_shape *in = &node->input[0].desc->shape, *out = &node->output[0].shape;
    uint32_t rank = 0;
    bool has_elements = true;
    for (uint32_t d = 0; d < in->rank; d++) {
        has_elements = has_elements && out->dim[d] > 0;
        rank += (in->dim[d] > 1 ? 1u : 0u) + (out->dim[d] > in->dim[d] ? 1u : 0u);
    }
    if (!has_elements || rank > IFD_MAX_RANK) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "an empty tensor, or %u dimensions with repeats, expected at most %d", rank,
                 IFD_MAX_RANK);
        return false;
    }
    return true;
}

static void add_dimension(struct ifd_low_copy *copy, int64_t dim, int64_t in_stride,
                          int64_t out_stride)
{
    if (dim > 1) {
        copy->dim[copy->rank] = dim;
        copy->in_stride[copy->rank] = in_stride;
        copy->out_stride[copy->rank++] = out_stride;
    }
}

/* Every dimension becomes two, the repeats outside. */
struct ifd_low_copy ifd_low_tile_copy(const struct ifd_node_view *node)
{
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    int64_t in_stride[IFD_MAX_RANK] = {0}, out_stride[IFD_MAX_RANK] = {0};
    struct ifd_low_copy copy = {.element = ifd_dtype_bytes(in->dtype)};
    ifd_low_byte_strides(in, in_stride);
    ifd_low_byte_strides(out, out_stride);
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        const int64_t dim = in->shape.dim[d];
        add_dimension(&copy, out->shape.dim[d] / dim, 0, out_stride[d] * dim);
        add_dimension(&copy, dim, in_stride[d], out_stride[d]);
    }
    return copy;
}

/* ---- pad, space_to_batch, batch_to_space ---- */

struct ifd_low_copy ifd_low_pad_copy(const struct ifd_node_view *node)
{
    const struct ifd_pad_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    struct ifd_low_copy copy = whole(in, out, &in->shape);
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        copy.out_offset += attrs->before.value[d] * copy.out_stride[d];
    }
    copy.fills = true;
    copy.out_bytes = ifd_low_desc_bytes(out);
    return copy;
}

/* The wide tensor with its padding. */
static struct ifd_desc whole_of(const struct ifd_desc *wide,
                                const struct ifd_space_batch_attrs *attrs)
{
    struct ifd_desc whole = *wide;
    for (uint32_t i = 0; i < attrs->block.count; i++) {
        whole.shape.dim[i + 1] += attrs->before.value[i] + attrs->after.value[i];
    }
    return whole;
}

/* Dimensions of the copy: an offset inside of the block per spatial dimension, then those of the
 * deep tensor's images. */
static struct ifd_low_copy block_copy(const struct ifd_desc *deep, const struct ifd_desc *whole,
                                      const struct ifd_space_batch_attrs *attrs, bool to_deep)
{
    const uint32_t spatial = attrs->block.count;
    int64_t deep_stride[IFD_MAX_RANK] = {0}, whole_stride[IFD_MAX_RANK] = {0};
    ifd_low_byte_strides(deep, deep_stride);
    ifd_low_byte_strides(whole, whole_stride);
    struct ifd_low_copy copy = {.rank = deep->shape.rank + spatial,
                                .element = ifd_dtype_bytes(deep->dtype)};
    int64_t *deep_to = to_deep ? copy.out_stride : copy.in_stride;
    int64_t *whole_to = to_deep ? copy.in_stride : copy.out_stride;
    int64_t images = whole->shape.dim[0];
    for (uint32_t i = spatial; i-- > 0;) {
        copy.dim[i] = attrs->block.value[i];
        deep_to[i] = images * deep_stride[0];
        whole_to[i] = whole_stride[i + 1];
        images *= attrs->block.value[i];
    }
    for (uint32_t d = 0; d < deep->shape.rank; d++) {
        copy.dim[spatial + d] = d == 0 ? whole->shape.dim[0] : deep->shape.dim[d];
        deep_to[spatial + d] = deep_stride[d];
        whole_to[spatial + d] =
            whole_stride[d] * (d >= 1 && d <= spatial ? attrs->block.value[d - 1] : 1);
    }
    return copy;
}

/* The copy between the wide tensor and its place in the padded one. */
static struct ifd_low_copy edge_copy(const struct ifd_desc *wide, const struct ifd_desc *whole,
                                     const struct ifd_space_batch_attrs *attrs, bool to_whole)
{
    struct ifd_low_copy copy = {.rank = wide->shape.rank, .element = ifd_dtype_bytes(wide->dtype)};
    int64_t offset = 0;
    memcpy(copy.dim, wide->shape.dim, sizeof(copy.dim));
    ifd_low_byte_strides(wide, to_whole ? copy.in_stride : copy.out_stride);
    ifd_low_byte_strides(whole, to_whole ? copy.out_stride : copy.in_stride);
    for (uint32_t i = 0; i < attrs->block.count; i++) {
        offset +=
            attrs->before.value[i] * (to_whole ? copy.out_stride[i + 1] : copy.in_stride[i + 1]);
    }
    copy.fills = to_whole;
    copy.out_offset = to_whole ? offset : 0;
    copy.in_offset = to_whole ? 0 : offset;
    return copy;
}

/* One copy between the deep tensor (many images) and the wide one (large images); padding and crops
 * take another one. */
uint32_t ifd_low_space_copies(const struct ifd_node_view *node, struct ifd_low_copy ret[2],
                              size_t *ret_between)
{
    const struct ifd_space_batch_attrs *attrs = node->attrs;
    const bool to_deep = node->op == IFD_OP_SPACE_TO_BATCH;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    const struct ifd_desc *wide = to_deep ? in : out, *deep = to_deep ? out : in;
    const struct ifd_desc padded = whole_of(wide, attrs);
    const struct ifd_low_copy blocks = block_copy(deep, &padded, attrs, to_deep);
    *ret_between = 0;
    ret[0] = blocks;
    if (ifd_shape_equal(&padded.shape, &wide->shape)) {
        return 1;
    }
    struct ifd_low_copy edge = edge_copy(wide, &padded, attrs, to_deep);
    edge.out_bytes = ifd_low_desc_bytes(to_deep ? &padded : wide);
    ret[0] = to_deep ? edge : blocks;
    ret[1] = to_deep ? blocks : edge;
    *ret_between = ifd_low_desc_bytes(&padded);
    return 2;
}
