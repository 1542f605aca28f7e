/* CpuRef: calls the reference kernel of the operator's definition. It knows no operator by name;
 * the definition's shape rule has checked shapes and types before. */
#include "backends/cpuref/cpuref.h"

#include "backends/lowering/work.h"

struct ifd_device {
    const struct ifd_host *host;
};

/* Source of an operand's memory in a run: a constant, or a slot of the binding. */
struct source {
    const void *constant;
    uint32_t slot; /* IFD_NO_VALUE: constant, or absent if that is NULL */
};

/* One node in one block of memory: the struct, then in, out, source and output_slot, then the
 * descriptions. */
struct ifd_partition {
    const struct ifd_alloc *alloc;
    size_t bytes;
    const struct ifd_op_def *def;
    const void *attrs;
    const char *output_name;
    uint32_t input_count, output_count;
    const struct ifd_desc **in; /* NULL if absent */
    const struct ifd_desc **out;
    struct source *source;
    uint32_t *output_slot;
    /* of scratch: the operand pointers of a call lie before the kernel's own scratch */
    size_t pointers_bytes;
};

static enum ifd_code cpuref_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    if (host->option_count > 0) {
        return ifd_fail(err, IFD_INVALID, "no option \"%s\": CpuRef has none", host->option[0].key);
    }
    struct ifd_device *device = ifd_acquire(host->alloc, sizeof(*device));
    if (!device) {
        return ifd_fail(err, IFD_NOMEM, "CpuRef: no memory for the device");
    }
    *device = (struct ifd_device){.host = host};
    *ret_device = device;
    return IFD_OK;
}

static uint32_t cpuref_cost(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    (void)device;
    const struct ifd_op_def *def = ifd_op_def(node->op);
    if (!def || !def->ref) {
        ifd_fail(reason, IFD_UNSUPPORTED, "operator number %d is %s", (int)node->op,
                 def ? "the executor's" : "unknown");
        return 0;
    }
    const struct ifd_low_rate rate = {.ns_per_node = 100, .macs_per_ns = 0.3, .bytes_per_ns = 0.5};
    return ifd_low_time_ns(ifd_low_work_of(def, node), rate);
}

/* Takes count × size bytes off the block at *offset; with NULL as block it only counts. */
static bool take(uint8_t *block, size_t *offset, size_t count, size_t size, void **ret)
{
    size_t bytes = 0, start = 0;
    if (!ifd_size_mul(count, size, &bytes) ||
        !ifd_size_align(*offset, sizeof(max_align_t), &start) ||
        !ifd_size_add(start, bytes, offset)) {
        return false;
    }
    *ret = block ? block + start : NULL;
    return true;
}

struct layout {
    void *in, *out, *source, *slot, *descs;
};

/* Lays out the block; called once to count and once to place. */
static bool lay_out(uint8_t *block, uint32_t inputs, uint32_t outputs, struct layout *ret,
                    size_t *ret_bytes)
{
    size_t offset = sizeof(struct ifd_partition);
    if (!take(block, &offset, inputs, sizeof(struct ifd_desc *), &ret->in) ||
        !take(block, &offset, outputs, sizeof(struct ifd_desc *), &ret->out) ||
        !take(block, &offset, inputs, sizeof(struct source), &ret->source) ||
        !take(block, &offset, outputs, sizeof(uint32_t), &ret->slot) ||
        !take(block, &offset, (size_t)inputs + outputs, sizeof(struct ifd_desc), &ret->descs)) {
        return false;
    }
    *ret_bytes = offset;
    return true;
}

static struct source source_of(const struct ifd_partition_view *view, uint32_t value)
{
    if (value == IFD_NO_VALUE) {
        return (struct source){.constant = NULL, .slot = IFD_NO_VALUE};
    }
    const struct ifd_partition_value *v = &view->value[value];
    if (v->role == IFD_VALUE_CONSTANT) {
        return (struct source){.constant = v->data.data, .slot = IFD_NO_VALUE};
    }
    return (struct source){.constant = NULL, .slot = v->slot};
}

/* Scratch of a run: pointers to inputs and outputs, then the kernel's scratch. */
static enum ifd_code scratch_bytes(const struct ifd_node_view *node,
                                   struct ifd_partition *partition, size_t *ret_bytes,
                                   struct ifd_err *err)
{
    size_t kernel_bytes = 0;
    if (partition->def->scratch) {
        const struct ifd_infer question = {.def = partition->def,
                                           .attrs = node->attrs,
                                           .input = node->input,
                                           .input_count = node->input_count,
                                           .output_count = node->output_count};
        const enum ifd_code code =
            partition->def->scratch(&question, node->output, &kernel_bytes, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    const size_t pointers = (size_t)node->input_count + node->output_count;
    if (!ifd_size_mul(pointers, sizeof(void *), &partition->pointers_bytes) ||
        !ifd_size_align(partition->pointers_bytes, IFD_TENSOR_ALIGN, &partition->pointers_bytes) ||
        !ifd_size_add(partition->pointers_bytes, kernel_bytes, ret_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "%s \"%s\": scratch of %zu bytes is too large",
                        partition->def->name, node->name, kernel_bytes);
    }
    return IFD_OK;
}

/* The definition allows output 0 in the memory of input 0; the engine asks about slots. */
static bool can_alias(const struct ifd_partition *partition)
{
    return partition->def->can_alias && partition->input_count > 0 &&
           partition->source[0].slot == 0 && partition->output_slot[0] == 0;
}

/* share_with is not needed: constants are used in place. */
static enum ifd_code cpuref_compile(struct ifd_device *device,
                                    const struct ifd_partition_view *view,
                                    struct ifd_partition *share_with,
                                    struct ifd_partition **ret_partition,
                                    struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    (void)share_with;
    if (view->node_count != 1) {
        return ifd_fail(err, IFD_INTERNAL, "CpuRef: partition of %u nodes, expected 1",
                        view->node_count);
    }
    const struct ifd_partition_node *node = &view->node[0];
    const struct ifd_node_view *nv = &node->view;
    const struct ifd_alloc *alloc = device->host->alloc;
    struct layout at = {0};
    size_t bytes = 0;
    if (!lay_out(NULL, nv->input_count, nv->output_count, &at, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "CpuRef: \"%s\" has %u inputs", nv->name,
                        nv->input_count);
    }
    struct ifd_partition *partition = ifd_acquire_zeroed(alloc, 1, bytes);
    if (!partition ||
        !lay_out((uint8_t *)partition, nv->input_count, nv->output_count, &at, &bytes)) {
        return ifd_fail(err, IFD_NOMEM, "CpuRef: no memory for node \"%s\"", nv->name);
    }
    *partition = (struct ifd_partition){.alloc = alloc,
                                        .bytes = bytes,
                                        .def = ifd_op_def(nv->op),
                                        .attrs = nv->attrs,
                                        .output_name = nv->name,
                                        .input_count = nv->input_count,
                                        .output_count = nv->output_count,
                                        .in = at.in,
                                        .out = at.out,
                                        .source = at.source,
                                        .output_slot = at.slot};
    struct ifd_desc *desc = at.descs;
    for (uint32_t i = 0; i < nv->input_count; i++) {
        partition->source[i] = source_of(view, node->input_value[i]);
        if (nv->input[i].desc) {
            *desc = *nv->input[i].desc;
            partition->in[i] = desc++;
        }
    }
    for (uint32_t i = 0; i < nv->output_count; i++) {
        partition->output_slot[i] = view->value[node->output_value[i]].slot;
        *desc = nv->output[i];
        partition->out[i] = desc++;
    }
    struct ifd_partition_info info = {
        .step_count = 1, .can_alias = can_alias(partition), .exact = true};
    const enum ifd_code code = scratch_bytes(nv, partition, &info.scratch_bytes, err);
    if (code != IFD_OK) {
        ifd_release(alloc, partition, bytes);
        return code;
    }
    *ret_info = info;
    *ret_partition = partition;
    return IFD_OK;
}

static enum ifd_code cpuref_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                                struct ifd_err *err)
{
    const uint64_t start_ns = binding->step_ns ? binding->now_ns() : 0;
    const void **input = binding->scratch;
    void **output = (void **)binding->scratch + partition->input_count;
    for (uint32_t i = 0; i < partition->input_count; i++) {
        const struct source *source = &partition->source[i];
        input[i] = source->slot == IFD_NO_VALUE ? source->constant : binding->input[source->slot];
    }
    for (uint32_t i = 0; i < partition->output_count; i++) {
        output[i] = binding->output[partition->output_slot[i]];
    }
    const struct ifd_ref_call call = {.attrs = partition->attrs,
                                      .in = partition->in,
                                      .input = input,
                                      .input_count = partition->input_count,
                                      .out = partition->out,
                                      .output = output,
                                      .output_count = partition->output_count,
                                      .scratch =
                                          (uint8_t *)binding->scratch + partition->pointers_bytes,
                                      .texts = binding->texts};
    const enum ifd_code code = partition->def->ref(&call, err);
    if (code != IFD_OK) {
        ifd_err_prefix(err, "%s \"%s\"", partition->def->name, partition->output_name);
    }
    if (binding->step_ns) {
        binding->step_ns[0] += binding->now_ns() - start_ns;
    }
    return code;
}

static void cpuref_describe(struct ifd_partition *partition, uint32_t step,
                            struct ifd_step_info *ret)
{
    (void)step;
    *ret = (struct ifd_step_info){
        .name = partition->def->name, .kernel = "reference", .output = partition->output_name};
}

static void cpuref_release(struct ifd_partition *partition)
{
    if (partition) {
        ifd_release(partition->alloc, partition, partition->bytes);
    }
}

static void cpuref_close(struct ifd_device *device)
{
    if (device) {
        ifd_release(device->host->alloc, device, sizeof(*device));
    }
}

const struct ifd_backend ifd_backend_cpuref = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "CpuRef",
    .per_node = true,
    .open = cpuref_open,
    .cost = cpuref_cost,
    .compile = cpuref_compile,
    .run = cpuref_run,
    .describe = cpuref_describe,
    .release = cpuref_release,
    .close = cpuref_close,
};
