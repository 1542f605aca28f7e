/* Memory of an instance: all that a run needs is taken here. */
#include "engine/exec/instance.h"

#include "engine/base/team.h"

int64_t ifd_batch_size(uint32_t index)
{
    return index < IFD_BATCH_DENSE ? (int64_t)index + 1
                                   : (int64_t)IFD_BATCH_DENSE << (index - IFD_BATCH_DENSE + 1);
}

size_t ifd_port_sample_bytes(const struct ifd_port *port)
{
    size_t bytes = ifd_dtype_bytes(port->desc.dtype);
    for (uint32_t i = port->batched ? 1 : 0; i < port->desc.shape.rank; i++) {
        bytes *= (size_t)port->desc.shape.dim[i];
    }
    return bytes;
}

/* Can a batch up to max_batch take more than one run? */
static bool needs_store(const struct ifd_instance_setup *setup)
{
    const int64_t largest = setup->executable[setup->executable_count - 1]->batch;
    return (int64_t)setup->max_batch > largest || setup->max_batch > IFD_BATCH_DENSE;
}

static enum ifd_code too_large(const struct ifd_instance_setup *setup, struct ifd_err *err)
{
    return ifd_fail(err, IFD_TOO_LARGE,
                    "an instance for batch %u needs more than the limit of %zu bytes",
                    setup->max_batch, setup->limit_bytes);
}

static enum ifd_code take_store(struct ifd_instance *instance,
                                const struct ifd_instance_setup *setup, struct ifd_err *err)
{
    const struct ifd_model_info *info = setup->info;
    size_t total = 0;
    for (uint32_t i = 0; i < info->output_count; i++) {
        size_t bytes = 0;
        instance->store_offset[i] = total;
        if (!ifd_size_mul(ifd_port_sample_bytes(&info->output[i]), setup->max_batch, &bytes) ||
            !ifd_size_add(total, bytes, &total) ||
            !ifd_size_align(total, IFD_TENSOR_ALIGN, &total) || total > setup->limit_bytes) {
            return too_large(setup, err);
        }
    }
    if (setup->borrows_arena) {
        size_t *both = &instance->borrowed_bytes;
        if (!ifd_size_align(instance->arena_bytes, IFD_TENSOR_ALIGN, both) ||
            !ifd_size_add(*both, total, both)) {
            return too_large(setup, err);
        }
    } else {
        instance->store = ifd_acquire_tensor(setup->alloc, total);
        if (!instance->store) {
            return ifd_fail(err, IFD_NOMEM, "no memory for results of %zu bytes", total);
        }
    }
    instance->store_bytes = total;
    return IFD_OK;
}

static enum ifd_code take_arena(struct ifd_instance *instance,
                                const struct ifd_instance_setup *setup, struct ifd_err *err)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < setup->executable_count; i++) {
        const size_t wanted = setup->executable[i]->plan.arena_bytes;
        bytes = wanted > bytes ? wanted : bytes;
    }
    instance->arena_bytes = bytes;
    instance->borrows_arena = setup->borrows_arena;
    if (setup->borrows_arena) {
        instance->borrowed_bytes = bytes;
        return IFD_OK;
    }
    instance->arena = ifd_acquire_tensor(setup->alloc, bytes);
    if (!instance->arena) {
        return ifd_fail(err, IFD_NOMEM, "no memory for tensors of %zu bytes", bytes);
    }
    instance->populates = true;
    return IFD_OK;
}

static void place(struct ifd_instance *instance)
{
    for (uint32_t i = 0; i < instance->table_count; i++) {
        ifd_executable_place(instance->table[i].executable, instance->table[i].pointer,
                             instance->arena);
    }
}

/* One block: the tables of all executables, then one pointer per port. Only ports are bound anew in
 * every run. */
static enum ifd_code take_tables(struct ifd_instance *instance,
                                 const struct ifd_instance_setup *setup, struct ifd_err *err)
{
    const size_t ports = (size_t)setup->info->input_count + setup->info->output_count;
    size_t count = ports;
    for (uint32_t i = 0; i < setup->executable_count; i++) {
        count += setup->executable[i]->table_count;
    }
    instance->pointers = ifd_acquire_zeroed(setup->alloc, count, sizeof(*instance->pointers));
    if (count > 0 && !instance->pointers) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu pointers", count);
    }
    instance->pointers_bytes = count * sizeof(*instance->pointers);
    const uint32_t most =
        setup->threads < setup->cores->count ? setup->threads : setup->cores->count;
    void **next = instance->pointers;
    for (uint32_t i = 0; i < setup->executable_count; i++) {
        const struct ifd_executable *executable = setup->executable[i];
        instance->table[i] = (struct ifd_instance_table){
            .executable = executable, .pointer = next, .pace = ifd_pace_init(most)};
        next += executable->table_count;
    }
    instance->table_count = setup->executable_count;
    instance->input = next;
    instance->output = next + setup->info->input_count;
    if (!instance->borrows_arena) {
        place(instance);
    }
    return IFD_OK;
}

void ifd_instance_place(struct ifd_instance *instance, uint8_t *memory)
{
    instance->arena = memory;
    instance->store = instance->store_bytes > 0
                          ? memory + instance->borrowed_bytes - instance->store_bytes
                          : NULL;
    place(instance);
}

static enum ifd_code take_counters(struct ifd_instance *instance,
                                   const struct ifd_instance_setup *setup, struct ifd_err *err)
{
    const uint32_t steps = setup->executable[0]->step_count;
    instance->step_ns =
        ifd_acquire_zeroed(setup->alloc, (size_t)steps + 1, sizeof(*instance->step_ns));
    instance->store_offset = ifd_acquire_zeroed(setup->alloc, (size_t)setup->info->output_count + 1,
                                                sizeof(*instance->store_offset));
    if (!instance->step_ns || !instance->store_offset) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u counters", steps);
    }
    return IFD_OK;
}

enum ifd_code ifd_instance_init(struct ifd_instance *instance,
                                const struct ifd_instance_setup *setup, struct ifd_err *err)
{
    *instance = (struct ifd_instance){.alloc = setup->alloc,
                                      .info = setup->info,
                                      .max_batch = setup->max_batch,
                                      .spare = setup->spare,
                                      .team = ifd_team_part(setup->team, setup->threads),
                                      .cores = setup->cores};
    ifd_text_store_init(&instance->texts, setup->alloc);
    enum ifd_code code = take_arena(instance, setup, err);
    if (code == IFD_OK) {
        code = take_tables(instance, setup, err);
    }
    if (code == IFD_OK) {
        code = take_counters(instance, setup, err);
    }
    if (code == IFD_OK && needs_store(setup)) {
        code = take_store(instance, setup, err);
    }
    if (code == IFD_OK) {
        code = ifd_devices_start(instance, err);
    }
    if (code != IFD_OK) {
        ifd_instance_finish(instance);
    }
    return code;
}

void ifd_instance_finish(struct ifd_instance *instance)
{
    if (!instance->alloc) {
        return;
    }
    const size_t steps = instance->table_count > 0 ? instance->table[0].executable->step_count : 0;
    ifd_devices_close(instance);
    ifd_text_store_finish(&instance->texts);
    ifd_release(instance->alloc, instance->store_offset,
                ((size_t)instance->info->output_count + 1) * sizeof(*instance->store_offset));
    ifd_release(instance->alloc, instance->step_ns, (steps + 1) * sizeof(*instance->step_ns));
    ifd_release(instance->alloc, instance->pointers, instance->pointers_bytes);
    if (!instance->borrows_arena) {
        ifd_release_tensor(instance->alloc, instance->store, instance->store_bytes);
        ifd_release_tensor(instance->alloc, instance->arena, instance->arena_bytes);
    }
    *instance = (struct ifd_instance){0};
}

size_t ifd_instance_bytes(const struct ifd_instance *instance)
{
    return sizeof(*instance) + instance->arena_bytes + instance->pointers_bytes +
           instance->store_bytes;
}

size_t ifd_instance_device_bytes(const struct ifd_instance *instance)
{
    size_t bytes = 0;
    for (uint32_t d = 0; d < instance->device_count; d++) {
        bytes += instance->device[d].bytes;
    }
    return bytes;
}

void ifd_instance_expect(const struct ifd_instance *instance)
{
    if (!atomic_load_explicit(&instance->is_alone, memory_order_relaxed)) {
        ifd_team_expect(&instance->team);
    }
}

void ifd_instance_rest(const struct ifd_instance *instance)
{
    ifd_team_rest(&instance->team);
}

void ifd_instance_profile(struct ifd_instance *instance, bool on)
{
    for (uint32_t i = 0; on && i < instance->table[0].executable->step_count; i++) {
        instance->step_ns[i] = 0;
    }
    instance->profile = on;
}

void ifd_instance_step_ns(const struct ifd_instance *instance, uint64_t *ret_ns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_ns[i] = instance->step_ns[i];
    }
}
