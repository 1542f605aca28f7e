/** Functions of one element: as tables, and as operators of a tail. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_UNARY_H
#define INFERD_BACKENDS_CPUACC_OPS_UNARY_H

#include "backends/cpuacc/ops/tail_op.h"

/** Adds a step that maps every element of a q8 value through a table, which the node's reference
 *  kernel fills. The number of elements is that of value from. */
IFD_NODISCARD enum ifd_code ifd_acc_add_table(struct ifd_acc_lowering *lowering,
                                              const struct ifd_node_view *node, uint32_t from,
                                              uint32_t to, struct ifd_err *err);

/** Can a table or a kernel of f32 compute the node? */
bool ifd_acc_unary_takes(const struct ifd_node_view *node, struct ifd_err *reason);
/** A node as an operator of a tail. False if no kernel computes it, or there is no memory for its
 *  table. */
bool ifd_acc_unary_op(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                      struct ifd_acc_tail_op *ret);
/** x * logistic(x), of floats. */
struct ifd_acc_tail_op ifd_acc_silu_op(const struct ifd_acc_lowering *lowering);

#endif
