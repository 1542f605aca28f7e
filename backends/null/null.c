/* Null: a backend that computes nothing. It refuses every node, so an engine that has it behaves as
 * if it were not there. It exists to be copied: every function that the ABI asks for is here with
 * what it has to do. It needs inferd's public headers and nothing else:
 *
 *     cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden null.c -o null.so
 *     inferd inspect --backend-path . --backend Null,CpuRef MODEL
 *
 * To make a backend of it: choose a name; open the device in open(); say in cost() which nodes you
 * can run, and in the reason why not; keep in compile() all that run() needs, because the view is
 * gone afterwards; compute in run(). backends/README.md says more. */
#include "inferd/backend.h"

struct ifd_device {
    const struct ifd_host *host; /* valid until close() returns */
};

/* A real one reads its options here, and says UNAVAILABLE with the reason if there is no device. */
static enum ifd_code null_open(const struct ifd_host *host, struct ifd_device **ret_device,
                               struct ifd_err *err)
{
    if (host->option_count > 0) {
        return host->fail(err, IFD_INVALID, "no option \"%s\": Null has none", host->option[0].key);
    }
    struct ifd_device *device =
        host->alloc->acquire(host->alloc->context, sizeof(*device), _Alignof(max_align_t));
    if (!device) {
        return host->fail(err, IFD_NOMEM, "Null: no memory for the device");
    }
    *device = (struct ifd_device){.host = host};
    *ret_device = device;
    return IFD_OK;
}

static uint32_t null_cost(struct ifd_device *device, const struct ifd_node_view *node,
                          struct ifd_err *reason)
{
    (void)device->host->fail(reason, IFD_UNSUPPORTED, "computes nothing, not even %s \"%s\"",
                             device->host->op_def(node->op)->name, node->name);
    return 0;
}

/* Never called, because cost() is 0 for every node. A real one packs constants here and reports in
 * ret_info how much scratch a run needs, how many steps it has, and whether its output may
 * overwrite its input. */
static enum ifd_code null_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                                  struct ifd_partition *share_with,
                                  struct ifd_partition **ret_partition,
                                  struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    (void)share_with;
    (void)ret_partition;
    (void)ret_info;
    return device->host->fail(err, IFD_UNSUPPORTED, "Null: cannot compile %u nodes",
                              view->node_count);
}

/* Never called. A real one reads binding->input, writes binding->output, uses binding->scratch and
 * binding->team, and allocates nothing: several threads may be in here with the same partition. */
static enum ifd_code null_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                              struct ifd_err *err)
{
    (void)partition;
    (void)binding;
    (void)err;
    return IFD_UNSUPPORTED;
}

static void null_release(struct ifd_partition *partition)
{
    (void)partition;
}

static void null_close(struct ifd_device *device)
{
    if (device) {
        const struct ifd_alloc *alloc = device->host->alloc;
        alloc->release(alloc->context, device, sizeof(*device));
    }
}

static const struct ifd_backend null_backend = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "Null",
    .open = null_open,
    .cost = null_cost,
    .compile = null_compile,
    .run = null_run,
    .describe = NULL, /* the engine describes the nodes instead */
    .release = null_release,
    .close = null_close,
};

const struct ifd_backend *ifd_backend_query(uint32_t host_abi)
{
    return host_abi == IFD_BACKEND_ABI ? &null_backend : NULL;
}
