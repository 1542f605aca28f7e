/** CpuAcc: the fast backend for CPUs. One driver per operator family in ops/, kernels per
 *  instruction set in kernels/. */
#ifndef INFERD_BACKENDS_CPUACC_CPUACC_H
#define INFERD_BACKENDS_CPUACC_CPUACC_H

#include "inferd/backend.h"

extern const struct ifd_backend ifd_backend_cpuacc;

#endif
