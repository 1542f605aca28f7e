/** Kernels that are recorded once and put into a queue by one call, where the device can
 *  (cl_khr_command_buffer). Thread: one at a time per queue. */
#ifndef INFERD_BACKENDS_GPUACC_RECORD_H
#define INFERD_BACKENDS_GPUACC_RECORD_H

#include "backends/gpuacc/partition.h"

/** Finds the functions of a device that is being opened; leaves device->recording zeroed if it has
 *  none. */
void ifd_gpu_find_recording(struct ifd_device *device);

/** Records the steps of a partition with these kernels, whose arguments are set. NULL: the device
 *  cannot, or did not. */
cl_command_buffer_khr ifd_gpu_record(const struct ifd_device *device, cl_command_queue queue,
                                     const struct ifd_partition *partition,
                                     const cl_kernel *kernel);

#endif
