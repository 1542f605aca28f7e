/* A backend for tests: runs partitions of several nodes. */
#include "tests/support/fake_backend.h"
#include "tests/support/test.h"

#define MAX_NODES  256
#define MAX_VALUES 512

uint32_t fake_cost_ns = 1;

struct ifd_device {
    const struct ifd_host *host;
};

struct value {
    struct ifd_desc desc;
    const void *constant;
    enum ifd_value_role role;
    uint32_t slot;
    size_t bytes, offset; /* INTERNAL: in scratch */
};

struct node {
    const struct ifd_op_def *def;
    const void *attrs;
    uint32_t input[2], output;
    uint32_t input_count;
};

struct ifd_partition {
    const struct ifd_alloc *alloc;
    struct ifd_partition *share_with;
    uint32_t sharers; /* partitions that share with this one and are not released yet */
    struct value value[MAX_VALUES];
    struct node node[MAX_NODES];
    uint32_t value_count, node_count;
    size_t scratch_bytes;
    uint32_t max_threads;
};

static enum ifd_code fake_open(const struct ifd_host *host, struct ifd_device **ret_device,
                               struct ifd_err *err)
{
    struct ifd_device *device = ifd_acquire(host->alloc, sizeof(*device));
    if (!device) {
        return ifd_fail(err, IFD_NOMEM, "Fake: no memory");
    }
    device->host = host;
    *ret_device = device;
    return IFD_OK;
}

static uint32_t fake_cost(struct ifd_device *device, const struct ifd_node_view *node,
                          struct ifd_err *reason)
{
    (void)device;
    switch ((int)node->op) {
    case IFD_OP_ADD:
    case IFD_OP_SUB:
    case IFD_OP_ABS:
    case IFD_OP_RELU:
    case IFD_OP_TANH:
        return fake_cost_ns;
    }
    ifd_fail(reason, IFD_UNSUPPORTED, "does not know %s", ifd_op_def(node->op)->name);
    return 0;
}

static size_t bytes_of(const struct ifd_desc *desc)
{
    size_t bytes = ifd_dtype_bytes(desc->dtype);
    for (uint32_t i = 0; i < desc->shape.rank; i++) {
        bytes *= (size_t)desc->shape.dim[i];
    }
    return bytes;
}

static void keep_view(struct ifd_partition *partition, const struct ifd_partition_view *view)
{
    for (uint32_t v = 0; v < view->value_count; v++) {
        struct value *value = &partition->value[v];
        *value = (struct value){.desc = view->value[v].desc,
                                .constant = view->value[v].data.data,
                                .role = view->value[v].role,
                                .slot = view->value[v].slot,
                                .bytes = bytes_of(&view->value[v].desc)};
        if (value->role == IFD_VALUE_INTERNAL) {
            value->offset = partition->scratch_bytes;
            partition->scratch_bytes += (value->bytes + IFD_TENSOR_PAD + 63) / 64 * 64;
        }
    }
    for (uint32_t n = 0; n < view->node_count; n++) {
        const struct ifd_partition_node *from = &view->node[n];
        struct node *node = &partition->node[n];
        node->def = ifd_op_def(from->view.op);
        node->attrs = from->view.attrs;
        node->input_count = from->view.input_count;
        for (uint32_t i = 0; i < node->input_count; i++) {
            node->input[i] = from->input_value[i];
        }
        node->output = from->output_value[0];
    }
    partition->value_count = view->value_count;
    partition->node_count = view->node_count;
    partition->max_threads = view->max_threads;
}

static enum ifd_code fake_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                                  struct ifd_partition *share_with,
                                  struct ifd_partition **ret_partition,
                                  struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    if (view->node_count > MAX_NODES || view->value_count > MAX_VALUES) {
        return ifd_fail(err, IFD_TOO_LARGE, "Fake: %u nodes", view->node_count);
    }
    if (share_with && share_with->node_count != view->node_count) {
        return ifd_fail(err, IFD_INTERNAL, "Fake: %u nodes, but the partition to share with has %u",
                        view->node_count, share_with->node_count);
    }
    struct ifd_partition *partition =
        ifd_acquire_zeroed(device->host->alloc, 1, sizeof(*partition));
    if (!partition) {
        return ifd_fail(err, IFD_NOMEM, "Fake: no memory");
    }
    partition->alloc = device->host->alloc;
    partition->share_with = share_with;
    if (share_with) {
        share_with->sharers++;
    }
    keep_view(partition, view);
    *ret_info = (struct ifd_partition_info){.scratch_bytes = partition->scratch_bytes,
                                            .step_count = partition->node_count,
                                            .constant_bytes = share_with ? 0 : 1000,
                                            .exact = view->exact};
    *ret_partition = partition;
    return IFD_OK;
}

void fake_partition_slots(const struct ifd_partition *partition, uint32_t *ret_inputs,
                          uint32_t *ret_outputs)
{
    *ret_inputs = *ret_outputs = 0;
    for (uint32_t v = 0; v < partition->value_count; v++) {
        *ret_inputs += partition->value[v].role == IFD_VALUE_INPUT ? 1 : 0;
        *ret_outputs += partition->value[v].role == IFD_VALUE_OUTPUT ? 1 : 0;
    }
}

static void *memory_of(const struct ifd_partition *partition, const struct ifd_binding *binding,
                       uint32_t index)
{
    const struct value *value = &partition->value[index];
    switch (value->role) {
    case IFD_VALUE_CONSTANT:
        return (void *)value->constant;
    case IFD_VALUE_INPUT:
        return (void *)binding->input[value->slot];
    case IFD_VALUE_OUTPUT:
        return binding->output[value->slot];
    case IFD_VALUE_INTERNAL:
        return (uint8_t *)binding->scratch + value->offset;
    }
    return NULL;
}

/* What the engine promises to every backend. */
static enum ifd_code check_binding(const struct ifd_partition *partition,
                                   const struct ifd_binding *binding, struct ifd_err *err)
{
    if (!binding->team || binding->team->count < 1 ||
        binding->team->count > partition->max_threads) {
        return ifd_fail(err, IFD_INTERNAL, "Fake: wrong team");
    }
    for (uint32_t a = 0; a < partition->value_count; a++) {
        const uint8_t *x = memory_of(partition, binding, a);
        if (!x || (uintptr_t)x % IFD_TENSOR_ALIGN != 0) {
            return ifd_fail(err, IFD_INTERNAL, "Fake: value %u is not aligned", a);
        }
        for (uint32_t b = 0; b < a; b++) {
            const uint8_t *y = memory_of(partition, binding, b);
            const bool writes = partition->value[a].role != IFD_VALUE_CONSTANT &&
                                (partition->value[a].role != IFD_VALUE_INPUT ||
                                 partition->value[b].role == IFD_VALUE_OUTPUT ||
                                 partition->value[b].role == IFD_VALUE_INTERNAL);
            if (writes && x < y + partition->value[b].bytes && y < x + partition->value[a].bytes) {
                return ifd_fail(err, IFD_INTERNAL, "Fake: values %u and %u overlap", a, b);
            }
        }
    }
    return IFD_OK;
}

static enum ifd_code fake_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                              struct ifd_err *err)
{
    enum ifd_code code = check_binding(partition, binding, err);
    for (uint32_t n = 0; code == IFD_OK && n < partition->node_count; n++) {
        const struct node *node = &partition->node[n];
        const struct ifd_desc *in[2] = {0}, *out = &partition->value[node->output].desc;
        const void *input[2] = {0};
        void *output = memory_of(partition, binding, node->output);
        for (uint32_t i = 0; i < node->input_count; i++) {
            in[i] = &partition->value[node->input[i]].desc;
            input[i] = memory_of(partition, binding, node->input[i]);
        }
        const struct ifd_ref_call call = {.attrs = node->attrs,
                                          .in = in,
                                          .input = input,
                                          .input_count = node->input_count,
                                          .out = &out,
                                          .output = &output,
                                          .output_count = 1};
        code = node->def->ref(&call, err);
        if (binding->step_ns) {
            binding->step_ns[n] += 1;
        }
    }
    return code;
}

static void fake_release(struct ifd_partition *partition)
{
    if (partition) {
        REQUIRE(partition->sharers == 0);
        if (partition->share_with) {
            partition->share_with->sharers--;
        }
        ifd_release(partition->alloc, partition, sizeof(*partition));
    }
}

static void fake_close(struct ifd_device *device)
{
    if (device) {
        ifd_release(device->host->alloc, device, sizeof(*device));
    }
}

const struct ifd_backend fake_backend = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "Fake",
    .open = fake_open,
    .cost = fake_cost,
    .compile = fake_compile,
    .run = fake_run,
    .release = fake_release,
    .close = fake_close,
};
