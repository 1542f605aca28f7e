/** Whether 8-bit results are rounded as the reference kernels do. */
#ifndef INFERD_BACKENDS_CPUACC_ROUNDING_H
#define INFERD_BACKENDS_CPUACC_ROUNDING_H

#include "inferd/backend.h"

/** Are 8-bit results to be those of the reference kernels? Asked for, or cheap. */
bool ifd_acc_rounds_exactly(const struct ifd_partition_view *view, const struct ifd_host *host);

#endif
