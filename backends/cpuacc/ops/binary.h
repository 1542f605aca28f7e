/** Element-wise operators of two operands, as operators of a tail. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_BINARY_H
#define INFERD_BACKENDS_CPUACC_OPS_BINARY_H

#include "backends/cpuacc/ops/tail.h"

/** False if no kernel computes the node, or there is no memory. How its operands meet is not asked
 *  here. */
bool ifd_acc_binary_op(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                       struct ifd_acc_tail_op *ret);

#endif
