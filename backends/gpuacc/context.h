/** Contexts: one buffer and an in-order queue of one instance, and partitions bound to places in
 *  that buffer: their kernels with all arguments set.
 *
 *  Nothing waits longer for a kernel than ifd_device.timeout_ns. A context whose kernel has not
 *  ended by then is stuck: all its calls are UNAVAILABLE, nothing of the host's will be written,
 *  and when it is destroyed it stays in the device's list until the kernel has ended. Until then
 *  there are no new contexts. */
#ifndef INFERD_BACKENDS_GPUACC_CONTEXT_H
#define INFERD_BACKENDS_GPUACC_CONTEXT_H

#include "backends/gpuacc/device.h"

/** Why nothing new begins on a device that is stuck. */
#define IFD_GPU_STUCK "a kernel that took too long still runs"

/** As struct ifd_memory_ops says. */
extern const struct ifd_memory_ops ifd_gpu_memory_ops;

/** Releases contexts whose kernels have ended by now. True if there are others: a call of the
 *  driver might wait for them. */
bool ifd_gpu_is_stuck(struct ifd_device *device);

/** Of a device that is being closed: releases contexts that were stuck. True if a kernel has not
 *  ended yet; then its context is leaked. */
bool ifd_gpu_drop_stuck(struct ifd_device *device);

#endif
