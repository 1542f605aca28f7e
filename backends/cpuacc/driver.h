/** Drivers: one per operator, in ops/op_list.inc. A driver turns a node into steps. */
#ifndef INFERD_BACKENDS_CPUACC_DRIVER_H
#define INFERD_BACKENDS_CPUACC_DRIVER_H

#include "backends/cpuacc/draft.h"
#include "backends/cpuacc/native.h"
#include "backends/lowering/subtensors.h"

/** It gets only nodes that it takes. */
struct ifd_acc_driver {
    /** Can it run this node? If not, says why in reason (may be NULL). */
    bool (*takes)(const struct ifd_node_view *node, struct ifd_err *reason);
    IFD_NODISCARD enum ifd_code (*lower)(struct ifd_acc_lowering *lowering,
                                         const struct ifd_partition_node *node,
                                         struct ifd_err *err);
    /** Can it read the rows of input i where they lie further apart than they are long? NULL:
     *  no. */
    bool (*reads_apart)(const struct ifd_node_view *node, uint32_t i);
};

#define DRIVER(op, symbol) extern const struct ifd_acc_driver ifd_acc_##symbol;
#include "backends/cpuacc/ops/op_list.inc"
#undef DRIVER
/** 16-bit layers, and operators that run as their reference kernel. */
extern const struct ifd_acc_driver ifd_acc_conv_s16, ifd_acc_reference;

/** The driver of a node: that of its operator, or the reference kernel as a step (ops/reference.c).
 *  NULL, with a reason (may be NULL), if neither takes it. */
const struct ifd_acc_driver *ifd_acc_driver(const struct ifd_node_view *node,
                                            struct ifd_err *reason);

/** The one that was chosen for a node of the view; never NULL. */
static inline const struct ifd_acc_driver *ifd_acc_driver_of(
    const struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node)
{
    return lowering->driver[node - lowering->base.view->node];
}

/** What the drivers accept of the view's nodes. */
struct ifd_low_accepts ifd_acc_accepts(const struct ifd_acc_lowering *lowering);

#endif
