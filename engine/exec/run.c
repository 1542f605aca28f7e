/* A run: binds the callers' tensors, runs the partitions, collects the results. Allocates nothing,
 * unless it brings shapes that are not planned yet, it makes texts, or a device was lost. */
#include "engine/exec/exec_impl.h"

#include "engine/base/clock.h"
#include "engine/exec/control.h"

/* The counters of a partition's steps are those of the first executable; without a like there, the
 * one behind them all. */
static uint64_t *counters_of(const struct ifd_instance *instance, uint32_t p)
{
    const struct ifd_executable *first = instance->table[0].executable;
    return instance->step_ns +
           (p < first->plan.partition_count ? first->part[p].first_step : first->step_count);
}

/* Has the partition the same steps there? Others are timed as one. */
static bool has_counters(const struct ifd_instance *instance,
                         const struct ifd_executable *executable, uint32_t p)
{
    const struct ifd_executable *first = instance->table[0].executable;
    return p < first->plan.partition_count &&
           first->part[p].info.step_count == executable->part[p].info.step_count;
}

bool ifd_callers_are_gone(const void *context)
{
    const struct ifd_callers *callers = context;
    for (uint32_t i = 0; i < callers->count; i++) {
        const struct ifd_io *io = &callers->io[i];
        if (!io->is_over || !io->is_over(io->is_over_context)) {
            return false;
        }
    }
    return true;
}

static enum ifd_code run_on_host(struct ifd_instance *instance,
                                 const struct ifd_instance_table *table, uint32_t p,
                                 const struct ifd_team *team, const struct ifd_callers *callers,
                                 uint64_t *step_ns, struct ifd_err *err)
{
    const struct ifd_executable_part *part = &table->executable->part[p];
    const struct ifd_binding binding = {
        .input = (const void *const *)(table->pointer + part->input_at),
        .output = table->pointer + part->output_at,
        .scratch = instance->arena + table->executable->plan.partition[p].scratch_offset,
        .team = team,
        .step_ns = step_ns,
        .now_ns = ifd_monotonic_ns,
        .deadline_ns = callers->deadline_ns,
        .texts = &instance->texts.base,
        .is_over = ifd_callers_are_gone,
        .is_over_context = callers,
    };
    return part->backend->run(part->compiled, &binding, err);
}

static enum ifd_code run_partition(struct ifd_instance *instance,
                                   const struct ifd_instance_table *table, uint32_t p,
                                   const struct ifd_team *team, const struct ifd_callers *callers,
                                   uint64_t *step_ns, struct ifd_err *err)
{
    return table->executable->plan.partition[p].memory == 0
               ? run_on_host(instance, table, p, team, callers, step_ns, err)
               : ifd_devices_submit(instance, table, p, step_ns, err);
}

static enum ifd_code profile_partition(struct ifd_instance *instance,
                                       const struct ifd_instance_table *table, uint32_t p,
                                       const struct ifd_team *team,
                                       const struct ifd_callers *callers, struct ifd_err *err)
{
    uint64_t *step_ns = counters_of(instance, p);
    if (has_counters(instance, table->executable, p)) {
        return run_partition(instance, table, p, team, callers, step_ns, err);
    }
    const uint64_t before = ifd_monotonic_ns();
    enum ifd_code code = run_partition(instance, table, p, team, callers, NULL, err);
    if (code == IFD_OK) {
        code = ifd_devices_finish(instance, err);
    }
    *step_ns += ifd_monotonic_ns() - before;
    return code;
}

static enum ifd_code walk(struct ifd_instance *instance, const struct ifd_instance_table *table,
                          const struct ifd_team *team, const struct ifd_callers *callers,
                          struct ifd_err *err)
{
    const struct ifd_plan *plan = &table->executable->plan;
    enum ifd_code code = IFD_OK;
    for (uint32_t p = 0; code == IFD_OK && p < plan->partition_count; p++) {
        const struct ifd_plan_partition *partition = &plan->partition[p];
        if (partition->wait != IFD_NO_PARTITION) {
            code = ifd_devices_await(instance, table, p, err);
        }
        if (code == IFD_OK) {
            code = instance->profile ? profile_partition(instance, table, p, team, callers, err)
                                     : run_partition(instance, table, p, team, callers, NULL, err);
        }
    }
    if (instance->device_count > 0) {
        const enum ifd_code ended = ifd_devices_finish(instance, code == IFD_OK ? err : NULL);
        code = code == IFD_OK ? ended : code;
    }
    return code;
}

/* The largest executable with at most as many samples as are left. The first has 1. */
static struct ifd_instance_table *choose(struct ifd_instance *instance, int64_t left)
{
    uint32_t i = instance->table_count - 1;
    while (i > 0 && instance->table[i].executable->batch > left) {
        i--;
    }
    return &instance->table[i];
}

/* A helper that sleeps comes too late for a run of this length, and waking it takes time from the
 * run and a core from the client. */
#define WAKE_NS UINT64_C(100000)

static bool pays_waking(const struct ifd_instance *instance, const struct ifd_pace *pace)
{
    return pace->mean_ns == 0 || pace->mean_ns > WAKE_NS || !ifd_team_sleeps(&instance->team);
}

/* Runs a chunk with as many threads as pay and have cores. */
static enum ifd_code run_chunk(struct ifd_instance *instance, struct ifd_instance_table *table,
                               const struct ifd_callers *callers, struct ifd_chunk chunk,
                               struct ifd_err *err)
{
    const uint32_t threads = ifd_pace_choose(&table->pace);
    struct ifd_team team = instance->team;
    const uint64_t before = ifd_monotonic_ns();
    team.count =
        ifd_cores_take(instance->cores, pays_waking(instance, &table->pace) ? threads : 1, before);
    atomic_store_explicit(&instance->is_alone, team.count == 1, memory_order_relaxed);
    ifd_io_bind(instance, table->executable, callers, chunk);
    ifd_executable_bind(table->executable, table->pointer, instance->input, instance->output);
    const enum ifd_code code = walk(instance, table, &team, callers, err);
    if (code == IFD_OK) {
        ifd_executable_copy_outputs(table->executable, instance->input, instance->output);
        ifd_io_collect(instance, callers, chunk);
    }
    const uint64_t after = ifd_monotonic_ns();
    if (team.count == threads) {
        ifd_pace_note(&table->pace, after - before);
    }
    ifd_cores_give(instance->cores, team.count, after);
    return code;
}

/* A run goes on while one of its callers waits. 0: all have the default, which counts from the
 * first turn of a loop. */
static uint64_t latest_deadline(const struct ifd_io *io, uint32_t io_count)
{
    uint64_t latest_ns = 0;
    uint32_t defaults = 0;
    for (uint32_t i = 0; i < io_count; i++) {
        latest_ns = io[i].deadline_ns > latest_ns ? io[i].deadline_ns : latest_ns;
        defaults += io[i].deadline_ns == 0;
    }
    if (defaults == 0 || latest_ns == 0) {
        return latest_ns;
    }
    const uint64_t default_ns = ifd_monotonic_ns() + IFD_LOOP_NS;
    return default_ns > latest_ns ? default_ns : latest_ns;
}

static enum ifd_code run_bound(struct ifd_instance *instance, const struct ifd_io *io,
                               uint32_t io_count, struct ifd_err *err)
{
    struct ifd_callers callers = {
        .io = io, .count = io_count, .deadline_ns = latest_deadline(io, io_count)};
    if (instance->populates) { /* what never runs takes no memory */
        ifd_populate_pages(instance->arena, instance->table[0].executable->plan.arena_bytes);
        instance->populates = false;
    }
    enum ifd_code code = ifd_io_check(instance, io, io_count, &callers.batch, err);
    int64_t done = 0;
    ifd_text_store_reset(&instance->texts);
    while (code == IFD_OK && done < callers.batch) {
        struct ifd_instance_table *table = choose(instance, callers.batch - done);
        const struct ifd_chunk chunk = {.first = done, .count = table->executable->batch};
        instance->is_split = chunk.count < callers.batch;
        code = run_chunk(instance, table, &callers, chunk, err);
        done += chunk.count;
    }
    if (code == IFD_OK) {
        ifd_io_describe(instance, &callers);
    }
    return code;
}

/* What the devices cannot do, the spare instance does. */
static enum ifd_code run_spare(struct ifd_instance *instance, const struct ifd_io *io,
                               uint32_t io_count, const struct ifd_err *lost, struct ifd_err *err)
{
    struct ifd_instance *spare = NULL;
    struct ifd_err why = {0};
    const enum ifd_code code =
        instance->spare ? instance->spare->get(instance->spare, &spare, &why) : IFD_UNSUPPORTED;
    if (code != IFD_OK) {
        return ifd_fail(err, IFD_UNAVAILABLE, "%s; without it: %s", lost->text, why.text);
    }
    return run_bound(spare, io, io_count, err);
}

static enum ifd_code run_on_devices(struct ifd_instance *instance, const struct ifd_io *io,
                                    uint32_t io_count, struct ifd_err *err)
{
    struct ifd_err why = {0};
    enum ifd_code code = ifd_devices_ready(instance, &why);
    if (code == IFD_OK) {
        code = run_bound(instance, io, io_count, &why);
        if (!ifd_devices_were_lost(instance, code, &why)) {
            if (err) {
                *err = why;
            }
            return code;
        }
    }
    return run_spare(instance, io, io_count, &why, err);
}

static enum ifd_code run_once(struct ifd_instance *instance, const struct ifd_io *io,
                              uint32_t io_count, struct ifd_err *err)
{
    return instance->table[0].executable->plan.device_count > 0
               ? run_on_devices(instance, io, io_count, err)
               : run_bound(instance, io, io_count, err);
}

/* A model in which data decides shapes is several, one behind the other. */
static enum ifd_code run_chain(struct ifd_shapes *shapes, const struct ifd_io *io,
                               uint32_t io_count, struct ifd_err *err)
{
    struct ifd_instance *chosen = NULL;
    struct ifd_io part;
    enum ifd_code code = shapes->first(shapes, io, io_count, &chosen, &part, err);
    while (code == IFD_OK && chosen) {
        code = run_once(chosen, io_count > 1 ? io : &part, io_count, err);
        if (code == IFD_OK) {
            code = shapes->next(shapes, io, &chosen, &part, err);
        }
    }
    return code;
}

enum ifd_code ifd_instance_run(struct ifd_instance *instance, const struct ifd_io *io,
                               uint32_t io_count, struct ifd_err *err)
{
    return instance->shapes && io_count > 0 ? run_chain(instance->shapes, io, io_count, err)
                                            : run_once(instance, io, io_count, err);
}
