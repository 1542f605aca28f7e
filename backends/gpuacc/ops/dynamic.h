/** fully_connected of floats with constant weights of 8 bits ("dynamic range"). */
#ifndef INFERD_BACKENDS_GPUACC_OPS_DYNAMIC_H
#define INFERD_BACKENDS_GPUACC_OPS_DYNAMIC_H

#include "backends/gpuacc/lower.h"

/** Is it one, and can it be computed here? */
bool ifd_gpu_dynamic_takes(const struct ifd_node_view *node);
IFD_NODISCARD enum ifd_code ifd_gpu_dynamic_lower(struct ifd_gpu_lowering *lowering,
                                                  const struct ifd_partition_node *node,
                                                  struct ifd_err *err);

#endif
