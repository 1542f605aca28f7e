/* Operators that only move elements (backends/lowering/moves.h): strided copies, unless the
 * elements are in place already. */
#include "backends/gpuacc/ops/layer.h"
#include "engine/tensor/half.h"
#include "inferd/op_attrs.h"

#include <string.h>

#define COPY_RANK 8 /* of kernels/copy.cl */

/* ---- copies ---- */

static enum ifd_code add_fill(struct ifd_gpu_lowering *lowering, const struct ifd_low_copy *copy,
                              uint32_t out, const char *name, struct ifd_err *err)
{
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_fill);
    int32_t pattern[2];
    memcpy(pattern, copy->fill, sizeof(pattern));
    const size_t count = copy->out_bytes / copy->element;
    ifd_gpu_define(&call, "#define ELEMENT %s\n#define RANK 0\n",
                   ifd_gpu_element_type(copy->element));
    ifd_gpu_out_elements(&call, out, copy->element);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, pattern[0]);
    ifd_gpu_int(&call, pattern[1]);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, name, 0, err);
}

/* The innermost dimension comes first in the kernel. */
static void add_dimensions(const struct ifd_low_copy *copy, struct ifd_gpu_call *call)
{
    const int64_t element = (int64_t)copy->element;
    for (uint32_t i = 0; i < COPY_RANK; i++) {
        const bool exists = i < copy->rank;
        const uint32_t d = exists ? copy->rank - 1 - i : 0;
        ifd_gpu_int(call, exists ? copy->dim[d] : 1);
        ifd_gpu_int(call, exists ? copy->in_stride[d] / element : 0);
        ifd_gpu_int(call, exists ? copy->out_stride[d] / element : 0);
    }
}

static enum ifd_code add_copy(struct ifd_gpu_lowering *lowering, const struct ifd_low_copy *copy,
                              uint32_t in, uint32_t out, const char *name, struct ifd_err *err)
{
    struct ifd_low_copy mine = *copy;
    const int64_t element = (int64_t)copy->element;
    enum ifd_code code = IFD_OK;
    if (copy->fills) {
        code = add_fill(lowering, copy, out, name, err);
    }
    ifd_low_merge(&mine);
    int64_t count = 1;
    for (uint32_t d = 0; d < mine.rank; d++) {
        count *= mine.dim[d];
    }
    if (code != IFD_OK || count == 0) {
        return code;
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_copy);
    ifd_gpu_define(&call, "#define ELEMENT %s\n#define RANK %u\n",
                   ifd_gpu_element_type(mine.element), mine.rank);
    ifd_gpu_in_elements(&call, in, mine.element);
    ifd_gpu_out_elements(&call, out, mine.element);
    ifd_gpu_int(&call, count);
    ifd_gpu_int(&call, mine.in_offset / element);
    ifd_gpu_int(&call, mine.out_offset / element);
    add_dimensions(&mine, &call);
    ifd_gpu_items(&call, (size_t)count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, name, 0, err);
}

static bool has_type(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if (dtype == IFD_STR || !ifd_gpu_element_type(ifd_dtype_bytes(dtype))) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

/* ---- moves ---- */

static bool moves_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    struct ifd_low_move move = {.converts = false};
    if (!has_type(node, reason) || !ifd_low_moves(node, reason)) {
        return false;
    }
    for (uint32_t i = 0; ifd_low_move(node, i, &move); i++) {
        if (move.converts) {
            ifd_fail(reason, IFD_UNSUPPORTED, "inputs of different quantization");
            return false;
        }
    }
    return true;
}

static enum ifd_code moves_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    struct ifd_low_move move = {.converts = false};
    for (uint32_t i = 0; code == IFD_OK && ifd_low_move(&node->view, i, &move); i++) {
        const uint32_t from = node->input_value[move.in], to = node->output_value[move.out];
        if (!ifd_low_is_there(&lowering->base, &move.copy, from, to)) {
            code = add_copy(lowering, &move.copy, from, to, ifd_gpu_op_name(node->view.op), err);
        }
    }
    return code;
}

const struct ifd_gpu_driver ifd_gpu_driver_moves = {moves_takes, moves_lower};

/* ---- tile ---- */

static bool tile_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return has_type(node, reason) && ifd_low_tiles(node, reason);
}

static enum ifd_code tile_lower(struct ifd_gpu_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_low_copy copy = ifd_low_tile_copy(&node->view);
    return add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "tile", err);
}

const struct ifd_gpu_driver ifd_gpu_driver_tile = {tile_takes, tile_lower};

/* ---- space_to_depth, depth_to_space ---- */

/* Dimensions: coarse lines, lines of a block, coarse columns, a block's line of pixels. */
static enum ifd_code depth_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const int64_t block = ((const struct ifd_space_depth_attrs *)node->view.attrs)->block;
    const bool to_depth = node->view.op == IFD_OP_SPACE_TO_DEPTH;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const int64_t *fine = (to_depth ? in : out)->shape.dim;
    const int64_t *coarse = (to_depth ? out : in)->shape.dim;
    const int64_t element = (int64_t)ifd_dtype_bytes(in->dtype);
    const int64_t fine_line = fine[2] * fine[3] * element, run = block * fine[3] * element;
    const int64_t pixel = coarse[3] * element, coarse_line = coarse[2] * pixel;
    const int64_t fine_stride[] = {block * fine_line, fine_line, run, element};
    const int64_t coarse_stride[] = {coarse_line, run, pixel, element};
    struct ifd_low_copy copy = {.rank = 4,
                                .element = (size_t)element,
                                .dim = {coarse[0] * coarse[1], block, coarse[2], block * fine[3]}};
    memcpy(to_depth ? copy.in_stride : copy.out_stride, fine_stride, sizeof(fine_stride));
    memcpy(to_depth ? copy.out_stride : copy.in_stride, coarse_stride, sizeof(coarse_stride));
    return add_copy(lowering, &copy, node->input_value[0], node->output_value[0],
                    ifd_gpu_op_name(node->view.op), err);
}

const struct ifd_gpu_driver ifd_gpu_driver_space_depth = {has_type, depth_lower};

/* ---- broadcast_to, reverse ---- */

static enum ifd_code broadcast_lower(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const uint32_t more = out->shape.rank - in->shape.rank;
    struct ifd_low_copy copy = {.rank = out->shape.rank, .element = ifd_dtype_bytes(in->dtype)};
    int64_t in_stride[IFD_MAX_RANK] = {0};
    ifd_low_byte_strides(in, in_stride);
    ifd_low_byte_strides(out, copy.out_stride);
    for (uint32_t d = 0; d < copy.rank; d++) {
        const bool is_read = d >= more && in->shape.dim[d - more] > 1;
        copy.dim[d] = out->shape.dim[d];
        copy.in_stride[d] = is_read ? in_stride[d - more] : 0;
    }
    return add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "broadcast_to",
                    err);
}

const struct ifd_gpu_driver ifd_gpu_driver_broadcast_to = {has_type, broadcast_lower};

static enum ifd_code reverse_lower(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_reverse_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc;
    struct ifd_low_copy copy = {.rank = in->shape.rank, .element = ifd_dtype_bytes(in->dtype)};
    memcpy(copy.dim, in->shape.dim, sizeof(copy.dim));
    ifd_low_byte_strides(in, copy.in_stride);
    ifd_low_byte_strides(in, copy.out_stride);
    for (uint32_t i = 0; i < attrs->axes.count; i++) {
        const int64_t given = attrs->axes.value[i];
        const uint32_t axis = (uint32_t)(given < 0 ? given + in->shape.rank : given);
        copy.in_offset += (copy.dim[axis] - 1) * copy.in_stride[axis];
        copy.in_stride[axis] = -copy.in_stride[axis];
    }
    return add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "reverse", err);
}

static bool reverse_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return has_type(node, reason) && ifd_low_has_one_input(node, reason);
}

const struct ifd_gpu_driver ifd_gpu_driver_reverse = {reverse_takes, reverse_lower};

/* ---- pad ---- */

static bool fills(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return has_type(node, reason) && ifd_low_has_one_input(node, reason);
}

static bool pad_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return fills(node, reason) && ifd_low_same_quant(node->input[0].desc, &node->output[0]);
}

/* Of a type of up to 32 bits, lowest byte first. */
static void fill_with(struct ifd_low_copy *copy, int32_t number)
{
    for (size_t i = 0; i < sizeof(number) && i < copy->element; i++) {
        copy->fill[i] = (uint8_t)((uint32_t)number >> (8 * i));
    }
}

/* What stands for zero: 0 or the zero point, which only 8-bit numbers have. */
static void fill_with_zero(struct ifd_low_copy *copy, const struct ifd_desc *desc)
{
    const bool has_point = ifd_gpu_is_q8(desc->dtype) && desc->quant.count > 0;
    fill_with(copy, has_point ? desc->quant.zero_point[0] : 0);
}

static enum ifd_code pad_lower(struct ifd_gpu_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_pad_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    struct ifd_low_copy copy = ifd_low_pad_copy(&node->view);
    fill_with_zero(&copy, out);
    if (attrs->has_value && out->dtype == IFD_F32) {
        memcpy(copy.fill, &attrs->value, sizeof(attrs->value));
    } else if (attrs->has_value && out->dtype == IFD_F16) { /* f32 that is stored so (halves.c) */
        fill_with(&copy, ifd_f16_from_f32(attrs->value));
    } else if (attrs->has_value) { /* a whole number, 0 of types that are no integers */
        fill_with(&copy, attrs->value < 0x1p31f ? (int32_t)attrs->value : INT32_MAX);
    }
    return add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "pad", err);
}

const struct ifd_gpu_driver ifd_gpu_driver_pad = {pad_takes, pad_lower};

/* ---- space_to_batch, batch_to_space ---- */

static bool space_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_space_batch_attrs *attrs = node->attrs;
    if (node->input[0].desc->shape.rank + attrs->block.count > COPY_RANK) {
        ifd_fail(reason, IFD_UNSUPPORTED, "more than %d dimensions with blocks", COPY_RANK);
        return false;
    }
    return fills(node, reason);
}

static enum ifd_code space_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const char *name = ifd_gpu_op_name(node->view.op);
    const uint32_t first = node->input_value[0], last = node->output_value[0];
    struct ifd_low_copy copy[2];
    size_t between_bytes = 0;
    const uint32_t count = ifd_low_space_copies(&node->view, copy, &between_bytes);
    fill_with_zero(&copy[0], &node->view.output[0]);
    if (count == 1) {
        return add_copy(lowering, &copy[0], first, last, name, err);
    }
    uint32_t between = 0;
    enum ifd_code code = ifd_low_add_value(&lowering->base, between_bytes, &between, err);
    if (code == IFD_OK) {
        code = add_copy(lowering, &copy[0], first, between, name, err);
    }
    return code == IFD_OK ? add_copy(lowering, &copy[1], between, last, name, err) : code;
}

const struct ifd_gpu_driver ifd_gpu_driver_space_batch = {space_takes, space_lower};

/* ---- zeros_like ---- */

static bool zeros_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->output[0].dtype;
    if (dtype == IFD_STR || !ifd_gpu_element_type(ifd_dtype_bytes(dtype))) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

static enum ifd_code zeros_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *out = &node->view.output[0];
    const size_t element = ifd_dtype_bytes(out->dtype);
    const struct ifd_low_copy zeros = {.element = element,
                                       .out_bytes = ifd_gpu_elements(&out->shape) * element};
    return add_fill(lowering, &zeros, node->output_value[0], "zeros_like", err);
}

const struct ifd_gpu_driver ifd_gpu_driver_zeros_like = {zeros_takes, zeros_lower};

/* ---- shape, rank ---- */

/* params: the node. Known when it is compiled. */
static void pack_shape(const void *params, const void *source, void *packed)
{
    const struct ifd_node_view *node = params;
    const struct ifd_shape *shape = &node->input[0].desc->shape;
    const int64_t rank = shape->rank;
    const int64_t *number = node->op == IFD_OP_RANK ? &rank : shape->dim;
    const size_t count = node->op == IFD_OP_RANK ? 1 : shape->rank;
    (void)source;
    for (size_t i = 0; i < count; i++) {
        if (node->output[0].dtype == IFD_S32) {
            ((int32_t *)packed)[i] = (int32_t)number[i];
        } else {
            ((int64_t *)packed)[i] = number[i];
        }
    }
}

static enum ifd_code add_numbers(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, ifd_gpu_pack_fn pack,
                                 struct ifd_err *err)
{
    const struct ifd_desc *out = &node->view.output[0];
    const size_t element = ifd_dtype_bytes(out->dtype), count = ifd_gpu_elements(&out->shape);
    const struct ifd_low_copy copy = {.element = element,
                                      .rank = 1,
                                      .dim = {(int64_t)count},
                                      .in_stride = {(int64_t)element},
                                      .out_stride = {(int64_t)element}};
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_copy);
    ifd_gpu_define(&call, "#define ELEMENT %s\n#define RANK 1\n", ifd_gpu_element_type(element));
    ifd_gpu_constant(&call, pack, &node->view, NULL, count * element);
    ifd_gpu_int(&call, 0);
    ifd_gpu_out_elements(&call, node->output_value[0], element);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, 0);
    ifd_gpu_int(&call, 0);
    add_dimensions(&copy, &call);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

static enum ifd_code shape_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    return add_numbers(lowering, node, pack_shape, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_shape = {has_type, shape_lower};

/* ---- range ---- */

static bool range_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!node->input[0].data.data || !node->input[2].data.data) {
        ifd_fail(reason, IFD_UNSUPPORTED, "begin or step is not constant");
        return false;
    }
    return has_type(node, reason);
}

/* Summed up, as the reference does; integers wrap. */
static void pack_range(const void *params, const void *source, void *packed)
{
    const struct ifd_node_view *node = params;
    const void *begin = node->input[0].data.data, *step = node->input[2].data.data;
    const size_t count = ifd_gpu_elements(&node->output[0].shape);
    const enum ifd_dtype dtype = node->output[0].dtype;
    const size_t element = ifd_dtype_bytes(dtype);
    (void)source;
    if (count > 0) {
        memcpy(packed, begin, element);
    }
    for (size_t i = 1; i < count; i++) {
        if (dtype == IFD_F32) {
            ((float *)packed)[i] = ((float *)packed)[i - 1] + *(const float *)step;
        } else if (dtype == IFD_S32) {
            ((uint32_t *)packed)[i] = ((uint32_t *)packed)[i - 1] + *(const uint32_t *)step;
        } else {
            ((uint64_t *)packed)[i] = ((uint64_t *)packed)[i - 1] + *(const uint64_t *)step;
        }
    }
}

static enum ifd_code range_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    return add_numbers(lowering, node, pack_range, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_range = {range_takes, range_lower};
