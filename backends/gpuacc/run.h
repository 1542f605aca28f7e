/** Runs a partition: inputs to the device, all steps, outputs back, one wait at the end. */
#ifndef INFERD_BACKENDS_GPUACC_RUN_H
#define INFERD_BACKENDS_GPUACC_RUN_H

#include "inferd/backend.h"

/** As ifd_backend.run. */
enum ifd_code ifd_gpu_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                          struct ifd_err *err);

#endif
