/* batch_matmul of f32 and 8 bits. */
#include "backends/gpuacc/ops/layer.h"
#include "engine/tensor/fixed.h"
#include "inferd/op_attrs.h"

/* Matrices of an operand. */
static size_t matrices(const struct ifd_shape *shape)
{
    size_t count = 1;
    for (uint32_t d = 0; d + 2 < shape->rank; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

/* As many as the output has, or one that is used again. */
static bool has_simple_batch(const struct ifd_shape *operand, const struct ifd_shape *out)
{
    return matrices(operand) == 1 || matrices(operand) == matrices(out);
}

static bool matmul_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_shape *out = &node->output[0].shape;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if ((dtype != IFD_F32 && !ifd_gpu_is_q8(dtype)) ||
        !has_simple_batch(&node->input[0].desc->shape, out) ||
        !has_simple_batch(&node->input[1].desc->shape, out)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or matrices that repeat along some dimensions",
                 ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

/* The factor of a sum: the product of the scales in float, as LiteRT has it. */
static void add_quantization(struct ifd_gpu_call *call, const struct ifd_node_view *node)
{
    const struct ifd_desc *a = node->input[0].desc, *b = node->input[1].desc;
    const struct ifd_desc *y = &node->output[0];
    int32_t multiplier = 0, lo = 0, hi = 0;
    int shift = 0;
    ifd_fixed_from_any((double)(a->quant.scale[0] * b->quant.scale[0]) / (double)y->quant.scale[0],
                       &multiplier, &shift);
    ifd_gpu_stored_range(y->dtype, &lo, &hi);
    const int32_t numbers[] = {a->quant.zero_point[0],
                               b->quant.zero_point[0],
                               y->quant.zero_point[0],
                               multiplier,
                               shift,
                               lo,
                               hi};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(call, numbers[i]);
    }
}

static enum ifd_code matmul_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_batch_matmul_attrs *attrs = node->view.attrs;
    const struct ifd_shape *a = &node->view.input[0].desc->shape;
    const struct ifd_shape *b = &node->view.input[1].desc->shape;
    const struct ifd_shape *out = &node->view.output[0].shape;
    const int64_t rows = out->dim[out->rank - 2], columns = out->dim[out->rank - 1];
    const int64_t depth = a->dim[a->rank - (attrs->adj_x ? 2 : 1)];
    const size_t count = matrices(out);
    const enum ifd_dtype dtype = node->view.output[0].dtype;
    const bool is_q8 = ifd_gpu_is_q8(dtype);
    struct ifd_gpu_call call = ifd_gpu_call(is_q8 ? IFD_GPU_matmul_q8 : IFD_GPU_matmul);
    if (is_q8) {
        ifd_gpu_define(&call, "#define Q %s\n", ifd_gpu_q8_type(dtype));
    }
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_in(&call, node->input_value[1]);
    ifd_gpu_out(&call, node->output_value[0]);
    const int64_t numbers[] = {rows,
                               columns,
                               depth,
                               matrices(a) > 1 ? rows * depth : 0,
                               matrices(b) > 1 ? depth * columns : 0,
                               attrs->adj_x ? 1 : depth,
                               attrs->adj_x ? rows : 1,
                               attrs->adj_y ? depth : 1,
                               attrs->adj_y ? 1 : columns};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    if (is_q8) {
        add_quantization(&call, &node->view);
    }
    ifd_gpu_items(&call, (size_t)(columns + 3) / 4, (size_t)rows, count);
    return ifd_gpu_add_step(lowering, &call, "batch_matmul",
                            count * (uint64_t)(rows * columns * depth), err);
}

const struct ifd_gpu_driver ifd_gpu_driver_batch_matmul = {matmul_takes, matmul_lower};
