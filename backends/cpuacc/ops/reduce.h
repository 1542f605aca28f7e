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

/** What one more thread is worth. */
#define IFD_ACC_REDUCE_VALUES 8192

#endif
