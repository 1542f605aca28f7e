/** Waits for a queue with a limit: OpenCL's own waits have none. Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_AWAIT_H
#define INFERD_BACKENDS_GPUACC_AWAIT_H

#include "backends/gpuacc/device.h"

/** Returns when everything in the queue has ended. UNAVAILABLE: a command failed, or it took longer
 *  than the device's limit. In the latter case *ret_stuck is what it waited for, which the caller
 *  releases; else NULL. */
IFD_NODISCARD enum ifd_code ifd_gpu_await(const struct ifd_device *device, cl_command_queue queue,
                                          cl_event *ret_stuck, struct ifd_err *err);
/** Has what was waited for ended by now? */
bool ifd_gpu_has_ended(const struct ifd_device *device, cl_event event);

#endif
