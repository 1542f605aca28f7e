/** Estimated times, from what the device says about itself. */
#ifndef INFERD_BACKENDS_GPUACC_COST_H
#define INFERD_BACKENDS_GPUACC_COST_H

#include "backends/gpuacc/device.h"

/** ns that a call of a kernel takes besides its work. */
#define IFD_GPU_LAUNCH_NS 4000

/** ns of a node that a driver takes; at least 1. */
uint32_t ifd_gpu_cost(const struct ifd_device *device, const struct ifd_node_view *node);
/** ns to move bytes between host and device. */
uint64_t ifd_gpu_transfer_ns(struct ifd_device *device, size_t bytes);

#endif
