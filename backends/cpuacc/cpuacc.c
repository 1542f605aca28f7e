/* CpuAcc's descriptor: opens the kernels of this CPU. */
#include "backends/cpuacc/cpuacc.h"

#include "backends/cpuacc/compile.h"
#include "backends/cpuacc/driver.h"
#include "backends/cpuacc/run.h"
#include "backends/lowering/work.h"

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

/* Of one core. */
static struct ifd_low_rate rate_of(uint32_t flags, const struct ifd_acc_driver *driver)
{
    struct ifd_low_rate rate = {.ns_per_node = 300, .macs_per_ns = 2, .bytes_per_ns = 8};
    if (driver == &ifd_acc_reference) {
        rate.macs_per_ns = 0.3;
        rate.bytes_per_ns = 0.5;
    } else if (flags & IFD_CPU_AVX512) {
        rate.macs_per_ns = 50;
    } else if (flags & IFD_CPU_AVX2) {
        rate.macs_per_ns = 25;
    } else if (flags & IFD_CPU_NEON) {
        rate.macs_per_ns = 8;
    }
    return rate;
}

static uint32_t cpuacc_cost(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    const struct ifd_acc_driver *driver = ifd_acc_driver(node, reason);
    if (!driver) {
        return 0;
    }
    return ifd_low_time_ns(ifd_low_work_of(ifd_op_def(node->op), node),
                           rate_of(device->host->cpu.flags, driver));
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
