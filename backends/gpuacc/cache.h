/** Built programs in a folder, for the next start (--backend-option GpuAcc:cache=DIR).
 *
 *  A file belongs to a device, its driver and the program's whole text; one that is damaged or made
 *  for another is built again and written anew. The folder may be deleted at any time. Drivers
 *  trust what they load: nobody else may write there. Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_CACHE_H
#define INFERD_BACKENDS_GPUACC_CACHE_H

#include "backends/gpuacc/device.h"

/** Names a program on a device. */
struct ifd_gpu_key {
    uint64_t half[2];
};

struct ifd_gpu_key ifd_gpu_cache_key(const struct ifd_device *device, const char *const *text,
                                     uint32_t count);

/** A program that is ready, or NULL: there is none, or it is of no use. */
cl_program ifd_gpu_cache_load(const struct ifd_device *device, const struct ifd_gpu_key *key,
                              const char *options);
/** Keeps a program that was built. A failure is a line for debugging only. */
void ifd_gpu_cache_store(const struct ifd_device *device, const struct ifd_gpu_key *key,
                         cl_program program);

#endif
