/* Followers of a value: silu, unary and binary element-wise operators, residuals. */
#include "backends/lowering/fusion.h"

#include "inferd/op_attrs.h"

size_t ifd_low_row_of(const struct ifd_shape *shape)
{
    return shape->rank ? (size_t)shape->dim[shape->rank - 1] : 1;
}

/* x * logistic(x): the multiplication that reads x and the logistic of x, which nobody else
 * reads. */
const struct ifd_partition_node *ifd_low_silu(const struct ifd_lowering *lowering, uint32_t x,
                                              uint32_t logistic, uint32_t *ret_node)
{
    const struct ifd_partition_node *mul = ifd_low_sole_reader(lowering, logistic, ret_node);
    if (!mul || mul->view.op != IFD_OP_MUL || mul->view.output[0].dtype != IFD_F32 ||
        ((const struct ifd_binary_attrs *)mul->view.attrs)->activation != IFD_ACT_NONE) {
        return NULL;
    }
    return (mul->input_value[0] == x) != (mul->input_value[1] == x) ? mul : NULL;
}

/* The logistic among the readers of x, where x is read twice and lives inside. */
static const struct ifd_partition_node *logistic_of(const struct ifd_lowering *lowering, uint32_t x,
                                                    uint32_t *ret_node)
{
    if (lowering->value[x].consumers != 2 || lowering->value[x].view->role != IFD_VALUE_INTERNAL) {
        return NULL;
    }
    const uint32_t reader[] = {lowering->value[x].first_reader, lowering->value[x].reader};
    for (uint32_t i = 0; i < 2; i++) {
        const struct ifd_partition_node *node = &lowering->view->node[reader[i]];
        if (node->view.op == IFD_OP_LOGISTIC && !lowering->node_done[reader[i]]) {
            *ret_node = reader[i];
            return node;
        }
    }
    return NULL;
}

static bool find_silu(const struct ifd_lowering *lowering, uint32_t x, struct ifd_low_follower *ret)
{
    const struct ifd_partition_node *logistic = logistic_of(lowering, x, &ret->fused[0]);
    const struct ifd_partition_node *mul =
        logistic ? ifd_low_silu(lowering, x, logistic->output_value[0], &ret->fused[1]) : NULL;
    if (!mul) {
        return false;
    }
    ret->node = NULL;
    ret->kind = IFD_LOW_OPERAND_NONE;
    ret->other = IFD_NO_VALUE;
    ret->out = mul->output_value[0];
    ret->fused_count = 2;
    return true;
}

static enum ifd_low_operand operand_kind(const struct ifd_shape *other, const struct ifd_shape *y)
{
    size_t count = 1;
    for (uint32_t d = 0; d < other->rank; d++) {
        count *= (size_t)other->dim[d];
    }
    const int64_t row = y->rank ? y->dim[y->rank - 1] : 1;
    if (ifd_shape_equal(other, y)) {
        return IFD_LOW_OPERAND_SAME;
    }
    return count == 1                                                   ? IFD_LOW_OPERAND_NUMBER
           : count == (size_t)row && other->dim[other->rank - 1] == row ? IFD_LOW_OPERAND_ROW
                                                                        : IFD_LOW_OPERAND_NONE;
}

/* With a second operand: of the same shape, a number, or a row of them. */
static bool follow_binary(const struct ifd_lowering *lowering,
                          const struct ifd_partition_node *node, uint32_t value, size_t row,
                          struct ifd_low_follower *ret)
{
    const struct ifd_shape *y = &node->view.output[0].shape;
    const uint32_t other = node->input_value[0] == value ? 1 : 0;
    if (node->input_value[other] == IFD_NO_VALUE) {
        return false;
    }
    const struct ifd_shape *shape = &node->view.input[other].desc->shape;
    ret->other = node->input_value[other];
    ret->comes_first = other == 0;
    ret->kind = operand_kind(shape, y);
    return ret->kind != IFD_LOW_OPERAND_NONE &&
           ifd_shape_equal(&node->view.input[1 - other].desc->shape, y) &&
           ifd_low_is_ready(lowering, ret->other) &&
           (ret->kind != IFD_LOW_OPERAND_ROW || ifd_low_row_of(y) == row);
}

bool ifd_low_follow(const struct ifd_lowering *lowering, const struct ifd_partition_node *node,
                    uint32_t value, size_t row, struct ifd_low_follower *ret)
{
    ret->node = node;
    ret->kind = IFD_LOW_OPERAND_NONE;
    ret->other = IFD_NO_VALUE;
    ret->out = node->output_value[0];
    return node->view.input_count == 1 || node->view.op == IFD_OP_TABLE ||
           (node->view.input_count == 2 && follow_binary(lowering, node, value, row, ret));
}

bool ifd_low_find_follower(const struct ifd_lowering *lowering, uint32_t value, size_t row,
                           struct ifd_low_follower *ret)
{
    if (find_silu(lowering, value, ret)) {
        return true;
    }
    ret->fused_count = 0;
    for (;;) {
        uint32_t *index = &ret->fused[ret->fused_count];
        const struct ifd_partition_node *node = ifd_low_sole_reader(lowering, value, index);
        if (!node || ++ret->fused_count == IFD_MAX_RANK) {
            return false;
        }
        if (node->view.op != IFD_OP_RESHAPE) {
            return ifd_low_follow(lowering, node, value, row, ret);
        }
        if (!ifd_low_same_place(lowering, value, node->output_value[0])) {
            return false;
        }
        value = node->output_value[0];
    }
}

bool ifd_low_find_residual(const struct ifd_lowering *lowering, uint32_t made, uint32_t *ret_add,
                           uint32_t *ret_other)
{
    const struct ifd_partition_node *add = ifd_low_sole_reader(lowering, made, ret_add);
    if (!add || add->view.op != IFD_OP_ADD) {
        return false;
    }
    *ret_other = add->input_value[add->input_value[0] == made ? 1 : 0];
    const struct ifd_shape *shape = &lowering->value[made].view->desc.shape;
    const struct ifd_shape *other = &lowering->value[*ret_other].view->desc.shape;
    return *ret_other != made && ifd_shape_equal(shape, other) &&
           ifd_low_is_ready(lowering, *ret_other);
}
