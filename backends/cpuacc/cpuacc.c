/* CpuAcc's descriptor: opens the kernels of this CPU. */
#include "backends/cpuacc/cpuacc.h"

#include "backends/cpuacc/compile.h"
#include "backends/cpuacc/driver.h"
#include "backends/cpuacc/run.h"

static void cpuacc_describe(struct ifd_partition *partition, uint32_t step,
                            struct ifd_step_info *ret)
{
    *ret = partition->step[step].info;
}

static enum ifd_code cpuacc_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    if (host->option_count > 0) {
        return ifd_fail(err, IFD_INVALID, "no option \"%s\": CpuAcc has none", host->option[0].key);
    }
    struct ifd_device *device = ifd_acquire_zeroed(host->alloc, 1, sizeof(*device));
    if (!device) {
        return ifd_fail(err, IFD_NOMEM, "CpuAcc: no memory for the device");
    }
    device->host = host;
    ifd_kernels_select(host->cpu.flags, &device->kernels);
    *ret_device = device;
    return IFD_OK;
}

static void cpuacc_close(struct ifd_device *device)
{
    if (device) {
        ifd_release(device->host->alloc, device, sizeof(*device));
    }
}

static uint32_t cpuacc_cost(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    (void)device;
    return ifd_acc_driver(node, reason) ? 1 : 0;
}

const struct ifd_backend ifd_backend_cpuacc = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "CpuAcc",
    .open = cpuacc_open,
    .cost = cpuacc_cost,
    .compile = ifd_acc_compile,
    .run = ifd_acc_run,
    .describe = cpuacc_describe,
    .release = ifd_acc_release,
    .close = cpuacc_close,
};
