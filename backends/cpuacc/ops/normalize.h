/** Normalized rows: several nodes as one step. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_NORMALIZE_H
#define INFERD_BACKENDS_CPUACC_OPS_NORMALIZE_H

#include "backends/cpuacc/driver.h"

/** Lowers the node, a mean or a square, together with those behind it that normalize what it reads,
 *  if they are there. */
IFD_NODISCARD enum ifd_code ifd_acc_normalize(struct ifd_acc_lowering *lowering,
                                              const struct ifd_partition_node *node, bool *ret_done,
                                              struct ifd_err *err);

#endif
