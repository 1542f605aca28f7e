/** A partition's nodes become steps on the device. */
#ifndef INFERD_BACKENDS_GPUACC_COMPILE_H
#define INFERD_BACKENDS_GPUACC_COMPILE_H

#include "inferd/backend.h"

/** As ifd_backend.compile and release. */
enum ifd_code ifd_gpu_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                              struct ifd_partition *share_with,
                              struct ifd_partition **ret_partition,
                              struct ifd_partition_info *ret_info, struct ifd_err *err);
void ifd_gpu_release(struct ifd_partition *partition);

#endif
