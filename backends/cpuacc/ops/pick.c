/* Operators whose output takes elements of the input more than once, or in blocks: tile, space_to_batch, batch_to_space and
 * gather with constant indices. */
#include "backends/cpuacc/ops/copy.h"

#include <string.h>

/* ---- tile: every dimension is two, the repeats outside ---- */

static bool tile_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_shape *in = &node->input[0].desc->shape, *out = &node->output[0].shape;
    uint32_t rank = 0;
    bool has_elements = true;
    for (uint32_t d = 0; d < in->rank; d++) {
        has_elements = has_elements && out->dim[d] > 0;
        rank += (in->dim[d] > 1 ? 1u : 0u) + (out->dim[d] > in->dim[d] ? 1u : 0u);
    }
    if (!has_elements || rank > IFD_MAX_RANK) {
        ifd_fail(reason, IFD_UNSUPPORTED, "an empty tensor, or too many dimensions that repeat");
        return false;
    }
    return true;
}

static void add_dimension(struct ifd_acc_copy *copy, int64_t dim, int64_t in_stride,
                          int64_t out_stride)
{
    if (dim > 1) {
        copy->dim[copy->rank] = dim;
        copy->in_stride[copy->rank] = in_stride;
        copy->out_stride[copy->rank++] = out_stride;
    }
}

static enum ifd_code tile_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    int64_t in_stride[IFD_MAX_RANK] = {0}, out_stride[IFD_MAX_RANK] = {0};
    struct ifd_acc_copy copy = {.element = ifd_dtype_bytes(in->dtype)};
    ifd_acc_byte_strides(in, in_stride);
    ifd_acc_byte_strides(out, out_stride);
    for (uint32_t d = 0; d < in->shape.rank; d++) {
        const int64_t dim = in->shape.dim[d];
        add_dimension(&copy, out->shape.dim[d] / dim, 0, out_stride[d] * dim);
        add_dimension(&copy, dim, in_stride[d], out_stride[d]);
    }
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "tile",
                            err);
}

const struct ifd_acc_driver ifd_acc_tile = {.takes = tile_takes, .lower = tile_lower};

/* ---- space_to_batch, batch_to_space: one copy between the deep tensor (many images) and the wide one (large images);
 * padding and crops make another one ---- */

static bool space_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_space_batch_attrs *attrs = node->attrs;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if ((dtype != IFD_F32 && !ifd_acc_is_q8(dtype)) ||
        node->input[0].desc->shape.rank + attrs->block.count > IFD_MAX_RANK) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or too many dimensions", ifd_dtype_name(dtype));
        return false;
    }
    return ifd_acc_has_one_input(node, reason);
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

/* Dimensions of the copy: a shift inside of the block per spatial dimension, then those of the deep tensor's images. */
static struct ifd_acc_copy block_copy(const struct ifd_desc *deep, const struct ifd_desc *whole,
                                      const struct ifd_space_batch_attrs *attrs, bool to_deep)
{
    const uint32_t spatial = attrs->block.count;
    int64_t deep_stride[IFD_MAX_RANK] = {0}, whole_stride[IFD_MAX_RANK] = {0};
    ifd_acc_byte_strides(deep, deep_stride);
    ifd_acc_byte_strides(whole, whole_stride);
    struct ifd_acc_copy copy = {.rank = deep->shape.rank + spatial,
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

/* Between the wide tensor and the part of the whole one that it is. */
static struct ifd_acc_copy edge_copy(const struct ifd_desc *wide, const struct ifd_desc *whole,
                                     const struct ifd_space_batch_attrs *attrs, bool to_whole)
{
    struct ifd_acc_copy copy = {.rank = wide->shape.rank, .element = ifd_dtype_bytes(wide->dtype)};
    int64_t offset = 0;
    memcpy(copy.dim, wide->shape.dim, sizeof(copy.dim));
    ifd_acc_byte_strides(wide, to_whole ? copy.in_stride : copy.out_stride);
    ifd_acc_byte_strides(whole, to_whole ? copy.out_stride : copy.in_stride);
    for (uint32_t i = 0; i < attrs->block.count; i++) {
        offset +=
            attrs->before.value[i] * (to_whole ? copy.out_stride[i + 1] : copy.in_stride[i + 1]);
    }
    copy.fills = to_whole;
    copy.out_offset = to_whole ? offset : 0;
    copy.in_offset = to_whole ? 0 : offset;
    return copy;
}

static size_t bytes_of(const struct ifd_desc *desc)
{
    size_t bytes = ifd_dtype_bytes(desc->dtype);
    for (uint32_t d = 0; d < desc->shape.rank; d++) {
        bytes *= (size_t)desc->shape.dim[d];
    }
    return bytes;
}

static enum ifd_code space_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_space_batch_attrs *attrs = node->view.attrs;
    const bool to_deep = node->view.op == IFD_OP_SPACE_TO_BATCH;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const struct ifd_desc *wide = to_deep ? in : out, *deep = to_deep ? out : in;
    const struct ifd_desc whole = whole_of(wide, attrs);
    const char *name = ifd_op_def(node->view.op)->name;
    struct ifd_acc_copy blocks = block_copy(deep, &whole, attrs, to_deep);
    if (ifd_shape_equal(&whole.shape, &wide->shape)) {
        return ifd_acc_add_copy(lowering, &blocks, node->input_value[0], node->output_value[0],
                                name, err);
    }
    struct ifd_acc_copy edge = edge_copy(wide, &whole, attrs, to_deep);
    edge.out_bytes = bytes_of(to_deep ? &whole : wide);
    edge.fill[0] = ifd_acc_is_q8(out->dtype) ? (uint8_t)ifd_acc_zero(out) : 0;
    uint32_t between = 0;
    enum ifd_code code = ifd_acc_add_value(lowering, bytes_of(&whole), &between, err);
    if (code == IFD_OK) {
        code = ifd_acc_add_copy(lowering, to_deep ? &edge : &blocks, node->input_value[0], between,
                                name, err);
    }
    return code == IFD_OK ? ifd_acc_add_copy(lowering, to_deep ? &blocks : &edge, between,
                                             node->output_value[0], name, err)
                          : code;
}

const struct ifd_acc_driver ifd_acc_space_to_batch = {.takes = space_takes, .lower = space_lower};
const struct ifd_acc_driver ifd_acc_batch_to_space = {.takes = space_takes, .lower = space_lower};

/* ---- gather ---- */

struct gather_params {
    size_t outer, choices, picks, bytes; /* of one choice */
    size_t batches;
    const uint32_t *pick; /* batches × picks */
};

static size_t product(const struct ifd_shape *shape, uint32_t begin, uint32_t end)
{
    size_t count = 1;
    for (uint32_t d = begin; d < end; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

static uint32_t gather_axis(const struct ifd_node_view *node)
{
    const struct ifd_gather_attrs *attrs = node->attrs;
    const int32_t rank = (int32_t)node->input[0].desc->shape.rank;
    return (uint32_t)(attrs->axis < 0 ? attrs->axis + rank : attrs->axis);
}

static int64_t index_at(const struct ifd_operand *indices, size_t i)
{
    int32_t small = 0;
    int64_t large = 0;
    if (indices->desc->dtype == IFD_S32) {
        memcpy(&small, indices->data.data + i * sizeof(small), sizeof(small));
        return small;
    }
    memcpy(&large, indices->data.data + i * sizeof(large), sizeof(large));
    return large;
}

/* Indices that are computed may be out of range, which the reference kernel says (reference.c). */
static bool gather_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_operand *indices = &node->input[1];
    const int64_t choices = node->input[0].desc->shape.dim[gather_axis(node)];
    bool fits = indices->data.data != NULL;
    const size_t count = product(&indices->desc->shape, 0, indices->desc->shape.rank);
    for (size_t i = 0; fits && i < count; i++) {
        const int64_t index = index_at(indices, i);
        fits = index >= -choices && index < choices && choices <= UINT32_MAX;
    }
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED, "indices that are computed or out of range");
    }
    return fits;
}

static void run_gather(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct gather_params *p = step->params;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->batches * p->outer * p->picks, 16);
    for (size_t i = range.begin; i < range.end; i++) {
        const size_t block = i / p->picks, batch = block / p->outer;
        const size_t pick = p->pick[batch * p->picks + i % p->picks];
        memcpy(out + i * p->bytes, in + (block * p->choices + pick) * p->bytes, p->bytes);
    }
}

static enum ifd_code gather_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_gather_attrs *attrs = node->view.attrs;
    const struct ifd_operand *indices = &node->view.input[1];
    const struct ifd_desc *in = node->view.input[0].desc;
    const uint32_t axis = gather_axis(&node->view), batch_dims = (uint32_t)attrs->batch_dims;
    const size_t count = product(&indices->desc->shape, 0, indices->desc->shape.rank);
    struct gather_params *p = ifd_acc_params(lowering, 1, sizeof(*p));
    uint32_t *pick = ifd_acc_params(lowering, count, sizeof(*pick));
    struct ifd_acc_step *step = NULL;
    if (!pick) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu indices", count);
    }
    const enum ifd_code code = ifd_acc_add_step(lowering, run_gather, p, node->input_value, 1,
                                                node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct gather_params){
        .batches = product(&in->shape, 0, batch_dims),
        .outer = product(&in->shape, batch_dims, axis),
        .choices = (size_t)in->shape.dim[axis],
        .picks = product(&indices->desc->shape, batch_dims, indices->desc->shape.rank),
        .bytes = product(&in->shape, axis + 1, in->shape.rank) * ifd_dtype_bytes(in->dtype),
        .pick = pick,
    };
    for (size_t i = 0; i < count; i++) {
        const int64_t index = index_at(indices, i);
        pick[i] = (uint32_t)(index < 0 ? index + (int64_t)p->choices : index);
    }
    step->max_threads = (uint32_t)(bytes_of(&node->view.output[0]) / 8192) + 1;
    ifd_acc_name_step(lowering, "copy", 0, "gather");
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_gather = {.takes = gather_takes, .lower = gather_lower};
