/** GpuAcc: computes on an OpenCL device. A plugin; tests link it. */
#ifndef INFERD_BACKENDS_GPUACC_GPUACC_H
#define INFERD_BACKENDS_GPUACC_GPUACC_H

#include "inferd/backend.h"

extern const struct ifd_backend ifd_backend_gpuacc;

#endif
