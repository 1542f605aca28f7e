/** Contexts: one buffer and an in-order queue of one instance, and partitions bound to places in
 *  that buffer: their kernels with all arguments set. */
#ifndef INFERD_BACKENDS_GPUACC_CONTEXT_H
#define INFERD_BACKENDS_GPUACC_CONTEXT_H

#include "inferd/backend.h"

/** As struct ifd_memory_ops says. */
extern const struct ifd_memory_ops ifd_gpu_memory_ops;

#endif
