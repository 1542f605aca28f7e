/** Constants on the device: packed and uploaded once, shared by the partitions of a model. Thread:
 *  one at a time. */
#ifndef INFERD_BACKENDS_GPUACC_CONSTANTS_H
#define INFERD_BACKENDS_GPUACC_CONSTANTS_H

#include "backends/gpuacc/partition.h"

/** Finds a constant in the partition or in an older one for another batch size (NULL: there is
 *  none), or packs and uploads it. The partition owns ret. partition->resident has room for two
 *  more: an image may be a view of a buffer, where the device has such. */
IFD_NODISCARD enum ifd_code ifd_gpu_keep_constant(struct ifd_partition *partition,
                                                  const struct ifd_partition *older,
                                                  const struct ifd_gpu_constant *constant,
                                                  cl_mem *ret, struct ifd_err *err);
void ifd_gpu_release_constants(struct ifd_partition *partition);

/** Memory with this content, a buffer or an image; NULL, with OpenCL's error. */
cl_mem ifd_gpu_make_constant(const struct ifd_device *device,
                             const struct ifd_gpu_constant *constant, void *content,
                             cl_int *ret_error);

/** A pack function: the constant as the model has it. params: size_t, its bytes. */
void ifd_gpu_pack_copy(const void *params, const void *source, void *packed);

#endif
