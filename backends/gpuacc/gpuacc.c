/* GpuAcc's descriptor. */
#include "backends/gpuacc/gpuacc.h"

#include "backends/gpuacc/compile.h"
#include "backends/gpuacc/context.h"
#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/lower.h"
#include "backends/gpuacc/partition.h"

#include <string.h>

static enum ifd_code gpuacc_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    const char *wanted = NULL;
    for (uint32_t i = 0; i < host->option_count; i++) {
        if (strcmp(host->option[i].key, "device") != 0) {
            return ifd_fail(err, IFD_INVALID, "no option \"%s\": GpuAcc has device",
                            host->option[i].key);
        }
        wanted = host->option[i].value;
    }
    return ifd_gpu_open(host, wanted, ret_device, err);
}

static uint32_t gpuacc_cost(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    return ifd_gpu_driver_of(node, reason) ? ifd_gpu_cost(device, node) : 0;
}

static void gpuacc_describe(struct ifd_partition *partition, uint32_t step,
                            struct ifd_step_info *ret)
{
    *ret = partition->step[step].info;
}

const struct ifd_backend ifd_backend_gpuacc = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "GpuAcc",
    .open = gpuacc_open,
    .cost = gpuacc_cost,
    .compile = ifd_gpu_compile,
    .describe = gpuacc_describe,
    .release = ifd_gpu_release,
    .close = ifd_gpu_close,
    .memory = &ifd_gpu_memory_ops,
};
