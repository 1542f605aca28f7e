/** Element-wise operators of two operands: as steps, and as operators of a tail. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_BINARY_H
#define INFERD_BACKENDS_CPUACC_OPS_BINARY_H

#include "backends/cpuacc/ops/tail_op.h"

/** Can a kernel compute the node? */
bool ifd_acc_binary_takes(const struct ifd_node_view *node, struct ifd_err *reason);
/** Adds a step for a node whose operands meet in any way. */
IFD_NODISCARD enum ifd_code ifd_acc_add_binary(struct ifd_acc_lowering *lowering,
                                               const struct ifd_partition_node *node,
                                               struct ifd_err *err);
/** False if no kernel computes the node, or there is no memory. How its operands meet is not asked
 *  here. */
bool ifd_acc_binary_op(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                       struct ifd_acc_tail_op *ret);

#endif
