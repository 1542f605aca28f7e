/** Finds element-wise operators that can run in the step of the value they follow. */
#ifndef INFERD_BACKENDS_LOWERING_FUSION_H
#define INFERD_BACKENDS_LOWERING_FUSION_H

#include "backends/lowering/values.h"

/** How the other operand of a binary operator meets the value. */
enum ifd_low_operand {
    IFD_LOW_OPERAND_NONE,
    IFD_LOW_OPERAND_NUMBER,
    IFD_LOW_OPERAND_ROW, /* a number per channel */
    IFD_LOW_OPERAND_SAME /* a tensor of the same shape */
};

/** An operator that follows a value, and its nodes: views of the value, then the operator. */
struct ifd_low_follower {
    const struct ifd_partition_node *node; /* NULL: silu, x * logistic(x), of floats */
    enum ifd_low_operand kind;             /* NONE: it has one operand */
    bool comes_first;                      /* the other operand does */
    uint32_t other, out; /* values: the other operand (or IFD_NO_VALUE), the result */
    uint32_t fused[IFD_MAX_RANK];
    uint32_t fused_count;
};

/** Innermost dimension of a shape. */
size_t ifd_low_row_of(const struct ifd_shape *shape);

/** Describes a node as an operator that follows one of its inputs. row: elements of that value's
 *  rows. False if it has no or more than two operands, if shapes do not match, or the other operand
 *  is not ready. Whether the backend has a kernel for it is not asked here. */
bool ifd_low_follow(const struct ifd_lowering *lowering, const struct ifd_partition_node *node,
                    uint32_t value, size_t row, struct ifd_low_follower *ret);
/** The multiplication that makes silu of x and logistic(x), which nobody else reads; NULL for
 *  none. */
const struct ifd_partition_node *ifd_low_silu(const struct ifd_lowering *lowering, uint32_t x,
                                              uint32_t logistic, uint32_t *ret_node);
/** The only follower of a value, behind views of it. */
bool ifd_low_find_follower(const struct ifd_lowering *lowering, uint32_t value, size_t row,
                           struct ifd_low_follower *ret);

/** Finds the add that alone reads a value and adds a tensor of the same shape that is ready. */
bool ifd_low_find_residual(const struct ifd_lowering *lowering, uint32_t made, uint32_t *ret_add,
                           uint32_t *ret_other);

#endif
