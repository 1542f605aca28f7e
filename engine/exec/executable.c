/* Compiles a plan: partitions, arena, and the tables in which a run finds its pointers. */
#include "engine/exec/executable.h"

#include "engine/base/str.h"
#include "engine/exec/control.h"

#include <string.h>

/* Several devices may have one backend: its name is that of the slot. */
static const char *name_of(const struct ifd_executable *executable, uint32_t p)
{
    const uint32_t backend = executable->plan.partition[p].backend;
    return backend == IFD_PLAN_CONTROL ? ifd_control_backend.name
                                       : executable->registry->slot[backend].name;
}

static enum ifd_code compile_part(struct ifd_executable *executable, uint32_t p,
                                  const struct ifd_plan_options *options,
                                  const struct ifd_executable *share_with, size_t limit_bytes,
                                  struct ifd_err *err)
{
    struct ifd_executable_part *part = &executable->part[p];
    const struct ifd_partition_view *view = &executable->plan.view[p];
    const uint32_t backend = executable->plan.partition[p].backend;
    enum ifd_code code = IFD_OK;
    if (backend == IFD_PLAN_CONTROL) {
        part->backend = &ifd_control_backend;
        code = ifd_control_compile(view, options, limit_bytes, &part->compiled, &part->info, err);
    } else {
        struct ifd_backend_slot *slot = &options->registry->slot[backend];
        part->backend = slot->backend;
        code =
            ifd_backend_slot_compile(slot, view, share_with ? share_with->part[p].compiled : NULL,
                                     &part->compiled, &part->info, err);
    }
    if (code != IFD_OK) {
        part->compiled = NULL;
        ifd_err_prefix(err, "backend %s", name_of(executable, p));
        return code;
    }
    if (executable->plan.partition[p].memory == 0) {
        executable->constant_bytes += part->info.constant_bytes;
    } else {
        executable->device_bytes += part->info.constant_bytes;
    }
    return IFD_OK;
}

static enum ifd_code describe_copy(struct ifd_executable *executable, uint32_t p,
                                   struct ifd_arena *arena, struct ifd_err *err)
{
    const struct ifd_plan_partition *partition = &executable->plan.partition[p];
    const struct ifd_backend *backend = executable->registry->slot[partition->backend].backend;
    const bool is_read = partition->task == IFD_PLAN_READ;
    char text[80];
    (void)ifd_str_format(text, sizeof(text), "%s to %s, %zu bytes",
                         is_read ? backend->memory->kind : "host",
                         is_read ? "host" : backend->memory->kind,
                         executable->plan.value[partition->input[0]].bytes);
    executable->part[p] = (struct ifd_executable_part){
        .backend = backend,
        .copy_text = ifd_arena_text(arena, text, strlen(text)),
        .info = {.step_count = 1, .exact = true, .precision = IFD_PRECISION_F32}};
    return executable->part[p].copy_text ? IFD_OK : ifd_arena_fail(arena, strlen(text), err);
}

static enum ifd_code compile_all(struct ifd_executable *executable,
                                 const struct ifd_plan_options *options,
                                 const struct ifd_executable *share_with, size_t limit_bytes,
                                 struct ifd_arena *arena, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t p = 0; code == IFD_OK && p < executable->plan.partition_count; p++) {
        code = executable->plan.partition[p].task == IFD_PLAN_RUN
                   ? compile_part(executable, p, options, share_with, limit_bytes, err)
                   : describe_copy(executable, p, arena, err);
        executable->part[p].first_step = executable->step_count;
        executable->step_count += executable->part[p].info.step_count;
    }
    return code;
}

static void number_tables(struct ifd_executable *executable)
{
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        const struct ifd_plan_partition *partition = &executable->plan.partition[p];
        executable->part[p].input_at = executable->table_count;
        executable->table_count += partition->input_count;
        executable->part[p].output_at = executable->table_count;
        executable->table_count += partition->output_count;
    }
}

static void fill_table(const struct ifd_plan *plan, uint32_t *table)
{
    uint32_t at = 0;
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        for (uint32_t i = 0; i < plan->partition[p].input_count; i++) {
            table[at++] = plan->partition[p].input[i];
        }
        for (uint32_t i = 0; i < plan->partition[p].output_count; i++) {
            table[at++] = plan->partition[p].output[i];
        }
    }
}

/* Sorts the entries of the table by value (counting sort). */
static void invert_table(const struct ifd_executable *executable, uint32_t *entry, uint32_t *first)
{
    const uint32_t values = executable->plan.value_count;
    for (uint32_t i = 0; i < executable->table_count; i++) {
        first[executable->table_value[i] + 1]++;
    }
    for (uint32_t v = 0; v < values; v++) {
        first[v + 1] += first[v];
    }
    for (uint32_t i = executable->table_count; i-- > 0;) {
        /* Filled from the back: the end of each range moves to its start. */
        entry[--first[executable->table_value[i] + 1]] = i;
    }
    for (uint32_t v = 0; v < values; v++) {
        first[v] = first[v + 1];
    }
    first[values] = executable->table_count;
}

static enum ifd_code build_tables(struct ifd_executable *executable, struct ifd_arena *arena,
                                  struct ifd_err *err)
{
    const size_t values = executable->plan.value_count;
    number_tables(executable);
    uint32_t *table = ifd_arena_take_array(arena, executable->table_count, sizeof(*table));
    uint32_t *entry = ifd_arena_take_array(arena, executable->table_count, sizeof(*entry));
    uint32_t *first = ifd_arena_take_array(arena, values + 1, sizeof(*first));
    if (!table || !entry || !first) {
        return ifd_arena_fail(arena, executable->table_count * sizeof(*table), err);
    }
    fill_table(&executable->plan, table);
    executable->table_value = table;
    invert_table(executable, entry, first);
    executable->entry = entry;
    executable->entry_first = first;
    return IFD_OK;
}

/* ifd_plan_memory reads the reports of all partitions as one array. */
static enum ifd_code lay_out(struct ifd_executable *executable, size_t limit_bytes,
                             struct ifd_arena *arena, struct ifd_err *err)
{
    const uint32_t count = executable->plan.partition_count;
    struct ifd_partition_info *info = ifd_arena_take_array(arena, count, sizeof(*info));
    if (!info) {
        return ifd_arena_fail(arena, count * sizeof(*info), err);
    }
    for (uint32_t p = 0; p < count; p++) {
        info[p] = executable->part[p].info;
    }
    return ifd_plan_memory(&executable->plan, info, limit_bytes, arena->alloc, err);
}

enum ifd_code ifd_executable_init(struct ifd_executable *executable, struct ifd_plan *plan,
                                  int64_t batch, const struct ifd_plan_options *options,
                                  const struct ifd_executable *share_with, size_t limit_bytes,
                                  struct ifd_arena *arena, struct ifd_err *err)
{
    *executable =
        (struct ifd_executable){.registry = options->registry, .batch = batch, .plan = *plan};
    executable->part =
        ifd_arena_take_array(arena, plan->partition_count, sizeof(*executable->part));
    if (!executable->part) {
        executable->plan.partition_count = 0;
        return ifd_arena_fail(arena, plan->partition_count * sizeof(*executable->part), err);
    }
    enum ifd_code code = compile_all(executable, options, share_with, limit_bytes, arena, err);
    executable->plan.view = NULL;
    if (code == IFD_OK) {
        code = lay_out(executable, limit_bytes, arena, err);
    }
    if (code == IFD_OK) {
        code = build_tables(executable, arena, err);
    }
    if (code != IFD_OK) {
        ifd_executable_finish(executable);
    }
    return code;
}

void ifd_executable_finish(struct ifd_executable *executable)
{
    for (uint32_t p = executable->plan.partition_count; p-- > 0;) {
        if (executable->part[p].compiled) {
            executable->part[p].backend->release(executable->part[p].compiled);
        }
    }
    *executable = (struct ifd_executable){0};
}

void ifd_executable_place(const struct ifd_executable *executable, void **pointer, uint8_t *arena)
{
    for (uint32_t k = 0; k < executable->table_count; k++) {
        const struct ifd_plan_value *value = &executable->plan.value[executable->table_value[k]];
        pointer[k] = value->memory == 0 ? arena + value->offset : NULL;
    }
}

static void bind_port(const struct ifd_executable *executable, void **pointer, uint32_t value,
                      void *memory)
{
    for (uint32_t i = executable->entry_first[value]; i < executable->entry_first[value + 1]; i++) {
        pointer[executable->entry[i]] = memory;
    }
}

void ifd_executable_bind(const struct ifd_executable *executable, void **pointer,
                         void *const *input, void *const *output)
{
    const struct ifd_plan *plan = &executable->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        bind_port(executable, pointer, plan->input[i], input[i]);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        bind_port(executable, pointer, plan->output[i].value, output[i]);
    }
}

void ifd_executable_copy_outputs(const struct ifd_executable *executable, void *const *input,
                                 void *const *output)
{
    const struct ifd_plan *plan = &executable->plan;
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const struct ifd_plan_output *port = &plan->output[i];
        const void *from = NULL;
        switch (port->kind) {
        case IFD_PLAN_MADE:
            continue;
        case IFD_PLAN_CONSTANT:
            from = port->constant;
            break;
        case IFD_PLAN_INPUT:
            from = input[port->source];
            break;
        case IFD_PLAN_OUTPUT:
            from = output[port->source];
            break;
        }
        if (plan->value[port->value].bytes > 0) {
            memcpy(output[i], from, plan->value[port->value].bytes);
        }
    }
}

const char *ifd_executable_memory_kind(const struct ifd_executable *executable, uint32_t memory)
{
    if (memory == 0) {
        return "host";
    }
    const uint32_t backend = executable->plan.device[memory - 1].backend;
    return executable->registry->slot[backend].backend->memory->kind;
}

/* Last partition that starts at or before step. */
static uint32_t part_of_step(const struct ifd_executable *executable, uint32_t step)
{
    uint32_t low = 0, high = executable->plan.partition_count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (executable->part[middle].first_step <= step) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

void ifd_executable_step(const struct ifd_executable *executable, uint32_t step,
                         struct ifd_plan_step *ret)
{
    const uint32_t p = part_of_step(executable, step);
    const struct ifd_executable_part *part = &executable->part[p];
    const struct ifd_plan_partition *partition = &executable->plan.partition[p];
    *ret = (struct ifd_plan_step){.step = {.name = partition->op_name, .kernel = "", .output = ""},
                                  .backend = name_of(executable, p),
                                  .partition = p};
    const bool is_last = step + 1 == part->first_step + part->info.step_count;
    if (partition->output_count > 0 && is_last) {
        const struct ifd_plan_value *value = &executable->plan.value[partition->output[0]];
        ret->step.output = value->name;
        ret->arena_offset = value->offset;
        ret->arena_bytes = value->bytes;
    }
    if (part->copy_text) {
        ret->step.kernel = part->copy_text;
    } else if (part->backend->describe) {
        part->backend->describe(part->compiled, step - part->first_step, &ret->step);
    }
}
