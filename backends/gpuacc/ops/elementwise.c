/* Element-wise operators. f32: a chain of them as one step; a binary operator whose operands repeat
 * in other ways than a tail can express as a step of its own. 8 bits, and 16 bits of one operand:
 * tables. Integers, and 16 bits of two operands: pairs. */
#include "backends/gpuacc/ops/pairs.h"
#include "backends/gpuacc/ops/table.h"
#include "backends/gpuacc/tail.h"
#include "backends/lowering/broadcast.h"

#define BINARY_RANK 6 /* of kernels/binary.cl */

static struct ifd_low_broadcast broadcast_of(const struct ifd_node_view *node)
{
    struct ifd_low_broadcast broadcast;
    ifd_low_broadcast_init(&node->input[0].desc->shape, &node->input[1].desc->shape,
                           &node->output[0].shape, &broadcast);
    return broadcast;
}

static bool elementwise_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (ifd_gpu_table_takes(node) || ifd_gpu_integers_take(node) || ifd_gpu_words_take(node)) {
        return true;
    }
    if (!ifd_gpu_tail_takes(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or an activation that is no clamp",
                 ifd_dtype_name(node->output[0].dtype));
        return false;
    }
    if (node->input_count == 2 && broadcast_of(node).rank > BINARY_RANK) {
        ifd_fail(reason, IFD_UNSUPPORTED, "operands repeat along more than %d dimensions",
                 BINARY_RANK);
        return false;
    }
    return true;
}

/* ---- operands that repeat ---- */

static enum ifd_code lower_binary(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_low_broadcast broadcast = broadcast_of(&node->view);
    const size_t count = ifd_gpu_elements(&node->view.output[0].shape);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_binary);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_in(&call, node->input_value[1]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_broadcast(&call, &broadcast, BINARY_RANK);
    ifd_gpu_tail_operator(&node->view, &call);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

/* ---- chains ---- */

/* The first operator: the node, or the silu that it begins. in: the value that it follows. */
static bool find_first(struct ifd_gpu_lowering *lowering, const struct ifd_partition_node *node,
                       struct ifd_gpu_tail *tail, uint32_t *ret_in, uint32_t *ret_out)
{
    struct ifd_lowering *base = &lowering->base;
    const size_t row = ifd_low_row_of(&node->view.output[0].shape);
    struct ifd_low_follower first;
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        const uint32_t in = node->input_value[i];
        if (!ifd_low_follow(base, node, in, row, &first)) {
            continue;
        }
        uint32_t second = 0;
        const struct ifd_partition_node *mul =
            node->view.op == IFD_OP_LOGISTIC ? ifd_low_silu(base, in, first.out, &second) : NULL;
        if (mul) {
            first.node = NULL;
            first.out = mul->output_value[0];
        }
        if (ifd_gpu_tail_append(tail, &first)) {
            if (mul) {
                ifd_low_fuse_node(base, second);
            }
            *ret_in = in;
            *ret_out = first.out;
            return true;
        }
    }
    return false;
}

static enum ifd_code elementwise_lower(struct ifd_gpu_lowering *lowering,
                                       const struct ifd_partition_node *node, struct ifd_err *err)
{
    struct ifd_gpu_tail tail = {.count = 0};
    uint32_t in = 0, out = 0;
    if (ifd_gpu_table_takes(&node->view)) {
        return ifd_gpu_table_lower(lowering, node, err);
    }
    if (ifd_gpu_integers_take(&node->view)) {
        return ifd_gpu_integers_lower(lowering, node, err);
    }
    if (ifd_gpu_words_take(&node->view)) {
        return ifd_gpu_words_lower(lowering, node, err);
    }
    if (!find_first(lowering, node, &tail, &in, &out)) {
        return lower_binary(lowering, node, err);
    }
    out = ifd_gpu_take_tail(lowering, out, &tail);
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const size_t count = ifd_gpu_elements(shape);
    const size_t row = tail.has_rows ? ifd_low_row_of(shape) : count;
    (void)ifd_low_in_place(&lowering->base, in, out);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_elementwise);
    ifd_gpu_in(&call, in);
    ifd_gpu_out(&call, out);
    ifd_gpu_int(&call, (int64_t)row);
    ifd_gpu_int(&call, (int64_t)(count / row));
    ifd_gpu_tail_finish(&tail, &call);
    if (row % 4 == 0) {
        ifd_gpu_define_aligned(lowering, &call);
    }
    ifd_gpu_items(&call, (row + 3) / 4, count / row, 1);
    return ifd_gpu_add_step(lowering, &call, tail.name + 1, 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_elementwise = {elementwise_takes, elementwise_lower};
