/* batch_matmul of f32. */
#include "backends/gpuacc/lower.h"
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
    if (node->input[0].desc->dtype != IFD_F32 ||
        !has_simple_batch(&node->input[0].desc->shape, out) ||
        !has_simple_batch(&node->input[1].desc->shape, out)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or matrices that repeat along some dimensions",
                 ifd_dtype_name(node->input[0].desc->dtype));
        return false;
    }
    return true;
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
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_matmul);
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
    ifd_gpu_items(&call, (size_t)(columns + 3) / 4, (size_t)rows, count);
    return ifd_gpu_add_step(lowering, &call, "batch_matmul",
                            count * (uint64_t)(rows * columns * depth), err);
}

const struct ifd_gpu_driver ifd_gpu_driver_batch_matmul = {matmul_takes, matmul_lower};
