/* GpuAcc's descriptor. */
#include "backends/gpuacc/gpuacc.h"

#include "backends/gpuacc/compile.h"
#include "backends/gpuacc/context.h"
#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/lower.h"
#include "backends/gpuacc/partition.h"

#include <string.h>

/* Texts of options live as long as the host. */
static enum ifd_code read_options(const struct ifd_host *host, struct ifd_gpu_options *ret,
                                  struct ifd_err *err)
{
    for (uint32_t i = 0; i < host->option_count; i++) {
        const struct ifd_backend_option *option = &host->option[i];
        if (strcmp(option->key, "device") == 0) {
            ret->device = option->value;
        } else if (strcmp(option->key, "cache") == 0) {
            ret->cache = option->value;
        } else {
            return ifd_fail(err, IFD_INVALID, "no option \"%s\": GpuAcc has device and cache",
                            option->key);
        }
    }
    return IFD_OK;
}

static enum ifd_code gpuacc_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    struct ifd_gpu_options options = {.device = NULL};
    const enum ifd_code code = read_options(host, &options, err);
    return code == IFD_OK ? ifd_gpu_open(host, &options, ret_device, err) : code;
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
