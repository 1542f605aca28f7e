/* Contexts of an instance on devices, and what a run asks of them. */
#include "engine/exec/device.h"

#include "engine/base/clock.h"
#include "engine/exec/instance.h"

/* ---- contexts ---- */

static const struct ifd_plan *plan_of(const struct ifd_instance *instance)
{
    return &instance->table[0].executable->plan;
}

/* Names the backend of an error, and keeps in mind that the device is lost. */
static enum ifd_code note(struct ifd_instance_device *device, enum ifd_code code,
                          struct ifd_err *err)
{
    if (code != IFD_OK) {
        device->is_lost |= code == IFD_UNAVAILABLE;
        ifd_err_prefix(err, "backend %s", device->slot->name);
    }
    return code;
}

static enum ifd_code open_device(struct ifd_instance *instance, uint32_t d, struct ifd_err *err)
{
    struct ifd_instance_device *device = &instance->device[d];
    struct ifd_backend_slot *slot =
        &instance->table[0].executable->registry->slot[plan_of(instance)->device[d].backend];
    for (uint32_t i = 0; i < instance->table_count; i++) {
        const size_t wanted = instance->table[i].executable->plan.device[d].arena_bytes;
        device->bytes = wanted > device->bytes ? wanted : device->bytes;
    }
    device->slot = slot;
    device->ops = slot->backend->memory;
    const enum ifd_code code =
        note(device,
             device->ops->context_create(slot->device, device->bytes, &device->context, err), err);
    if (code != IFD_OK) {
        device->context = NULL;
    }
    return code;
}

/* ---- bound partitions ---- */

static void fill_offsets(const struct ifd_plan *plan, const uint32_t *value, uint32_t count,
                         size_t *offset)
{
    for (uint32_t i = 0; i < count; i++) {
        offset[i] = plan->value[value[i]].offset;
    }
}

static enum ifd_code bind_partition(struct ifd_instance *instance,
                                    const struct ifd_instance_table *table, uint32_t p,
                                    struct ifd_err *err)
{
    const struct ifd_plan *plan = &table->executable->plan;
    const struct ifd_plan_partition *partition = &plan->partition[p];
    struct ifd_instance_device *device = &instance->device[partition->memory - 1];
    const size_t count = (size_t)partition->input_count + partition->output_count;
    size_t *offset = ifd_acquire_zeroed(instance->alloc, count + 1, sizeof(*offset));
    if (!offset) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu offsets", count);
    }
    const struct ifd_places places = {.input = offset,
                                      .output = offset + partition->input_count,
                                      .scratch = partition->scratch_offset};
    fill_offsets(plan, partition->input, partition->input_count, offset);
    fill_offsets(plan, partition->output, partition->output_count, offset + partition->input_count);
    const struct ifd_executable_part *part = &table->executable->part[p];
    const enum ifd_code code = note(
        device, device->ops->bind(device->context, part->compiled, &places, &table->bound[p], err),
        err);
    if (code != IFD_OK) {
        table->bound[p] = NULL;
    }
    ifd_release(instance->alloc, offset, (count + 1) * sizeof(*offset));
    return code;
}

static bool is_bound(const struct ifd_plan_partition *partition)
{
    return partition->task == IFD_PLAN_RUN && partition->memory > 0;
}

static enum ifd_code bind_table(struct ifd_instance *instance, struct ifd_instance_table *table,
                                struct ifd_err *err)
{
    const struct ifd_plan *plan = &table->executable->plan;
    const size_t count = plan->partition_count;
    table->bound = ifd_acquire_zeroed(instance->alloc, count, sizeof(struct ifd_bound *));
    table->fence = ifd_acquire_zeroed(instance->alloc, count, sizeof(*table->fence));
    if (!table->bound || !table->fence) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu partitions", count);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t p = 0; code == IFD_OK && p < plan->partition_count; p++) {
        if (is_bound(&plan->partition[p])) {
            code = bind_partition(instance, table, p, err);
        }
    }
    return code;
}

static enum ifd_code open_devices(struct ifd_instance *instance, struct ifd_err *err)
{
    const uint32_t count = plan_of(instance)->device_count;
    if (count == 0) {
        return IFD_OK;
    }
    instance->device = ifd_acquire_zeroed(instance->alloc, count, sizeof(*instance->device));
    if (!instance->device) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u devices", count);
    }
    instance->device_count = count;
    enum ifd_code code = IFD_OK;
    for (uint32_t d = 0; code == IFD_OK && d < count; d++) {
        code = open_device(instance, d, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < instance->table_count; i++) {
        code = bind_table(instance, &instance->table[i], err);
    }
    return code;
}

static void unbind_table(const struct ifd_instance *instance, struct ifd_instance_table *table)
{
    const struct ifd_plan *plan = &table->executable->plan;
    for (uint32_t p = plan->partition_count; table->bound && p-- > 0;) {
        if (table->bound[p]) {
            const struct ifd_instance_device *device =
                &instance->device[plan->partition[p].memory - 1];
            device->ops->unbind(device->context, table->bound[p]);
        }
    }
    ifd_release(instance->alloc, table->bound, plan->partition_count * sizeof(struct ifd_bound *));
    ifd_release(instance->alloc, table->fence, plan->partition_count * sizeof(*table->fence));
    table->bound = NULL;
    table->fence = NULL;
}

void ifd_devices_close(struct ifd_instance *instance)
{
    for (uint32_t i = 0; i < instance->table_count; i++) {
        unbind_table(instance, &instance->table[i]);
    }
    for (uint32_t d = 0; d < instance->device_count; d++) {
        if (instance->device[d].context) {
            instance->device[d].ops->context_destroy(instance->device[d].context);
        }
    }
    ifd_release(instance->alloc, instance->device,
                instance->device_count * sizeof(*instance->device));
    instance->device = NULL;
    instance->device_count = 0;
}

/* ---- lost devices ---- */

static void tell(const struct ifd_instance_device *device, const struct ifd_registry *registry,
                 const struct ifd_err *reason)
{
    if (registry->changed) {
        registry->changed(registry->listener, device->slot->name, reason);
    }
}

bool ifd_devices_were_lost(struct ifd_instance *instance, enum ifd_code code,
                           const struct ifd_err *err)
{
    const struct ifd_registry *registry = instance->table[0].executable->registry;
    bool were_lost = false;
    for (uint32_t d = 0; d < instance->device_count; d++) {
        struct ifd_instance_device *device = &instance->device[d];
        if (device->is_lost && ifd_health_fail(&device->slot->health, ifd_monotonic_ns(), err)) {
            tell(device, registry, err);
        }
        if (code == IFD_OK && ifd_health_pass(&device->slot->health)) {
            tell(device, registry, NULL);
        }
        were_lost |= device->is_lost;
    }
    if (were_lost) {
        ifd_devices_close(instance);
    }
    return were_lost;
}

enum ifd_code ifd_devices_start(struct ifd_instance *instance, struct ifd_err *err)
{
    struct ifd_err why = {0};
    const enum ifd_code code = open_devices(instance, &why);
    if (code == IFD_OK || (ifd_devices_were_lost(instance, code, &why) && instance->spare)) {
        return IFD_OK;
    }
    if (err) {
        *err = why;
    }
    return code;
}

enum ifd_code ifd_devices_ready(struct ifd_instance *instance, struct ifd_err *err)
{
    const struct ifd_plan *plan = plan_of(instance);
    enum ifd_code code = IFD_OK;
    for (uint32_t d = 0; code == IFD_OK && d < plan->device_count; d++) {
        struct ifd_registry *registry = instance->table[0].executable->registry;
        code = ifd_health_admit(&registry->slot[plan->device[d].backend].health, ifd_monotonic_ns(),
                                err);
    }
    if (code == IFD_OK && !instance->device) {
        code = open_devices(instance, err);
        if (code != IFD_OK && !ifd_devices_were_lost(instance, code, err)) {
            ifd_devices_close(instance);
        }
    }
    return code;
}

/* ---- a run ---- */

static enum ifd_code transfer(struct ifd_instance_device *device,
                              const struct ifd_instance_table *table, uint32_t p,
                              struct ifd_err *err)
{
    const struct ifd_plan *plan = &table->executable->plan;
    const struct ifd_plan_partition *partition = &plan->partition[p];
    const struct ifd_executable_part *part = &table->executable->part[p];
    const struct ifd_plan_value *from = &plan->value[partition->input[0]];
    const struct ifd_plan_value *to = &plan->value[partition->output[0]];
    if (partition->task == IFD_PLAN_WRITE) {
        return device->ops->write(device->context, to->offset, table->pointer[part->input_at],
                                  to->bytes, err);
    }
    return device->ops->read(device->context, from->offset, table->pointer[part->output_at],
                             from->bytes, &table->fence[p], err);
}

/* Between what came before and what follows: a read alone only asks for the copy. */
static enum ifd_code transfer_timed(struct ifd_instance_device *device,
                                    const struct ifd_instance_table *table, uint32_t p,
                                    uint64_t *step_ns, struct ifd_err *err)
{
    enum ifd_code code = device->ops->wait(device->context, UINT64_MAX, err);
    const uint64_t before = ifd_monotonic_ns();
    if (code == IFD_OK) {
        code = transfer(device, table, p, err);
    }
    if (code == IFD_OK) {
        code = device->ops->wait(device->context, UINT64_MAX, err);
    }
    *step_ns += ifd_monotonic_ns() - before;
    return note(device, code, err);
}

enum ifd_code ifd_devices_submit(struct ifd_instance *instance,
                                 const struct ifd_instance_table *table, uint32_t p,
                                 uint64_t *counters, struct ifd_err *err)
{
    const struct ifd_plan_partition *partition = &table->executable->plan.partition[p];
    struct ifd_instance_device *device = &instance->device[partition->memory - 1];
    if (partition->task == IFD_PLAN_RUN) {
        return note(device, device->ops->submit(device->context, table->bound[p], counters, err),
                    err);
    }
    return counters ? transfer_timed(device, table, p, counters, err)
                    : note(device, transfer(device, table, p, err), err);
}

enum ifd_code ifd_devices_await(struct ifd_instance *instance,
                                const struct ifd_instance_table *table, uint32_t p,
                                struct ifd_err *err)
{
    const struct ifd_plan *plan = &table->executable->plan;
    enum ifd_code code = IFD_OK;
    for (uint32_t read = plan->partition[p].wait; code == IFD_OK && read != IFD_NO_PARTITION;
         read = plan->partition[read].next_wait) {
        struct ifd_instance_device *device = &instance->device[plan->partition[read].memory - 1];
        code = note(device, device->ops->wait(device->context, table->fence[read], err), err);
    }
    return code;
}

enum ifd_code ifd_devices_finish(struct ifd_instance *instance, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t d = 0; d < instance->device_count; d++) {
        struct ifd_instance_device *device = &instance->device[d];
        struct ifd_err *first = code == IFD_OK ? err : NULL;
        const enum ifd_code one =
            note(device, device->ops->wait(device->context, UINT64_MAX, first), first);
        code = code == IFD_OK ? one : code;
    }
    return code;
}
