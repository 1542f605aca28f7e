/* The symbol by which the engine finds GpuAcc in its shared object. */
#include "backends/gpuacc/gpuacc.h"

const struct ifd_backend *ifd_backend_query(uint32_t host_abi)
{
    return host_abi == IFD_BACKEND_ABI ? &ifd_backend_gpuacc : NULL;
}
