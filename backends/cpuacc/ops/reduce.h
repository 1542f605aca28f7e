/** Reductions of neighbouring dimensions. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_REDUCE_H
#define INFERD_BACKENDS_CPUACC_OPS_REDUCE_H

#include "backends/cpuacc/driver.h"

/** A shape around the dimensions that are reduced. */
struct ifd_acc_split {
    size_t outer, reduced, inner;
};

/** Splits the shape of a reduction's input. False if it is empty, or if the dimensions are no
 *  neighbours. A scalar has none, whatever the axes say. */
bool ifd_acc_split_reduced(const struct ifd_node_view *node, struct ifd_acc_split *ret);

/** dequantize → reduce_mean → quantize as one step; false through ret_done, and nothing is done, if
 *  they do not follow the dequantize, or others read between them. */
IFD_NODISCARD enum ifd_code ifd_acc_lower_stored_mean(struct ifd_acc_lowering *lowering,
                                                      const struct ifd_partition_node *dequantize,
                                                      bool *ret_done, struct ifd_err *err);

/** What one more thread is worth. */
#define IFD_ACC_REDUCE_VALUES 8192

#endif
