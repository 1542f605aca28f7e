/* A run: bind the callers' tensors, walk the partitions, hand the results over. Allocates nothing. */
#include "engine/exec/exec_impl.h"

#include "engine/base/clock.h"

static void bind_port(const struct ifd_instance_table *table, uint32_t value, void *pointer)
{
    const struct ifd_executable *executable = table->executable;
    for (uint32_t i = executable->entry_first[value]; i < executable->entry_first[value + 1]; i++) {
        table->pointer[executable->entry[i]] = pointer;
    }
}

static void bind_ports(const struct ifd_instance *instance, const struct ifd_instance_table *table)
{
    const struct ifd_plan *plan = &table->executable->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        bind_port(table, plan->input[i], instance->input[i]);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        bind_port(table, plan->output[i].value, instance->output[i]);
    }
}

/* Counters are those of the first executable; a partition that another batch size cut into other steps is not counted. */
static uint64_t *counters_of(const struct ifd_instance *instance,
                             const struct ifd_executable *executable, uint32_t p)
{
    const struct ifd_executable_part *counted = &instance->table[0].executable->part[p];
    if (!instance->profile || counted->info.step_count != executable->part[p].info.step_count) {
        return NULL;
    }
    return instance->step_ns + counted->first_step;
}

static enum ifd_code walk(const struct ifd_instance *instance,
                          const struct ifd_instance_table *table, const struct ifd_team *team,
                          struct ifd_err *err)
{
    const struct ifd_executable *executable = table->executable;
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        const struct ifd_executable_part *part = &executable->part[p];
        const struct ifd_binding binding = {
            .input = (const void *const *)(table->pointer + part->input_at),
            .output = table->pointer + part->output_at,
            .scratch = instance->arena + executable->plan.partition[p].scratch_offset,
            .team = team,
            .step_ns = counters_of(instance, executable, p),
            .now_ns = ifd_monotonic_ns,
        };
        const enum ifd_code code = part->backend->run(part->compiled, &binding, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

/* The largest executable that has no more samples than are left. The first has 1. */
static const struct ifd_instance_table *choose(const struct ifd_instance *instance, int64_t left)
{
    uint32_t i = instance->table_count - 1;
    while (i > 0 && instance->table[i].executable->batch > left) {
        i--;
    }
    return &instance->table[i];
}

enum ifd_code ifd_instance_run(struct ifd_instance *instance, const struct ifd_io *io,
                               uint32_t io_count, struct ifd_err *err)
{
    struct ifd_callers callers = {.io = io, .count = io_count};
    enum ifd_code code = ifd_io_check(instance, io, io_count, &callers.batch, err);
    int64_t done = 0;
    struct ifd_team team = *instance->team;
    team.count = ifd_cores_take(instance->cores, team.count);
    while (code == IFD_OK && done < callers.batch) {
        const struct ifd_instance_table *table = choose(instance, callers.batch - done);
        const struct ifd_chunk chunk = {.first = done, .count = table->executable->batch};
        instance->is_split = chunk.count < callers.batch;
        ifd_io_bind(instance, table->executable, &callers, chunk);
        bind_ports(instance, table);
        code = walk(instance, table, &team, err);
        if (code == IFD_OK) {
            ifd_io_collect(instance, table->executable, &callers, chunk);
        }
        done += chunk.count;
    }
    ifd_cores_give(instance->cores, team.count);
    if (code == IFD_OK) {
        ifd_io_describe(instance, &callers);
    }
    return code;
}
